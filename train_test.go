package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A training that is killed, resumed, stopped by a signal and resumed again
// makes the bytes of one that was left alone.
func TestTrainingSurvivesKill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	args := []string{"train", "synthetic", "--kind", "sketch", "--frames", "60", "--points", "64", "--batch", "3", "--steps", "600", "--tolerance", "1", "--out", "m.safetensors"}
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
