package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"entropipe/sinks/s3/s3test"
)

// secrets are what no text may have: credentials, wherever they come from.
var secrets = []string{s3test.AccessKey, s3test.SecretKey, s3test.Token}

// refuseAll refuses every request.
func refuseAll(status int, code string, header map[string]string) func(*http.Request) *s3test.Refusal {
	return func(*http.Request) *s3test.Refusal {
		return &s3test.Refusal{Status: status, Code: code, Header: header}
	}
}

// deny refuses the requests of one action.
func deny(is func(r *http.Request) bool) func(*http.Request) *s3test.Refusal {
	return func(r *http.Request) *s3test.Refusal {
		if is(r) {
			return &s3test.Refusal{Status: http.StatusForbidden, Code: "AccessDenied"}
		}
		return nil
	}
}

// bucketFault is a fault of a bucket, and what a command must say of it.
type bucketFault struct {
	before   func(*http.Request) *s3test.Refusal
	endpoint string // empty: that of the server
	says     string
	writes   bool // commands that only read do not meet it
}

func bucketFaults(t *testing.T, s *s3test.Server) map[string]bucketFault {
	t.Helper()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	secure.StartTLS()
	t.Cleanup(secure.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	region := map[string]string{"X-Amz-Bucket-Region": "eu-west-3"}
	is := func(method string) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.Method == method && r.Header.Get("X-Amz-Copy-Source") == "" }
	}
	return map[string]bucketFault{
		"another region": {before: refuseAll(400, "AuthorizationHeaderMalformed", region),
			says: "but in eu-west-3: say --s3-region eu-west-3"},
		"a redirect":   {before: refuseAll(301, "PermanentRedirect", region), says: "say --s3-region eu-west-3"},
		"the clock":    {before: refuseAll(403, "RequestTimeTooSkewed", nil), says: "more than 15 minutes"},
		"expired":      {before: refuseAll(400, "ExpiredToken", nil), says: "has expired: get new credentials"},
		"unknown key":  {before: refuseAll(403, "InvalidAccessKeyId", nil), says: "not know the access key"},
		"signature":    {before: refuseAll(403, "SignatureDoesNotMatch", nil), says: "not belong to the access key"},
		"denied":       {before: refuseAll(403, "AccessDenied", nil), says: "the credentials lack s3:GetObject"},
		"PUT denied":   {before: deny(is("PUT")), says: "the credentials lack s3:PutObject", writes: true},
		"GET denied":   {before: deny(is("GET")), says: "the credentials lack s3:GetObject"},
		"no bucket":    {before: refuseAll(404, "NoSuchBucket", nil), says: "has no bucket archive: make it"},
		"no TLS":       {endpoint: "https" + strings.TrimPrefix(s.URL, "http"), says: "not speak TLS: say http:"},
		"only TLS":     {endpoint: "http" + strings.TrimPrefix(secure.URL, "https"), says: "TLS only: say https:"},
		"untrusted":    {endpoint: secure.URL, says: "no certificate that is trusted here"},
		"nobody there": {endpoint: closed.URL, says: "cannot be reached"},
		"no such host": {endpoint: "http://store.invalid:9000", says: "cannot be reached"},
		"copy denied": {before: deny(func(r *http.Request) bool { return r.Header.Get("X-Amz-Copy-Source") != "" }),
			says: "the credentials lack s3:PutObject", writes: true},
		"LIST denied": {before: deny(func(r *http.Request) bool { return r.URL.Query().Has("list-type") }),
			says: "the credentials lack s3:ListBucket", writes: true},
		"DELETE denied": {before: deny(func(r *http.Request) bool { return r.URL.Query().Has("delete") }),
			says: "the credentials lack s3:DeleteObject", writes: true},
	}
}

