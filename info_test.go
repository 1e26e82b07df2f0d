package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"entropipe/cmd"
	"entropipe/cmd/command"
	"entropipe/models"
	"entropipe/sparse/hf/hftest"
)

// writeModel writes a network that moves every point by sigma times tanh(1/2),
// and returns its file.
func writeModel(t *testing.T, dir, mode string) string {
	t.Helper()
	m := models.EntropyNet{Tensors: map[string]models.Tensor{},
		Meta: models.Meta{Mode: mode, Dims: 2, Ops: []string{"hull2d"}, Normalise: models.NormaliseBox,
			Dataset: "kitti", Command: "entropipe train", Seed: 7}}
	fill := func(name string, value float32, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		data := make([]float32, n)
		for i := range data {
			data[i] = value
		}
		m.Tensors[name] = models.Tensor{Shape: shape, Data: data}
	}
	if mode == models.Seed {
		m.Tensors["directions2"] = models.Tensor{Shape: []int{2, 2}, Data: []float32{1, 0, 0, -1}}
	} else {
		m.Meta.Sigma = 0.1
		for _, l := range []struct {
			name    string
			out, in int
		}{{"local.0", 64, 2}, {"local.1", 128, 64}, {"local.2", 256, 128}, {"head.0", 128, 512}} {
			fill(l.name+".weight", 0, l.out, l.in)
			for _, part := range []string{".bias", ".bn.gamma", ".bn.beta", ".bn.mean", ".bn.var"} {
				fill(l.name+part, 1, l.out)
			}
		}
		fill("head.1.weight", 0, 2, 128)
		fill("head.1.bias", 0.5, 2)
	}
	path := filepath.Join(dir, mode+".safetensors")
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInfoOfModels(t *testing.T) {
	path := writeModel(t, t.TempDir(), models.Perturb)
	m, err := models.ReadEntropyNet(path)
	if err != nil {
		t.Fatal(err)
	}
	card := models.Card{Title: "A test", Metrics: []models.Metric{{Name: "error", On: "frames",
		Value: 0.25, Unit: "m"}}}
	if err := card.Write(path, m); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if status := cmd.Main([]string{"info", path}, &stdout, &stderr); status != 0 {
		t.Fatalf("exit status %d: %s", status, &stderr)
	}
	for _, want := range []string{"perturb.safetensors: a perturb model of 109762 values for hull2d, points of 2 " +
		"dimensions\n", "  sha256: " + m.SHA256, "  dataset: kitti\n", "  tensor head.0.weight: F32 [128 512]\n",
		"  error on frames: 0.25 m\n"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, &stdout)
		}
	}
	stdout.Reset()
	var found struct {
		SHA256 string
		Card   models.Card
	}
	if status := cmd.Main([]string{"info", "--json", path}, &stdout, &stderr); status != 0 ||
		json.Unmarshal(stdout.Bytes(), &found) != nil || found.SHA256 != m.SHA256 || found.Card.Title != "A test" {
		t.Errorf("exit status %d: %s%s", status, &stdout, &stderr)
	}
	if err := os.Truncate(path, 1000); err != nil {
		t.Fatal(err)
	}
	if status := cmd.Main([]string{"info", path}, &stdout, &stderr); status != command.ExitRuntime ||
		stderr.String() != "entropipe: "+path+": its header claims 2192 bytes, and the file has 992 after the "+
			"length: truncated\n" {
		t.Errorf("truncated: exit status %d: %s", status, &stderr)
	}
}

