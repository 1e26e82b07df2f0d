package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/cmd"
	"entropipe/cmd/command"
	"entropipe/models"
)

// writeSeeds writes a seed model of k directions for hull3d, turned by angle.
func writeSeeds(t *testing.T, path string, k int, angle float64, meta models.Meta) *models.EntropyNet {
	t.Helper()
	m := &models.EntropyNet{Meta: meta, Tensors: map[string]models.Tensor{"directions3": {Shape: []int{k, 3}}}}
	m.Meta.Mode, m.Meta.Dims, m.Meta.Ops, m.Meta.Normalise = models.Seed, 3, []string{"hull3d"}, models.NormaliseBox
	if m.Meta.Survivors == nil {
		m.Meta.Survivors = map[string]float64{"hull3d": 0.5}
	}
	var d []float32
	for i := range k { // a spiral on the sphere
		z := 1 - (2*float64(i)+1)/float64(k)
		r, a := math.Sqrt(1-z*z), 2.399963*float64(i)+angle
		d = append(d, float32(r*math.Cos(a)), float32(r*math.Sin(a)), float32(z))
	}
	m.Tensors["directions3"] = models.Tensor{Shape: []int{k, 3}, Data: d}
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	return m
}

// What does not fit together is a mistake of the command line, a model that
// cannot be used one of the configuration; neither leaves an output behind.
func TestStagesThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	network, seeds, cut, big := writeModel(t, dir, models.Perturb), filepath.Join(dir, "seeds.safetensors"), filepath.Join(dir, "cut.safetensors"), filepath.Join(dir, "big.safetensors")
	writeSeeds(t, seeds, 16, 0, models.Meta{})
	whole, err := os.ReadFile(seeds)
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{cut: whole[:len(whole)-3], big: append([]byte{0, 0, 0, 0, 0, 0, 0, 0x80}, whole[8:]...)} {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		args   string
		status int
		want   string // in stderr
	}{
		{"--stage seed", command.ExitUsage, "--stage seed: want a --model"},
		{"--stage denoise", command.ExitUsage, "--stage denoise: want a --model"},
		{"--model x.safetensors", command.ExitUsage, "--model x.safetensors: --stage says what to do with it"},
		{"--stage prune", command.ExitUsage, "--stage prune: want --publish"},
		{"--publish survivors", command.ExitUsage, "--publish: want --for"},
		{"--for hull2d", command.ExitUsage, "--for: want --publish"},
		{"--publish points --for hull2d", command.ExitUsage, "--publish points: this topic is read"},
		{"--publish a/b --for hull2d", command.ExitUsage, `--publish: "a/b" is no name of a topic`},
		{"--publish a --for delaunay2d", command.ExitUsage, "--for must be one of"},
		{"--ops none,hull2d", command.ExitUsage, "--ops none: it stands alone"},
		{"--stage seed --model " + filepath.Join(dir, "absent.safetensors"), command.ExitConfig, "model: open " + dir},
		{"--stage seed --model " + dir, command.ExitConfig, "not a regular file"},
		{"--stage seed --model " + cut, command.ExitConfig, "cut.safetensors: "},
		{"--stage seed --model " + big, command.ExitConfig, "big.safetensors: "},
		{"--stage seed --model " + network, command.ExitConfig, "this is a perturb model"},
		{"--stage denoise --model " + network, command.ExitConfig, "this is a perturb model"},
		{"--stage perturb --model " + seeds, command.ExitConfig, "this is a seed model"},
		{"--stage prune --publish a --for hull2d --model " + network, command.ExitConfig, "this is a perturb model"},
	} {
		var stdout, stderr bytes.Buffer
		out := filepath.Join(dir, "out")
		args := append([]string{"run", "--brokers", "127.0.0.1:1", "--out", out}, strings.Fields(c.args)...)
		if status := cmd.Main(args, &stdout, &stderr); status != c.status || !strings.Contains(stderr.String(), c.want) || strings.Count(stderr.String(), "\n") > 2 {
			t.Errorf("row %d, %s: exit status %d, want %d with %q: %s", i, c.args, status, c.status, c.want, &stderr)
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("row %d: an output is left", i)
		}
	}
}

