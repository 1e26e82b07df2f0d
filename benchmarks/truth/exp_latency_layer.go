package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"

	"entropipe/benchmarks/rig"
	"entropipe/models/safetensors"
	"entropipe/sparse/hf"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/plan"
	"entropipe/sparse/support"
)

const latencyLayerText = "One layer with drawn weights, as package model serves it: table of embeddings, " +
	"projections, attention, MLP with GELU, norms, one thread; a sequence dense and with a mask of 75 % (the first " +
	"block and a window, which is the fastest), in turns. Where attention takes the share a of a layer's time, and " +
	"a mask reads the share r of its blocks, a layer becomes at most 1/(1-a+a·r) times as fast (Amdahl), and " +
	"1/(1-a) if attention cost nothing at all. The last column is the paper's formula for when training pays, with " +
	"its own 3.4 hours and 85 ms a batch but the speed-up measured here; it prints 450,000 batches at 1.47."

var latencyLayerColumns = rig.Table[*record]{
	text("layer", "layer"), value("tokens", "tokens", "%.0f"), value("block", "block", "%.0f"),
	value("attention, % of multiplications", "counted", "%.1f"), value("of the time", "share", "%.1f"),
	value("read, %", "read", "%.1f"), value("bound", "bound", "%.3f"), value("attention free", "free", "%.3f"),
	ratioOf("measured (95 %)", "speed"), value("attention alone", "attention", "%.2f"),
	text("printed", "printed"), {Head: "training pays after, batches",
		Text: func(r *record) string { return paysAfterBatches(r.Values["speed"]) }},
}

// paysAfterBatches is the paper's formula for ViT-Base.
func paysAfterBatches(speed float64) string {
	if speed <= 1 {
		return "never"
	}
	return fmt.Sprintf("%.0f", math.Ceil(3.4*3600/(.085*(1-1/speed))))
}

// latencyLayer is a layer of some model's shape.
type latencyLayer struct {
	name, printed        string
	hidden, heads, inner int
	tokens, block        int
	rounds, repeats      int
}

func latencyLayers(how effort) []latencyLayer {
	if how == quick {
		return []latencyLayer{{"small", "1.47", 32, 2, 64, 64, 16, 2, 1}}
	}
	return []latencyLayer{
		{"ViT-S/16", "1.47 ViT-Small", 384, 6, 1536, 197, 16, 80, 3},
		{"ViT-B/16", "1.60 ViT-Base", 768, 12, 3072, 197, 16, 40, 2},
		{"BERT-base", "", 768, 12, 3072, 512, 64, 40, 1},
		{"BERT-base", "1.55 Mistral-7B, 1,024 tokens", 768, 12, 3072, 1024, 64, 24, 1},
		{"BERT-base", "1.60 LLaMA-2 7B, 8K tokens", 768, 12, 3072, 4096, 64, 8, 1},
	}
}

// load makes a model of one layer with drawn weights. All shapes are BERT's:
// where ViT's norms stand makes no difference to the time.
func (l *latencyLayer) load() (*model.Model, error) { return drawnModel(l.config()) }

func (l *latencyLayer) config() []byte {
	return fmt.Appendf(nil,
		`{"model_type":"bert","architectures":["BertModel"],"hidden_size":%d,"num_hidden_layers":1,"num_attention_heads":%d,"intermediate_size":%d,"vocab_size":1024,"max_position_embeddings":%d,"type_vocab_size":2}`,
		l.hidden, l.heads, l.inner, max(l.tokens, longestPhrase))
}

// layerNorm matches the names of the factors of norms, which lie about 1.
var layerNorm = regexp.MustCompile(`(?i)(norm|ln_[12f])\.weight$`)

// drawnModel makes a model with drawn weights.
func drawnModel(config []byte) (*model.Model, error) {
	c, err := hf.ParseConfig(config)
	if err != nil {
		return nil, err
	}
	draw, tensors := rand.New(rand.NewPCG(seeds[0], uint64(c.Hidden))), map[string][]float32{}
	for _, t := range c.Tensors() {
		size := 1
		for _, n := range t.Shape {
			size *= n
		}
		v, norm := make([]float32, size), layerNorm.MatchString(t.Name)
		for i := range v {
			if v[i] = (draw.Float32() - .5) / 16; norm {
				v[i]++
			}
		}
		tensors[t.Name] = v
	}
	dir, err := os.MkdirTemp("", "entropipe-layer-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := hf.Save(dir, c, tensors, safetensors.F32); err != nil {
		return nil, err
	}
	return model.Load(dir)
}

