package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"entropipe/benchmarks/rig"
)

// frameRow, keyRow and rejectRow write the columns that the judge reads.
type frameRow struct {
	FrameID       int64   `parquet:"frame_id"`
	Partition     int32   `parquet:"partition"`
	Offset        int64   `parquet:"offset"`
	Index         int32   `parquet:"index"`
	StatusHull    *string `parquet:"status_hull2d,optional"`
	StatusMaxima  *string `parquet:"status_maxima2d,optional"`
	StatusMaxima3 *string `parquet:"status_maxima3d,optional"`
	NTriangles    *int32  `parquet:"n_delaunay2d,optional"`
}

type keyRow struct {
	Partition int32 `parquet:"partition"`
	Offset    int64 `parquet:"offset"`
	Index     int32 `parquet:"index"`
}

type rejectRow struct {
	Topic string `parquet:"topic"`
	keyRow
}

// fixture is an output of two partitions, ten records each, in files of five;
// record 7 of each was refused, record 3 carries three frames.
type fixture struct {
	t    *testing.T
	out  string
	want Expected
}

func newFixture(t *testing.T) fixture {
	f := fixture{t, t.TempDir(), Expected{Topic: "points",
		Logs: map[int32]rig.Range{0: {Start: 0, End: 10}, 1: {Start: 4, End: 14}}, Acked: map[Place]Sent{}}}
	for p, log := range f.want.Logs {
		for start := log.Start; start < log.End; start += 5 {
			f.commit(p, start, start+5, log.Start)
		}
	}
	return f
}

// commit writes the files of the records [start, end) of a partition whose log
// begins at base.
func (f fixture) commit(p int32, start, end, base int64) {
	var frames []frameRow
	var rejects []rejectRow
	var hulls, maxima, triangles []keyRow
	ok, two := "ok", int32(2)
	for o := start; o < end; o++ {
		key := keyRow{Partition: p, Offset: o, Index: -1}
		if o-base == 7 {
			rejects = append(rejects, rejectRow{"points", key})
			f.want.Acked[Place{p, o}] = Sent{}
			continue
		}
		sent := Sent{Number: 1000*int64(p) + 10*o, Frames: 1}
		if o-base == 3 {
			sent.Frames = 3
		}
		for i := range int32(sent.Frames) {
			key.Index = i
			frames = append(frames, frameRow{FrameID: sent.Number + int64(i), Partition: p, Offset: o, Index: i,
				StatusHull: &ok, StatusMaxima: &ok, NTriangles: &two})
			hulls, maxima, triangles = append(hulls, key), append(maxima, key), append(triangles, key, key)
		}
		f.want.Acked[Place{p, o}] = sent
	}
	name := fmt.Sprintf("part-%d-%020d-%020d.parquet", p, start, end)
	writeRows(f.t, filepath.Join(f.out, "frames", "dataset=chaos", "topic=points", name), frames)
	writeRows(f.t, filepath.Join(f.out, "hulls", "dataset=chaos", "topic=points", name), hulls)
	writeRows(f.t, filepath.Join(f.out, "maxima", "dataset=chaos", "topic=points", name), maxima)
	writeRows(f.t, filepath.Join(f.out, "triangles", "dataset=chaos", "topic=points", name), triangles)
	if len(rejects) > 0 {
		writeRows(f.t, filepath.Join(f.out, "rejects", "topic=points", name), rejects)
	}
}

func writeRows[R any](t *testing.T, path string, rows []R) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
}

// file returns the path of the only file of a table that matches.
func (f fixture) file(pattern string) string {
	f.t.Helper()
	m, err := filepath.Glob(filepath.Join(f.out, pattern))
	if err != nil || len(m) != 1 {
		f.t.Fatalf("%s: %v, %v; want one file", pattern, m, err)
	}
	return m[0]
}

// copyTo copies a file beside itself.
func (f fixture) copyTo(path, name string) {
	f.t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(filepath.Join(filepath.Dir(path), name), b, 0o666)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f fixture) remove(pattern string) {
	f.t.Helper()
	if err := os.Remove(f.file(pattern)); err != nil {
		f.t.Fatal(err)
	}
}

const (
	framesHead  = "frames/*/*/part-0-00000000000000000000-*"
	hullsHead   = "hulls/*/*/part-0-00000000000000000000-*"
	trianglesAt = "triangles/*/*/part-1-00000000000000000004-*"
)

