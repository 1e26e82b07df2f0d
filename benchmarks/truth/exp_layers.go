package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
	"entropipe/benchmarks/truth/estimate"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

// modelLayers times one layer of the shapes that the paper prints speed-ups for. Its records
// belong to two parts: blocks, of language models, and forms, of vision transformers.
var modelLayers = &experiment{
	name:  "layers",
	title: "A layer of the paper's models, dense and masked",
	claim: "The paper prints that masks of 75 % make LLaMA-2 7B (8,192 tokens) 1.60 times as fast, Mistral-7B 1.55, " +
		"Phi-2 1.48 and GPT-J 1.40, and that training pays after N = T / ((1 - 1/S) t) batches: 450,000 for a ViT (T " +
		"3.4 hours, S 1.47, t 85 ms), 180,000 for LLaMA-2 (48 hours, S 1.60; its table of latencies has t = 850 ms), " +
		"420,000 for GPT-J (72 hours, S 1.4, no t). Here: one layer of each shape with drawn weights in float32, as " +
		"package model serves it: norms, projections, rotary positions where the model has them, attention, MLP. The " +
		"models of GPT's class stand in for Phi-2 and GPT-J, whose multiplications they have. In one pass attention " +
		"is computed twice, dense and with a mask of 75 % of the causal blocks (the first block and a window, the " +
		"fastest mask; blocks of 64), and the layer's time is the rest with one of the two; two threads. A layer is " +
		"timed once a seed, which draws the tokens; factors are geometric means over seeds with Student's intervals. " +
		"Bound: Amdahl's law with the multiplications; free: with attention's measured share, if attention took no " +
		"time at all. N as printed has the paper's T, S and t; N with S measured here has the paper's T and t.",
	timed:   true,
	cells:   layerCells,
	rows:    layerRows,
	columns: layerColumns,
	verdict: layerVerdict,
}

var layerColumns = rig.Table[*record]{
	text("layer", "layer"), value("tokens", "tokens", "%.0f"), value("all else, ms", "rest_ms", "%.0f"),
	value("attention dense, ms", "dense_ms", "%.1f"), value("masked, ms", "masked_ms", "%.1f"),
	value("read, % of causal", "read", "%.1f"), value("attention, % of the time", "share", "%.1f"),
	value("bound", "bound", "%.3f"), value("attention free", "free", "%.3f"),
	ratioOf("layer, times as fast (95 %)", "speed"),
	text("printed", "printed"), text("N printed", "n_printed"), text("N by the printed T, S, t", "n_formula"),
	text("N with S measured here (95 %)", "n_here"),
}

// blockShape is a layer of a language model, with the paper's figures.
type blockShape struct {
	name, amdahl    string // amdahl names the shape in shapes
	config          string
	vocab           int
	tokens, block   int
	hours, batch, s float64 // T, t in seconds, and S as printed; 0 for what is not
	nPrinted        float64
}

const llamaConfig = `{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":%d,` +
	`"num_hidden_layers":1,"num_attention_heads":%d,"num_key_value_heads":%d,"intermediate_size":%d,"vocab_size":64,` +
	`"max_position_embeddings":%d,"hidden_act":"silu"}`

const gptConfig = `{"model_type":"gpt2","architectures":["GPT2LMHeadModel"],"n_embd":%d,"n_layer":1,"n_head":%d,` +
	`"n_inner":%d,"vocab_size":64,"n_positions":%d}`

func blockShapes(how effort) []blockShape {
	if how == quick {
		return []blockShape{
			{"small", "LLaMA-2 7B, 8,192 tokens", fmt.Sprintf(llamaConfig, 32, 2, 1, 64, 128), 64, 128, 16, 48, .85,
				1.6, 180_000},
		}
	}
	return []blockShape{
		{"Mistral-7B", "Mistral-7B, 1,024 tokens", fmt.Sprintf(llamaConfig, 4096, 32, 8, 14336, 1024), 64, 1024, 64, 0,
			0, 1.55, 0},
		{"Phi-2", "Phi-2, 2,048 tokens", fmt.Sprintf(gptConfig, 2560, 32, 10240, 2048), 64, 2048, 64, 0, 0, 1.48, 0},
		{"GPT-J 6B", "GPT-J 6B, 2,048 tokens", fmt.Sprintf(gptConfig, 4096, 16, 16384, 2048), 64, 2048, 64, 72, 0, 1.4,
			420_000},
		{"LLaMA-2 7B", "LLaMA-2 7B, 8,192 tokens", fmt.Sprintf(llamaConfig, 4096, 32, 32, 11008, 8192), 64, 8192, 64,
			48, .85, 1.6, 180_000},
	}
}

// layerLab keeps the last model: its weights take up to a gigabyte.
type layerLab struct {
	config string
	model  *model.Model
}

func (l *layerLab) load(config string) (*model.Model, error) {
	if l.config == config {
		return l.model, nil
	}
	l.config, l.model = "", nil
	m, err := drawnModel([]byte(config))
	if err == nil {
		l.config, l.model = config, m
	}
	return m, err
}

func layerCells(how effort) (cells []cell) {
	lab, of := &layerLab{}, seeds
	if how == quick {
		of = fewSeeds()
	}
	for _, l := range formLayers(how) {
		for _, seed := range of {
			key := fmt.Sprintf("forms %s tokens=%d rounds=%d seed=%d", l.name, l.tokens, l.rounds, seed)
			cells = append(cells, cell{key, func(context.Context) ([]record, error) { return l.forms(lab, seed) }})
		}
	}
	for _, s := range blockShapes(how) {
		for _, seed := range of {
			key := fmt.Sprintf("block %s tokens=%d seed=%d", s.name, s.tokens, seed)
			cells = append(cells, cell{key, func(context.Context) ([]record, error) { return s.measure(lab, seed) }})
		}
	}
	return cells
}

