package backfill

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"entropipe/ingest/replay"
	"entropipe/schemas"
	"entropipe/sinks/record"
)

// scans writes a folder of scans, of which number i has i+1 points.
func scans(t *testing.T, dir string, n int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		scan(t, dir, i, i+1)
	}
}

func scan(t *testing.T, dir string, number, points int) {
	t.Helper()
	var data []byte
	for k := range 4 * points {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(number)+float32(k)/8))
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d.bin", number)), data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// folderOpener plans a folder with lanes of 10 items and returns what opens them.
func folderOpener(t *testing.T, dir, identity string) *Opener {
	t.Helper()
	a, err := replay.KITTI{Dir: dir, SkipBad: true}.Archive()
	if err != nil {
		t.Fatal(err)
	}
	store := newParts()
	p, err := Build(t.Context(), a, Options{Roots: []string{dir}, Identity: identity, items: 10}, Into(store))
	if err != nil {
		t.Fatal(err)
	}
	producer := &replay.Producer{}
	return &Opener{Plan: p, Store: store, Archive: a,
		Messages: func(src replay.Source) (Messages, error) { return producer.Messages(src) }}
}

// valuesOf reads a lane from an offset on; the values by position in the folder.
func valuesOf(t *testing.T, o *Opener, lane int32, from int64) map[int64]string {
	t.Helper()
	p := o.Lane(lane)
	defer p.Close()
	got := map[int64]string{}
	for at := from; ; {
		f, err := p.Fetch(t.Context(), at, 1000)
		if err != nil {
			return got // io.EOF
		}
		for _, m := range f.Messages {
			text := fmt.Sprintf("%s %x %d", m.Key, m.Value, m.Time.UnixNano())
			for _, h := range m.Headers {
				if h.Key != "ce-id" && h.Key != "ce-time" {
					text += fmt.Sprintf(" %s=%s", h.Key, h.Value)
				}
			}
			got[p.lane.First+m.Offset] = text
		}
		if at = f.Next; f.Release != nil {
			f.Release()
		}
	}
}

// Lanes of a real folder give the same messages wherever they are cut and entered; a bad
// scan is a hole.
func TestLanesOfAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drive")
	scans(t, dir, 25)
	if err := os.WriteFile(filepath.Join(dir, "000012.bin"), []byte("bad"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, identity := range []string{record.ByModTime, record.BySHA256} {
		o := folderOpener(t, dir, identity)
		all := map[int64]string{}
		for lane := range int32(3) {
			for k, v := range valuesOf(t, o, lane, 0) {
				all[k] = v
			}
		}
		if o.Plan.Lanes != 3 || len(all) != 24 || all[12] != "" || all[13] == all[14] {
			t.Fatalf("%d lanes, %d messages", o.Plan.Lanes, len(all))
		}
		for lane := range int32(3) {
			for from := range int64(10) {
				for k, v := range valuesOf(t, o, lane, from) {
					if v != all[k] {
						t.Fatalf("item %d, read from %d of lane %d on, is another one:\n%s\n%s",
							k, from, lane, v, all[k])
					}
				}
			}
		}
	}
}

// What people and programs do to a folder that is read.
func TestFolderThatChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string) error
		lanes  string // those that stop
		want   string
	}{
		"a scan is written again": {
			func(dir string) error { scan(t, dir, 11, 12); return later(dir, 11) }, "1", "000011.bin"},
		"a scan grows": {func(dir string) error { scan(t, dir, 11, 13); return nil }, "1", "bytes"},
		"a scan shrinks": {
			func(dir string) error { return os.Truncate(filepath.Join(dir, "000011.bin"), 16) }, "1", "bytes"},
		"a scan is gone": {
			func(dir string) error { return os.Remove(filepath.Join(dir, "000011.bin")) }, "12", "000011.bin"},
		"the last one is gone": {
			func(dir string) error { return os.Remove(filepath.Join(dir, "000024.bin")) }, "2", "000024.bin"},
		"one is added at the end": {func(dir string) error { scan(t, dir, 25, 1); return nil }, "", ""},
		"one is a folder now": {
			func(dir string) error { return folderAt(dir, "000011.bin") }, "12", "000011.bin"},
		"the whole folder is gone":    {os.RemoveAll, "012", "gone"},
		"nothing":                     {func(string) error { return nil }, "", ""},
		"touched and read by content": {func(dir string) error { return later(dir, 11) }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "drive")
			scans(t, dir, 25)
			identity := ""
			if strings.HasSuffix(name, "by content") {
				identity = record.BySHA256
			}
			o := folderOpener(t, dir, identity)
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			stopped := ""
			for lane := range int32(3) {
				p := o.Lane(lane)
				var err error
				for at := int64(0); err == nil; {
					var f schemas.Fetched
					if f, err = p.Fetch(t.Context(), at, 1000); err == nil {
						at = f.Next
					}
				}
				p.Close()
				var changed *SourceChangedError
				var failed *SourceError
				if !errors.As(err, &changed) && !errors.As(err, &failed) {
					continue // io.EOF
				}
				stopped += fmt.Sprint(lane)
				if lane == 1 && !strings.Contains(err.Error(), c.want) || changed == nil {
					t.Errorf("lane %d: %v, want a SourceChangedError with %q", lane, err, c.want)
				}
			}
			if stopped != c.lanes {
				t.Errorf("lanes %q stop, want %q", stopped, c.lanes)
			}
		})
	}
}

// later gives a scan another time.
func later(dir string, number int) error {
	at := time.Unix(2_000_000_000, 0)
	return os.Chtimes(filepath.Join(dir, fmt.Sprintf("%06d.bin", number)), at, at)
}

// folderAt puts a folder in the place of a file.
func folderAt(dir, name string) error {
	path := filepath.Join(dir, name)
	return errors.Join(os.Remove(path), os.Mkdir(path, 0o777))
}

func TestStatOfWhatIsGone(t *testing.T) {
	a, err := replay.KITTI{Dir: t.TempDir()}.Archive()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Stat(t.Context(), filepath.Join(t.TempDir(), "x"), false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not say that the file is gone", err)
	}
}