func TestExportOfModels(t *testing.T) {
	dir := t.TempDir()
	network, seed := writeModel(t, dir, models.Denoise), writeModel(t, dir, models.Seed)
	onnx := filepath.Join(dir, "network.onnx")
	for i, c := range []struct {
		args   []string
		status int
		want   string // in stderr
	}{
		{[]string{network, "-o", onnx}, 0, ""},
		{[]string{network}, 0, ""},
		{[]string{network, "--as", "onnx", "-o", "-"}, 0, ""},
		{[]string{network, "--as", "onnx", "-o", filepath.Join(dir, "network.bin")}, 0, ""},
		{[]string{network, "-o", "network.svg"}, command.ExitUsage, "network.svg: a model is exported as onnx"},
		{[]string{network, "--as", "ply"}, command.ExitUsage, "--as ply: a model is exported as onnx"},
		{[]string{network, "--offset", "3"}, command.ExitUsage, "a model has no frames"},
		{[]string{seed, "-o", filepath.Join(dir, "seed.onnx")}, command.ExitRuntime,
			"seed.safetensors: a seed model is directions"},
		{[]string{filepath.Join(dir, "absent.safetensors")}, command.ExitRuntime, "absent.safetensors: no such file"},
		{[]string{dir, "--as", "onnx"}, command.ExitUsage, "--as onnx is for a model"},
	} {
		var stdout, stderr bytes.Buffer
		if status := cmd.Main(append([]string{"export"}, c.args...), &stdout, &stderr); status != c.status ||
			!strings.Contains(stderr.String(), c.want) || status == 0 && stderr.Len() > 0 {
			t.Errorf("row %d: exit status %d, want %d: %s", i, status, c.status, &stderr)
		}
		if file, err := os.ReadFile(onnx); c.status == 0 && stdout.Len() > 0 &&
			(err != nil || !bytes.Equal(file, stdout.Bytes())) {
			t.Errorf("row %d: %d bytes to stdout, %d to the file, %v", i, stdout.Len(), len(file), err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "seed.onnx")); err == nil {
		t.Error("a file without a network was left")
	}
	if file, err := os.ReadFile(onnx); err != nil || !bytes.Contains(file, []byte("displacement")) {
		t.Errorf("%d bytes, %v", len(file), err)
	}
}

// A folder of a model says what it can do, one of a mask what it is for.
func TestInfoOfCheckpoints(t *testing.T) {
	lm := hftest.Dir(t, hftest.Config(t, hftest.GPT2))
	mask := t.TempDir()
	if code, _, log := runCommand(t, "freeze", "--lm", lm, "--calibrate", idLines(t, 4, 96), "--out", mask,
		"--block", "16"); code != 0 {
		t.Fatal(log)
	}
	for dir, want := range map[string][]string{
		lm: {": gpt2 ", "2 layers of 48, 4 heads", "96 positions, 61 tokens", "tasks: embed, logits, generate",
			"tokenizer: none"},
		mask: {": mask mass, blocks of 16, static, lengths to [96]", "for the weights ", "dense: "},
		hftest.Dir(t, hftest.Config(t, hftest.ViT)): {": vit ", "tasks: none", `labels: ["a" "b" "c"]`},
	} {
		code, out, log := runCommand(t, "info", dir)
		if code != 0 {
			t.Fatal(log)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("no %q in\n%s", w, out)
			}
		}
	}
	code, out, log := runCommand(t, "info", mask, "--json")
	var found struct {
		Model any
		Mask  *struct{ Block int }
	}
	if err := json.Unmarshal([]byte(out), &found); code != 0 || err != nil || found.Model != nil || found.Mask == nil ||
		found.Mask.Block != 16 {
		t.Errorf("status %d, %v:\n%s%s", code, err, out, log)
	}
	broken := filepath.Dir(writeText(t, "config.json", `{"model_type":"roberta"}`))
	if code, _, log := runCommand(t, "info", broken); code != command.ExitRuntime ||
		!strings.Contains(log, `model_type: "roberta" is not understood`) {
		t.Errorf("status %d: %s", code, log)
	}
}

// A file of points is described like any other source, whatever its name; a Parquet file without
// points by its columns.
func TestInfoOfSingleFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	type point struct{ X, Y, Height float64 }
	type other struct{ Name string }
	table := func(write func(w io.Writer) error) []byte {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	points := table(func(w io.Writer) error { return parquet.Write(w, []point{{1, 2, 3}, {4, math.NaN(), 6}}) })
	names := table(func(w io.Writer) error { return parquet.Write(w, []other{{"a"}, {"b"}}) })
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(scan(7, 0))
	z.Close()
	for path, want := range map[string][]string{
		file("7.bin", scan(7, 0)):        {": 1 frames, 7 points, ", "format kitti, ", "fields: x, y, z, intensity"},
		file("8.bin.gz", packed.Bytes()): {": 1 frames, 7 points, ", "format kitti, "},
		file("cut.bin", scan(7, 0)[:111]): {
			": 0 frames", "1 inputs could not be read", "problem: ", "cut.bin: 111 bytes"},
		file("points.parquet", points):      {": 1 frames, 2 points, x 1 to 4, y 2 to 2", "problem: 1 points have"},
		file("names.parquet", names):        {"names.parquet: 2 rows in 1 row groups", "Name "},
		file("other.PARQUET", names):        {"other.PARQUET: 2 rows in 1 row groups"},
		file("nothing.bin", []byte(nil)):    {": 1 frames, 0 points"},
		file("many.feather", []byte("a,b")): nil,
	} {
		status, stdout, stderr := runCommand(t, "info", path)
		if (status != 0) != (want == nil) {
			t.Errorf("%s: exit status %d: %s", path, status, stderr)
		}
		for _, part := range want {
			if !strings.Contains(stdout, part) {
				t.Errorf("%s: no %q in\n%s", path, part, stdout)
			}
		}
	}
}
