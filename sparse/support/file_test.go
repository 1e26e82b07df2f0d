package support

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/models/safetensors"
)

// drawSet draws a valid set.
func drawSet(t *rapid.T) *Set {
	s := &Set{
		Facts: Facts{Arch: "bert", Weights: strings.Repeat("ab", 32), Layers: rapid.IntRange(1, 3).Draw(t, "layers"),
			KVHeads: rapid.IntRange(1, 3).Draw(t, "heads"),
			Dim:     4, Causal: rapid.Bool().Draw(t, "causal")},
		Block: 16, Mode: Static, Select: Selector{"mass", 0.5, 7}, Source: Source{"00", 3, 40}, Serve: Sparse,
		Reason: "loses nothing",
	}
	s.Heads = s.KVHeads * rapid.IntRange(1, 2).Draw(t, "group")
	l, n := drawLayout(t, s.Causal)
	b := Bucket{Length: n, Layouts: []*Layout{l}}
	for range s.Layers * s.KVHeads {
		b.Of = append(b.Of, int32(rapid.IntRange(-1, 0).Draw(t, "of")))
	}
	s.Buckets = []Bucket{b}
	if rapid.Bool().Draw(t, "certificates") {
		for range s.Layers * s.Heads {
			s.Certs = append(s.Certs, Cert{0.9, 0.5, 0.25, 1, 2, 3, 16})
		}
	}
	if rapid.Bool().Draw(t, "measured") {
		s.Quality = &Quality{Metric: "cosine", Unit: "points", Sequences: 3, Dense: 1, Sparse: 0.5}
		s.Beyond = &Shift{1, 2, 3}
	}
	if !s.Causal && rapid.Bool().Draw(t, "anchored") {
		s.Mode, s.Anchors = Anchor, &Anchors{K: 2, Data: make([]float32, s.Layers*s.KVHeads*2*4)}
	}
	return s
}

func TestSetsAreReadAsTheyWereWritten(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s := drawSet(t)
		if err := s.Write(dir); err != nil {
			t.Fatal(err)
		}
		got, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, got); diff != "" {
			t.Fatal(diff)
		}
		a, err := s.SHA256()
		if err != nil {
			t.Fatal(err)
		}
		got.Certs, got.Quality, got.Serve, got.Reason, got.Select.Name = nil, nil, Dense, "", "imported"
		if b, _ := got.SHA256(); a != b {
			t.Fatal("the identity of a mask depends on what is known of it")
		}
	})
}

func TestTheSameSetGivesTheSameBytes(t *testing.T) {
	s := example()
	dirs := []string{t.TempDir(), t.TempDir()}
	for _, dir := range dirs {
		if err := s.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{ConfigFile, TensorFile} {
		a, _ := os.ReadFile(filepath.Join(dirs[0], name))
		b, _ := os.ReadFile(filepath.Join(dirs[1], name))
		if len(a) == 0 || !bytes.Equal(a, b) {
			t.Errorf("%s differs", name)
		}
	}
}

// example is a causal set of two layers.
func example() *Set {
	return &Set{
		Facts: Facts{Arch: "gpt2", Weights: "00", Layers: 2, Heads: 2, KVHeads: 2, Dim: 4, Causal: true},
		Block: 16, Mode: Static, Select: Selector{Name: "window", Sparsity: 0.5}, Serve: Dense, Reason: "not measured",
		Buckets: []Bucket{{Length: 48, Layouts: []*Layout{full(48, true)}, Of: []int32{0, -1, 0, 0}}},
	}
}

func TestSetsOfOneHeadDiffer(t *testing.T) {
	a, b := example(), example()
	b.Buckets[0].Of[0] = -1
	one, _ := a.SHA256()
	two, _ := b.SHA256()
	if one == two {
		t.Error("a head that became dense leaves the identity as it was")
	}
}

// The sparsity decides which rows are served with anchors, and does not with
// layouts, which say it themselves.
func TestIdentityAndSparsity(t *testing.T) {
	for mode, decides := range map[string]bool{Anchor: true, Static: false} {
		a, b := example(), example()
		for _, s := range []*Set{a, b} {
			if s.Mode = mode; mode == Anchor {
				s.Anchors = &Anchors{K: 2, Data: make([]float32, s.Layers*s.KVHeads*2*4)}
			}
		}
		b.Select.Sparsity = 0.75
		one, _ := a.SHA256()
		two, _ := b.SHA256()
		if (one != two) != decides {
			t.Errorf("%s: identities of two sparsities differ: %v", mode, one != two)
		}
	}
}

// written returns the bytes of a set's two files.
func written(t testing.TB, s *Set) (text, tensors []byte) {
	t.Helper()
	dir := t.TempDir()
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, ConfigFile))
	if err != nil {
		t.Fatal(err)
	}
	if tensors, err = os.ReadFile(filepath.Join(dir, TensorFile)); err != nil {
		t.Fatal(err)
	}
	return text, tensors
}

