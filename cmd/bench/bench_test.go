package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entropipe/algos/geom"
	"entropipe/algos/vector"
	"entropipe/cmd/command"
	"entropipe/cmd/config"
)

// runBench runs the command and returns its document.
func runBench(t *testing.T, args ...string) benchReport {
	t.Helper()
	var grammar struct {
		Bench Command `cmd:""`
	}
	parser, err := config.NewParser(&grammar, nil)
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"bench", "--json", "--min-time", "1ms"}, args...)
	parsed, err := config.Parse(parser, args)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	var stdout, stderr bytes.Buffer
	e := &command.Env{Ctx: t.Context(), Stdout: &stdout, Stderr: &stderr,
		Log: command.NewLogger(&stderr, "info", "text"), Parser: parser}
	if err := parsed.Run(e); err != nil {
		t.Fatalf("%q: %v: %s", args, err, stderr.String())
	}
	var r benchReport
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("%q: %v: %s", args, err, stdout.String())
	}
	return r
}

func TestBenchTimesEveryCell(t *testing.T) {
	r := runBench(t, "--sizes", "300", "--type", "float32,float64", "--workers", "1,2")
	cells := 0
	for _, op := range benchOps {
		cells += 2 * len(op.dists) // two types; small clouds are not shared
	}
	if len(r.Rows) != cells {
		t.Errorf("%d rows, want %d", len(r.Rows), cells)
	}
	for _, row := range r.Rows {
		switch {
		case row.Workers != 1, row.Least <= 0, row.Median < row.Least, row.Floor <= 0,
			row.Rounds < leastTurns, row.Found <= 0:
			t.Errorf("implausible: %+v", row)
		case row.Points < fewPoints/2:
			t.Errorf("only %d points in %d clouds: %+v", row.Points, row.Clouds, row)
		}
	}
	if r.CPU == "" || r.Version == "" || r.Seed != 1 || r.Level != vector.Best().String() {
		t.Errorf("heading %+v", r)
	}
}

// The clouds depend on the seed alone; what is found, on the clouds alone.
func TestBenchFindsTheSameAtEveryLevelAndType(t *testing.T) {
	args := []string{"--sizes", "100000", "--dist", "lidar,strokes,grid", "--ops", "hull2d,maxima2d,maxima3d,hull3d",
		"--type", "float32,float64", "--workers", "1,2"}
	found := func(r benchReport) map[[2]string]int {
		m := map[[2]string]int{}
		for _, row := range r.Rows {
			key := [2]string{row.Op, row.Distribution}
			if was, ok := m[key]; ok && was != row.Found {
				t.Errorf("%v: %s with %d workers finds %d, another row %d", key, row.Type, row.Workers, row.Found, was)
			}
			m[key] = row.Found
		}
		return m
	}
	first := found(runBench(t, args...))
	if len(first) != 8 { // three for each flat operator, lidar in space
		t.Errorf("cells %v", first)
	}
	if diff := cmp.Diff(first, found(runBench(t, append(args, "--level", "portable")...))); diff != "" {
		t.Errorf("portable (-best +portable):\n%s", diff)
	}
	if diff := cmp.Diff(first, found(runBench(t, append(args, "--seed", "2")...))); diff == "" {
		t.Errorf("seeds 1 and 2 give the same clouds")
	}
}

func TestBenchSharesLargeCloudsOnly(t *testing.T) {
	r := runBench(t, "--sizes", "1e4,1e5", "--ops", "hull2d", "--dist", "square", "--workers", "1,2")
	var got [][2]int
	for _, row := range r.Rows {
		got = append(got, [2]int{row.Size, row.Workers})
	}
	if diff := cmp.Diff([][2]int{{1e4, 1}, {1e5, 1}, {1e5, 2}}, got); diff != "" {
		t.Errorf("sizes and workers (-want +got):\n%s", diff)
	}
}