// TestJudgeFindsPlantedFaults damages a good output in every way that the judge
// has a word for, and a few more.
func TestJudgeFindsPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(f *fixture)
		want  Verdict
	}{
		{"nothing", func(*fixture) {}, Verdict{}},
		{"a record whose answer was lost", func(f *fixture) { delete(f.want.Acked, Place{0, 2}) }, Verdict{}},
		{"a file of frames dropped", func(f *fixture) { f.remove(framesHead) }, Verdict{Missing: 5, Torn: 7}},
		{"a file of frames doubled", func(f *fixture) { f.copyTo(f.file(framesHead), "part-0-copy.parquet") },
			Verdict{Doubled: 5, Torn: 7}},
		{"a file of rejects dropped", func(f *fixture) { f.remove("rejects/*/part-0-*") }, Verdict{Missing: 1}},
		{"a file of rejects doubled", func(f *fixture) {
			f.copyTo(f.file("rejects/*/part-0-*"), "part-0-copy.parquet")
		}, Verdict{Doubled: 1}},
		{"a file of hulls dropped", func(f *fixture) { f.remove(hullsHead) }, Verdict{Torn: 7}},
		{"a file of hulls doubled", func(f *fixture) { f.copyTo(f.file(hullsHead), "part-0-copy.parquet") },
			Verdict{Torn: 7}},
		{"a file of triangles dropped", func(f *fixture) { f.remove(trianglesAt) }, Verdict{Torn: 7}},
		{"a whole commit twice, under another name", func(f *fixture) {
			for _, table := range []string{"frames", "hulls", "maxima", "triangles"} {
				f.copyTo(f.file(table+"/*/*/part-0-00000000000000000000-*"), "part-0-copy.parquet")
			}
		}, Verdict{Doubled: 5}},
		{"the log is longer", func(f *fixture) { f.want.Logs[0] = rig.Range{End: 12} }, Verdict{Missing: 2}},
		{"the log is shorter", func(f *fixture) { f.want.Logs[1] = rig.Range{Start: 4, End: 13} }, Verdict{Stray: 1}},
		{"a chunk that has no row of its own", func(f *fixture) { f.want.Further = map[Place]bool{{0, 2}: true} },
			Verdict{Stray: 1}},
		{"another record is there", func(f *fixture) { f.want.Acked[Place{1, 5}] = Sent{Number: 9, Frames: 1} },
			Verdict{Wrong: 1}},
		{"a frame of a record is lacking", func(f *fixture) { f.want.Acked[Place{0, 3}] = Sent{Number: 30, Frames: 4} },
			Verdict{Wrong: 1}},
		{"a good record refused", func(f *fixture) { f.want.Acked[Place{0, 7}] = Sent{Number: 70, Frames: 1} },
			Verdict{Wrong: 1}},
		{"a bad record accepted", func(f *fixture) { f.want.Acked[Place{0, 8}] = Sent{} }, Verdict{Wrong: 1}},
		{"refused as well as accepted", func(f *fixture) {
			writeRows(t, filepath.Join(f.out, "rejects", "topic=points", "part-0-more.parquet"),
				[]rejectRow{{"points", keyRow{0, 2, -1}}})
		}, Verdict{Doubled: 1}},
		{"another topic beside it", func(f *fixture) {
			writeRows(t, filepath.Join(f.out, "rejects", "topic=other", "part-0-more.parquet"),
				[]rejectRow{{"other", keyRow{0, 2, -1}}})
		}, Verdict{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			c.plant(&f)
			got, err := Judge(f.out, f.want)
			if err != nil {
				t.Fatal(err)
			}
			if got.Missing != c.want.Missing || got.Doubled != c.want.Doubled || got.Stray != c.want.Stray ||
				got.Wrong != c.want.Wrong || got.Torn != c.want.Torn {
				t.Errorf("got  %v\nwant %v", got, &c.want)
			}
			if clean := c.want.OK(); got.OK() != clean {
				t.Errorf("OK() = %v, want %v", got.OK(), clean)
			}
		})
	}
}

// TestJudgeOfRandomRemovals drops one random row of frames: exactly its record
// is missing or incomplete.
func TestJudgeOfRandomRemovals(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		f := newFixture(t)
		path := f.file(framesHead)
		rows, err := parquet.ReadFile[frameRow](path)
		if err != nil {
			t.Fatal(err)
		}
		i := rng.IntN(len(rows))
		gone := rows[i]
		writeRows(t, path, append(rows[:i:i], rows[i+1:]...))
		v, err := Judge(f.out, f.want)
		if err != nil {
			t.Fatal(err)
		}
		if v.Missing+v.Wrong != 1 || v.Torn != 1 {
			t.Errorf("seed %d: without the row of %d@%d frame %d: %v", seed, gone.Partition, gone.Offset, gone.Index, v)
		}
	}
}

// TestJudgeNamesBrokenFile: a file that cannot be read is an error with its
// path, never a clean verdict.
func TestJudgeNamesBrokenFile(t *testing.T) {
	f := newFixture(t)
	path := f.file(hullsHead)
	if err := os.WriteFile(path, []byte("PAR1 nothing PAR1"), 0o666); err != nil {
		t.Fatal(err)
	}
	if v, err := Judge(f.out, f.want); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("verdict %v, error %v; want an error that names %s", v, err, path)
	}
}
