package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/cmd"
	"entropipe/schemas/codec/codectest"
)

// childVariable makes this test's binary the command, or the program that it measures.
const childVariable = "ENTROPIPE_TEST_FORMATS_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	if args := os.Args[1:]; slices.Contains([]string{"read", "write"}, args[0]) {
		main()
	}
	os.Exit(cmd.Main(os.Args[1:], os.Stdout, os.Stderr))
}

// The whole command over small inputs, without Python: its page has a row for each task and
// form, and is made again from the records.
func TestMeasures(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(childVariable, "1")
	t.Setenv("ENTROPIPE_BIN", self)
	results := t.TempDir()
	c := measureCmd{Formats: []string{"mcap-lz4", "nuscenes"}, Long: []string{"mcap"}, Size: 1, Points: 500, Turns: 2,
		Turn: time.Millisecond, Factor: 2, Data: "-", Scratch: t.TempDir(), Results: results, Seed: 1}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := openReport(results)
	if err != nil {
		t.Fatal(err)
	}
	page := r.markdown()
	if text, err := os.ReadFile(filepath.Join(results, "formats.md")); err != nil || string(text) != page {
		t.Errorf("the page is not what the records make (%v)", err)
	}
	for _, want := range []string{"| MCAP, PointCloud2, lz4 | 3 × ", "| nuScenes .pcd.bin | 3 × ",
		"| MCAP, PointCloud2 | 0.00 | 6 | "} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if n := len(r.rows.Records); n != 2*2*2+1 {
		t.Errorf("%d records", n)
	}
	if left, err := os.ReadDir(c.Scratch); err != nil || len(left) > 0 {
		t.Errorf("left in the scratch folder: %v, %v", left, err)
	}
}

// Each form's files are read back as the points that were written.
func TestFormsAreReadBack(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			w := writer{dir: t.TempDir(), frames: 3, points: 400, seed: 1}
			if err := f.write(&w); err != nil {
				t.Fatal(err)
			}
			in, err := newInput(f, w.dir)
			if err != nil {
				t.Fatal(err)
			}
			got, err := (&readCmd{Paths: in.paths(), Loops: 2, Check: true}).read()
			if err != nil {
				t.Fatal(err)
			}
			if got.Frames != 6 || got.Points == 0 || in.bytes == 0 || len(in.files) == 0 {
				t.Fatalf("%+v of %d bytes in %d files", got, in.bytes, len(in.files))
			}
			if f.name == "waymo" { // its frames are another scene's
				return
			}
			var want reading
			if err := w.each(func(_ int, c *codectest.Cloud) error {
				want.Frames, want.Points = want.Frames+2, want.Points+2*int64(len(c.X))
				for k, column := range [][]float32{c.X, c.Y, c.Z, c.Intensity} {
					want.Sums[k] += 2 * magnitude(column)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if got.Points != want.Points {
				t.Errorf("%d points, want %d", got.Points, want.Points)
			}
			for k := range 3 { // the unit of intensities differs; Argoverse 2 has float16
				if math.Abs(got.Sums[k]-want.Sums[k]) > 1e-3*want.Sums[k] {
					t.Errorf("column %d sums up to %v, want %v", k, got.Sums[k], want.Sums[k])
				}
			}
		})
	}
}

// A form that is not known is named with those that are.
func TestFormsNamed(t *testing.T) {
	if all, err := formsNamed(nil); err != nil || len(all) != len(forms) {
		t.Errorf("%d forms, %v", len(all), err)
	}
	if _, err := formsNamed([]string{"las", "dxf"}); err == nil || !strings.Contains(err.Error(), `"dxf"`) {
		t.Errorf("error is %v", err)
	}
}

// The words of the page follow from the records, the newest run of an input counts, and the
// fastest reader is the one that counts.
func TestVerdicts(t *testing.T) {
	r := &report{rows: &rig.Journal[measurement]{}}
	add := func(m measurement) {
		m.Form, m.Title, m.Loops, m.Frames, m.Points, m.Bytes = "las", "LAS", 1, 10, 10e6, 1e9
		m.Goal.Megabytes, m.MaxRSS = 500, 2e8
		if err := r.add(m); err != nil {
			t.Fatal(err)
		}
	}
	add(measurement{Run: "2026-01-01", Task: taskRead, Seconds: 100})
	for turn, seconds := range []float64{1, 1.5, 1.25} {
		add(measurement{Run: "2026-01-02", Task: taskRead, Turn: turn, Seconds: seconds})
		add(measurement{Run: "2026-01-02", Task: taskRead, Turn: turn, Seconds: 20 * seconds, Reader: "slow", How: "a"})
		add(measurement{Run: "2026-01-02", Task: taskRead, Turn: turn, Seconds: 9 + 4*float64(turn), Reader: "fast",
			How: "b", Python: "laspy 2"})
		add(measurement{Run: "2026-01-02", Task: taskKafka, Turn: turn, Seconds: 1 + float64(turn)})
	}
	page := r.markdown()
	for _, want := range []string{
		"| LAS | 10 × 100.00 | 800 (667 to 1000) | 8.0 | 8.0 | met (500 MB/s) | fast | 77 (59 to 111) | " +
			"9.00 (8.67 to 13.60) | undecided | 200 | met |\n",
		"| LAS | 10 × 100.00 | 500 (333 to 1000) | 5.0 | 5.0 | undecided (500 MB/s) |  |  |  |  | 200 | met |\n",
		"| LAS | fast | b | 77 (59 to 111) | 200 |\n| LAS | slow | a | ",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// The committed page is the one that the committed records make.
func TestPageComesFromRecords(t *testing.T) {
	const results = "../results"
	text, err := os.ReadFile(filepath.Join(results, "formats.md"))
	r, failed := openReport(results)
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if string(text) != r.markdown() {
		t.Error("formats.md is not what `go run ./benchmarks/formats render` makes")
	}
}
