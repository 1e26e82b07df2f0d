package hf_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"entropipe/models/safetensors"
	"entropipe/sparse/hf"
	"entropipe/sparse/hf/hftest"
)

var small = map[string]string{
	"bert": hftest.BERT, "vit": hftest.ViT, "gpt2": hftest.GPT2, "llama": hftest.LLaMA,
	"gpt2 untied": strings.Replace(hftest.GPT2, `{`,
		`{"tie_word_embeddings":false,"scale_attn_weights":false,"eos_token_id":[3,4],`, 1),
	"llama with biases": strings.Replace(hftest.LLaMA, `{`,
		`{"attention_bias":true,"mlp_bias":true,"head_dim":10,"eos_token_id":3,"bos_token_id":2,`, 1),
	"llama 3.1": strings.Replace(hftest.LLaMA, `{`,
		`{"rope_parameters":{"rope_type":"llama3","rope_theta":5e5,"factor":8,"low_freq_factor":1,
		"high_freq_factor":4,"original_max_position_embeddings":32},`, 1),
	"mistral": strings.Replace(hftest.LLaMA, `"llama"`, `"mistral"`, 1),
	"qwen2 tied": strings.Replace(hftest.LLaMA, `"model_type":"llama"`,
		`"model_type":"qwen2","tie_word_embeddings":true`, 1),
	"llama no head":  strings.Replace(hftest.LLaMA, `LlamaForCausalLM`, `LlamaModel`, 1),
	"vit no head":    strings.Replace(hftest.ViT, `ViTForImageClassification`, `ViTModel`, 1),
	"vit no biases":  strings.Replace(hftest.ViT, `{`, `{"qkv_bias":false,`, 1),
	"bert with relu": strings.Replace(hftest.BERT, `{`, `{"hidden_act":"relu","layer_norm_eps":1e-5,`, 1),
}

// open fails the test on an error and closes the checkpoint at its end.
func open(t *testing.T, dir string) *hf.Checkpoint {
	t.Helper()
	c, err := hf.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestSaveAndOpenAgree(t *testing.T) {
	for name, text := range small {
		c := hftest.Config(t, text)
		tensors := hftest.Tensors(c)
		for dtype, within := range map[safetensors.DType]float64{safetensors.F32: 0, safetensors.F16: 1.0 / 2048,
			safetensors.BF16: 1.0 / 256} {
			dir := t.TempDir()
			if err := hf.Save(dir, c, tensors, dtype); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			k := open(t, dir)
			if !reflect.DeepEqual(k.Config(), c) {
				t.Errorf("%s: reads back as %+v, want %+v", name, k.Config(), c)
			}
			for _, w := range c.Tensors() {
				got, err := k.Float32s(w.Name)
				if err != nil {
					t.Fatal(err)
				}
				for i, x := range tensors[w.Name] {
					if d := math.Abs(float64(got[i] - x)); d > within*math.Abs(float64(x))+within*1e-4 {
						t.Fatalf("%s: %s of %s: number %d is %v, want %v", name, dtype, w.Name, i, got[i], x)
					}
				}
			}
		}
	}
}

// Names of labels are written and read back; those that say no more than their
// number are none.
func TestNamesOfLabels(t *testing.T) {
	c := hftest.Config(t, hftest.ViT)
	for _, names := range [][]string{{"cat", "dog", "owl"}, {"LABEL_0", "dog", "LABEL_2"},
		{"LABEL_0", "LABEL_1", "LABEL_2"}, nil} {
		c.LabelNames = names
		dir := t.TempDir()
		if err := hf.Save(dir, c, hftest.Tensors(c), safetensors.F32); err != nil {
			t.Fatal(err)
		}
		want := names
		if slices.Equal(names, []string{"LABEL_0", "LABEL_1", "LABEL_2"}) {
			want = nil
		}
		if got := open(t, dir).Config().LabelNames; !slices.Equal(got, want) {
			t.Errorf("%q reads back as %q", names, got)
		}
	}
	c.LabelNames = []string{"cat"}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "1 names for 3 labels") {
		t.Error(err)
	}
}

