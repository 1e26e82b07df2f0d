package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/cmd"
	"entropipe/cmd/command"
	"entropipe/models"
	"entropipe/models/safetensors"
	"entropipe/sparse/freeze"
	"entropipe/sparse/hf/hftest"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

// idLines writes count lines of n ids that the models of hftest know.
func idLines(t *testing.T, count, n int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(8, 1))
	var b strings.Builder
	for range count {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(r.IntN(61))
		}
		line, err := json.Marshal(map[string]any{"id": "a", "input_ids": ids})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n\n", line)
	}
	return writeText(t, "ids.jsonl", b.String())
}

// The verb writes a mask that is read again, says what it is worth, and can
// judge and export a mask that is there.
func TestFreezeWritesAMaskAndJudgesIt(t *testing.T) {
	lm := hftest.Dir(t, hftest.Config(t, hftest.GPT2))
	ids, out := idLines(t, 8, 96), t.TempDir()
	code, text, log := runCommand(t, "freeze", "--lm", lm, "--calibrate", ids, "--out", out, "--block", "16",
		"--sparsity", "0.5")
	if code != 0 {
		t.Fatal(log)
	}
	for _, want := range []string{"mass kept", "2·B·delta", "perplexity on 2 inputs", "dense: "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	first, err := support.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	code, text, log = runCommand(t, "freeze", "--lm", lm, "--calibrate", ids, "--out", other, "--block", "16",
		"--select", "imported", "--import", out, "--json")
	if code != 0 {
		t.Fatal(log)
	}
	var document struct {
		Mask    string           `json:"mask_sha256"`
		Quality *support.Quality `json:"quality"`
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if sha, _ := first.SHA256(); document.Mask != sha {
		t.Errorf("the imported mask is %s, was %s", document.Mask, sha)
	}
	if diff := cmp.Diff(first.Quality, document.Quality); diff != "" {
		t.Errorf("judged otherwise: %s", diff)
	}
	for _, form := range []string{"ort", "flex", "flashinfer"} {
		file := filepath.Join(other, form+".safetensors")
		if code, _, log := runCommand(t, "export", out, "--as", form, "-o", file); code != 0 {
			t.Fatal(log)
		}
		f, err := safetensors.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		if f.Metadata()["format"] != form {
			t.Errorf("%s: %v", form, f.Metadata())
		}
		f.Close()
	}
	// What was exported can be imported.
	code, _, log = runCommand(t, "freeze", "--lm", lm, "--calibrate", ids, "--out", other, "--block", "16",
		"--select", "imported",
		"--import", filepath.Join(other, "flashinfer.safetensors"))
	if code != 0 {
		t.Fatal(log)
	}
	again, err := support.Read(other)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := first.SHA256()
	if b, _ := again.SHA256(); a != b {
		t.Error("a mask that went through FlashInfer's form is another")
	}
}

// Text goes through the tokenizer of the shipped model.
func TestFreezeReadsText(t *testing.T) {
	text := writeText(t, "notes.txt", strings.Repeat("Points, lines and planes; what is hidden stays so.\n", 20))
	code, out, log := runCommand(t, "freeze", "--lm", "builtin:bytes", "--calibrate", text, "--out", t.TempDir(),
		"--block", "32", "--bucket", "128",
		"--sequences", "4", "--select", "window")
	if code != 0 {
		t.Fatal(log)
	}
	if !strings.Contains(out, "lengths to 128") {
		t.Error(out)
	}
}

func TestFreezeSaysWhatIsWrong(t *testing.T) {
	lm := hftest.Dir(t, hftest.Config(t, hftest.BERT))
	ids := idLines(t, 4, 96)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--calibrate", ids, "--sparsity", "1"}, command.ExitUsage, "--sparsity 1"},
		{[]string{"--calibrate", ids, "--block", "20"}, command.ExitUsage, "--block 20"},
		{[]string{"--calibrate", ids, "--select", "imported"}, command.ExitUsage, "--import"},
		{[]string{"--calibrate", ids, "--beyond", "1,2"}, command.ExitUsage, "--beyond"},
		{[]string{"--calibrate", ids, "--sequences", "2"}, command.ExitUsage, "--sequences"},
		{[]string{"--calibrate", "absent.txt"}, command.ExitRuntime, "absent.txt"},
		{[]string{"--calibrate", writeText(t, "a.txt", "text"), "--block", "16"},
			command.ExitRuntime, "tokenizer.json"},
		{[]string{"--calibrate", writeText(t, "a.jsonl", "{\"input_ids\":[1]}\n[2]\n")},
			command.ExitRuntime, "a.jsonl:2:"},
		{[]string{"--calibrate", writeText(t, "f.jsonl", strings.Repeat("{\"input_ids\":[61]}\n", 9))},
			command.ExitRuntime, "f.jsonl: sequence 1 has the id 61"},
		{[]string{"--calibrate", writeText(t, "g.txt", "\x1f\x8b\x08")}, command.ExitRuntime,
			"g.txt: is not text in UTF-8"},
		{[]string{"--calibrate", writeText(t, "h.txt.gz", "text")}, command.ExitRuntime, "h.txt.gz: "},
		{[]string{"--calibrate", writeText(t, "b.jsonl", "{\"ids\":[1]}")}, command.ExitRuntime, "b.jsonl:1: "},
		{[]string{"--calibrate", writeText(t, "c.jsonl", "{\"input_ids\":[1]}\n{\"text\":\"a\"}")},
			command.ExitRuntime, "mixed"},
		{[]string{"--calibrate", writeText(t, "d.parquet", "PAR1")}, command.ExitRuntime, "d.parquet"},
		{[]string{"--calibrate", writeText(t, "e.jsonl", "")}, command.ExitRuntime, "neither text nor sequences"},
		{[]string{"--calibrate", ids, "--block", "16", "--bucket", "0"}, command.ExitUsage, "bucket"},
		{[]string{"--calibrate", ids, "--block", "16", "--bucket", "97"}, command.ExitRuntime, "96 positions"},
		{[]string{"--calibrate", ids, "--block", "16", "--tokens", "100"}, command.ExitRuntime, "more --tokens"},
	} {
		t.Run(strings.Join(c.args[2:], " ")+filepath.Base(c.args[1]), func(t *testing.T) {
			code, _, log := runCommand(t, append([]string{"freeze", "--lm", lm, "--out", t.TempDir()}, c.args...)...)
			if code != c.code || !strings.Contains(log, c.want) {
				t.Errorf("status %d, want %d with %q:\n%s", code, c.code, c.want, log)
			}
		})
	}
}

func TestExportOfAMaskSaysForWhom(t *testing.T) {
	lm, out := hftest.Dir(t, hftest.Config(t, hftest.BERT)), t.TempDir()
	code, _, log := runCommand(t, "freeze", "--lm", lm, "--calibrate", idLines(t, 4, 96), "--out", out, "--block", "16",
		"--select", "window")
	if code != 0 {
		t.Fatal(log)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, command.ExitUsage, "ort|flex|flashinfer"},
		{[]string{"--as", "svg"}, command.ExitUsage, "ort|flex|flashinfer"},
		{[]string{"--as", "flex", "--offset", "3"}, command.ExitUsage, "no frames"},
		{[]string{"--as", "ort"}, command.ExitRuntime, "causal"},
	} {
		code, _, log := runCommand(t, append([]string{"export", out}, c.args...)...)
		if code != c.code || !strings.Contains(log, c.want) {
			t.Errorf("%v: status %d, want %d with %q:\n%s", c.args, code, c.code, c.want, log)
		}
	}
	// What is at the place of a failed export stays.
	file := writeText(t, "old.safetensors", "old")
	if code, _, log := runCommand(t, "export", out, "--as", "ort", "-o", file); code != command.ExitRuntime {
		t.Fatal(log)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "old" {
		t.Errorf("%q is there after a failed export, %v", data, err)
	}
}

// A mask may lie beside the model's own files, which stay as they are.
func TestAMaskMayLieBesideItsModel(t *testing.T) {
	lm := hftest.Dir(t, hftest.Config(t, hftest.BERT))
	ids := idLines(t, 4, 96)
	for range 2 { // the second reads a folder that has a mask
		if code, _, log := runCommand(t, "freeze", "--lm", lm, "--calibrate", ids, "--out", lm, "--block", "16",
			"--progress"); code != 0 {
			t.Fatal(log)
		}
	}
	if _, err := support.Read(lm); err != nil {
		t.Error(err)
	}
}

// A ViT's inputs are pixels; its keys are sorted by cluster.
func TestFreezeOfImages(t *testing.T) {
	lm := hftest.Dir(t, hftest.Config(t, hftest.ViT))
	header := fmt.Sprintf("%-117s\n", "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 2, 8, 12), }")
	pixels := writeText(t, "pixels.npy", "\x93NUMPY\x01\x00\x76\x00"+header+strings.Repeat("\x01\x02\x03", 4*2*8*12/3))
	code, out, log := runCommand(t, "freeze", "--lm", lm, "--calibrate", pixels, "--out", t.TempDir(), "--block", "16",
		"--select", freeze.Entropy)
	if code != 0 {
		t.Fatal(log)
	}
	if !strings.Contains(out, "cosine on 2 inputs") {
		t.Error(out)
	}
	bert := hftest.Dir(t, hftest.Config(t, hftest.BERT))
	if code, _, log := runCommand(t, "freeze", "--lm", bert, "--calibrate", pixels, "--out",
		t.TempDir()); code != command.ExitRuntime {
		t.Errorf("pixels for a model of tokens: status %d\n%s", code, log)
	}
}

// A training of steps that a signal stops and --resume ends makes the bytes of
// one that was left alone, and a model that opens.
func TestLanguageModelTrainingResumes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	args := []string{"train-lm", "text.txt", "--layers", "1", "--dim", "32", "--heads", "2", "--context", "32",
		"--steps", "700", "--regulariser", "entropy", "--dtype", "f16", "--out", "m"}
	whole, cut := t.TempDir(), t.TempDir()
	for _, dir := range []string{whole, cut} {
		if err := os.WriteFile(filepath.Join(dir, "text.txt"), bytes.Repeat([]byte("ask what it was; "), 200),
			0o666); err != nil {
			t.Fatal(err)
		}
	}
	must(t, whole, args...)
	p := launch(t, cut, args...)
	waitFor(t, "the folder", func() bool {
		_, err := os.Stat(filepath.Join(cut, "m"))
		return err == nil
	})
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	p.exits(0, patience)
	if strings.Contains(p.out(), "stopped after step") { // otherwise it was faster than the signal
		must(t, cut, append(args, "--resume", "--workers", "3")...)
	}
	for _, name := range []string{"model.safetensors", "config.json", "tokenizer.json", "README.md", "train.jsonl",
		"anchors.safetensors"} {
		want, err := os.ReadFile(filepath.Join(whole, "m", name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(cut, "m", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs after an interruption: %v", name, err)
		}
	}
	if _, err := model.Open(filepath.Join(cut, "m")); err != nil {
		t.Error(err)
	}
}

// Images of folders of classes are learned, and a time bounds the training.
func TestImageTraining(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 24 {
		img := image.NewGray(image.Rect(0, 0, 8, 8))
		for p := range img.Pix {
			img.Pix[p] = uint8(200 * (i % 2))
		}
		img.SetGray(i%8, i%8, color.Gray{Y: 100})
		path := filepath.Join(dir, "images", []string{"dark", "light"}[i%2])
		if err := os.MkdirAll(path, 0o777); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, string(rune('a'+i))+".png"), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"train-vit", "images", "--layers", "1", "--dim", "16", "--heads", "2"}
	if out := must(t, dir, append(args, "--steps", "160", "--out", "learned")...); !strings.Contains(out,
		"160 steps") || !strings.Contains(out, "accuracy 100.00 % of 4") {
		t.Errorf("got %q", out)
	}
	must(t, dir, append(args, "--minutes", "0.01", "--out", "timed")...) // how much is learned depends on the machine
	for _, name := range []string{"learned", "timed"} {
		m, err := model.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if c := m.Config(); c.Labels != 2 || c.MaxPositions != 5 {
			t.Errorf("%s: a model of %d labels and %d positions", name, c.Labels, c.MaxPositions)
		}
	}
}

func TestTrainingMistakes(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.txt")
	if err := os.WriteFile(text, bytes.Repeat([]byte("some text "), 100), 0o666); err != nil {
		t.Fatal(err)
	}
	cut := t.TempDir()
	for _, name := range []string{"checkpoint.safetensors", "m.safetensors.checkpoint"} {
		if err := os.WriteFile(filepath.Join(cut, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"train-lm", text, "--minutes", "1", "--steps", "5", "--out", dir}, command.ExitUsage,
			"--minutes or --steps"},
		{[]string{"train-lm", text, "--heads", "5", "--steps", "5", "--out", dir}, command.ExitUsage,
			"does not divide into 5 heads"},
		{[]string{"train-lm", text, "--steps", "5", "--out", dir}, command.ExitUsage, "no window of 256"},
		{[]string{"train-lm", text, "--context", "1", "--steps", "5", "--out", dir}, command.ExitUsage, "--context 1"},
		{[]string{"train-lm", text + "x", "--steps", "5", "--out", dir}, command.ExitRuntime, "no such file"},
		{[]string{"train-lm", text, "--tokenizer", text, "--steps", "5", "--out", dir},
			command.ExitRuntime, "text.txt"},
		{[]string{"train-lm", text, "--context", "16", "--steps", "5", "--out", filepath.Join(dir, "new"), "--resume"},
			command.ExitRuntime, "nothing was interrupted"},
		{[]string{"train-lm", text, "--context", "16", "--steps", "1", "--layers", "1", "--dim", "16", "--heads", "2",
			"--out", cut}, command.ExitRuntime, "--resume goes on from it; remove the file to begin anew"},
		{[]string{"train", "synthetic", "--steps", "5", "--out", filepath.Join(cut, "m.safetensors")},
			command.ExitRuntime, "m.safetensors.checkpoint is there: a training was interrupted"},
		{[]string{"train", "synthetic", "--steps", "5", "--out", filepath.Join(dir, "no", "m.safetensors")},
			command.ExitUsage, "there is no folder " + filepath.Join(dir, "no")},
		{[]string{"train", "synthetic", "--mode", "seed", "--out", filepath.Join(text, "m.safetensors")},
			command.ExitUsage, "there is no folder " + text},
		{[]string{"train", "synthetic", "--steps", "5", "--tau", "0.1", "--regulariser", "H_diff", "--out",
			filepath.Join(dir, "m.safetensors")}, command.ExitUsage, "--tau has no effect here"},
		{[]string{"train-vit", text, "--steps", "5", "--out", dir}, command.ExitRuntime, "is no folder"},
		{[]string{"train-vit", dir, "--steps", "5", "--out", dir}, command.ExitRuntime, "neither folders of PNG"},
		{[]string{"train-vit", "shapes", "--images", "60", "--patch", "5", "--steps", "5", "--out", dir},
			command.ExitUsage, "do not divide into patches of 5"},
		{[]string{"train-vit", "shapes", "--sparsity", "0.5", "--steps", "5", "--out", dir}, command.ExitUsage,
			"sparsity is for the regularisers l1 and window"},
	} {
		var out, errs bytes.Buffer
		if status := cmd.Main(c.args, &out, &errs); status != c.status || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%v: status %d, %q; want %d, %q", c.args, status, errs.String(), c.status, c.want)
		}
	}
}