func TestBenchReadsScans(t *testing.T) {
	dir := t.TempDir()
	for i, n := range []int{400, 500} {
		if err := os.WriteFile(filepath.Join(dir, string(rune('0'+i))+".bin"), spiral(n, i), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	r := runBench(t, "--sizes", "50", "--ops", "maxima3d", "--dist", "lidar", "--kitti", dir)
	last := r.Rows[len(r.Rows)-1]
	if last.Distribution != "kitti" || last.Size != 0 || last.Clouds != 2 || last.Points != 900 || last.Found <= 0 {
		t.Errorf("got %+v", last)
	}
	if text := r.String(); !strings.Contains(text, "scans") || !strings.Contains(text, "kitti") {
		t.Errorf("the table does not show the scans:\n%s", text)
	}
}

func TestBenchStopsWhenAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	turns := 0
	err := takeTurns(ctx, []contender{{run: func() int {
		if turns++; turns == 4 {
			cancel()
		}
		time.Sleep(time.Millisecond)
		return 1
	}}}, time.Hour)
	if !errors.Is(err, context.Canceled) || turns < 4 {
		t.Errorf("after %d runs: %v, want %v", turns, err, context.Canceled)
	}
}

func TestPointCountIsReadAsWritten(t *testing.T) {
	for text, want := range map[string]string{"50": "50", "1e3": "1e3", "1000": "1e3", "1000000": "1e6",
		"120000": "120000", "1e8": "1e8", "1.5e3": "1500", "100": "100", "999": "999"} {
		var p pointCount
		if err := p.UnmarshalText([]byte(text)); err != nil || p.String() != want {
			t.Errorf("%s: %v, %v, want %s", text, p, err, want)
		}
	}
}

func TestDistributionsAreRepeatableAndFinite(t *testing.T) {
	const seed = 3
	for _, d := range distributions {
		for _, n := range []int{1, 50, 2500} {
			make := func() geom.Cloud[float64] {
				c, err := d.make(n, rand.New(rand.NewPCG(seed, 0)))
				if err != nil {
					t.Fatalf("%s of %d: %v", d.name, n, err)
				}
				return c
			}
			c := make()
			if diff := cmp.Diff(c, make()); diff != "" {
				t.Errorf("%s of %d, seed %d: not repeatable:\n%s", d.name, n, seed, diff)
			}
			about := slices.Contains([]string{"lidar", "rings"}, d.name) // a sensor decides
			if !c.Finite() || len(c.Y) != c.Len() || c.Len() != n && !about || c.Len() > 2*n ||
				c.Z == nil && d.dims == 3 {
				t.Errorf("%s of %d, seed %d: %d points, finite %v", d.name, n, seed, c.Len(), c.Finite())
			}
		}
	}
}

func TestBenchTable(t *testing.T) {
	row := func(dist string, size, workers int, ns float64) benchRow {
		return benchRow{Op: "hull2d", Distribution: dist, Size: size, Type: "float32", Workers: workers, Median: 2 * ns,
			Least: ns, FloorShare: 0.5 / ns}
	}
	r := benchReport{Version: "1.2.3", CPU: "Abacus", Processors: 2, Level: "avx2", Seed: 7,
		Rows: []benchRow{row("square", 1000, 1, 9.87654), row("square", 1e6, 1, 0.98765), row("square", 1e6, 2, 0.5),
			row("disk", 1000, 1, 123.4)}}
	want := `Abacus, 2 processors, level avx2, entropipe 1.2.3, seed 7
ns/point: median (least, its share of one read of the coordinates)

hull2d, float32, 1 worker
                   1e3                1e6
  square  19.8 (9.88, 5%)  1.98 (0.988, 51%)
    disk     247 (123, 0%)

hull2d, float32, 2 workers
                      1e6
  square  1.00 (0.500, 100%)
`
	if diff := cmp.Diff(fields(want), fields(r.String())); diff != "" {
		t.Errorf("table (-want +got):\n%s\n%s", diff, r.String())
	}
}

// fields are the words of every line, whatever stands between them.
func fields(text string) (lines [][]string) {
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

// spiral returns a velodyne scan of n points on a spiral that begins at radius first+1.
func spiral(n, first int) (scan []byte) {
	for i := range n {
		r, a := float32(first+1+i), 2.4*float64(i)
		for _, v := range []float32{r * float32(math.Cos(a)), r * float32(math.Sin(a)), float32(i % 7), .5} {
			scan = binary.LittleEndian.AppendUint32(scan, math.Float32bits(v))
		}
	}
	return scan
}
