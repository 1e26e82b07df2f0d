package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"entropipe/models/atomicfile"
	"entropipe/models/mat"
	"entropipe/models/safetensors"
	"entropipe/sparse/hf"
)

// Names of the files that Write adds to those of hf.Save.
const (
	tokenizerFile = "tokenizer.json"
	classFile     = "tokenizer_config.json"
	cardFile      = "README.md"
	logFile       = "train.jsonl"
	gatesFile     = "gates.safetensors"
	anchorsFile   = "anchors.safetensors"
	imagesFile    = "preprocessor_config.json"
)

// Write writes the model as a directory that transformers opens (class
// GPT2LMHeadModel or ViTForImageClassification), with weights of type F32, F16
// or BF16: config.json and model.safetensors, tokenizer.json or
// preprocessor_config.json, the card README.md, and the history train.jsonl.
// command is the command line that the card names.
//
// Gates and anchors are not tensors of the model. Write stores them in
// gates.safetensors, with the tensors gate (if gates were learned) and open (if
// gates were closed for good), both [layers][heads][rows of blocks][columns of
// blocks], and the tokens of a block in the metadata; and in anchors.safetensors,
// with the tensor anchors [layers][heads][k][headDim]. Write removes a tokenizer,
// preprocessor, gates or anchors file of an earlier training that this training
// does not replace.
func (t *Trainer) Write(dir string, dtype safetensors.DType, command string) error {
	companions := t.companions()
	for _, name := range []string{tokenizerFile, classFile, imagesFile, gatesFile, anchorsFile} {
		if companions[name] != nil {
			continue
		}
		// Readers would take the gates or the tokenizer of another model for this one's.
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := hf.Save(dir, t.hfConfig(), t.tensors(), dtype); err != nil {
		return err
	}
	write := func(name string, data []byte) error {
		return atomicfile.Write(filepath.Join(dir, name), func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	}
	for name, data := range companions {
		if err := write(name, data); err != nil {
			return err
		}
	}
	if err := t.writeExtras(dir); err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, logFile), t.WriteRecords); err != nil {
		return err
	}
	return write(cardFile, []byte(t.Card(command)))
}

// WriteRecords writes the history to w, one line of JSON for each record.
func (t *Trainer) WriteRecords(w io.Writer) error {
	e := json.NewEncoder(w)
	for i := range t.records {
		if err := e.Encode(&t.records[i]); err != nil {
			return err
		}
	}
	return nil
}

// companions returns the files that transformers reads beside the model, by name.
func (t *Trainer) companions() map[string][]byte {
	if w, ok := t.data.(windows); ok {
		files := map[string][]byte{}
		if w.text.Tokenizer != nil {
			files[tokenizerFile] = w.text.Tokenizer
		}
		if w.text.Vocab == Bytes {
			files[classFile] = []byte(
				fmt.Sprintf(
					`{"tokenizer_class":"PreTrainedTokenizerFast","bos_token":null,"eos_token":"<|endoftext|>","unk_token":null,"model_max_length":%d}`+"\n", w.n))
		}
		return files
	}
	f := &t.net.form
	return map[string][]byte{
		imagesFile: []byte(
			fmt.Sprintf(
				`{"image_processor_type":"ViTImageProcessor","do_resize":true,"size":{"height":%d,"width":%d},"do_rescale":true,"rescale_factor":%v,"do_normalize":true,"image_mean":[0.5],"image_std":[0.5]}`+"\n",
				f.side, f.side, 1.0/255))}
}

func (t *Trainer) writeExtras(dir string) error {
	if g := t.gates; g != nil {
		shape := []int{g.layers, g.heads, g.rows, g.rows}
		var all []safetensors.Array
		if gates, _ := t.Gates(); gates != nil {
			all = append(all, safetensors.Array{Name: "gate", Shape: shape, Data: flat(gates)})
		}
		if open := t.Open(); open != nil {
			all = append(all, safetensors.Array{Name: "open", Shape: shape, Data: flat(open)})
		}
		return safetensors.WriteFile(filepath.Join(dir, gatesFile),
			map[string]string{"block": fmt.Sprint(g.block), "tokens": fmt.Sprint(t.net.form.n)}, all)
	}
	if a := t.anchors; a != nil && a.placed {
		return safetensors.WriteFile(filepath.Join(dir, anchorsFile), nil,
			[]safetensors.Array{{Name: "anchors", Shape: []int{a.layers, a.heads, a.k, a.dim}, Data: a.c}})
	}
	return nil
}

// flat concatenates the values of all layers and heads.
func flat[T any](layers [][][]T) (all []T) {
	for _, heads := range layers {
		all = append(all, slices.Concat(heads...)...)
	}
	return all
}

// Open returns the open blocks of queries and keys [layers][heads][rows·rows], true
// where a block is open. It returns nil before gates are closed for good, and
// without the regularisers L1 and Window.
func (t *Trainer) Open() [][][]bool {
	if t.gates == nil || !t.gates.hard {
		return nil
	}
	g := t.gates
	all := make([][][]bool, g.layers)
	for l := range all {
		all[l] = make([][]bool, g.heads)
		for h := range all[l] {
			open := make([]bool, g.rows*g.rows)
			for i := range open {
				open[i] = !g.unseen(i/g.rows, i%g.rows) && !g.shut[g.of(l, h)+i]
			}
			all[l][h] = open
		}
	}
	return all
}

