package replay

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/ingest/filesys"
	"entropipe/sinks/s3/s3test"
)

// inBucket returns a source whose paths are addresses of copies in a bucket.
func inBucket(t *testing.T, s *s3test.Server, of archived) archived {
	t.Helper()
	copied := reflect.New(reflect.TypeOf(of)).Elem()
	copied.Set(reflect.ValueOf(of))
	for _, name := range []string{"Dir", "Paths", "Files"} {
		switch f := copied.FieldByName(name); {
		case !f.IsValid():
		case f.Kind() == reflect.String:
			f.SetString(s.Upload(t, f.String()))
		default:
			var addresses []string
			for _, path := range f.Interface().([]string) {
				addresses = append(addresses, s.Upload(t, path))
			}
			f.Set(reflect.ValueOf(addresses))
		}
	}
	return copied.Interface().(archived)
}

// describeParts returns what a plan would say of an archive, and the messages of each part, with
// local paths.
func describeParts(t *testing.T, of archived, prefix string) (texts []string) {
	t.Helper()
	a, err := of.Archive()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range partsOf(t, a) {
		files := part.Common
		for i := range part.Items {
			if part.Of != nil {
				files = append(files, part.Of(i)...)
			}
		}
		in, err := json.Marshal(part.Input)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			f, err := a.Stat(t.Context(), path, true)
			if err != nil || (f.ETag == "") != (prefix == "") || (f.ModTime == 0) != (prefix != "") {
				t.Fatalf("%s: %+v, %v", path, f, err)
			}
			in = append(in, "\n"+path+" "+f.SHA256...)
		}
		texts = append(texts, strings.ReplaceAll(string(in), prefix, ""))
		src := openAt(t, a, part.Input, 0)
		_, sent := sentBy(t, &Producer{}, src)
		src.Close()
		texts = append(texts, sent...)
	}
	return texts
}

// Law: inputs of every format are found in a bucket as in a folder, and give the same messages.
func TestBucketsAreReadAsFolders(t *testing.T) {
	s := s3test.New(t)
	defer filesys.Use(t.Context(), s.Reach(), 32<<20)()
	sources := sourcesOf(t, 5)
	for name, of := range sources {
		want := describeParts(t, of, "")
		before := s.Requests()
		got := describeParts(t, inBucket(t, s, of), "s3://"+s3test.Bucket+"/copy")
		if diff := cmp.Diff(want, got); diff != "" || len(want) < 2 {
			t.Errorf("%s (-folder +bucket):\n%.2000s", name, diff)
		}
		t.Logf("%s: %d requests", name, s.Requests()-before)
	}
	if len(sources) < 20 {
		t.Errorf("%d sources", len(sources))
	}
}
