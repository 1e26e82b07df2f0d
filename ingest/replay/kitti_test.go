package replay

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/algos/geomtest"
)

// goldenScan is (1,2,3,.5) (-1.5,0,-1.73,0) (49.52,22.668,2.051,.99).
const goldenScan = "0000803f00000040000040400000003f0000c0bf00000000a470ddbf000000007b1446421058b54196430340a4707d3f"

func golden(t *testing.T) []byte {
	b, err := hex.DecodeString(goldenScan)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkGolden(t *testing.T, it *Item) {
	t.Helper()
	got := [][]float32{it.Cloud.Cloud32.X, it.Cloud.Cloud32.Y, it.Cloud.Cloud32.Z, it.Cloud.Intensity}
	want := [][]float32{{1, -1.5, 49.52}, {2, 0, 22.668}, {3, -1.73, 2.051}, {.5, 0, .99}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("points differ (-want +got):\n%s", d)
	}
}

func TestScanOfTheFormatsDescription(t *testing.T) {
	dir := t.TempDir()
	write(t, golden(t), dir, "000000.bin")
	items := all(t, open(t, KITTI{Dir: dir}))
	if len(items) != 1 {
		t.Fatalf("%d items", len(items))
	}
	checkGolden(t, &items[0])
}

// drive writes a raw drive with these scans and these lines of times.
func drive(t *testing.T, root string, scans []string, lines ...string) {
	t.Helper()
	for _, s := range scans {
		write(t, golden(t), root, "velodyne_points", "data", s)
	}
	if lines != nil {
		write(t, []byte(strings.Join(lines, "\n")+"\n"), root, "velodyne_points", "timestamps.txt")
	}
}

func TestRawDriveKeepsNumbersTimesAndGaps(t *testing.T) {
	date := t.TempDir()
	root := filepath.Join(date, "2011_09_26_drive_0009_sync")
	drive(t, root, []string{"0000000000.bin", "0000000001.bin", "0000000004.bin", "0000000006.bin"},
		"2011-09-26 13:02:25.964389445", "2011-09-26 13:02:26.067", "", "", "2011-09-26 13:02:26.4", "",
		"2011-09-26 13:02:26.6")
	const t0 = 1317042145964389445
	for _, dir := range []string{date, root, filepath.Join(root, "velodyne_points"),
		filepath.Join(root, "velodyne_points", "data"), root + "/."} {
		log, book := logBook()
		var numbers, times []int64
		for _, it := range all(t, open(t, KITTI{Dir: dir, Log: log})) {
			numbers, times = append(numbers, it.Number), append(times, it.TimeNs)
			if it.Sequence != "2011_09_26_drive_0009_sync" || it.Dataset != "kitti" ||
				it.Sensor != "velodyne" || it.Clock != UTC {
				t.Errorf("%s: item is %s/%s/%s, clock %d", dir, it.Dataset, it.Sequence, it.Sensor, it.Clock)
			}
			checkGolden(t, &it)
		}
		if d := cmp.Diff([]int64{0, 1, 4, 6}, numbers); d != "" {
			t.Errorf("%s: numbers %s", dir, d)
		}
		if d := cmp.Diff([]int64{t0, 1317042146067000000, 1317042146400000000, 1317042146600000000}, times); d != "" {
			t.Errorf("%s: times %s", dir, d)
		}
		if !strings.Contains(book.String(), "3 scans missing: 2-3, 5") {
			t.Errorf("%s: gaps are not reported: %q", dir, book)
		}
	}
}

func TestOdometrySequenceHasTimesSinceItsStart(t *testing.T) {
	root := filepath.Join(t.TempDir(), "sequences", "07")
	write(t, golden(t), root, "velodyne", "000000.bin")
	write(t, golden(t), root, "velodyne", "000001.bin")
	write(t, []byte("0.000000e+00\n1.036224e-01\n2.072e-01\n"), root, "times.txt")
	for _, dir := range []string{root, filepath.Join(root, "velodyne")} {
		items := all(t, open(t, KITTI{Dir: dir}))
		if len(items) != 2 || items[1].Sequence != "odometry_07" || items[1].Clock != SinceEpoch ||
			items[1].TimeNs != 103622400 {
			t.Errorf("%s: %d items, the last %s at %d, clock %d", dir, len(items), items[1].Sequence,
				items[1].TimeNs, items[1].Clock)
		}
	}
}

func TestFoldersWithoutTimes(t *testing.T) {
	object := filepath.Join(t.TempDir(), "training")
	write(t, golden(t), object, "velodyne", "000007.bin")
	plain := filepath.Join(t.TempDir(), "walk")
	write(t, golden(t), plain, "b.bin")
	write(t, nil, plain, "a.bin")
	write(t, []byte("what this is"), plain, "README.txt")
	clocks := filepath.Join(t.TempDir(), "clocks")
	write(t, golden(t), clocks, "1532402927647951.bin")
	write(t, golden(t), clocks, "99.bin")

	type frame struct {
		Sequence string
		Number   int64
		Points   int64
	}
	for dir, want := range map[string][]frame{
		object: {{"object_training", 7, 3}},
		plain:  {{"walk", 0, 0}, {"walk", 1, 3}},
		clocks: {{"clocks", 99, 3}, {"clocks", 1532402927647951, 3}},
	} {
		log, book := logBook()
		var got []frame
		for _, it := range all(t, open(t, KITTI{Dir: dir, Log: log})) {
			got = append(got, frame{it.Sequence, it.Number, it.Points()})
			if it.Clock != NoClock || it.Cloud.Cloud32.Z == nil || it.Cloud.Intensity == nil {
				t.Errorf("%s: clock %d, z %v", dir, it.Clock, it.Cloud.Cloud32.Z)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", dir, d)
		}
		if book.Len() > 0 {
			t.Errorf("%s: logged %q", dir, book)
		}
	}
}

func TestUnsynchronisedDriveIsText(t *testing.T) {
	root := filepath.Join(t.TempDir(), "2011_09_26_drive_0001_extract")
	write(t, []byte("1 2 3 0.5\n-1.5 0 -1.73 0.00\r\n\n49.52\t22.668 2.051 .99"), root, "velodyne_points",
		"data", "0000000000.txt")
	write(t, []byte("1 2 3 0.5\n1 2 3\n"), root, "velodyne_points", "data", "0000000001.txt")
	write(t, []byte("1 2 3 0.5 9\n"), root, "velodyne_points", "data", "0000000002.txt")
	write(t, []byte("1 2 three 0.5\n"), root, "velodyne_points", "data", "0000000003.txt")
	write(t, []byte(strings.Repeat("1", 100_000)), root, "velodyne_points", "data", "0000000004.txt")
	write(t, nil, root, "velodyne_points", "data", "0000000005.txt")
	s := open(t, KITTI{Dir: root})
	var it Item
	if err := s.Next(&it); err != nil {
		t.Fatal(err)
	}
	checkGolden(t, &it)
	failsWith(t, s.Next(&it), "0000000001.txt:2: ", "1 2 3")
	failsWith(t, s.Next(&it), "0000000002.txt:1: ", "got more")
	failsWith(t, s.Next(&it), "0000000003.txt:1: ", "three")
	failsWith(t, s.Next(&it), "0000000004.txt: ", "no scan")
	if err := s.Next(&it); err != nil || it.Points() != 0 {
		t.Errorf("an empty file: %v, %d points", err, it.Points())
	}
	if err := s.Next(&it); err != io.EOF {
		t.Errorf("the end: %v", err)
	}
}

// A text whose digits float32 holds is read without a word; one that loses some
// is read too, and said once.
func TestTextBeyondFloat32IsSaid(t *testing.T) {
	for _, c := range []struct {
		text  string
		lossy bool
	}{
		{"49.52 22.668 -2.051 0.34567890123\n-0.001 1e1 1.25e-3 0", false},
		{"49.020000457763672 8388607.5 16777216 0", false}, // float32 values, in full
		{"8388607.25 0 0 0", true},
		{"0 16777217 0 0", true},
		{"0 0 1.2345678e3 0", true}, // 1234.5677490234375
		{"0 0 1.234567e3 0", false}, // 1234.5670166015625
	} {
		root := filepath.Join(t.TempDir(), "2011_09_26_drive_0001_extract")
		for _, name := range []string{"0000000000.txt", "0000000001.txt"} {
			write(t, []byte(c.text), root, "velodyne_points", "data", name)
		}
		log, book := logBook()
		if n := len(all(t, open(t, KITTI{Dir: root, Log: log}))); n != 2 {
			t.Fatalf("%q: %d scans", c.text, n)
		}
		said := strings.Count(book.String(), "more digits than float32 holds")
		if want := map[bool]int{true: 1, false: 0}[c.lossy]; said != want {
			t.Errorf("%q: said %d times, want %d: %s", c.text, said, want, book)
		}
	}
}

func TestBrokenScans(t *testing.T) {
	dir := t.TempDir()
	write(t, golden(t), dir, "0.bin")
	write(t, golden(t)[:47], dir, "1.bin")
	write(t, make([]byte, 64), dir, "2.bin")
	if err := os.Symlink(filepath.Join(dir, "gone"), filepath.Join(dir, "3.bin")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "4.bin")); err != nil {
		t.Fatal(err)
	}
	write(t, golden(t), dir, "5.bin")

	s := open(t, KITTI{Dir: dir, MaxFrameBytes: 48})
	var it Item
	if err := s.Next(&it); err != nil {
		t.Fatal(err)
	}
	failsWith(t, s.Next(&it), "1.bin: 47 bytes", "15 bytes remain after 2 points", "--skip-bad")
	failsWith(t, s.Next(&it), "2.bin: 64 bytes are more than a frame may have (48)")
	failsWith(t, s.Next(&it), "3.bin: ", "no such file")
	failsWith(t, s.Next(&it), "4.bin: not a regular file")
	if err := s.Next(&it); err != nil || it.Number != 5 {
		t.Errorf("the source does not go on: %v", err)
	}

	log, book := logBook()
	lax := open(t, KITTI{Dir: dir, MaxFrameBytes: 48, SkipBad: true, Log: log})
	for range 2 {
		if items := all(t, lax); len(items) != 2 || items[1].Number != 5 {
			t.Errorf("%d items are left", len(items))
		}
		if err := lax.Rewind(); err != nil {
			t.Fatal(err)
		}
	}
	if n := lax.(*kitti).Skipped(); n != 4 || strings.Count(book.String(), "skipped") != 4 {
		t.Errorf("%d skipped over two passes, want 4 counted and named once: %s", n, book)
	}
}

func TestFoldersThatAreNone(t *testing.T) {
	empty, many, twice, file := t.TempDir(), t.TempDir(), t.TempDir(), write(t, nil, t.TempDir(), "a.bin")
	five := t.TempDir()
	write(t, make([]byte, 80), five, "n015__LIDAR_TOP__1532402927647951.pcd.bin")
	drive(t, filepath.Join(many, "drive_1"), []string{"0.bin"})
	drive(t, filepath.Join(many, "drive_2"), []string{"0.bin"})
	write(t, nil, twice, "1.bin")
	write(t, nil, twice, "01.bin")
	for dir, words := range map[string][]string{
		filepath.Join(empty, "gone"): {"no such file"},
		empty:                        {"no .bin file"},
		many:                         {"2 drives", "drive_1", "name one"},
		file:                         {"is a file"},
		five:                         {"1532402927647951.pcd.bin", "nuScenes", "five numbers"},
		twice:                        {"01.bin", "same number"},
	} {
		_, err := KITTI{Dir: dir}.Open()
		failsWith(t, err, words...)
	}
}

// A folder above scans is explained by those that have them, without a search
// through a whole disk.
func TestFolderAboveScansNamesThem(t *testing.T) {
	one, several, deep, wide := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	folder := func(elem ...string) string {
		dir := filepath.Join(elem...)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	write(t, nil, folder(one, "2011_09_26", "drive_1", "velodyne_points", "data"), "0.bin.gz")
	write(t, nil, folder(one, "2011_09_26", "image_00"), "0.png")
	for i := range 6 {
		write(t, nil, folder(several, "sequences", fmt.Sprintf("%02d", i), "velodyne"), "0.bin")
	}
	write(t, nil, folder(deep, "a", "b", "c", "d", "e", "f", "g"), "0.bin")
	for i := range findFolders + 1 {
		folder(wide, strconv.Itoa(i))
	}
	write(t, nil, folder(wide, "zz"), "0.bin")
	for dir, words := range map[string][]string{
		one: {"no .bin file in " + one + " itself; name the folder that has them: ",
			filepath.Join(one, "2011_09_26", "drive_1", "velodyne_points", "data")},
		several: {"name one of the folders that have them: ",
			filepath.Join(several, "sequences", "00", "velodyne") + ", ", filepath.Join("03", "velodyne") + ", …"},
		deep: {"no .bin file in " + deep + "; want"},
		wide: {"no .bin file in " + wide},
	} {
		_, err := KITTI{Dir: dir}.Open()
		failsWith(t, err, words...)
	}
	named := filepath.Join(one, "2011_09_26", "drive_1", "velodyne_points", "data")
	if s := open(t, KITTI{Dir: named}); s.(*kitti).Len() != 1 {
		t.Errorf("the folder that was named has %d scans", s.(*kitti).Len())
	}
}

// A scan in gzip is the scan; one that is damaged, cut or far larger unpacked is a
// bad input.
func TestScansInGzip(t *testing.T) {
	packed := func(raw []byte) []byte { return gzipped(t, func(w io.Writer) { w.Write(raw) }) }
	plain, dir := t.TempDir(), t.TempDir()
	write(t, golden(t), plain, "0.bin")
	write(t, packed(golden(t)), dir, "0.bin.gz")
	write(t, golden(t), dir, "1.bin")
	write(t, []byte("not the same scan"), dir, "1.bin.gz") // unpacked beside it: not read
	write(t, packed(nil), dir, "2.bin.gz")
	text := t.TempDir()
	write(t, packed([]byte("1 2 3 0.5\n")), text, "3.txt.gz")
	if lines := all(t, open(t, KITTI{Dir: text})); len(lines) != 1 || len(lines[0].Cloud.Cloud32.X) != 1 ||
		lines[0].Cloud.Cloud32.Z[0] != 3 {
		t.Errorf("text in gzip: %+v", lines)
	}
	want, got := all(t, open(t, KITTI{Dir: plain})), all(t, open(t, KITTI{Dir: dir}))
	if len(got) != 3 || got[0].Number != 0 || got[1].Number != 1 || got[2].Number != 2 {
		t.Fatalf("%d items: %+v", len(got), got)
	}
	for i, n := range []int{len(want[0].Cloud.Cloud32.X), len(want[0].Cloud.Cloud32.X), 0} {
		if len(got[i].Cloud.Cloud32.X) != n ||
			n > 0 && (!slices.Equal(got[i].Cloud.Cloud32.X, want[0].Cloud.Cloud32.X) ||
				!slices.Equal(got[i].Cloud.Intensity, want[0].Cloud.Intensity)) {
			t.Errorf("scan %d differs: %d points, want %d", i, len(got[i].Cloud.Cloud32.X), n)
		}
	}
	whole := packed(golden(t))
	bad := t.TempDir()
	write(t, whole[:len(whole)-5], bad, "0.bin.gz")
	write(t, golden(t), bad, "1.bin.gz")
	write(t, packed(make([]byte, 1<<20)), bad, "2.bin.gz")
	write(t, packed(make([]byte, 17)), bad, "3.bin.gz")
	s := open(t, KITTI{Dir: bad, MaxFrameBytes: 1<<20 - 1})
	var it Item
	failsWith(t, s.Next(&it), "0.bin.gz", "damaged gzip")
	failsWith(t, s.Next(&it), "1.bin.gz", "not gzip")
	failsWith(t, s.Next(&it), "2.bin.gz", "more than 1048575 bytes unpacked")
	failsWith(t, s.Next(&it), "3.bin.gz", "17 bytes are not a whole number of points")
}

func TestBrokenTimes(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		words []string
	}{
		{"no time", []string{"2011-09-26 13:02:25.9", "yesterday"}, []string{"timestamps.txt:2: ", "yesterday"}},
		{"too early", []string{"0001-01-01 00:00:00"}, []string{"timestamps.txt:1: ", "year 1"}},
		{"endless", []string{strings.Repeat("x", 70_000)}, []string{"timestamps.txt:1: ", "too long"}},
	} {
		root := t.TempDir()
		drive(t, root, []string{"0.bin"}, c.lines...)
		_, err := KITTI{Dir: root}.Open()
		failsWith(t, err, c.words...)
	}
	root := t.TempDir()
	drive(t, root, []string{"0.bin", "1.bin", "2.bin"}, "2011-09-26 13:02:25.9", "")
	s := open(t, KITTI{Dir: root})
	var it Item
	if err := s.Next(&it); err != nil {
		t.Fatal(err)
	}
	failsWith(t, s.Next(&it), "timestamps.txt:2: empty, but there is a scan 1")
	failsWith(t, s.Next(&it), "no line for scan 2", "2 lines")
}

func TestGapsListsRanges(t *testing.T) {
	scans := func(numbers ...int64) (s []scan) {
		for _, n := range numbers {
			s = append(s, scan{number: n})
		}
		return s
	}
	for want, s := range map[string][]scan{
		"":        scans(1, 2, 3),
		"177-180": scans(175, 176, 181),
		"1, 3-5":  scans(0, 2, 6),
		"1, 3, 5, 7, 9, 11, 13, 15 and 2 more gaps": scans(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20),
	} {
		if got := gaps(s); got != want {
			t.Errorf("gaps(%v) = %q, want %q", s, got, want)
		}
	}
}

// The times of a scan survive being written and read again, to the nanosecond.
func TestTimestampsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Int64Range(0, 4e18).Draw(t, "ns")
		got, err := parseTimestamp(timeOf(ns).Format("2006-01-02 15:04:05.999999999"))
		if err != nil || got != ns {
			t.Fatalf("%d comes back as %d, %v", ns, got, err)
		}
	})
}