// Law: of every fault of a bucket a command says in one line what is wrong and what to do, at
// every level of the log, and no text has credentials. The commands take turns;
// ENTROPIPE_LONG=1 runs each for each.
func TestFaultsOfABucketInOneLine(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	t.Parallel()
	s, out, _ := inBucket(t)
	brokers, dir := startBroker(t), drives(t, 3, 1, 1)
	must(t, dir, spread(brokers, "points", "a", "--frames", "6", "--rate", "max")...)
	config := fmt.Sprintf("brokers: [%q]\ntopic: [points]\nout: %s\n", brokers, out)
	if err := os.WriteFile(filepath.Join(dir, "c.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := [][]string{
		{"run", "--brokers", brokers, "--topic", "points", "--until-end", "--log-level", "debug"},
		{"validate", "c.yaml", "--connect"},
		{"backfill", ".", "--ops", "hull2d", "--log-level", "debug"},
		{"info", out},
	}
	all := bucketFaults(t, s)
	for n, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		for i, args := range commands {
			reads := args[0] == "info"
			if f.writes && reads || os.Getenv("ENTROPIPE_LONG") == "" && i != n%3 && !(i == 3 && n%3 == 0) {
				continue
			}
			t.Run(name+"/"+args[0], func(t *testing.T) {
				s.Ask(f.before, nil)
				endpoint := f.endpoint
				if endpoint == "" {
					endpoint = s.URL
				}
				args := append(slices.Clone(args), "--s3-endpoint", endpoint)
				if !reads && args[0] != "validate" { // an output of its own
					args = append(args, "--out", fmt.Sprintf("%s-%d-%d", out, n, i))
				}
				p := launch(t, dir, args...)
				p.exits(1, patience)
				oneLine(t, p.out()+p.log(), f.says)
			})
		}
	}
	s.Ask(nil, nil)
	for _, key := range s.Keys(t, "") {
		text := textAt(t, s.URL+(&url.URL{Path: "/" + s3test.Bucket + "/" + key}).EscapedPath())
		for _, secret := range secrets {
			if strings.Contains(key+text, secret) {
				t.Errorf("%s has %s", key, secret)
			}
		}
	}
}

func textAt(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// oneLine checks that a text says something once, and no secret.
func oneLine(t *testing.T, text, says string) {
	t.Helper()
	count := 0
	for line := range strings.Lines(text) {
		if strings.Contains(line, says) {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d lines say %q:\n%s", count, says, text)
	}
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%s is printed", secret)
		}
	}
}

// Law: no page of a service, and no print of its configuration, has credentials, whether they
// come from variables or from a profile.
func TestPagesHaveNoCredentials(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	s, out, flags := inBucket(t)
	brokers, dir := startBroker(t), t.TempDir()
	profile := filepath.Join(dir, "credentials")
	text := fmt.Sprintf("[writer]\naws_access_key_id = %s\naws_secret_access_key = %s\naws_session_token = %s\n",
		s3test.AccessKey, s3test.SecretKey, s3test.Token)
	if err := os.WriteFile(profile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_PROFILE", "writer")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", profile)
	must(t, dir, spread(brokers, "points", "a", "--frames", "6", "--rate", "max")...)
	args := append([]string{"run", "--brokers", brokers, "--topic", "points", "--out", out, "--log-level", "debug",
		"--listen", "127.0.0.1:0", "--pprof", "--roll-age", "100ms"}, flags...)
	p := launch(t, dir, args...)
	address := p.until(`metrics=(http://[^/]+)`)[1]
	waitFor(t, "a commit", func() bool { return len(s.Keys(t, "lidar/out 1/frames/")) > 0 })
	all := ""
	for _, page := range []string{"/metrics", "/version", "/readyz", "/healthz", "/debug/pprof/cmdline",
		"/debug/pprof/goroutine?debug=2", "/"} {
		all += textAt(t, address+page)
	}
	p.signal(os.Interrupt)
	p.exits(0, patience)
	all += p.out() + p.log()
	if !strings.Contains(all, "entropipe_store_requests_total") {
		t.Error("the metrics of the bucket are not among the pages")
	}
	for _, secret := range secrets {
		if strings.Contains(all, secret) {
			t.Errorf("%s is printed", secret)
		}
	}
}
