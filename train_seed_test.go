package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/models"
)

// Directions are fitted in one command, the same bits each time, with a card;
// and what is no mode for seeds is a mistake of the command line.
func TestTrainSeeds(t *testing.T) {
	t.Parallel()
	var files [2][]byte
	for k := range files {
		dir := t.TempDir()
		said := must(t, dir, "train", "synthetic", "--mode", "seed", "--frames", "5", "--directions", "40", "--dataset", "any", "--out", "s.safetensors")
		if !strings.Contains(said, "s.safetensors: seed model for hull3d, 40 directions (") {
			t.Errorf("said %q", said)
		}
		m, err := models.ReadEntropyNet(filepath.Join(dir, "s.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		if s := m.Meta.Survivors["hull3d"]; !(s > 0 && s < 0.1) || m.Meta.Dataset != "" || len(m.Tensors["directions3"].Data) != 120 {
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
