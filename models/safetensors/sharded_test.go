package safetensors

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shards writes two files of tensors a, b and c, and an index.
func shards(t *testing.T, index string) string {
	t.Helper()
	dir := t.TempDir()
	for name, arrays := range map[string][]Array{
		"model-1.safetensors": {{"c", "", []int{1}, []float32{3}}, {"a", "", []int{1}, []float32{1}}},
		"model-2.safetensors": {{"b", "", []int{1}, []float32{2}}},
	} {
		if err := WriteFile(filepath.Join(dir, name), nil, arrays); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "model.safetensors.index.json")
	if err := os.WriteFile(path, []byte(index), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

const goodIndex = `{"metadata": {"total_size": 1.2e1, "deep": [{"a": null}, true, "text"]}, "weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors", "c": "model-1.safetensors"}}`

func TestShardsAreOneSet(t *testing.T) {
	path := shards(t, goodIndex)
	s, err := OpenSet(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var names []string
	for i, x := range s.Tensors() {
		names = append(names, x.Name)
		if v, err := x.Float32s(nil); err != nil || !slices.Equal(v, []float32{float32(i + 1)}) {
			t.Errorf("%s: %v, %v", x.Name, v, err)
		}
		if again, ok := s.Lookup(x.Name); !ok || again.Name != x.Name {
			t.Errorf("Lookup(%q): %v, %v", x.Name, again, ok)
		}
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("names %q", names)
	}
	var all, want bytes.Buffer
	for _, name := range []string{"model-1.safetensors", "model-2.safetensors"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(path), name))
		if err != nil {
			t.Fatal(err)
		}
		want.Write(data)
	}
	if n, err := s.WriteTo(&all); err != nil || n != int64(want.Len()) || !bytes.Equal(all.Bytes(), want.Bytes()) {
		t.Errorf("wrote %d bytes of %d, %v", n, want.Len(), err)
	}
	if _, ok := s.Lookup("bb"); ok {
		t.Error("found a tensor that is not there")
	}
	one, err := OpenSet(filepath.Join(filepath.Dir(path), "model-1.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if x := one.Tensors(); len(x) != 2 || x[0].Name != "a" || x[1].Name != "c" {
		t.Errorf("one file: %v", x)
	}
}

func TestWrongIndicesAreRefused(t *testing.T) {
	for _, c := range []struct{ name, index, want string }{
		{"empty", "", "ends where '{' is due"},
		{"no map", `{"metadata":{}}`, "no weight_map"},
		{"empty map", `{"weight_map":{}}`, "no weight_map"},
		{"not strings", `{"weight_map":{"a":1}}`, `"a" is not a string`},
		{"not UTF-8", "{\"\xff\":1}", "not UTF-8"},
		{"twice", strings.Replace(goodIndex, `"b":`, `"a":`, 1), `"a" twice`},
		{"two maps", `{"weight_map":{"a":"x"},"weight_map":{}}`, `"weight_map" twice`},
		{"no value", `{"metadata":nothing}`, "a value is due"},
		{"no value at all", `{"metadata":`, "a value is due"},
		{"deep", `{"metadata":` + strings.Repeat("[", 1<<20), "more than 16 values within one another"},
		{"more", goodIndex + "x", "'x' after the end"},
		{"a path up", strings.Replace(goodIndex, "model-2", "../model-2", 1), "no name of a file beside it"},
		{"an absolute path", strings.Replace(goodIndex, "model-2", "/model-2", 1), "no name of a file beside it"},
		{"a path of another system", strings.Replace(goodIndex, "model-2", `x\\model-2`, 1),
			"no name of a file beside it"},
		{"no name", `{"weight_map":{"a":""}}`, "no name of a file beside it"},
		{"the folder", `{"weight_map":{"a":"."}}`, "not a regular file"},
		{"absent file", strings.Replace(goodIndex, "model-2", "model-3", 1), "model-3.safetensors: no such file"},
		{"not a tensor's file", strings.Replace(goodIndex, "model-2.safetensors", "model.safetensors.index.json", 1),
			"index.json: its header"},
		{"elsewhere", strings.Replace(goodIndex, `"b": "model-2`, `"b": "model-1`, 1),
			`model-1.safetensors does not hold tensor "b"`},
		{"left over", strings.Replace(goodIndex, `, "c": "model-1.safetensors"`, "", 1),
			`holds tensor "c", which the index does not give it`},
	} {
		path := shards(t, c.index)
		s, err := OpenSet(path)
		if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, %v, want one line with %q", c.name, s, err, c.want)
		}
	}
	if _, err := OpenSet(filepath.Join(t.TempDir(), "x.index.json")); err == nil ||
		!strings.Contains(err.Error(), "no such file") {
		t.Errorf("absent: %v", err)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(goodIndex))
	f.Add([]byte(`{"weight_map":{"\ud83d\ude00":"x"},"metadata":[[[-1.5e3]]]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		files, err := parseIndex(text)
		if err != nil {
			return
		}
		for file, names := range files {
			if filepath.Join("dir", file) == "dir" && file != "." || strings.ContainsAny(file, `/\`) ||
				!slices.IsSorted(names) || len(names) == 0 {
				t.Errorf("%q: %q holds %q", text, file, names)
			}
		}
	})
}