// A model changes no row but what frames says of it; while the stream runs it
// can be replaced, by a good one.
func TestSeededRunWritesTheSameRows(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	model := filepath.Join(dir, "model.safetensors")
	first := writeSeeds(t, model, 64, 0, models.Meta{Dataset: "synthetic"})
	must(t, dir, "produce", "synthetic", "--frames", "10", "--points", "40000", "--rate", "max", "--brokers", brokers)
	plain := []string{"run", "--brokers", brokers, "--ops", "hull3d,maxima3d", "--roll-records", "5", "--roll-age", "100ms"}
	must(t, dir, append(plain, "--out", "off", "--until-end")...)
	r := launch(t, dir, append(plain, "--out", "seed", "--stage", "seed", "--model", model, "--listen", "127.0.0.1:0")...)
	url := r.until(`metrics=(http://\S+)`)[1]
	out := filepath.Join(dir, "seed")
	waitFor(t, "the frames", func() bool { return published(t, out, 10) })
	for _, table := range []string{"hulls3d", "maxima"} {
		if diff := cmp.Diff(rowsOf(t, filepath.Join(dir, "off"), table), rowsOf(t, out, table)); diff != "" {
			t.Errorf("%s (-off +seed):\n%.2000s", table, diff)
		}
	}
	if n := metric(t, url, "entropipe_stage_streams", `hints="on"`); n != 1 {
		t.Errorf("%v streams with hints", n)
	}

	// Put in its place in one step: an empty file that is about to be written would be
	// another one that cannot be used.
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("no model"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(bad, model); err != nil {
		t.Fatal(err)
	}
	r.until("model's file has changed, but cannot be used; going on with the old one")
	must(t, dir, "produce", "synthetic", "--frames", "5", "--points", "40000", "--rate", "max", "--brokers", brokers)
	waitFor(t, "more frames", func() bool { return reached(t, out) >= 15 })
	second := writeSeeds(t, model, 48, 0.3, models.Meta{Dataset: "synthetic"})
	r.until("model's file has changed: it is in use now\" .*sha256=" + second.SHA256)
	must(t, dir, "produce", "synthetic", "--frames", "7", "--points", "40000", "--rate", "max", "--brokers", brokers)
	waitFor(t, "the last frames", func() bool { return reached(t, out) >= 22 })
	if ok, failed := metric(t, url, "entropipe_stage_model_loads_total", `result="ok"`), metric(t, url, "entropipe_stage_model_loads_total", `result="failed"`); ok != 1 || failed != 1 {
		t.Errorf("%v loads, %v failures", ok, failed)
	}
	r.signal(syscall.SIGTERM)
	r.exits(0, patience)
	holds(t, out, 22)
	models, err := countValues(filepath.Join(out, "frames"), "model_sha256")
	if err != nil {
		t.Fatal(err)
	}
	// Of every 64 offsets one is not hinted, for comparison: the first.
	if diff := cmp.Diff(map[string]int{"null": 1, first.SHA256: 14, second.SHA256: 7}, models); diff != "" {
		t.Errorf("models (-want +have):\n%s", diff)
	}
}

// A network that moves all points alike is never wrong, and rows say so; what it
// does not serve stays as it is.
func TestPerturbedRun(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	model := writeModel(t, dir, models.Perturb)
	must(t, dir, "produce", "synthetic", "--frames", "3", "--points", "2000", "--rate", "max", "--brokers", brokers, "--dataset", "kitti")
	plain := []string{"run", "--brokers", brokers, "--until-end", "--tables", "hulls,maxima,triangles,entropy", "--entropy-every", "1"}
	must(t, dir, append(plain, "--out", "off")...)
	must(t, dir, append(plain, "--out", "perturb", "--stage", "perturb", "--model", model)...)
	for _, table := range []string{"hulls", "maxima", "triangles"} {
		if diff := cmp.Diff(rowsOf(t, filepath.Join(dir, "off"), table, "error_bound"), rowsOf(t, filepath.Join(dir, "perturb"), table, "error_bound")); diff != "" {
			t.Errorf("%s (-off +perturb):\n%.2000s", table, diff)
		}
	}
	for _, c := range []struct {
		table, column string
		want          map[string]int
	}{{"hulls", "error_bound", map[string]int{"0": 3}}, {"maxima", "error_bound", map[string]int{"null": 3}}, {"frames", "stage", map[string]int{"perturb": 3}}, {"entropy", "op", map[string]int{"maxima3d": 3}}} {
		if got, err := countValues(filepath.Join(dir, "perturb", c.table), c.column); err != nil || !cmp.Equal(c.want, got) {
			t.Errorf("%s of %s: %v, %v", c.column, c.table, got, err)
		}
	}
}

// Frames of another stream go without hints, and the log says so once; or they
// end the run, as configured.
func TestModelOfAnotherStream(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	model := filepath.Join(dir, "model.safetensors")
	writeSeeds(t, model, 64, 0, models.Meta{Dataset: "kitti", Sensor: "velodyne"})
	must(t, dir, "produce", "synthetic", "--frames", "10", "--points", "9000", "--rate", "max", "--brokers", brokers)
	must(t, dir, "produce", "synthetic", "--kind", "sketch", "--frames", "10", "--rate", "max", "--brokers", brokers)
	args := []string{"run", "--brokers", brokers, "--ops", "hull3d", "--until-end", "--stage", "seed", "--model", model, "--workers", "1"}
	r := launch(t, dir, append(args, "--out", "go-on")...)
	r.exits(0, patience)
	for _, want := range []string{`is for data set \\"kitti\\", and this is \\"synthetic\\"`, "points of 3 dimensions, and these have 2"} {
		if n := strings.Count(r.log(), strings.ReplaceAll(want, `\\`, `\`)); n != 1 {
			t.Errorf("%d times: %s", n, want)
		}
	}
	if shas, err := countValues(filepath.Join(dir, "go-on", "frames"), "model_sha256"); err != nil || shas["null"] != 20 {
		t.Errorf("models %v, %v", shas, err)
	}
	r = launch(t, dir, append(args, "--out", "stop", "--on-foreign", "stop")...)
	r.exits(command.ExitRuntime, patience)
	r.says(`^entropipe: points/[0-3]@[0-9]+: the model is for `)
	verified(t, filepath.Join(dir, "stop"))
}