func TestSaveRefuses(t *testing.T) {
	c := hftest.Config(t, hftest.GPT2)
	for name, change := range map[string]func(c *hf.Config, tensors map[string][]float32) safetensors.DType{
		"wpe.weight\" has 3 numbers": func(_ *hf.Config, m map[string][]float32) safetensors.DType {
			m["wpe.weight"] = m["wpe.weight"][:3]
			return safetensors.F32
		},
		"does not belong to a gpt2 model": func(_ *hf.Config, m map[string][]float32) safetensors.DType {
			m["other"] = nil
			return safetensors.F32
		},
		"not finite as F32": func(_ *hf.Config, m map[string][]float32) safetensors.DType {
			m["ln_f.bias"][5] = float32(math.NaN())
			return safetensors.F32
		},
		"not finite as F16": func(_ *hf.Config, m map[string][]float32) safetensors.DType {
			m["ln_f.bias"][5] = 65520
			return safetensors.F16
		},
		"not finite as BF16": func(_ *hf.Config, m map[string][]float32) safetensors.DType {
			m["ln_f.bias"][5] = math.MaxFloat32
			return safetensors.BF16
		},
		"must be F32, F16 or BF16": func(*hf.Config, map[string][]float32) safetensors.DType { return safetensors.F64 },
		"config.json cannot express": func(c *hf.Config, _ map[string][]float32) safetensors.DType {
			c.Scale = .3
			return safetensors.F32
		},
		"layers: 0": func(c *hf.Config, _ map[string][]float32) safetensors.DType {
			c.Layers = 0
			return safetensors.F32
		},
	} {
		changed, tensors := *c, hftest.Tensors(c)
		dtype := change(&changed, tensors)
		dir := filepath.Join(t.TempDir(), "model")
		if err := hf.Save(dir, &changed, tensors, dtype); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error with %q", err, name)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
}

// F16 to F32 is exact, so every half must come back; halfway numbers go to the
// even one.
func TestHalvesAreRoundedToTheNearest(t *testing.T) {
	// 1329·48 numbers hold 63488 halves
	c := hftest.Config(t, strings.NewReplacer(`"vocab_size":61`, `"vocab_size":1329`).Replace(hftest.GPT2))
	tensors := hftest.Tensors(c)
	table := tensors["wte.weight"]
	value := func(h uint16) float64 {
		e, m := int(h>>10&31), float64(h&1023)
		x := math.Ldexp(1+m/1024, e-15)
		if e == 0 {
			x = math.Ldexp(m, -24)
		}
		if h>>15 == 1 {
			x = -x
		}
		return x
	}
	n := 0
	for h := range uint32(1 << 16) {
		if h>>10&31 != 31 {
			table[n] = float32(value(uint16(h)))
			n++
		}
	}
	positions := tensors["wpe.weight"] // between two halves, and a little to either side
	type between struct{ low, high float64 }
	var want []between
	for i := range len(positions) {
		h := uint16(i * 6)
		low, high := value(h), value(h+1)
		middle := (low + high) / 2
		positions[i] = float32(middle)
		nearest := low
		if h&1 == 1 {
			nearest = high
		}
		switch i % 3 {
		case 1:
			positions[i], nearest = math.Nextafter32(positions[i], 0), low
		case 2:
			positions[i], nearest = math.Nextafter32(positions[i], 2*positions[i]), high
		}
		want = append(want, between{nearest, middle})
	}
	dir := t.TempDir()
	if err := hf.Save(dir, c, tensors, safetensors.F16); err != nil {
		t.Fatal(err)
	}
	k := open(t, dir)
	got, err := k.Float32s("wte.weight")
	if err != nil || !slices.Equal(got[:n], table[:n]) {
		t.Errorf("halves do not come back (%v)", err)
	}
	got, err = k.Float32s("wpe.weight")
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		if float64(got[i]) != w.low {
			t.Fatalf("%v beside the middle %v is rounded to %v, want %v", positions[i], w.high, got[i], w.low)
		}
	}
}

// rewrite reads a saved directory's arrays, lets f change them and the names,
// and writes them again.
func rewrite(t *testing.T, text string, f func(arrays map[string]*safetensors.Array)) string {
	t.Helper()
	dir := t.TempDir()
	c := hftest.Config(t, text)
	arrays := map[string]*safetensors.Array{}
	tensors := hftest.Tensors(c)
	for _, w := range c.Tensors() {
		arrays[w.Name] = &safetensors.Array{Name: w.Name, Shape: w.Shape, Data: tensors[w.Name]}
	}
	f(arrays)
	var all []safetensors.Array
	for _, a := range arrays {
		all = append(all, *a)
	}
	if err := safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), nil, all); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "config.json", text)
	return dir
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// rename changes the names of all tensors.
func rename(f func(string) string) func(map[string]*safetensors.Array) {
	return func(arrays map[string]*safetensors.Array) {
		for _, a := range arrays {
			a.Name = f(a.Name)
		}
	}
}

