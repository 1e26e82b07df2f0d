package backfill

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/ingest/filesys"
	"entropipe/sinks/record"
	"entropipe/sinks/s3/s3test"
)

// Lanes of a folder in a bucket give the messages of the folder, although only their ETags tell
// whether objects have changed. One that has changed stops its lane and no other;
// one that is gone moves what follows in its folder.
func TestLanesOfABucket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drive")
	scans(t, dir, 25)
	s := s3test.New(t)
	end := filesys.Use(t.Context(), s.Reach(), 8<<20)
	defer end()
	address := s.Upload(t, dir)
	want, got := map[int64]string{}, map[int64]string{}
	local, o := folderOpener(t, dir, ""), folderOpener(t, address, "")
	if p := o.Plan; p.Identity != record.ByETag || p.Lanes != 3 || p.Items != 25 || p.Bytes != local.Plan.Bytes {
		t.Fatalf("%+v", o.Plan)
	}
	for lane := range int32(3) {
		maps.Copy(want, valuesOf(t, local, lane, 0))
		maps.Copy(got, valuesOf(t, o, lane, 0))
	}
	if len(want) != 25 || !maps.Equal(want, got) {
		t.Errorf("%d messages of the folder, %d others of the bucket", len(want), len(got))
	}
	if again := folderOpener(t, address, ""); again.Plan.Hash != o.Plan.Hash {
		t.Error("a second search gives another plan")
	}
	ones := func(n int) string { return strings.Repeat("\x01", n) }
	for _, process := range []string{"the one that planned", "another one"} {
		for name, c := range map[string]struct {
			change func(key string)
			want   string
			moves  bool // items behind it have other positions
		}{
			"replaced": {func(key string) { s.Put(t, key, ones(224), nil) }, "its ETag was", false},
			"longer":   {func(key string) { s.Put(t, key, ones(1600), nil) }, "bytes, and has", false},
			"gone":     {func(key string) { s.Remove(t, key) }, "has changed since it was planned", true},
		} {
			file := filepath.Join(dir, "000013.bin")
			o := folderOpener(t, address, "")
			c.change("copy" + file)
			if process == "another one" {
				end()
				end = filesys.Use(t.Context(), s.Reach(), 8<<20)
			}
			for lane := range int32(3) {
				err := endOf(t, o, lane)
				changed := (*SourceChangedError)(nil)
				stopped := errors.As(err, &changed)
				if stopped != (lane == 1 || lane == 2 && c.moves) || !stopped && err != io.EOF ||
					stopped && (!strings.Contains(err.Error(), c.want) || !strings.HasPrefix(changed.File, address)) {
					t.Errorf("%s, %s, lane %d: %v", process, name, lane, err)
				}
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s.Put(t, "copy"+file, string(data), nil)
		}
	}
}

// endOf reads a lane to its end.
func endOf(t *testing.T, o *Opener, lane int32) error {
	t.Helper()
	p := o.Lane(lane)
	defer p.Close()
	for at := int64(0); ; {
		f, err := p.Fetch(t.Context(), at, 1000)
		if err != nil {
			return err
		}
		if at = f.Next; f.Release != nil {
			f.Release()
		}
	}
}

// A store that fails for a while is no reason to pass over an item, even with --skip-bad.
func TestFaultsOfABucketStopTheLane(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drive")
	scans(t, dir, 12)
	s := s3test.New(t)
	defer filesys.Use(t.Context(), s.Reach(), 8<<20)()
	o := folderOpener(t, s.Upload(t, dir), "")
	s.Ask(refusing("000003.bin"), nil)
	bad := (*SourceError)(nil)
	if err := endOf(t, o, 0); !errors.As(err, &bad) || !strings.Contains(fmt.Sprint(err), "SlowDown") {
		t.Errorf("a store that fails: %v", err)
	}
	s.Ask(nil, nil)
	if got := valuesOf(t, o, 0, 0); len(got) != 10 {
		t.Errorf("afterwards: %d items", len(got))
	}
}

// refusing refuses the reads of an object.
func refusing(name string) func(r *http.Request) *s3test.Refusal {
	return func(r *http.Request) *s3test.Refusal {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, name) {
			return &s3test.Refusal{Status: http.StatusServiceUnavailable, Code: "SlowDown"}
		}
		return nil
	}
}