// rehash puts the hash of other tensors into a configuration.
func rehash(text, tensors []byte) []byte {
	var c map[string]any
	if json.Unmarshal(text, &c) != nil {
		return text
	}
	sum := sha256.Sum256(tensors)
	c["support_sha256"] = hex.EncodeToString(sum[:])
	data, err := json.Marshal(c)
	if err != nil {
		return text
	}
	return data
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	text, tensors := written(t, example())
	edit := func(key string, value any) []byte {
		var c map[string]any
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		if c[key] = value; value == nil {
			delete(c, key)
		}
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, c := range []struct {
		name string
		text []byte
		want string
	}{
		{"nothing", nil, "sparse_config.json"},
		{"format", edit("format", "fsm/2"), `must be "fsm/1"`},
		{"absent key", edit("block", nil), `key "block" is missing`},
		{"unknown key", edit("blok", 1), `key "blok" is unknown`},
		{"other case", edit("Block", 1), `key "Block" is unknown`},
		{"unknown inside", edit("selector", map[string]any{"name": "mass", "sparsity": 0, "seed": 0, "temperature": 1}),
			`key "selector.temperature" is unknown`},
		{"absent inside", edit("selector", map[string]any{"name": "mass", "sparsity": 0}),
			`key "selector.seed" is missing`},
		{"other case inside", edit("calibration", map[string]any{"sha256": "", "Sequences": 1, "tokens": 1}),
			`key "calibration.sequences" is missing`},
		{"type", edit("layers", "two"), "layers"},
		{"hash", edit("support_sha256", "00"), "SHA-256 differs"},
		{"layers", edit("layers", 3), "layout_of"},
		{"heads", edit("kv_heads", 1<<40), "key heads"},
		{"block", edit("block", 48), "blocks of 48"},
		{"bucket", edit("buckets", []int{1 << 30}), "the length of a bucket"},
		{"other bucket", edit("buckets", []int{96}), "row_ptr"},
		{"not causal", edit("causal", false), "full"},
		{"mode", edit("mode", "anchor"), "anchor"},
		{"serve", edit("serve", "perhaps"), "serve"},
		{"selector", edit("selector", map[string]any{"name": "best", "sparsity": 0, "seed": 0}), `selector is "best"`},
		{"sparsity", edit("selector", map[string]any{"name": "mass", "sparsity": 1, "seed": 0}), "sparsity is 1"},
		{"beyond", edit("beyond", map[string]any{"sink": 0, "local": 0, "stride": 0}), "local must be at least 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(c.text, tensors)
			if c.name == "not causal" { // an edge where positions need not decide is legal
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestParseWantsEveryTensorOnceAndNoOther(t *testing.T) {
	s := example()
	text, _ := written(t, s)
	for _, c := range []struct {
		name  string
		edits func(a []safetensors.Array) []safetensors.Array
		want  string
	}{
		{"left over", func(a []safetensors.Array) []safetensors.Array {
			return append(a, safetensors.Array{Name: "more", Shape: []int{1}, Data: []int32{1}})
		}, "left over"},
		{"absent", func(a []safetensors.Array) []safetensors.Array { return a[1:] }, "layout 0 of 0"},
		{"type", func(a []safetensors.Array) []safetensors.Array { a[1].Data = make([]int64, a[1].Shape[0]); return a },
			"I64"},
		{"pointers", func(a []safetensors.Array) []safetensors.Array { a[0].Data.([]int32)[3] = 1 << 30; return a },
			"row pointers"},
		{"half a certificate", func(a []safetensors.Array) []safetensors.Array {
			return append(a, safetensors.Array{Name: "cert.mass_mean", Shape: []int{2, 2}, Data: make([]float32, 4)})
		}, "cert.mass_p01"},
		{"anchors of three dimensions", func(a []safetensors.Array) []safetensors.Array {
			return append(a, safetensors.Array{Name: "anchors", Shape: []int{2, 2, 1}, Data: make([]float32, 4)})
		}, "anchors: the shape [2 2 1]"},
		{"anchors", func(a []safetensors.Array) []safetensors.Array {
			return append(a, safetensors.Array{Name: "anchors", Shape: []int{2, 2, 1, 5}, Data: make([]float32, 20)})
		}, "anchors"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := safetensors.Write(&b, map[string]string{"format": Format}, c.edits(s.arrays())); err != nil {
				t.Fatal(err)
			}
			_, err := Parse(rehash(text, b.Bytes()), b.Bytes())
			if err == nil || !strings.Contains(err.Error(), c.want) && c.name != "absent" {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestWriteRefusesWhatIsNotValid(t *testing.T) {
	s := example()
	s.Buckets[0].Layouts[0].Col[0] = 7
	dir := t.TempDir()
	if err := s.Write(dir); err == nil {
		t.Error("written")
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

// Whatever bytes the files hold, Parse returns a valid set or an error.
func FuzzParse(f *testing.F) {
	text, tensors := written(f, example())
	f.Add(text, tensors)
	permuted := example()
	permuted.Causal = false
	l := full(40, false)
	for k := range 40 {
		l.Order = append(l.Order, int32(39-k))
	}
	permuted.Buckets = []Bucket{{Length: 40, Layouts: []*Layout{l}, Of: []int32{0, 0, 0, 0}}}
	text, tensors = written(f, permuted)
	f.Add(text, tensors)
	f.Add([]byte("{}"), []byte{8, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, text, tensors []byte) {
		for _, c := range [][]byte{text, rehash(text, tensors)} {
			s, err := Parse(c, tensors)
			if err != nil {
				continue
			}
			if err := s.Validate(); err != nil {
				t.Fatalf("what was read is not valid: %v", err)
			}
			if err := s.Write(t.TempDir()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
