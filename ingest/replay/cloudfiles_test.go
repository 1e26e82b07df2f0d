package replay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"entropipe/schemas/codec"
)

// pcdFile returns a PCD file with one point (x, 2).
func pcdFile(x int) []byte {
	return fmt.Appendf(nil, "VERSION 0.7\nFIELDS x y noise\nSIZE 4 4 4\nTYPE F F F\nWIDTH 1\nDATA ascii\n%d 2 3\n", x)
}

func packedGzip(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func zstandard(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(b, nil)
}

// cloudFolder writes files into a folder named name.
func cloudFolder(t *testing.T, name string, files map[string][]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// itemsOf reads src and describes each item in a line.
func itemsOf(t *testing.T, src Source) (lines []string) {
	t.Helper()
	for {
		var it Item
		err := src.Next(&it)
		if err == io.EOF {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		x := "-"
		if it.Cloud.Len() > 0 && !it.Cloud.Double {
			x = fmt.Sprint(it.Cloud.Cloud32.X[0])
		}
		lines = append(lines, fmt.Sprint(it.Dataset, " ", it.Sequence, " ", it.Number, " ", it.TimeNs, " ",
			it.Clock, " x ", x))
	}
}

func TestCloudFilesNamesFrames(t *testing.T) {
	for _, test := range []struct {
		name  string
		files []string
		want  []string // without data set and sequence
	}{
		{"integers", []string{"10.pcd", "9.pcd", "0011.pcd"}, []string{"9 0 0", "10 0 0", "11 0 0"}},
		{"words", []string{"b10.pcd", "b9.pcd", "a.pcd"}, []string{"0 0 0", "1 0 0", "2 0 0"}},
		{"an integer twice", []string{"1.pcd", "01.pcd"}, []string{"0 0 0", "1 0 0"}},
		{"seconds", []string{"1317042145.pcd", "1317042146.pcd"},
			[]string{"1317042145 1317042145000000000 2", "1317042146 1317042146000000000 2"}},
		{"seconds with a fraction", []string{"1317042145.25.pcd", "1317042145.500001.pcd"},
			[]string{"0 1317042145250000000 2", "1 1317042145500001000 2"}},
		{"milliseconds", []string{"top_1317042145951.pcd"}, []string{"0 1317042145951000000 2"}},
		{"microseconds of nuScenes", []string{"n015-2018-07-24__LIDAR_TOP__1532402927647951.pcd"},
			[]string{"0 1532402927647951000 2"}},
		{"nanoseconds", []string{"1317042145951199337.pcd"}, []string{"1317042145951199337 1317042145951199337 2"}},
		{"units differ", []string{"1317042145.pcd", "1317042145951.pcd"},
			[]string{"1317042145 0 0", "1317042145951 0 0"}},
		{"one name without a time", []string{"a_1317042145.pcd", "b.pcd"}, []string{"0 0 0", "1 0 0"}},
		{"compressed", []string{"1.pcd.gz", "2.pcd.zst", "3.pcd"}, []string{"1 0 0", "2 0 0", "3 0 0"}},
		{"compressed and not", []string{"1.pcd.gz", "1.pcd"}, []string{"1 0 0"}},
		{"other files", []string{"1.pcd", "2.txt", ".3.pcd"}, []string{"1 0 0"}},
	} {
		files := map[string][]byte{}
		for _, name := range test.files {
			switch filepath.Ext(name) {
			case ".gz":
				files[name] = packedGzip(pcdFile(5))
			case ".zst":
				files[name] = zstandard(t, pcdFile(5))
			default:
				files[name] = pcdFile(5)
			}
		}
		src, err := CloudFiles{Format: PCD, Paths: []string{cloudFolder(t, "drive 5", files)}}.Open()
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		for pass := range 2 { // the second after Rewind
			var want []string
			for _, line := range test.want {
				want = append(want, "pcd drive 5 "+line+" x 5")
			}
			if got := itemsOf(t, src); !slices.Equal(got, want) {
				t.Errorf("%s, pass %d:\n got %q\nwant %q", test.name, pass, got, want)
			}
			if err := src.Rewind(); err != nil {
				t.Error(err)
			}
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Each folder is a sequence with its own numbers.
func TestCloudFilesOfTwoFolders(t *testing.T) {
	a := cloudFolder(t, "a", map[string][]byte{"x.pcd": pcdFile(1), "y.pcd": pcdFile(2)})
	b := cloudFolder(t, "b", map[string][]byte{"7.pcd": pcdFile(3), "8.pcd": pcdFile(4)})
	src, err := CloudFiles{Format: PCD, Paths: []string{filepath.Join(b, "8.pcd"), a, filepath.Join(b, "7.pcd")}}.Open()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"pcd a 0 0 0 x 1", "pcd a 1 0 0 x 2", "pcd b 7 0 0 x 3", "pcd b 8 0 0 x 4"}
	if got := itemsOf(t, src); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCloudFilesNamesFaults(t *testing.T) {
	long := pcdFile(1)
	bomb := packedGzip(make([]byte, 1<<19))
	dir := cloudFolder(t, "clouds", map[string][]byte{
		"1.pcd": long, "2.pcd": []byte("DRACO\x02\x02"), "3.pcd": nil, "4.pcd.gz": packedGzip(long)[:40],
		"5.pcd.zst": zstandard(t, long)[:20], "6.pcd.gz": long[:50], "7.pcd": bytes.Repeat([]byte{'#'}, 2000),
		"8.pcd.gz": bomb, "9.pcd.zst": []byte("words"), "10.pcd": long[:60], "11.pcd": packedGzip(long),
	})
	if err := os.Mkdir(filepath.Join(dir, "12.pcd"), 0o755); err != nil {
		t.Fatal(err)
	}
	open := CloudFiles{Format: PCD, Paths: []string{dir}, MaxFrameBytes: 1000, SkipBad: true}
	src, err := open.Open()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := itemsOf(t, src), []string{"pcd clouds 1 0 0 x 1", "pcd clouds 11 0 0 x 1"}; !slices.Equal(got,
		want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := src.(*cloudFiles).Skipped(); n != 9 {
		t.Errorf("%d files were skipped, want 9", n)
	}
	open.SkipBad = false
	for name, want := range map[string]string{
		"2.pcd":     "this is a Draco file, not a PCD file",
		"3.pcd":     "there is no byte",
		"4.pcd.gz":  "gzip data end early",
		"5.pcd.zst": "Zstandard data end early",
		"6.pcd.gz":  "byte 50", // it is not compressed, but a PCD file
		"7.pcd":     "2000 bytes are more than --max-frame-bytes allows (1000)",
		"8.pcd.gz":  "unpacked, the file has more bytes than --max-frame-bytes allows (1000)",
		"9.pcd.zst": "the name ends with .zst, but the file is not compressed",
		"10.pcd":    "the header ends before",
	} {
		open.Paths = []string{filepath.Join(dir, name)}
		src, err := open.Open()
		if err != nil {
			t.Fatal(err)
		}
		var bad *BadInputError
		if err := src.Next(&Item{}); !errors.As(err, &bad) || bad.File != open.Paths[0] ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--skip-bad") {
			t.Errorf("%s: %v, want the file, %q and --skip-bad", name, err, want)
		}
		if err := src.Next(&Item{}); err != io.EOF {
			t.Errorf("%s: after the error %v, want EOF", name, err)
		}
	}
}

func TestCloudFilesRefusesPaths(t *testing.T) {
	empty := cloudFolder(t, "empty", map[string][]byte{"a.txt": nil})
	for _, test := range []struct{ path, want string }{
		{filepath.Join(empty, "absent.pcd"), "no such file"},
		{empty, "no file .pcd in " + empty},
	} {
		if _, err := (CloudFiles{Format: PCD, Paths: []string{test.path}}).Open(); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.path, err, test.want)
		}
	}
}

// Fields without a column are named once, whatever the number of files.
func TestCloudFilesLogsIgnoredFields(t *testing.T) {
	var text bytes.Buffer
	dir := cloudFolder(t, "a", map[string][]byte{"1.pcd": pcdFile(1), "2.pcd": pcdFile(2)})
	src, err := CloudFiles{Format: PCD, Paths: []string{dir}, Log: slog.New(slog.NewTextHandler(&text, nil))}.Open()
	if err != nil {
		t.Fatal(err)
	}
	itemsOf(t, src)
	if n := strings.Count(text.String(), "noise"); n != 1 {
		t.Errorf("the log names field noise %d times, want once:\n%s", n, text.String())
	}
}

// A format whose clouds have times, poses and sensors passes them on.
func TestCloudFilesPassesOnWhatTheFileSays(t *testing.T) {
	format := CloudFormat{Name: "test", Decode: func(c *codec.Cloud, value []byte, limit int64) error {
		c.Reset()
		c.Sensor, c.TimeNs, c.HasTime, c.Pose = "front", 17, true, &codec.Pose{1}
		if limit != 4<<10 {
			return codec.Errorf(codec.TooLarge, -1, "the limit is %d", limit)
		}
		return nil
	}}
	path := filepath.Join(cloudFolder(t, "a", map[string][]byte{"1317042145.x": nil}), "1317042145.x")
	src, err := CloudFiles{Format: format, Paths: []string{path}, MaxFrameBytes: 1 << 10}.Open()
	if err != nil {
		t.Fatal(err)
	}
	var it Item
	if err := src.Next(&it); err != nil || it.Sensor != "front" || it.TimeNs != 17 ||
		it.Clock != UTC || it.Pose == nil {
		t.Errorf("got %+v (%v)", it, err)
	}
	src, err = CloudFiles{Format: format, Paths: []string{path}}.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := src.Next(&it); err == nil || !strings.Contains(err.Error(), "--max-frame-bytes") {
		t.Errorf("columns beyond the limit: %v, want --max-frame-bytes", err)
	}
}
