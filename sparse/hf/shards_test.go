package hf_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"entropipe/models/safetensors"
	"entropipe/sparse/hf"
	"entropipe/sparse/hf/hftest"
)

// split writes the tensors as two shards with an index.
func split(t *testing.T, text string) string {
	t.Helper()
	dir, c := t.TempDir(), hftest.Config(t, text)
	put(t, dir, "config.json", text)
	where := map[string]string{}
	var shards [2][]safetensors.Array
	for i, w := range c.Tensors() {
		where[w.Name] = fmt.Sprintf("model-0000%d-of-00002.safetensors", i%2+1)
		size := 1
		for _, n := range w.Shape {
			size *= n
		}
		shards[i%2] = append(shards[i%2], safetensors.Array{Name: w.Name, Shape: w.Shape,
			Data: hftest.Values(w.Name, size)})
	}
	for i, arrays := range shards {
		if err := safetensors.WriteFile(filepath.Join(dir, fmt.Sprintf("model-0000%d-of-00002.safetensors", i+1)), nil,
			arrays); err != nil {
			t.Fatal(err)
		}
	}
	index, err := json.Marshal(map[string]any{"metadata": map[string]int{"total_size": 1}, "weight_map": where})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "model.safetensors.index.json", string(index))
	return dir
}

func TestShards(t *testing.T) {
	dir := split(t, hftest.LLaMA)
	k := open(t, dir)
	for _, w := range k.Config().Tensors() {
		got, err := k.Float32s(w.Name)
		if err != nil || !slices.Equal(got, hftest.Values(w.Name, len(got))) {
			t.Errorf("tensor %s has other numbers (%v)", w.Name, err)
		}
	}
	sum := k.SHA256()
	if len(sum) != 64 || sum != open(t, split(t, hftest.LLaMA)).SHA256() {
		t.Errorf("checksums of the same shards: %q", sum)
	}
	if sum == open(t, hftest.Dir(t, hftest.Config(t, hftest.LLaMA))).SHA256() {
		t.Error("a file has the checksum of shards")
	}
	index, err := os.ReadFile(filepath.Join(dir, "model.safetensors.index.json"))
	if err != nil {
		t.Fatal(err)
	}
	// A key that is no weight_map names no shard, however it is spelled.
	put(t, dir, "model.safetensors.index.json",
		strings.Replace(string(index), "{", `{"WEIGHT_MAP":{"x":"../../config.json"},`, 1))
	if again := open(t, dir).SHA256(); again != sum {
		t.Errorf("the shards' checksum %s follows another key's files: %s", sum, again)
	}
	if err := os.Remove(filepath.Join(dir, "model-00002-of-00002.safetensors")); err != nil {
		t.Fatal(err)
	}
	if _, err := hf.Open(dir); err == nil || !strings.Contains(err.Error(), "model-00002-of-00002.safetensors") {
		t.Errorf("a shard is missing: %v", err)
	}
}