func with(name string, data any, shape ...int) func(map[string]*safetensors.Array) {
	return func(arrays map[string]*safetensors.Array) {
		arrays["with "+name] = &safetensors.Array{Name: name, Shape: shape, Data: data}
	}
}

// Names of real checkpoints, old and new.
func TestNamesOfEveryWriter(t *testing.T) {
	prefixed := func(p string) func(string) string { return func(n string) string { return p + n } }
	oldNorms := strings.NewReplacer("LayerNorm.weight", "LayerNorm.gamma", "LayerNorm.bias", "LayerNorm.beta")
	newViT := strings.NewReplacer("encoder.layer.", "layers.", "attention.attention.query", "attention.q_proj",
		"attention.attention.key", "attention.k_proj",
		"attention.attention.value", "attention.v_proj", "attention.output.dense", "attention.o_proj",
		"intermediate.dense", "mlp.fc1", "output.dense", "mlp.fc2")
	for name, c := range map[string]struct {
		text   string
		change func(map[string]*safetensors.Array)
	}{
		"bert, prefix": {hftest.BERT, rename(prefixed("bert."))},
		"bert, gamma and beta": {hftest.BERT,
			rename(func(n string) string { return "bert." + oldNorms.Replace(n) })},
		"bert, position ids":     {hftest.BERT, with("embeddings.position_ids", []int64{0, 1}, 1, 2)},
		"bert, pooler":           {hftest.BERT, with("bert.pooler.dense.bias", []float32{1}, 1)},
		"bert, masked LM's head": {hftest.BERT, with("cls.predictions.bias", []float32{1}, 1)},
		"bert, next sentence":    {hftest.BERT, with("cls.seq_relationship.bias", []float32{1, 2}, 2)},
		"vit, names in memory":   {hftest.ViT, rename(newViT.Replace)},
		"vit, names and prefix":  {hftest.ViT, rename(func(n string) string { return "vit." + newViT.Replace(n) })},
		"vit, pooler":            {hftest.ViT, with("pooler.dense.bias", []float32{1}, 1)},
		"gpt2, prefix":           {hftest.GPT2, rename(prefixed("transformer."))},
		"gpt2, masks":            {hftest.GPT2, with("h.1.attn.bias", []uint8{1}, 1, 1, 1, 1)},
		"gpt2, another mask":     {hftest.GPT2, with("transformer.h.0.attn.masked_bias", []float32{-1e4})},
		"gpt2, the same head":    {hftest.GPT2, with("lm_head.weight", hftest.Values("wte.weight", 61*48), 61, 48)},
		"llama, prefix": {hftest.LLaMA,
			rename(func(n string) string { return strings.Replace("model."+n, "model.lm_head", "lm_head", 1) })},
		"llama, saved frequencies": {hftest.LLaMA,
			with("model.layers.0.self_attn.rotary_emb.inv_freq", []float32{1}, 1)},
	} {
		k := open(t, rewrite(t, c.text, c.change))
		for _, w := range k.Config().Tensors() {
			got, err := k.Float32s(w.Name)
			if err != nil || !slices.Equal(got, hftest.Values(w.Name, len(got))) {
				t.Errorf("%s: tensor %s has other numbers (%v)", name, w.Name, err)
			}
		}
	}
}

