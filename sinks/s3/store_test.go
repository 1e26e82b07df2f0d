package s3_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/ingest/bucket"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/s3"
	"entropipe/sinks/s3/s3test"
)

// A commit of F files costs F + 1 PUT, F copies and one deletion, and lists nothing. A resume
// lists twice.
func TestRequestsOfACommit(t *testing.T) {
	s := s3test.New(t)
	ctx, store := t.Context(), s.Open(t, "out")
	sinktest.TakeOver(t, store, 0, 10, 10)
	before := store.Requests()
	o := sinktest.OpenOn(t, store)
	if err := o.Base(ctx, sinktest.LogTopic, schemas.TopicID{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Resume(ctx, sinktest.LogTopic, 0); err != nil {
		t.Fatal(err)
	}
	resumed := store.Requests()
	if n := resumed.List - before.List; n > 2 {
		t.Errorf("a resume listed %d times", n)
	}
	t.Logf("open and resume: %+v", minus(resumed, before))
	for start := int64(10); start < 30; start += 10 {
		b := sinktest.LogBatch(start, 10)
		c, err := o.Commit(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		files := int64(0)
		for _, table := range c.Tables {
			files += int64(table.Files)
		}
		after := store.Requests()
		got := minus(after, resumed)
		if want := (bucket.Requests{Put: files + 1, Copy: files, Delete: 1, Sent: got.Sent}); got != want {
			t.Errorf("%d files: %+v, want %+v", files, got, want)
		}
		resumed = after
	}
}

func minus(a, b bucket.Requests) bucket.Requests {
	r := a.Sub(b)
	r.Received = 0
	return r
}

// Files and manifests are the same bytes as in a folder, but for what is drawn by lot.
func TestSameBytesAsInAFolder(t *testing.T) {
	folder, err := sinks.OpenLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	bucket := s3test.New(t).Open(t, "out")
	var all [2]map[string]string
	for i, store := range []sinks.Store{folder, bucket} {
		w := sinktest.Writer{Store: store, End: 25, Roll: sinktest.Roll(10), Parts: 1, Fail: sinktest.IsCrash}
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		all[i] = map[string]string{}
		err := store.List(t.Context(), ".", func(e sinks.Entry) error {
			text := contentOf(t, store, e.Name)
			if int64(len(text)) != e.Size {
				t.Errorf("%s has %d bytes, listed are %d", e.Name, len(text), e.Size)
			}
			if strings.HasSuffix(e.Name, ".json") {
				text = withoutLots(t, text)
			}
			all[i][e.Name] = text
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all[0]) < 10 || len(all[0]) != len(all[1]) {
		t.Errorf("%d files in the folder, %d in the bucket", len(all[0]), len(all[1]))
	}
	for name, text := range all[0] {
		if all[1][name] != text {
			t.Errorf("%s differs:\n%.2000s\n%.2000s", name, text, all[1][name])
		}
	}
}

func contentOf(t *testing.T, store sinks.Reader, name string) string {
	t.Helper()
	o, err := store.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	data, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// withoutLots removes uuids and times from a commit record.
func withoutLots(t *testing.T, text string) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	delete(m, "uuid")
	delete(m, "created")
	delete(m, "crc32c")
	if files, ok := m["files"].([]any); ok {
		for _, f := range files {
			f := f.(map[string]any)
			staged := f["staged"].(string)
			f["staged"] = staged[:strings.LastIndexByte(staged, '/')-record.UUIDSize] + filepath.Base(staged)
		}
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func base64Of(text string) string {
	s := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(s[:])
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// A published file is known by its metadata, or by its bytes, never by its size.
func TestDoneIsToldByMetadata(t *testing.T) {
	uuid := record.NewUUID()
	folder := record.StagingName(record.TopicPartition{Topic: "t"}, 0, uuid)
	meta := func(uuid, text string) map[string]string {
		return map[string]string{"X-Amz-Meta-Entropipe-Uuid": uuid, "X-Amz-Meta-Entropipe-Sha256": sum(text),
			"X-Amz-Meta-Entropipe-Bytes": fmt.Sprint(len(text))}
	}
	for _, c := range []struct {
		name          string
		staged, there string
		metadata      map[string]string
		lost, damaged string // part of the error's text
	}{
		{name: "staged", staged: "rows"},
		{name: "published", there: "rows", metadata: meta(uuid, "rows")},
		{name: "both: the deletion was lost", staged: "rows", there: "rows", metadata: meta(uuid, "rows")},
		{name: "copied by another program", there: "rows"},
		{name: "another file of its size", there: "ROWS", lost: "is not the one of the manifest"},
		{name: "the file of another attempt", there: "rows", metadata: meta(record.NewUUID(), "rows"),
			lost: "is not the one of the manifest"},
		{name: "metadata of other bytes", there: "rows", metadata: meta(uuid, "ROWS"),
			lost: "is not the one of the manifest"},
		{name: "another size", there: "more rows", lost: "the file has 9 bytes, its manifest says 4"},
		{name: "a stranger before the copy", staged: "rows", there: "ROWS", lost: "another file has this name"},
		{name: "nowhere", lost: "neither here nor in"},
		{name: "staged, changed", staged: "ROWS", damaged: "its SHA-256 is"},
		{name: "staged, cut", staged: "row", damaged: "it has 3 bytes"},
	} {
		s := s3test.New(t)
		move := sinks.Move{From: folder + "/frames-0", To: "frames/part.parquet", Bytes: 4, SHA256: sum("rows")}
		if c.staged != "" {
			s.Put(t, "out/"+move.From, c.staged, map[string]string{})
		}
		if c.there != "" {
			s.Put(t, "out/"+move.To, c.there, c.metadata)
		}
		store := s.Open(t, "out")
		want := c.there == "rows" && c.lost == ""
		if got, err := store.Published(t.Context(), move); got != want || err != nil {
			t.Errorf("%s: published %v, %v, want %v", c.name, got, err, want)
		}
		err := store.Publish(t.Context(), []sinks.Move{move})
		var lost *sinks.LostFileError
		var damaged *sinks.DamagedFileError
		switch {
		case c.lost != "":
			if !errors.As(err, &lost) || !strings.Contains(err.Error(), c.lost) {
				t.Errorf("%s: %v, want %q", c.name, err, c.lost)
			}
		case c.damaged != "":
			if !errors.As(err, &damaged) || !strings.Contains(err.Error(), c.damaged) {
				t.Errorf("%s: %v, want %q", c.name, err, c.damaged)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		default:
			if keys := s.Keys(t, ""); len(keys) != 1 || contentOf(t, store, move.To) != "rows" {
				t.Errorf("%s: %q", c.name, keys)
			}
			if err := store.Publish(t.Context(), []sinks.Move{move}); err != nil {
				t.Errorf("%s, again: %v", c.name, err)
			}
			continue
		}
		if c.there != "" && contentOf(t, store, move.To) != c.there {
			t.Errorf("%s: the file that was there is gone", c.name)
		}
		if c.staged != "" && contentOf(t, store, move.From) != c.staged {
			t.Errorf("%s: the staged file is gone", c.name)
		}
	}
}

// A large file is sent in parts, in bounded memory, and is one object afterwards. One whose
// parts fail leaves nothing.
func TestLargeFile(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("much memory, and one goroutine")
	}
	s := s3test.New(t)
	store := s.Open(t, "out")
	name := record.StagingName(record.TopicPartition{Topic: "t"}, 0, record.NewUUID()) + "/frames-0"
	line := bytes.Repeat([]byte("0123456789abcde\n"), 1<<12)
	const lines = 70<<20/(16<<12) + 1
	write := func() (string, error) {
		w, err := store.Stage(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		all := sha256.New()
		for range lines {
			all.Write(line)
			if _, err := w.Write(line); err != nil {
				break
			}
		}
		return hex.EncodeToString(all.Sum(nil)), w.Close()
	}
	s.Ask(func(r *http.Request) *s3test.Refusal {
		if r.URL.Query().Get("partNumber") == "3" {
			return &s3test.Refusal{Status: 403, Code: "AccessDenied"}
		}
		return nil
	}, nil)
	if _, err := write(); err == nil || len(s.Keys(t, "")) > 0 {
		t.Errorf("a part was denied: %v, and there is %q", err, s.Keys(t, ""))
	}
	s.Ask(nil, nil)
	checksum, err := write()
	if err != nil {
		t.Fatal(err)
	}
	to := sinks.Move{From: name, To: "frames/part.parquet", Bytes: int64(lines * len(line)), SHA256: checksum}
	if err := s.Open(t, "out").Publish(t.Context(), []sinks.Move{to}); err != nil { // another process reads it first
		t.Fatal(err)
	}
	before := store.Requests()
	o, err := store.Open(t.Context(), to.To)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := sinks.Checksum(t.Context(), o, make([]byte, 1<<20)); err != nil || got != checksum {
		t.Errorf("read back: %s, %v; want %s", got, err, checksum)
	}
	if n := minus(store.Requests(), before).Get; n > 30 {
		t.Errorf("%d requests for %d bytes", n, to.Bytes)
	}
	tail := make([]byte, 100)
	if n, err := o.ReadAt(tail, o.Size()-50); n != 50 || err != io.EOF || string(tail[34:50]) != "0123456789abcde\n" {
		t.Errorf("at the end: %d bytes %q, %v", n, tail[:n], err)
	}
}

// A store on which two writers win, or which loses metadata, is refused before an output is
// made, and nothing is left there.
func TestUnfitStores(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(r *http.Request)
		want  string
	}{
		"conditions are ignored": {func(r *http.Request) { r.Header.Del("If-None-Match") },
			"were told that they had won"},
		"metadata are lost": {func(r *http.Request) {
			for key := range r.Header {
				if strings.HasPrefix(key, "X-Amz-Meta-") {
					r.Header.Del(key)
				}
			}
		}, "does not have the metadata"},
	} {
		s := s3test.New(t)
		s.Ask(func(r *http.Request) *s3test.Refusal { c.spoil(r); return nil }, nil)
		_, err := sinks.Open(t.Context(), s.Open(t, "out"), sinktest.EncoderOf(), sinks.Config{})
		var wrong *sinks.ConfigError
		if !errors.As(err, &wrong) || wrong.Field != "out" || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), s.URL) {
			t.Errorf("%s: %v", name, err)
		}
		if keys := s.Keys(t, ""); len(keys) > 0 {
			t.Errorf("%s: %q are left", name, keys)
		}
	}
}

// What Create answers, whatever the server does.
func TestCreateAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		status     int
		code       string
		times      int
		exists     bool // there is an object
		want       error
		notCreated bool
	}{
		{name: "conflict, then free", status: 409, code: "ConditionalRequestConflict", times: 2},
		{name: "conflict for ever", status: 409, code: "ConditionalRequestConflict", times: 99, want: errAny},
		{name: "conflict, then taken", status: 409, code: "ConditionalRequestConflict", times: 2, exists: true,
			want: sinks.ErrExists},
		{name: "denied", status: 403, code: "AccessDenied", times: 99, want: sinks.ErrNotCreated, notCreated: true},
		{name: "overloaded", status: 503, code: "SlowDown", times: 99, want: errAny},
		{name: "cut", times: 99, want: errAny},
	} {
		s := s3test.New(t)
		if c.exists {
			s.Put(t, "out/a.json", "theirs", map[string]string{})
		}
		left := c.times
		s.Ask(func(*http.Request) *s3test.Refusal {
			if left--; left >= 0 {
				return &s3test.Refusal{Status: c.status, Code: c.code}
			}
			return nil
		}, nil)
		err := s.Open(t, "out").Create(t.Context(), "a.json", []byte("mine"))
		if (err == nil) != (c.want == nil) || c.want != nil && c.want != errAny && !errors.Is(err, c.want) ||
			errors.Is(err, sinks.ErrNotCreated) != c.notCreated {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

var errAny = errors.New("any error")

// Addresses, and what they are refused for.
func TestParseAddress(t *testing.T) {
	for _, c := range []struct{ text, want, wrong string }{
		{text: "s3://bucket/prefix", want: "s3://bucket/prefix"},
		{text: "S3://bucket", want: "s3://bucket"},
		{text: "s3://bucket/", want: "s3://bucket"},
		{text: "s3://my.bucket-1/a b/ü+%2F=/", want: "s3://my.bucket-1/a b/ü+%2F="},
		{text: "s3:///prefix", wrong: "is no name of a bucket"},
		{text: "s3://b/p", wrong: "is no name of a bucket"},
		{text: "s3://Bücket/p", wrong: "is no name of a bucket"},
		{text: "s3://192.168.0.1/p", wrong: "is no name of a bucket"},
		{text: "s3://ann:hunter2@bucket/p", wrong: "credentials come from variables"},
		{text: "s3://bucket:9000/p", wrong: "the server from --s3-endpoint"},
		{text: "s3://bucket/a//b", wrong: "between two slashes"},
		{text: "s3://bucket/../b", wrong: "between two slashes"},
		{text: "s3://bucket/a\nb", wrong: "control characters"},
		{text: "s3://bucket/" + strings.Repeat("a", 301), wrong: "leave room"},
	} {
		got, err := bucket.ParseAddress(c.text)
		switch {
		case c.wrong == "" && (err != nil || got.String() != c.want):
			t.Errorf("%q: %v, %v", c.text, got, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) ||
			strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%q: %v", c.text, err)
		}
	}
	for _, text := range []string{"minio:9000", "ftp://minio", "http://ann:hunter2@minio", "http://minio/bucket",
		"http://"} {
		if _, err := bucket.ParseEndpoint(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("endpoint %q: %v", text, err)
		}
	}
}

// Where credentials come from, and what is said where there are none.
func TestCredentials(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY",
		"AWS_SECRET_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_REGION", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
	home := t.TempDir()
	profiles := filepath.Join(home, "credentials")
	t.Setenv("HOME", home)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", profiles)
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(home, "config"))
	server := s3test.New(t)
	var signed string
	server.Ask(func(r *http.Request) *s3test.Refusal { signed = r.Header.Get("Authorization"); return nil }, nil)
	t.Setenv("AWS_ENDPOINT_URL_S3", server.URL)
	read := func() error {
		signed = ""
		store, err := s3.New(bucket.Config{Address: bucket.Address{Bucket: s3test.Bucket}})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		_, err = store.Read(t.Context(), "nothing")
		return err
	}
	err := read()
	if err == nil || passes(err) == nil || !strings.Contains(err.Error(), "there are no credentials") ||
		!strings.Contains(err.Error(), "profile default") || signed != "" {
		t.Errorf("without credentials: %v; signed %q", err, signed)
	}
	text := "[default]\naws_access_key_id = FROMFILE\naws_secret_access_key = s\n" +
		"[other]\naws_access_key_id = FROMOTHER\naws_secret_access_key = s\n"
	if err := os.WriteFile(profiles, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ profile, key, want string }{
		{"", "", "FROMFILE"}, {"other", "", "FROMOTHER"}, {"other", "FROMVARIABLES", "FROMVARIABLES"},
	} {
		t.Setenv("AWS_PROFILE", c.profile)
		t.Setenv("AWS_ACCESS_KEY_ID", c.key)
		t.Setenv("AWS_SECRET_ACCESS_KEY", c.key)
		if err := read(); !errors.Is(err, sinks.ErrNotFound) || !strings.Contains(signed, "Credential="+c.want+"/") {
			t.Errorf("%+v: %v, %.60q", c, err, signed)
		}
	}
}
