package models

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"entropipe/models/safetensors"
)

// The shipped language model is whole, small, and its card names the command
// that makes it.
func TestTransformer(t *testing.T) {
	if names := Transformers(); !slices.Contains(names, "builtin:bytes") {
		t.Fatalf("shipped: %v", names)
	}
	for _, name := range Transformers() {
		dir, err := Transformer(name)
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		entries, err := fs.ReadDir(dir, ".")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			total += info.Size()
		}
		if total > 1_200_000 {
			t.Errorf("%s: %d bytes are shipped", name, total)
		}
		card, err := fs.ReadFile(dir, "README.md")
		if err != nil || !strings.Contains(string(card), "\n    entropipe train-") {
			t.Errorf("%s: the card says no command: %v", name, err)
		}
		data, err := fs.ReadFile(dir, "model.safetensors")
		if err != nil {
			t.Fatal(err)
		}
		f, err := safetensors.New(name, strings.NewReader(string(data)), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, tensor := range f.Tensors() {
			if tensor.DType != safetensors.F16 {
				t.Errorf("%s: tensor %s of type %s", name, tensor.Name, tensor.DType)
			}
		}
	}
}

func TestTransformersThatAreNotShipped(t *testing.T) {
	for _, name := range []string{"builtin:", "builtin:lidar", "builtin:../data/bytes", "builtin:bytes/", "bytes", "",
		"builtin:..", "builtin:absent"} {
		if _, err := Transformer(name); err == nil || !strings.Contains(err.Error(), "builtin:bytes") {
			t.Errorf("%q: %v, want an error that names what is shipped", name, err)
		}
	}
	if names := Builtins(); slices.Contains(names, "builtin:bytes") {
		t.Errorf("models of points: %v", names)
	}
}
