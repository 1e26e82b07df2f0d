package models

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every model that is shipped is valid, for any stream, and has a card that
// names its file.
func TestShippedModels(t *testing.T) {
	names := Builtins()
	if len(names) == 0 {
		t.Fatal("no model is shipped")
	}
	for _, name := range names {
		m, err := Open(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if m.Meta.Dataset != "" || m.Meta.Sensor != "" || m.Meta.Command == "" || m.Meta.DataSHA256 == "" {
			t.Errorf("%s: %+v", name, m.Meta)
		}
		if d, err := Describe(name); err != nil || d.SHA256 != m.SHA256 || d.Card == nil ||
			!strings.HasPrefix(d.String(), name+": a seed model") {
			t.Errorf("%s: described as %v, %v", name, d, err)
		}
		file := filepath.Join("data", strings.TrimPrefix(name, builtin)+".safetensors")
		_, path := CardPaths(file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		var card struct{ File, SHA256 string }
		if err := json.Unmarshal(text, &card); err != nil || card.SHA256 != m.SHA256 ||
			card.File != filepath.Base(file) {
			t.Errorf("%s: %v, card %+v is not of %s", path, err, card, m.SHA256)
		}
	}
}

func TestOpen(t *testing.T) {
	for _, name := range []string{"builtin:none", "builtin:../data/lidar", "builtin:"} {
		if m, err := Open(name); err == nil || !strings.Contains(err.Error(), "want builtin:lidar") {
			t.Errorf("%s: %v, %v", name, m, err)
		}
		if d, err := Describe(name); err == nil || !strings.Contains(err.Error(), "want builtin:lidar") {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
	m, err := Open(filepath.Join("data", "lidar.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := Open("builtin:lidar"); err != nil || b.SHA256 != m.SHA256 {
		t.Errorf("%v: not the file's model", err)
	}
}
