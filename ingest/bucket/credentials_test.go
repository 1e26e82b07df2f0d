package bucket_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"entropipe/ingest/bucket"
)

// Marks of what must be in no text.
const (
	secretKey    = "SECRETKEYOFTHETEST"
	sessionToken = "SESSIONTOKENOFTHETEST"
	identity     = "IDENTITYOFTHETEST"
)

// emptyList is the answer of a bucket without objects.
const emptyList = "<ListBucketResult><Name>archive</Name><IsTruncated>false</IsTruncated></ListBucketResult>"

// giver gives out credentials over HTTP, each time with another access key.
type giver struct {
	*httptest.Server
	lasts  atomic.Int64 // time.Duration
	broken atomic.Bool
	given  atomic.Int64
}

func newGiver(t *testing.T) *giver {
	g := &giver{}
	g.lasts.Store(int64(time.Hour))
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		end := time.Now().Add(time.Duration(g.lasts.Load())).UTC().Format(time.RFC3339Nano)
		sts := r.Form.Get("Action") != ""
		switch {
		case sts && (g.broken.Load() || r.Form.Get("WebIdentityToken") != identity):
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error>`+
				"<Code>InvalidIdentityToken</Code><Message>no such identity</Message></Error></ErrorResponse>")
		case g.broken.Load():
			w.WriteHeader(http.StatusForbidden)
		case sts:
			fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">`+
				"<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>KEY%d</AccessKeyId><SecretAccessKey>%s"+
				"</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials>"+
				"</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>", g.given.Add(1), secretKey,
				sessionToken, end)
		case r.URL.Path == "/latest/api/token":
			fmt.Fprint(w, "metadata")
		case r.URL.Path == "/latest/meta-data/iam/security-credentials/":
			fmt.Fprint(w, "role")
		default:
			fmt.Fprintf(w, `{"Code": "Success", "AccessKeyId": "KEY%d", "SecretAccessKey": %q, "Token": %q, `+
				`"Expiration": %q}`, g.given.Add(1), secretKey, sessionToken, end)
		}
	}))
	t.Cleanup(g.Close)
	return g
}

// places are those where credentials that end may come from, and what each says when it is
// broken.
var places = []struct {
	name, says string
	set        func(t *testing.T, g *giver)
}{
	{"web identity", "web identity: no such identity", func(t *testing.T, g *giver) {
		t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file(t, "token", 0o600, identity))
		t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/writer")
		t.Setenv("AWS_ENDPOINT_URL_STS", g.URL)
	}},
	{"profile with credential_process", "profile giver: its credential_process ended with exit status 22",
		func(t *testing.T, g *giver) {
			body := `{"Version": 1, "AccessKeyId": "KEY%d", "SecretAccessKey": %q, "SessionToken": %q, ` +
				`"Expiration": %q}`
			g.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if g.broken.Load() {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				end := time.Now().Add(time.Duration(g.lasts.Load())).UTC().Format(time.RFC3339Nano)
				fmt.Fprintf(w, body, g.given.Add(1), secretKey, sessionToken, end)
			})
			t.Setenv("ENTROPIPE_GIVER", g.URL)
			t.Setenv("AWS_CONFIG_FILE", file(t, "config", 0o600,
				"[profile giver]\ncredential_process = "+os.Args[0]+" -test.run=^TestCredentialProcess$\n"))
			t.Setenv("AWS_PROFILE", "giver")
		}},
	{"role of a container", "role of the container: 403 Forbidden", func(t *testing.T, g *giver) {
		t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", g.URL+"/role")
		t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", sessionToken)
	}},
	{"role of a machine", "role of the machine: 403 Forbidden", func(t *testing.T, g *giver) {
		t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", g.URL)
	}},
}

// TestCredentialProcess is the credential_process of a profile: it prints what the giver gives.
func TestCredentialProcess(t *testing.T) {
	url := os.Getenv("ENTROPIPE_GIVER")
	if url == "" {
		t.Skip("another test runs it as a process")
	}
	fmt.Fprintln(os.Stderr, secretKey)
	r, err := http.Get(url)
	if err != nil || r.StatusCode != http.StatusOK {
		os.Exit(22)
	}
	io.Copy(os.Stdout, r.Body)
	os.Exit(0)
}