// blockThreads compute a layer of a language model.
const blockThreads = 2

// measure times a layer once.
func (s *blockShape) measure(lab *layerLab, seed uint64) ([]record, error) {
	m, err := lab.load(s.config)
	if err != nil {
		return nil, err
	}
	heads, read := causalWindow(s.tokens, s.block, m.Config().KVHeads)
	batch := model.Batch{IDs: make([]int32, s.tokens), Starts: []int32{0, int32(s.tokens)}}
	draw := rand.New(rand.NewPCG(seed, 28))
	for i := range batch.IDs {
		batch.IDs[i] = int32(draw.IntN(s.vocab))
	}
	session := m.NewSession(blockThreads)
	var scratch kern.Scratch
	dense, masked := 0.0, 0.0
	var o model.Options
	o.Attend = func(jobs []kern.Job, workers int) {
		with := []kern.Job{jobs[0]}
		with[0].Layouts = heads
		run := []func(){func() { masked = onceTimed(func() { scratch.Attend(with, workers) }) },
			func() { dense = onceTimed(func() { scratch.Attend(jobs, workers) }) }}
		if draw.IntN(2) == 0 {
			slices.Reverse(run)
		}
		run[0]()
		run[1]()
	}
	// A first pass over few tokens touches the weights; memory for all tokens is new in the second.
	few := model.Batch{IDs: batch.IDs[:min(64, s.tokens)], Starts: []int32{0, int32(min(64, s.tokens))}}
	if _, err := session.Hidden(few, model.Options{}); err != nil {
		return nil, err
	}
	all := onceTimed(func() { _, err = session.Hidden(batch, o) })
	if err != nil {
		return nil, err
	}
	rest := all - dense - masked
	return []record{{Text: map[string]string{"part": "blocks", "layer": s.name}, Values: map[string]float64{
		"seed": float64(seed), "tokens": float64(s.tokens), "rest_ms": rest, "dense_ms": dense, "masked_ms": masked,
		"read": 100 * read, "share": 100 * dense / (rest + dense), "speed": (rest + dense) / (rest + masked),
		"free": (rest + dense) / rest}}}, nil
}

// causalWindow is a window with the first block for each head, at 75 %, and the share of the
// causal blocks that it reads.
func causalWindow(n, block, heads int) (layouts []*support.Layout, read float64) {
	blocks := support.Blocks(n, block)
	l := support.New(n, block, true, func(r int) []int32 {
		return support.Top(near(r, blocks)[:r+1], support.Budget(.75, r, blocks, true), r, 0)
	})
	for range heads {
		layouts = append(layouts, l)
	}
	return layouts, 1 - l.Sparsity(true)
}

// layerRows has a line for each layer of a language model.
func layerRows(records []record) (rows []record) {
	names, of := grouped(partOf(records, "blocks"), "layer")
	for _, name := range names {
		r := record{Text: map[string]string{"layer": name}, Values: map[string]float64{}}
		for value := range of[name][0].Values {
			r.Values[value] = meanOf(valuesOf(of[name], value))
		}
		speed := estimate.OfRatios(valuesOf(of[name], "speed"))
		r.put("speed", speed.Mid)
		r.put("speed_lo", speed.Low)
		r.put("speed_hi", speed.High)
		for _, s := range slices.Concat(blockShapes(whole), blockShapes(quick)) {
			if s.name == name {
				s.printed(&r, speed)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// printed adds what the paper prints of the shape, and what its formula makes of it.
func (s *blockShape) printed(r *record, speed estimate.Estimate) {
	r.Values["bound"] = mostOf(s.amdahl).Mid
	r.Text["printed"] = fmt.Sprintf("%.2f", s.s)
	if s.nPrinted == 0 {
		return
	}
	r.Text["n_printed"] = fmt.Sprintf("%.0f", s.nPrinted)
	if s.batch == 0 {
		t := 3600 * s.hours / (1 - 1/s.s) / s.nPrinted
		r.Text["n_formula"] = fmt.Sprintf("no t is printed; N needs t = %.2f s", t)
		return
	}
	r.Text["n_formula"] = paysAfterOf(s.hours, s.batch, s.s)
	r.Text["n_here"] = fmt.Sprintf("%s (%s to %s)", paysAfterOf(s.hours, s.batch, speed.Mid),
		paysAfterOf(s.hours, s.batch, speed.High), paysAfterOf(s.hours, s.batch, speed.Low))
}

// paysAfterOf is N = T / ((1 - 1/S) t), with T in hours and t in seconds.
func paysAfterOf(hours, batch, speed float64) string {
	if !(speed > 1) {
		return "never"
	}
	return fmt.Sprintf("%.0f", math.Ceil(3600*hours/((1-1/speed)*batch)))
}

func layerVerdict(records []record) string {
	var b strings.Builder
	for _, r := range layerRows(records) {
		v := r.Values
		fmt.Fprintf(&b, "* %s, %.0f tokens: attention is %.1f %% of the time; a mask of 75 %% makes the layer %.3f "+
			"times as fast (%.3f to %.3f), attention without any cost %.3f; %s is printed.\n", r.Text["layer"],
			v["tokens"], v["share"], v["speed"], v["speed_lo"], v["speed_hi"], v["free"], r.Text["printed"])
	}
	b.WriteString("\n## FlashAttention, RetNet and LongNet, alone and with masks\n\n" + layerFormsText + "\n\n")
	rows := layerFormRows(partOf(records, "forms"))
	b.WriteString(layerFormColumns.Markdown(pointers(rows)))
	b.WriteString("\nRows of GPUs are not measured: no GPU was at hand.")
	return b.String()
}
