package s3_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"entropipe/ingest/bucket"
	"entropipe/sinks/s3"
)

// settings is a server that has only the settings of a bucket.
func settings(t *testing.T, prefix string, answer func(w http.ResponseWriter, what string)) *s3.Store {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, what := range []string{"versioning", "lifecycle", "object-lock"} {
			if r.URL.Query().Has(what) {
				answer(w, what)
				return
			}
		}
		t.Errorf("%s %s", r.Method, r.URL)
	}))
	t.Cleanup(server.Close)
	store, err := s3.New(bucket.Config{Address: bucket.Address{Bucket: "archive", Prefix: prefix}, Endpoint: server.URL,
		Wait: time.Millisecond, Provider: &credentials.Static{Value: credentials.Value{AccessKeyID: "a",
			SecretAccessKey: "b", SignerType: credentials.SignatureV4}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
}

// Which rules would touch an output in lidar/out.
func TestLifecycleRules(t *testing.T) {
	const expire = "<Expiration><Days>30</Days></Expiration>"
	for _, c := range []struct{ name, rule, harm, note string }{
		{name: "for all", rule: "<Filter/>" + expire, harm: "removes objects of the output after 30 days"},
		{name: "old form for all", rule: "<Prefix></Prefix>" + expire, harm: "after 30 days"},
		{name: "a parent", rule: "<Filter><Prefix>lidar/</Prefix></Filter>" + expire, harm: `for "lidar/" removes`},
		{name: "old form of a parent", rule: "<Prefix>lidar</Prefix>" + expire, harm: `for "lidar" removes`},
		{name: "the output", rule: "<Filter><Prefix>lidar/out/</Prefix></Filter>" + expire, harm: "removes"},
		{name: "begin of its name", rule: "<Filter><Prefix>lidar/ou</Prefix></Filter>" + expire, harm: "removes"},
		{name: "staging", rule: "<Filter><Prefix>lidar/out/_staging/</Prefix></Filter>" + expire, harm: "_staging/"},
		{name: "another prefix", rule: "<Filter><Prefix>lidar/other/</Prefix></Filter>" + expire},
		{name: "a longer name", rule: "<Filter><Prefix>lidar/out2</Prefix></Filter>" + expire},
		{name: "a tag", rule: "<Filter><Tag><Key>a</Key><Value>b</Value></Tag></Filter>" + expire},
		{name: "and a tag", rule: "<Filter><And><Prefix>lidar/</Prefix><Tag><Key>a</Key><Value>b</Value></Tag></And>" +
			"</Filter>" + expire},
		{name: "and a size",
			rule: "<Filter><And><Prefix>lidar/</Prefix><ObjectSizeGreaterThan>1000</ObjectSizeGreaterThan>" +
				"</And></Filter>" + expire, harm: "removes"},
		{name: "and another prefix", rule: "<Filter><And><Prefix>maps/</Prefix><ObjectSizeGreaterThan>1" +
			"</ObjectSizeGreaterThan></And></Filter>" + expire},
		{name: "larger than any file",
			rule: "<Filter><ObjectSizeGreaterThan>9000000000</ObjectSizeGreaterThan></Filter>" +
				expire},
		{name: "small objects", rule: "<Filter><ObjectSizeLessThan>100</ObjectSizeLessThan></Filter>" + expire,
			harm: "removes"},
		{name: "on a date", rule: "<Filter/><Expiration><Date>2030-01-02T00:00:00Z</Date></Expiration>",
			harm: "on 2030-01-02"},
		{name: "markers", rule: "<Filter/><Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>" +
			"</Expiration>"},
		{name: "archive",
			rule: "<Filter/><Transition><Days>9</Days><StorageClass>DEEP_ARCHIVE</StorageClass></Transition>",
			harm: "to DEEP_ARCHIVE after 9 days"},
		{name: "another class", rule: "<Filter/><Transition><Days>9</Days><StorageClass>STANDARD_IA</StorageClass>" +
			"</Transition>", note: "to STANDARD_IA"},
		{name: "old versions", rule: "<Filter/><NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays>" +
			"</NoncurrentVersionExpiration>", note: "removes noncurrent versions, which is allowed"},
		{name: "uploads",
			rule: "<Filter/><AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation>" +
				"</AbortIncompleteMultipartUpload>", note: "aborts unfinished uploads, which is allowed"},
	} {
		for status, on := range map[string]bool{"Enabled": true, "Disabled": false} {
			store := settings(t, "lidar/out", func(w http.ResponseWriter, what string) {
				switch what {
				case "lifecycle":
					fmt.Fprintf(w, "<LifecycleConfiguration><Rule><ID>one</ID><Status>%s</Status>%s</Rule>"+
						"</LifecycleConfiguration>", status, c.rule)
				case "versioning":
					fmt.Fprint(w, "<VersioningConfiguration/>")
				default:
					refuse(w, 404, "ObjectLockConfigurationNotFoundError")
				}
			})
			got, err := store.Rules(t.Context())
			if err != nil {
				t.Fatal(c.name, err)
			}
			for what, found := range map[string]struct {
				lines []string
				want  string
			}{"harm": {got.Harmful, c.harm}, "note": {got.Notes, c.note}} {
				text := strings.Join(found.lines, "; ")
				if on && found.want != "" && (!strings.Contains(text, found.want) ||
					!strings.Contains(text, `"one"`)) ||
					(!on || found.want == "") && text != "" {
					t.Errorf("%s, %s: %s %q, want %q", c.name, status, what, text, found.want)
				}
			}
		}
	}
}

// Versions, locks, and settings that a store does not show.
func TestSettingsOfABucket(t *testing.T) {
	lock := "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>%s</ObjectLockConfiguration>"
	for _, c := range []struct {
		name       string
		answer     func(w http.ResponseWriter, what string)
		harm, note string
	}{
		{name: "denied", answer: func(w http.ResponseWriter, _ string) { refuse(w, 403, "AccessDenied") },
			note: "versioning cannot be read: s3:GetBucketVersioning is denied; lifecycle rules cannot be read: " +
				"s3:GetLifecycleConfiguration is denied; object lock cannot be read: " +
				"s3:GetBucketObjectLockConfiguration is denied"},
		{name: "unknown", answer: func(w http.ResponseWriter, _ string) { refuse(w, 501, "NotImplemented") },
			note: "the store does not have the request"},
		{name: "versions and a lock", answer: func(w http.ResponseWriter, what string) {
			switch what {
			case "versioning":
				fmt.Fprint(w, "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")
			case "lifecycle":
				refuse(w, 404, "NoSuchLifecycleConfiguration")
			default:
				fmt.Fprintf(w, lock, "")
			}
		}, note: "keeps versions: every commit leaves some of its staged files, which a rule for noncurrent " +
			"versions may " +
			"expire; object lock is on, without a default retention"},
		{name: "retention", answer: func(w http.ResponseWriter, what string) {
			switch what {
			case "versioning":
				fmt.Fprint(w, "<VersioningConfiguration/>")
			case "lifecycle":
				refuse(w, 404, "NoSuchLifecycleConfiguration")
			default:
				fmt.Fprintf(w, lock,
					"<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>3</Days></DefaultRetention></Rule>")
			}
		}, harm: "retains every object (GOVERNANCE)"},
	} {
		got, err := settings(t, "out", c.answer).Rules(t.Context())
		if err != nil || strings.Join(got.Harmful, "; ") != "" && c.harm == "" ||
			!strings.Contains(strings.Join(got.Harmful, "; "), c.harm) ||
			!strings.Contains(strings.Join(got.Notes, "; "), c.note) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}
