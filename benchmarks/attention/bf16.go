package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/models/mat"
	"entropipe/models/safetensors"
	"entropipe/sparse/hf"
	"entropipe/sparse/model"
	"entropipe/sparse/token"
)

// bf16Cmd times weights in bf16 beside float32, in turns: the products of
// layers by themselves, and whole encoders; and says how far the encoders'
// states are apart.
type bf16Cmd struct {
	Quick   bool          `help:"Two numbers of rows and short turns."`
	Rows    []int         `help:"Rows of products, and tokens of sequences (1, 32, 128, 512; with --quick 32, 128)."`
	Threads []int         `default:"1,2" help:"Numbers of threads, of all (${default})."`
	Rounds  int           `help:"Turns of each entry in a cell (7; with --quick 3)."`
	Turn    time.Duration `help:"Time of a turn, at least one run (50ms; with --quick 10ms)."`
	Pieces  int           `default:"64" help:"Pieces of 256 tokens of WikiText-2, with --mini-lm (${default})."`
	MiniLM  string        `env:"ENTROPIPE_MINILM" placeholder:"DIR" help:"MiniLM checkpoint; else random weights."`
	Results string        `placeholder:"DIR" help:"Folder of the result (benchmarks/results; --quick: none); -: none."`
	Resume  bool          `help:"Keep the cells that attention-bf16.jsonl has, and measure the others."`
}

// Entries of a cell: the forms of the weights.
var bf16Forms = []string{string(model.F32), string(model.BF16)}

// layers are the products of MiniLM's layers and of BERT-base's.
var bf16Layers = [][2]int{{384, 1152}, {384, 384}, {384, 1536}, {1536, 384}, {768, 2304}, {768, 768},
	{768, 3072}, {3072, 768}}

func (c *bf16Cmd) defaults() {
	rows, rounds, turn := []int{1, 32, 128, 512}, 7, 50*time.Millisecond
	if c.Quick {
		rows, rounds, turn = []int{32, 128}, 3, 10*time.Millisecond
	}
	if len(c.Rows) == 0 {
		c.Rows = rows
	}
	if c.Rounds == 0 {
		c.Rounds = rounds
	}
	if c.Turn == 0 {
		c.Turn = turn
	}
}

// Run is the subcommand.
func (c *bf16Cmd) Run(ctx context.Context) error {
	c.defaults()
	r := &bf16Report{}
	if err := r.open("bf16", c.Results, rig.KindOf(c.Quick), resumed(c.Resume)); err != nil {
		return err
	}
	for _, layer := range bf16Layers {
		if err := c.products(ctx, r, layer[0], layer[1]); err != nil {
			return err
		}
	}
	for _, name := range []string{"minilm", "bert"} {
		if err := c.encoder(ctx, r, name); err != nil {
			return err
		}
	}
	return r.write(os.Stdout)
}