func FuzzTimestamps(f *testing.F) {
	for _, s := range []string{"2011-09-26 13:02:25.964389445", "2017-03-01 20:41:36.70725 UTC", "1.036224e-01", "nan",
		"-0", "9e99", "2011-09-26 13:02:25,5", "9999-12-31 23:59:59", "2011-09-26  3:02:25", "2011-09-26 3:02:25 UTC"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if ns, err := parseTimestamp(s); err == nil && timeOf(ns).Format("2006-01-02 15:04:05") != s[:19] {
			t.Errorf("%q is read as %v", s, timeOf(ns))
		}
		if ns, err := parseDrawn(s); err == nil &&
			timeOf(ns).Format("2006-01-02 15:04:05")+" UTC" != s[:19]+s[len(s)-4:] {
			t.Errorf("%q is read as %v", s, timeOf(ns))
		}
		if ns, err := parseSeconds(s); err == nil && (ns < 0 || ns > 1e18) {
			t.Errorf("%q is read as %d ns", s, ns)
		}
	})
}

func TestRealScans(t *testing.T) {
	raw := geomtest.TestData(t, "kitti", "raw_2011_09_26_drive_0005")
	items := all(t, open(t, KITTI{Dir: raw}))
	frames := geomtest.RealFrames(t)
	matched := 0
	for _, it := range items {
		for _, f := range frames {
			if slices.Equal(f.Cloud.X, it.Cloud.Cloud32.X) && slices.Equal(f.Cloud.Y, it.Cloud.Cloud32.Y) &&
				slices.Equal(f.Cloud.Z, it.Cloud.Cloud32.Z) {
				matched++
				break
			}
		}
	}
	if len(items) != 10 || matched != 10 || items[9].Number != 9 {
		t.Errorf("%d scans, %d of them as the oracle's reader has them, the last numbered %d", len(items),
			matched, items[9].Number)
	}
}

func BenchmarkScan(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "0.bin"), make([]byte, 1_974_352), 0o644); err != nil {
		b.Fatal(err)
	}
	readFirst(b, KITTI{Dir: dir}, 1_974_352)
}

// readFirst times the reading of the first frame of a source, from a file of some bytes.
func readFirst(b *testing.B, from interface{ Open() (Source, error) }, bytes int) {
	b.Helper()
	s := open(b, from)
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	var it Item
	for b.Loop() {
		if err := s.Rewind(); err != nil {
			b.Fatal(err)
		}
		if err := s.Next(&it); err != nil {
			b.Fatal(err)
		}
	}
}