// A model that is wrong is one error that names the tensor.
func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		text   string
		change func(map[string]*safetensors.Array)
		want   string
	}{
		{hftest.BERT, func(m map[string]*safetensors.Array) { delete(m, "encoder.layer.1.output.dense.bias") },
			`"encoder.layer.1.output.dense.bias" is missing`},
		{hftest.LLaMA, func(m map[string]*safetensors.Array) { delete(m, "lm_head.weight") },
			`"lm_head.weight" is missing`},
		{hftest.BERT, with("classifier.weight", []float32{1, 2}, 1, 2), `"classifier.weight" is left over`},
		{hftest.BERT, with("encoder.layer.2.output.dense.bias", []float32{1}, 1),
			`"encoder.layer.2.output.dense.bias" is left over`},
		{hftest.GPT2, with("h.0.attn.rotary", []float32{1}, 1), `"h.0.attn.rotary" is left over`},
		{hftest.GPT2, with("lm_head.weight", hftest.Values("other", 61*48), 61, 48),
			`"lm_head.weight" differs from "wte.weight"`},
		{hftest.GPT2, with("lm_head.weight", []float32{1}, 1), `"lm_head.weight" differs from "wte.weight"`},
		{hftest.GPT2, with("transformer.wte.weight", []float32{1}, 1), `have the same meaning`},
		{hftest.GPT2, func(m map[string]*safetensors.Array) { m["wte.weight"].Shape = []int{48, 61} },
			`"wte.weight" has the shape [48 61] but must have [61 48]`},
		{hftest.GPT2, func(m map[string]*safetensors.Array) { m["ln_f.bias"].Data = make([]float64, 48) },
			`"ln_f.bias" is of type F64`},
		{hftest.GPT2, func(m map[string]*safetensors.Array) { m["ln_f.bias"].Data = make([]int32, 48) },
			`"ln_f.bias" is of type I32`},
	} {
		dir := rewrite(t, c.text, c.change)
		k, err := hf.Open(dir)
		if err == nil || k != nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), dir+": ") {
			t.Errorf("got %v, want an error of %s with %q", err, dir, c.want)
		}
	}
	for what, want := range map[string]string{"no files": "config.json", "no weights": "model.safetensors",
		"broken weights": "model.safetensors"} {
		dir := t.TempDir()
		if what != "no files" {
			put(t, dir, "config.json", hftest.GPT2)
		}
		if what == "broken weights" {
			put(t, dir, "model.safetensors", "\xff\xff\xff\xff\xff\xff\xff\xff{}")
		}
		if _, err := hf.Open(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func TestNumbersThatAreNotFiniteAreNamed(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		k := open(t, rewrite(t, hftest.GPT2, func(m map[string]*safetensors.Array) {
			m["wpe.weight"].Data.([]float32)[77] = float32(x)
		}))
		if _, err := k.Float32s("wpe.weight"); err == nil || !strings.Contains(err.Error(), `"wpe.weight": number 77`) {
			t.Errorf("%v: got %v", x, err)
		}
	}
}

func TestOpenFS(t *testing.T) {
	dir := hftest.Dir(t, hftest.Config(t, hftest.GPT2))
	m := fstest.MapFS{}
	for _, name := range []string{"config.json", "model.safetensors"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		m["models/x/"+name] = &fstest.MapFile{Data: data}
	}
	sub, err := fs.Sub(m, "models/x")
	if err != nil {
		t.Fatal(err)
	}
	k, err := hf.OpenFS(sub, "builtin:x")
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if k.SHA256() != open(t, dir).SHA256() {
		t.Error("the same bytes have another checksum")
	}
	if _, err := hf.OpenFS(fstest.MapFS{}, "builtin:y"); err == nil || !strings.HasPrefix(err.Error(), "builtin:y: ") {
		t.Errorf("got %v", err)
	}
}

// A link to nothing does not pass for a file that is absent by right, and what
// is no file is not waited for.
func TestFilesThatAreNone(t *testing.T) {
	for name, want := range map[string]string{
		"config.json": "config.json is a link to ../blobs/gone", "model.safetensors": "model.safetensors is a link",
		"modules.json": "modules.json is a link", "tokenizer.json": "tokenizer.json is a link",
		"generation_config.json": "generation_config.json is a link", "README.md": "",
	} {
		dir := hftest.Dir(t, hftest.Config(t, hftest.BERT))
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.Symlink("../blobs/gone", path); err != nil {
			t.Skipf("symbolic links: %v", err)
		}
		k, err := hf.Open(dir)
		if want == "" {
			if err != nil {
				t.Errorf("a link that nobody reads: %v", err)
			} else {
				k.Close()
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, want)
		}
	}
	dir := hftest.Dir(t, hftest.Config(t, hftest.BERT))
	if err := os.Mkdir(filepath.Join(dir, "modules.json"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := hf.Open(dir); err == nil || !strings.Contains(err.Error(), "modules.json is not a regular file") {
		t.Errorf("a folder in place of a file: %v", err)
	}
}