// Directions are fitted in one command, the same bits each time, with a card;
// and what is no mode for seeds is a mistake of the command line.
func TestTrainSeeds(t *testing.T) {
	t.Parallel()
	var files [2][]byte
	for k := range files {
		dir := t.TempDir()
		said := must(t, dir, "train", "synthetic", "--mode", "seed", "--frames", "5", "--directions", "40", "--dataset",
			"any", "--out", "s.safetensors")
		if !strings.Contains(said, "s.safetensors: seed model for hull3d, 40 directions (") {
			t.Errorf("said %q", said)
		}
		m, err := models.ReadEntropyNet(filepath.Join(dir, "s.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		if s := m.Meta.Survivors["hull3d"]; !(s > 0 && s < 0.1) || m.Meta.Dataset != "" ||
			len(m.Tensors["directions3"].Data) != 120 {
			t.Errorf("%+v", m.Meta)
		}
		for _, name := range []string{"s.card.md", "s.card.json"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
		if files[k], err = os.ReadFile(filepath.Join(dir, "s.safetensors")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("two models of one command differ")
	}
}

// The model that is shipped is what its command makes.
func TestShippedModelIsCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	m, err := models.Open("builtin:lidar")
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Fields(m.Meta.Command)
	dir := t.TempDir()
	must(t, dir, args[1:]...)
	made, err := models.ReadEntropyNet(filepath.Join(dir, "lidar.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if made.SHA256 != m.SHA256 {
		t.Errorf("`%s` makes %s, and %s is shipped: go generate ./models", m.Meta.Command, made.SHA256, m.SHA256)
	}
}

// A training that is killed, resumed, stopped by a signal and resumed again
// makes the bytes of one that was left alone.
func TestTrainingSurvivesKill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	args := []string{"train", "synthetic", "--kind", "sketch", "--frames", "60", "--points", "32", "--batch", "3",
		"--steps", "600", "--tolerance", "1", "--out", "m.safetensors"}
	whole, cut := t.TempDir(), t.TempDir()
	must(t, whole, args...)
	for k, signal := range []os.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		more := args
		checkpoint := filepath.Join(cut, "m.safetensors.checkpoint")
		if k > 0 {
			more = append(args[:len(args):len(args)], "--resume", "--workers", "3")
		}
		before, _ := os.Stat(checkpoint)
		p := launch(t, cut, more...)
		waitFor(t, "a new checkpoint", func() bool {
			now, err := os.Stat(checkpoint)
			return err == nil && (before == nil || now.ModTime() != before.ModTime())
		})
		p.signal(signal)
		if signal == syscall.SIGTERM {
			p.exits(0, patience)
			if !strings.Contains(p.out(), " of 600: --resume goes on from m.safetensors.checkpoint\n") {
				t.Errorf("stopped with %q", p.out())
			}
		} else {
			p.exits(-1, patience)
		}
	}
	must(t, cut, append(args, "--resume")...)
	for _, name := range []string{"m.safetensors", "m.jsonl", "m.svg", "m.card.json"} {
		want, err := os.ReadFile(filepath.Join(whole, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(cut, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs after interruptions: %v", name, err)
		}
	}
}