// measure times the layer dense and masked, and its attention within.
func (l *latencyLayer) measure() ([]record, error) {
	m, err := l.load()
	if err != nil {
		return nil, err
	}
	blocks := support.Blocks(l.tokens, l.block)
	budget := support.Budget(.75, 0, blocks, false)
	heads := make([]*support.Layout, l.heads)
	for h := range heads {
		heads[h] = drawWindow(l.tokens, l.block, budget, h)
	}
	mask := &plan.Plan{Layouts: [][]*support.Layout{heads}}
	batch := model.Batch{IDs: make([]int32, l.tokens), Starts: []int32{0, int32(l.tokens)}}
	for i := range batch.IDs {
		batch.IDs[i] = int32(i * 7919 % 1024)
	}
	dense, masked := layerEntry{session: m.NewSession(1)}, layerEntry{session: m.NewSession(1), plan: mask}
	ms := inTurns(l.rounds, l.repeats, func() { dense.run(batch) }, func() { masked.run(batch) })
	if err := errors.Join(dense.err, masked.err); err != nil {
		return nil, err
	}
	return []record{l.record(ms, &dense, &masked, float64(budget)/float64(blocks))}, nil
}

// layerEntry runs a layer and times its attention within.
type layerEntry struct {
	session           *model.Session
	plan              *plan.Plan
	scratch           kern.Scratch
	attention, shares []float64 // by run: milliseconds of attention, and their share of the run
	err               error
}

func (e *layerEntry) run(b model.Batch) {
	within := 0.0
	o := model.Options{Plan: func(int) *plan.Plan { return e.plan }, Attend: func(jobs []kern.Job, workers int) {
		within += onceTimed(func() { e.scratch.Attend(jobs, workers) })
	}}
	all := onceTimed(func() {
		if _, err := e.session.Hidden(b, o); err != nil {
			e.err = err
		}
	})
	e.attention, e.shares = append(e.attention, within), append(e.shares, within/all)
}

// record compares turns, dense and masked; the mask reads a share of the blocks.
func (l *latencyLayer) record(ms [][]float64, dense, masked *layerEntry, read float64) record {
	// Of a token: projections and MLP; attention twice its width for each key.
	linear, attention := float64(4*l.hidden*l.hidden+2*l.hidden*l.inner), float64(2*l.hidden*l.tokens)
	share := middle(dense.shares)
	r := record{Text: map[string]string{"part": "layer", "layer": l.name, "printed": l.printed},
		Values: map[string]float64{
			"tokens": float64(l.tokens), "block": float64(l.block), "counted": 100 * attention / (linear + attention),
			"share": 100 * share, "read": 100 * read,
			"bound": amdahl(share, read), "free": amdahl(share, 0),
			"attention": middle(dense.attention) / middle(masked.attention),
		}}
	r.putRatio("speed", quotients(ms[0], ms[1]))
	return r
}

// amdahl is how many times as fast a whole becomes when a share of it takes only
// a part of its time.
func amdahl(share, part float64) float64 { return 1 / (1 - share + share*part) }

func latencyLayerVerdict(records []record) string {
	if len(records) == 0 {
		return "No layer is timed yet."
	}
	var b strings.Builder
	for _, r := range records {
		v := r.Values
		fmt.Fprintf(&b, "* %s, %.0f tokens: attention is %.1f %% of the time; %.3f times as fast with the mask "+
			"(bound %.3f)", r.Text["layer"], v["tokens"], v["share"], v["speed"], v["bound"])
		if v["free"] < 1.47 {
			fmt.Fprintf(&b, "; with no attention at all it would be %.3f times, so no mask can give 1.47", v["free"])
		} else if v["bound"] < 1.47 {
			b.WriteString("; 1.47 would take a mask that reads less")
		} else {
			b.WriteString("; by the bound long enough for what the paper prints")
		}
		b.WriteString(".\n")
	}
	fmt.Fprintf(&b, "\nAt three quarters, a speed-up of 1.47 needs attention to take %.0f %% of a layer, 1.60 %.0f %%.",
		100*shareFor(1.47, .25), 100*shareFor(1.6, .25))
	return b.String()
}

// shareFor is the share of the time that attention must take so that reading a
// part of it makes the whole so many times as fast.
func shareFor(speed, part float64) float64 { return (1 - 1/speed) / (1 - part) }