func file(t *testing.T, name string, mode os.FileMode, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// client returns a client of a server that is handed each access key.
func client(t *testing.T, key *atomic.Pointer[string]) *bucket.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		name, _, _ := strings.Cut(rest, "/")
		key.Store(&name)
		if r.Header.Get("X-Amz-Security-Token") != sessionToken {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, emptyList)
	}))
	t.Cleanup(server.Close)
	c, err := bucket.New(bucket.Config{Address: bucket.Address{Bucket: "archive"}, Endpoint: server.URL,
		Wait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// nowhere empties all places of credentials.
func nowhere(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_EC2_METADATA_DISABLED", "AWS_ACCESS_KEY", "AWS_SECRET_KEY"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file(t, "credentials", 0o600, ""))
	t.Setenv("AWS_CONFIG_FILE", file(t, "config", 0o600, ""))
}

// roundTrip is a transport without a network.
type roundTrip func(r *http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// Law: credentials that cannot be renewed serve until they expire.
func TestCredentialsServeUntilTheyExpire(t *testing.T) {
	nowhere(t)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/role")
	synctest.Test(t, func(t *testing.T) {
		broken, asked := false, 0
		c, err := bucket.New(bucket.Config{Address: bucket.Address{Bucket: "archive"}, Endpoint: "http://127.0.0.1:2",
			Wait: time.Millisecond, Transport: roundTrip(func(r *http.Request) *http.Response {
				rec := httptest.NewRecorder()
				switch {
				case r.URL.Path != "/role":
					fmt.Fprint(rec, emptyList)
				case broken:
					asked++
					rec.WriteHeader(http.StatusForbidden)
				default:
					fmt.Fprintf(rec, `{"Code": "Success", "AccessKeyId": "KEY", "SecretAccessKey": %q, "Token": %q, `+
						`"Expiration": %q}`, secretKey, sessionToken,
						time.Now().Add(time.Hour).Format(time.RFC3339Nano))
				}
				return rec.Result()
			})})
		if err != nil {
			t.Fatal(err)
		}
		list := func() error {
			return c.List(t.Context(), ".", false, func(bucket.Entry) error { return nil })
		}
		for _, after := range []time.Duration{0, 40 * time.Minute, 15 * time.Minute} {
			time.Sleep(after)
			if err := list(); err != nil {
				t.Fatal(err)
			}
			broken = true
		}
		if asked == 0 {
			t.Error("nobody asked for new credentials")
		}
		time.Sleep(5 * time.Minute)
		oneClearLine(t, list(), "the credentials have expired", "role of the container: 403 Forbidden")
		broken = false
		if err := list(); err != nil {
			t.Error(err)
		}
	})
}

// Law: each place gives credentials, which are asked for again before they end; credentials
// that cannot be renewed serve to their end; and then one line says why, without a secret.
func TestCredentialsOfEveryPlace(t *testing.T) {
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			nowhere(t)
			g := newGiver(t)
			p.set(t, g)
			var key atomic.Pointer[string]
			c := client(t, &key)
			list := func() error {
				return c.List(t.Context(), ".", false, func(bucket.Entry) error { return nil })
			}
			for range 3 { // an hour: asked once
				if err := list(); err != nil {
					t.Fatal(err)
				}
			}
			if n := g.given.Load(); n != 1 || *key.Load() != "KEY1" {
				t.Errorf("given %d times, sent %s", n, *key.Load())
			}
			old := client(t, &key) // its credentials are over at once
			g.lasts.Store(int64(time.Millisecond))
			list = func() error {
				return old.List(t.Context(), ".", false, func(bucket.Entry) error { return nil })
			}
			before := g.given.Load()
			for range 2 {
				time.Sleep(2 * time.Millisecond)
				if err := list(); err != nil {
					t.Fatal(err)
				}
			}
			if n := g.given.Load(); n < before+2 {
				t.Errorf("renewed %d times", n-before)
			}
			g.broken.Store(true)
			time.Sleep(2 * time.Millisecond)
			oneClearLine(t, list(), "the credentials have expired, and there are no new ones", p.says)
			fresh := client(t, &key)
			oneClearLine(t, fresh.List(t.Context(), ".", false, func(bucket.Entry) error { return nil }),
				"there are no credentials", p.says)
		})
	}
}

func oneClearLine(t *testing.T, err error, want ...string) {
	t.Helper()
	fault := (*bucket.Fault)(nil)
	if !errors.As(err, &fault) {
		t.Fatalf("%v", err)
	}
	for _, says := range want {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q does not say %q", err, says)
		}
	}
	for _, secret := range []string{secretKey, sessionToken, identity, "\n"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q has %q", err, secret)
		}
	}
}
