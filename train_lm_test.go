package main

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"entropipe/cmd"
	"entropipe/cmd/command"
	"entropipe/sparse/model"
)

// A training of steps that a signal stops and --resume ends makes the bytes of
// one that was left alone, and a model that opens.
func TestLanguageModelTrainingResumes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	args := []string{"train-lm", "text.txt", "--layers", "1", "--dim", "32", "--heads", "2", "--context", "32", "--steps", "1500", "--regulariser", "entropy", "--dtype", "f16", "--out", "m"}
	whole, cut := t.TempDir(), t.TempDir()
	for _, dir := range []string{whole, cut} {
		if err := os.WriteFile(filepath.Join(dir, "text.txt"), bytes.Repeat([]byte("ask what it was; "), 200), 0o666); err != nil {
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
	if strings.Contains(p.out(), "stopped after step") { // else it was faster than the signal
		must(t, cut, append(args, "--resume", "--workers", "3")...)
	}
	for _, name := range []string{"model.safetensors", "config.json", "tokenizer.json", "README.md", "train.jsonl", "anchors.safetensors"} {
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
	if out := must(t, dir, append(args, "--steps", "160", "--out", "learned")...); !strings.Contains(out, "160 steps") || !strings.Contains(out, "accuracy 100.00 % of 4") {
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

func TestTransformerTrainingMistakes(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.txt")
	if err := os.WriteFile(text, bytes.Repeat([]byte("some text "), 100), 0o666); err != nil {
		t.Fatal(err)
	}
	cut := t.TempDir()
	if err := os.WriteFile(filepath.Join(cut, "checkpoint.safetensors"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"train-lm", text, "--minutes", "1", "--steps", "5", "--out", dir}, command.ExitUsage, "--minutes or --steps"},
		{[]string{"train-lm", text, "--heads", "5", "--steps", "5", "--out", dir}, command.ExitUsage, "does not divide into 5 heads"},
		{[]string{"train-lm", text, "--steps", "5", "--out", dir}, command.ExitUsage, "no window of 256"},
		{[]string{"train-lm", text, "--context", "1", "--steps", "5", "--out", dir}, command.ExitUsage, "--context 1"},
		{[]string{"train-lm", text + "x", "--steps", "5", "--out", dir}, command.ExitRuntime, "no such file"},
		{[]string{"train-lm", text, "--tokenizer", text, "--steps", "5", "--out", dir}, command.ExitRuntime, "text.txt"},
		{[]string{"train-lm", text, "--context", "16", "--steps", "5", "--out", filepath.Join(dir, "new"), "--resume"}, command.ExitRuntime, "nothing was interrupted"},
		{[]string{"train-lm", text, "--context", "16", "--steps", "1", "--layers", "1", "--dim", "16", "--heads", "2", "--out", cut}, 0, "an interrupted training's checkpoint is there and will be replaced"},
		{[]string{"train-vit", text, "--steps", "5", "--out", dir}, command.ExitRuntime, "is no folder"},
		{[]string{"train-vit", dir, "--steps", "5", "--out", dir}, command.ExitRuntime, "neither folders of PNG"},
		{[]string{"train-vit", "shapes", "--images", "60", "--patch", "5", "--steps", "5", "--out", dir}, command.ExitUsage, "do not divide into patches of 5"},
		{[]string{"train-vit", "shapes", "--sparsity", "0.5", "--steps", "5", "--out", dir}, command.ExitUsage, "sparsity is for the regularisers l1 and window"},
	} {
		var out, errs bytes.Buffer
		if status := cmd.Main(c.args, &out, &errs); status != c.status || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%v: status %d, %q; want %d, %q", c.args, status, errs.String(), c.status, c.want)
		}
	}
}