// products times one layer's product, with its bias.
func (c *bf16Cmd) products(ctx context.Context, r *bf16Report, k, n int) error {
	random := rand.New(rand.NewPCG(1, 2))
	numbers := func(rows, cols int) mat.Matrix {
		m := mat.Of(rows, cols, make([]float32, rows*cols))
		for i := range m.Data {
			m.Data[i] = float32(random.NormFloat64())
		}
		return m
	}
	var plain, rounded mat.Weights
	b, bias := numbers(k, n), numbers(1, n).Data
	plain.Pack(b)
	rounded.Pack(b)
	rounded.Round()
	for _, rows := range c.Rows {
		a, dst := numbers(rows, k), mat.Of(rows, n, make([]float32, rows*n))
		for _, threads := range c.Threads {
			cell := &bf16Cell{Of: fmt.Sprintf("%d→%d", k, n), Rows: rows, Threads: threads, How: howBF16(),
				Work: 2 * float64(rows) * float64(k) * float64(n)}
			if err := c.measure(ctx, r, cell, func(form int) error {
				[]*mat.Weights{&plain, &rounded}[form].Mul(dst, a, mat.Epilogue{Bias: bias}, threads)
				return nil
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// encoder times a whole model, one sequence at a time, and compares the states
// of both forms.
func (c *bf16Cmd) encoder(ctx context.Context, r *bf16Report, name string) error {
	folder := c.MiniLM
	if name != "minilm" || folder == "" {
		var err error
		if folder, err = os.MkdirTemp("", "entropipe-bf16-"); err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		if err := saveRandom(folder, name); err != nil {
			return err
		}
	}
	var models [2]*model.Model
	for i, form := range bf16Forms {
		m, err := model.OpenAs(folder, model.Weights(form))
		if err != nil {
			return err
		}
		models[i] = m
	}
	for _, rows := range c.Rows {
		for _, threads := range c.Threads {
			sessions := [2]*model.Session{models[0].NewSession(threads), models[1].NewSession(threads)}
			cell := &bf16Cell{Of: name, Rows: rows, Threads: threads, How: howBF16()}
			if err := c.measure(ctx, r, cell, func(form int) error {
				_, err := sessions[form].Hidden(sequence(rows), model.Options{})
				return err
			}); err != nil {
				return err
			}
		}
	}
	if name != "minilm" || c.MiniLM == "" || r.has("texts", c.Pieces, 0) {
		return nil
	}
	cell, err := c.texts(models)
	if err != nil {
		return err
	}
	return r.add(cell)
}

// measure lets both forms take turns, unless the cell is known.
func (c *bf16Cmd) measure(ctx context.Context, r *bf16Report, cell *bf16Cell, run func(form int) error) error {
	if r.has(cell.Of, cell.Rows, cell.Threads) {
		return nil
	}
	cell.Ns = map[string][]int64{}
	for round := range c.Rounds + 1 { // the first one warms up
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range bf16Forms {
			form := (i + round) % len(bf16Forms)
			for begin, runs := time.Now(), 0; runs == 0 || time.Since(begin) < c.Turn; runs++ {
				start := time.Now()
				if err := run(form); err != nil {
					return err
				}
				if round > 0 {
					cell.Ns[bf16Forms[form]] = append(cell.Ns[bf16Forms[form]], time.Since(start).Nanoseconds())
				}
			}
		}
	}
	cell.shorten()
	return r.add(cell)
}

// texts compares the states and embeddings of pieces of WikiText-2.
func (c *bf16Cmd) texts(models [2]*model.Model) (*bf16Cell, error) {
	pieces, err := wikiPieces(c.MiniLM, 256, c.Pieces)
	if err != nil {
		return nil, err
	}
	cell := &bf16Cell{Of: "texts", Rows: len(pieces), How: howBF16(), Cosine: 1, Embedding: 1}
	var sessions [2]*model.Session
	for i, m := range models {
		sessions[i] = m.NewSession(2)
	}
	width := models[0].Config().Hidden
	a, b := make([]float32, width), make([]float32, width)
	for _, ids := range pieces {
		batch := model.Batch{IDs: ids, Starts: []int32{0, int32(len(ids))}}
		want, err := sessions[0].Hidden(batch, model.Options{})
		if err != nil {
			return nil, err
		}
		got, err := sessions[1].Hidden(batch, model.Options{})
		if err != nil {
			return nil, err
		}
		for i := range want.Rows {
			cell.compare(got.Row(i), want.Row(i))
		}
		sessions[0].Pool(a, want, models[0].Pooling())
		sessions[1].Pool(b, got, models[1].Pooling())
		cell.Embedding = min(cell.Embedding, cosine(a, b))
	}
	return cell, nil
}

// wikiPieces returns sequences of length tokens from the beginning of WikiText-2's
// validation texts, at most so many, by the tokenizer in folder.
func wikiPieces(folder string, length, most int) (pieces [][]int32, err error) {
	path, err := rig.TestData("text", "wikitext-2", "valid.txt")
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	tokenizer, err := token.Open(folder)
	if err != nil {
		return nil, err
	}
	ids := tokenizer.Encode(nil, string(text))
	if len(ids) < 3 {
		return nil, errors.New("WikiText-2 has no tokens")
	}
	first, last, ids := ids[0], ids[len(ids)-1], ids[1:len(ids)-1]
	for len(pieces) < most && len(ids) >= length-2 {
		piece := append([]int32{first}, ids[:length-2]...)
		pieces, ids = append(pieces, append(piece, last)), ids[length-2:]
	}
	return pieces, nil
}

// saveRandom writes an encoder of MiniLM's shape, or of four layers of
// BERT-base's, with random weights.
func saveRandom(folder, name string) error {
	c := &hf.Config{Arch: hf.BERT, Model: "bert", Layers: 4, Hidden: 768, Inner: 3072, Heads: 12, KVHeads: 12, Dim: 64,
		Vocab: 2048, MaxPositions: 512, Types: 2,
		Act: hf.GELU, Eps: 1e-12, Scale: .125, QKVBias: true, OutBias: true, MLPBias: true, BOS: -1}
	if name == "minilm" {
		c.Layers, c.Hidden, c.Inner, c.Dim, c.Scale = 6, 384, 1536, 32, float32(1/math.Sqrt(32))
	}
	r, tensors := rand.New(rand.NewPCG(3, 4)), map[string][]float32{}
	for _, t := range c.Tensors() {
		n := 1
		for _, s := range t.Shape {
			n *= s
		}
		v := make([]float32, n)
		for i := range v {
			if v[i] = float32(.05 * r.NormFloat64()); strings.HasSuffix(t.Name, "LayerNorm.weight") {
				v[i] = 1
			}
		}
		tensors[t.Name] = v
	}
	return hf.Save(filepath.Clean(folder), c, tensors, safetensors.F32)
}

func cosine(a, b []float32) float64 {
	dot, aa, bb := 0., 0., 0.
	for i, x := range a {
		y := b[i]
		dot, aa, bb = dot+float64(x)*float64(y), aa+float64(x)*float64(x), bb+float64(y)*float64(y)
	}
	return dot / math.Sqrt(aa*bb)
}
