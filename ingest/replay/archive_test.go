package replay

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/waymo/waymotest"
)

// describeSent is a message as text.
func describeSent(s *Sent) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d: %d ns, %d frames, %d points, key %q, value %x", s.Position, s.TimeNs, s.Frames, s.Points,
		s.Record.Key, sha256.Sum256(s.Record.Value))
	for _, h := range s.Record.Headers {
		fmt.Fprintf(&b, ", %s=%q", h.Key, h.Value)
	}
	return b.String()
}

// sentBy returns the messages that p would send of src by position.
func sentBy(t testing.TB, p *Producer, src Source) (positions []int64, texts []string) {
	t.Helper()
	m, err := p.Messages(src)
	if err != nil {
		t.Fatal(err)
	}
	texts = []string{}
	var buffer []byte
	for {
		s, err := m.Next(buffer)
		if err == io.EOF {
			return positions, texts
		}
		if err != nil {
			t.Fatalf("behind %d messages: %v", len(texts), err)
		}
		if n := len(positions); n > 0 && positions[n-1] >= s.Position {
			t.Fatalf("position %d follows %d", s.Position, positions[n-1])
		}
		buffer = s.Record.Value
		positions, texts = append(positions, s.Position), append(texts, describeSent(&s))
	}
}

// partsOf lists an archive; inputs have gone through JSON.
func partsOf(t testing.TB, a Archive) (parts []Part) {
	t.Helper()
	err := a.Parts(t.Context(), func(p *Part) error {
		data, err := json.Marshal(p.Input)
		if err != nil {
			return err
		}
		part := *p
		part.Input = Input{}
		if err := json.Unmarshal(data, &part.Input); err != nil {
			return err
		}
		parts = append(parts, part)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func openAt(t testing.TB, a Archive, in Input, from int64) Source {
	t.Helper()
	src, err := a.Open(t.Context(), in, from)
	if err != nil {
		t.Fatalf("%s at %d: %v", in, from, err)
	}
	return src
}

// placesIn returns positions from 0 to n, all of them if these are few.
func placesIn(n int64) (at []int64) {
	some := int64(4)
	if os.Getenv(longTests) != "" {
		some = 12
	}
	for k := int64(0); k <= n; k += 1 + n/some {
		at = append(at, k)
	}
	return append(at, n, n+3)
}

// checkPart checks the laws of one part: what is read from a position on is what a reading from 0
// yields from there, one by one and in lanes; the counts are those of a reading.
func checkPart(t *testing.T, a Archive, part *Part, p *Producer) {
	t.Helper()
	src := openAt(t, a, part.Input, 0)
	positions, want := sentBy(t, p, src)
	own, _ := unnamed(src)
	if of, ok := own.(interface{ positions() int64 }); ok && of.positions() != part.Items {
		t.Errorf("%s: a part of %d items, of which %d are read", part.Input, part.Items, of.positions())
	}
	src.Close()
	if len(want) == 0 {
		t.Errorf("%s: no message", part.Input)
	}
	for _, k := range placesIn(part.Items) {
		first, _ := slices.BinarySearch(positions, k)
		for _, jobs := range []int{1, 3} {
			src := inLanes(openAt(t, a, part.Input, k), jobs, nil)
			_, got := sentBy(t, p, src)
			src.Close()
			if diff := cmp.Diff(want[first:], got); diff != "" {
				t.Errorf("%s from position %d of %d, %d jobs (-want +got):\n%.2000s", part.Input, k, part.Items, jobs,
					diff)
				return
			}
		}
	}
	checkFiles(t, a, part)
}

// checkFiles checks that a part names its files.
func checkFiles(t *testing.T, a Archive, part *Part) {
	t.Helper()
	paths := slices.Clone(part.Common)
	if part.Of != nil {
		src := openAt(t, a, part.Input, 0)
		defer src.Close()
		of := src.(interface{ FilesOf(int64) []string })
		for i := range part.Items {
			files := slices.Clone(part.Of(i))
			if len(files) == 0 || !slices.Equal(files, of.FilesOf(i)) {
				t.Errorf("%s, item %d: files %q, its source's %q", part.Input, i, files, of.FilesOf(i))
			}
			paths = append(paths, files...)
		}
		if files := of.FilesOf(part.Items); len(files) > 0 {
			t.Errorf("%s: %q behind the end", part.Input, files)
		}
	}
	if len(paths) == 0 {
		t.Errorf("%s has no files", part.Input)
	}
	for _, path := range paths {
		f, err := a.Stat(t.Context(), path, false)
		if err != nil || !filepath.IsAbs(path) || f.Path != path || f.SHA256 != "" {
			t.Errorf("%s: %+v, %v", path, f, err)
		}
	}
}

// archivesOf returns archives over synthetic inputs of every format, some of them damaged.
func archivesOf(t *testing.T, seed uint64) map[string]Archive {
	archives := map[string]Archive{}
	for name, of := range sourcesOf(t, seed) {
		a, err := of.Archive()
		if err != nil {
			t.Fatal(err)
		}
		archives[name] = a
	}
	return archives
}

// archived is a source that has an archive.
type archived interface{ Archive() (Archive, error) }

// sourcesOf returns the sources of archivesOf.
func sourcesOf(t *testing.T, seed uint64) map[string]archived {
	sources := map[string]archived{}
	add := func(name string, of archived) { sources[name] = of }
	for name, path := range inputsInLanes(t, seed) {
		add("files "+name, Files{Paths: []string{path}, SkipBad: true})
		switch name {
		case "kitti":
			add(name, KITTI{Dir: filepath.Join(path, "street"), SkipBad: true})
		case "nuscenes":
			add(name, NuScenes{Paths: []string{path}, SkipBad: true})
		case "pcd":
			add(name, CloudFiles{Format: PCD, Paths: []string{filepath.Join(path, "site")}, SkipBad: true})
		case "csv":
			add(name, Table{Format: FormatCSV, Paths: []string{filepath.Join(path, "field")}, SkipBad: true})
		case "argoverse2":
			add(name, Argoverse2{Paths: []string{path}, SkipBad: true})
		case "mcap":
			add(name, MCAP{Paths: []string{path}, SkipBad: true})
		case "rosbag":
			add(name, Rosbag{Paths: []string{filepath.Join(path, "tour.db3")}, SkipBad: true})
		case "all":
			add("waymo", Waymo{Paths: []string{filepath.Join(path, "waymo")}, SkipBad: true})
			add("waymo by lasers", Waymo{Paths: []string{filepath.Join(path, "waymo")}, SkipBad: true, PerLaser: true})
		}
	}
	dir := t.TempDir()
	writeSegment(t, dir, waymotest.New(64), waymotest.Files{Frames: 6})
	add("waymo v2", Waymo{Paths: []string{dir}, SkipBad: true})
	add("files waymo v2", Files{Paths: []string{dir}, SkipBad: true})
	bag := filepath.Join(t.TempDir(), "tour")
	putFile(t, filepath.Join(bag, "metadata.yaml"), metadataOf("tour_0.db3", "tour_1.db3"))
	for i := range 2 {
		spec := bagSpec{topics: []topicInfo{lidarTopic}, rows: lidarRows(10*i, 10)}
		spec.write(t, filepath.Join(bag, fmt.Sprintf("tour_%d.db3", i)))
	}
	add("bag of parts", Rosbag{Paths: []string{bag}})
	add("files bag of parts", Files{Paths: []string{bag}})
	rng := rand.New(rand.NewPCG(seed, 2))
	add("quickdraw", QuickDraw{Files: drawingFiles(t, rng), Pack: 5, SkipBad: true})
	files := tokenFiles(t, rng)
	add("tokens", Tokens{Files: files, Pack: 4, SkipBad: true})
	add("ids", Tokens{Files: files, Pack: 4, SkipBad: true, Encode: byteIDs})
	add("cut tokens", Tokens{Files: files, Pack: 4, SkipBad: true, Encode: byteIDs, Lengths: []int32{5, 9, 1},
		Sequences: 90})
	return sources
}

// drawingFiles writes files of drawings, with lines that cannot be read, drawings without a point
// and equal neighbours.
func drawingFiles(t testing.TB, rng *rand.Rand) (files []string) {
	dir := t.TempDir()
	for i, name := range []string{"cat.ndjson", "dog.ndjson.gz", "dogs.ndjson"} {
		var b strings.Builder
		for id := range int64(40 + rng.IntN(40)) {
			switch rng.IntN(9) {
			case 0:
				b.WriteString("{\"key_id\":\"1\",\n")
			case 1:
				b.WriteString(line(id, "cat", 0))
			case 2:
				b.WriteString("\n" + line(max(id-1, 0), "cat", 2))
			default:
				b.WriteString(line(id, []string{"cat", "dog", "dog"}[i], 1+rng.IntN(5)))
			}
		}
		content := []byte(b.String())
		if strings.HasSuffix(name, ".gz") {
			content = zipped(t, content)
		}
		files = append(files, writeTo(t, content, dir, name))
	}
	return files
}

// tokenFiles writes files of texts and ids of every kind, with bad rows.
func tokenFiles(t testing.TB, rng *rand.Rand) (files []string) {
	dir := t.TempDir()
	var text, rows strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "line %d %x\n%s", i, rng.Uint64(), strings.Repeat("\n", rng.IntN(3)))
		switch rng.IntN(6) {
		case 0:
			rows.WriteString("{\"text\": 7}\n")
		case 1, 2:
			fmt.Fprintf(&rows, "{\"input_ids\": [%d, 1]}\n", i)
		default:
			fmt.Fprintf(&rows, "{\"text\": \"row %d\"}\n", i)
		}
	}
	files = append(files, writeTo(t, []byte(text.String()), dir, "a.txt"), writeTo(t, zipped(t, []byte(text.String())),
		dir, "b.txt.gz"), writeTo(t, []byte(rows.String()), dir, "c.jsonl"))
	type row struct {
		ID   int64  `parquet:"id"`
		Text string `parquet:"text"`
	}
	var table []row
	for i := range 60 {
		table = append(table, row{int64(i), fmt.Sprint("text ", i, rng.Uint64())})
	}
	return append(files, writeParquet(t, table, 13))
}

// everyOther prunes every second point.
func everyOther() *Pruner {
	return &Pruner{New: func() Survivors {
		var keep []int32
		return func(c *codec.Points) ([]int32, int) {
			keep = keep[:0]
			for i := 0; i < c.Len(); i += 2 {
				keep = append(keep, int32(i))
			}
			return keep, 0
		}
	}}
}

// longTests is the environment variable that asks for tests of minutes.
const longTests = "ENTROPIPE_LONG"

// Laws: opening at any position yields the messages that a reading from 0 yields from there on, the
// counts of parts are those of a reading, and inputs survive JSON.
func TestOpenAtAnyPosition(t *testing.T) {
	seeds := uint64(1)
	if os.Getenv(longTests) != "" {
		seeds = 10
	}
	producers := []*Producer{{}, {Names: Names{Dataset: "d", Sequence: "s", Sensor: "x"}, Key: KeyFrame,
		Compression: "lz4", Play: Play{Epoch: timeOf(1e18)}, Prune: everyOther()}}
	for seed := range seeds {
		for name, a := range archivesOf(t, seed) {
			t.Run(fmt.Sprintf("%d %s", seed, name), func(t *testing.T) {
				parts := partsOf(t, a)
				for i := range parts {
					for _, p := range producers {
						checkPart(t, a, &parts[i], p)
					}
				}
				if c := a.Counts(); c.Inputs != int64(len(parts)) || c.Files < c.Inputs || c.Items == 0 {
					t.Errorf("%d parts counted as %+v", len(parts), c)
				}
			})
		}
	}
}

// A search that ends at its first inputs looks at no file behind them.
func TestSearchEndsAtTheFirstInputs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		scans(t, filepath.Join(dir, name), 20)
	}
	for _, c := range []struct {
		first  int
		parts  int
		looked int64
	}{{0, 3, 60}, {1, 1, 1}, {2, 2, 21}, {9, 3, 60}} {
		a, err := Files{Paths: []string{dir}, First: c.first}.Archive()
		if err != nil {
			t.Fatal(err)
		}
		parts := 0
		err = a.Parts(t.Context(), func(p *Part) error {
			if parts++; !filepath.IsAbs(p.Input.Path) || p.Items == 0 {
				t.Errorf("first %d: %+v", c.first, p)
			}
			return nil
		})
		if looked := a.Counts().Files; err != nil || parts != c.parts || looked != c.looked {
			t.Errorf("first %d: %d parts, %d files, %v; want %d, %d", c.first, parts, looked, err, c.parts, c.looked)
		}
	}
}