// Gates returns the gates of L1 [layers][heads][rows·rows], from 0 (closed) to 1
// (open), and the tokens a side of a block. The gates of blocks that no query sees
// are 0. Gates returns nil and 0 for other regularisers.
func (t *Trainer) Gates() (gates [][][]float32, block int) {
	g := t.gates
	if g == nil || g.fixed {
		return nil, 0
	}
	gates = make([][][]float32, g.layers)
	for l := range gates {
		gates[l] = make([][]float32, g.heads)
		for h := range gates[l] {
			value := make([]float32, g.rows*g.rows)
			for i := range value {
				switch u, b := i/g.rows, i%g.rows; {
				case u == b:
					value[i] = 1
				case !g.unseen(u, b):
					value[i] = float32(logistic(float64(g.theta[g.of(l, h)+i])))
				}
			}
			gates[l][h] = value
		}
	}
	return gates, g.block
}

// hfConfig describes the network as the config.json of its class does.
func (t *Trainer) hfConfig() *hf.Config {
	f := &t.net.form
	c := &hf.Config{Layers: f.layers, Hidden: f.dim, Inner: 4 * f.dim, Heads: f.heads, KVHeads: f.heads,
		Dim: f.headDim(), MaxPositions: f.n,
		Eps: f.eps, Scale: float32(1 / math.Sqrt(float64(f.headDim()))), QKVBias: true, OutBias: true, MLPBias: true,
		Head: true, BOS: -1}
	if f.causal() {
		c.Arch, c.Model, c.Vocab, c.Causal, c.Tied, c.Act = hf.GPT2, "gpt2", f.vocab, true, true, hf.GELUTanh
		if f.vocab == Bytes {
			c.EOS = []int32{EndOfText}
		}
		return c
	}
	c.Arch, c.Model, c.Act = hf.ViT, "vit", hf.GELU
	c.Image, c.Patch, c.Colors, c.Labels = [2]int{f.side, f.side}, [2]int{f.patch, f.patch}, f.channels, f.classes
	if g, ok := t.data.(*gallery); ok {
		c.LabelNames = g.images.Names
	}
	return c
}

// tensors returns the weights by the names of hf.Config.Tensors.
func (t *Trainer) tensors() map[string][]float32 {
	all, w := map[string][]float32{}, &t.net.w
	if t.net.form.causal() {
		all["wte.weight"], all["wpe.weight"] = w.tokens.Data, w.positions.Data
		all["ln_f.weight"], all["ln_f.bias"] = w.gamma, w.beta
		for l := range w.blocks {
			w.blocks[l].gpt2(all, fmt.Sprintf("h.%d.", l))
		}
	} else {
		all["embeddings.cls_token"], all["embeddings.position_embeddings"] = w.class, w.positions.Data
		all["embeddings.patch_embeddings.projection.weight"] = transposed(w.patches)
		all["embeddings.patch_embeddings.projection.bias"] = w.patchB
		all["layernorm.weight"], all["layernorm.bias"] = w.gamma, w.beta
		all["classifier.weight"], all["classifier.bias"] = transposed(w.head), w.headB
		for l := range w.blocks {
			w.blocks[l].vit(all, fmt.Sprintf("encoder.layer.%d.", l), t.net.form.dim)
		}
	}
	for name, v := range all { // the views' capacities reach into the next tensor
		all[name] = v[:len(v):len(v)]
	}
	return all
}

func (b *blockWeights) gpt2(all map[string][]float32, p string) {
	for name, v := range map[string][]float32{"ln_1.weight": b.gamma1, "ln_1.bias": b.beta1,
		"attn.c_attn.weight": b.qkv.Data, "attn.c_attn.bias": b.qkvB,
		"attn.c_proj.weight": b.proj.Data, "attn.c_proj.bias": b.projB, "ln_2.weight": b.gamma2, "ln_2.bias": b.beta2,
		"mlp.c_fc.weight": b.up.Data, "mlp.c_fc.bias": b.upB, "mlp.c_proj.weight": b.down.Data,
		"mlp.c_proj.bias": b.downB} {
		all[p+name] = v
	}
}

func (b *blockWeights) vit(all map[string][]float32, p string, dim int) {
	for i, name := range []string{"query", "key", "value"} {
		all[p+"attention.attention."+name+".weight"] = transposed(b.qkv.Columns(i*dim, (i+1)*dim))
		all[p+"attention.attention."+name+".bias"] = b.qkvB[i*dim : (i+1)*dim]
	}
	for name, v := range map[string][]float32{"layernorm_before.weight": b.gamma1, "layernorm_before.bias": b.beta1,
		"layernorm_after.weight": b.gamma2, "layernorm_after.bias": b.beta2,
		"attention.output.dense.weight": transposed(b.proj), "attention.output.dense.bias": b.projB,
		"intermediate.dense.weight": transposed(b.up), "intermediate.dense.bias": b.upB,
		"output.dense.weight": transposed(b.down), "output.dense.bias": b.downB} {
		all[p+name] = v
	}
}

// transposed returns a copy of m [in][out] as [out][in].
func transposed(m mat.Matrix) []float32 {
	out := make([]float32, m.Rows*m.Cols)
	for i := range m.Rows {
		for j, v := range m.Row(i) {
			out[j*m.Rows+i] = v
		}
	}
	return out
}
