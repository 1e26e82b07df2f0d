package main

import (
	"math/rand/v2"

	"entropipe/benchmarks/rig"
	"entropipe/benchmarks/truth/estimate"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

const layerFormsText = "The paper prints for ViT-Small FlashAttention 1.63 times as fast as dense attention, 2.07 " +
	"with its masks; RetNet 1.20, 1.89 with its masks; LongNet 1.15. Here: a whole layer of the shape with drawn " +
	"weights, one thread, forms in turns, medians of paired turns, geometric means over seeds with Student's " +
	"intervals. Plain has the scores of a head in memory. Tiled is this program's kernel. RetNet is retention in " +
	"chunks of 64 or, as its parallel form, by blocks; it is causal and has no softmax, so a model must be trained " +
	"with it. LongNet is dilated attention: heads read every block or every second one of a segment, half of the " +
	"blocks in all. Masks read a quarter of the blocks, by lot for each head and seed; on top of RetNet's parallel " +
	"form they leave blocks out of its sum, on top of LongNet they keep half of its blocks. A recurrence in chunks " +
	"has no blocks to leave out. Where a form has masks, the gain is relative to the form without. A phrase of SST-2 " +
	"is shorter than two blocks, so its mask lists single keys."

var layerFormColumns = rig.Table[*record]{
	text("layer", "layer"), text("form", "form"), value("layer, ms", "ms", "%.2f"),
	value("attention, % of the time", "share", "%.1f"), ratioOf("times as fast as the first form (95 %)", "speed"),
	ratioOf("gain by masks (95 %)", "gain"), text("printed", "printed"),
}

// Forms of attention in a layer. A form with masks stands behind the form that it is compared with.
const (
	layerPlain      = "plain, all scores in memory"
	layerTiled      = "tiled"
	layerTiledMasks = "tiled, masks"
	layerChunks     = "RetNet in chunks"
	layerBlocks     = "RetNet, parallel form"
	layerBlockMasks = "RetNet, parallel form, masks"
	layerLong       = "LongNet"
	layerLongMasks  = "LongNet, masks"
	layerPadded     = "tiled, padded to 128 tokens"
)

// formLayer is a layer that is timed with several forms of attention, on a batch of
// sequences. A block of 1 stands for masks of single keys.
type formLayer struct {
	latencyLayer
	sequences int
}

func formLayers(how effort) []formLayer {
	if how == quick {
		return []formLayer{{latencyLayer{"ViT-S/16", "", 32, 2, 64, 70, 16, 2, 1}, 1},
			{latencyLayer{"MiniLM", "", 32, 2, 64, 12, 1, 2, 1}, 2}}
	}
	return []formLayer{
		{latencyLayer{"ViT-S/16", "", 384, 6, 1536, 197, 16, 24, 2}, 1},
		{latencyLayer{"ViT-B/16", "", 768, 12, 3072, 197, 16, 12, 1}, 1},
		{latencyLayer{"MiniLM", "", 384, 12, 1536, 25, 1, 24, 1}, 16},
		{latencyLayer{"MiniLM", "", 384, 12, 1536, 256, 16, 24, 1}, 1},
		{latencyLayer{"MiniLM", "", 384, 12, 1536, 512, 16, 16, 1}, 1},
	}
}

// layerForm is a form; without names the form that its masks are compared with.
type layerForm struct {
	name, printed, without string
	attend                 func(jobs []kern.Job, workers int)
	tokens                 int // of a sequence, 0 for those of the layer
}

// list returns the forms of a layer; the first is the one that speeds are relative to.
func (l *formLayer) list(seed uint64) []layerForm {
	dim := l.hidden / l.heads
	tiled := func(layouts []*support.Layout) func([]kern.Job, int) {
		scratch := new(kern.Scratch)
		return func(jobs []kern.Job, workers int) {
			for i := range jobs {
				jobs[i].Layouts = layouts
			}
			scratch.Attend(jobs, workers)
		}
	}
	if l.block == 1 {
		return []layerForm{{name: layerTiled, attend: tiled(nil)},
			{name: layerTiledMasks, without: layerTiled, attend: tiled(l.keyMasks(seed))},
			{name: layerPadded, attend: tiled(nil), tokens: longestPhrase}}
	}
	if l.name == "MiniLM" {
		return []layerForm{{name: layerTiled, attend: tiled(nil)},
			{name: layerTiledMasks, without: layerTiled, attend: tiled(l.lotMasks(false, seed))}}
	}
	scale := scaleOf(dim)
	chunks := newRetention(l.heads, dim, 64, scale)
	plain := new(plainAttention)
	each := func(attend func(*kern.Job)) func([]kern.Job, int) {
		return func(jobs []kern.Job, _ int) {
			for i := range jobs {
				attend(&jobs[i])
			}
		}
	}
	long, longMasks := l.dilated(seed)
	return []layerForm{
		{name: layerPlain, printed: "1.00",
			attend: each(func(j *kern.Job) { plain.attend(j, j.Q.Rows, nil) })},
		{name: layerTiled, printed: "1.63", attend: tiled(nil)},
		{name: layerTiledMasks, printed: "2.07", without: layerTiled, attend: tiled(l.lotMasks(false, seed))},
		{name: layerChunks, printed: "1.20", attend: each(chunks.attend)},
		{name: layerBlocks, attend: each(newBlockRetention(l.heads, dim, l.block, l.tokens, scale, nil).attend)},
		{name: layerBlockMasks, printed: "1.89", without: layerBlocks,
			attend: each(newBlockRetention(l.heads, dim, l.block, l.tokens, scale, l.lotMasks(true, seed)).attend)},
		{name: layerLong, printed: "1.15", attend: tiled(long)},
		{name: layerLongMasks, without: layerLong, attend: tiled(longMasks)},
	}
}

// lotMasks reads a quarter of the blocks: the row's own, the first, and others by lot.
func (l *formLayer) lotMasks(causal bool, seed uint64) (heads []*support.Layout) {
	blocks := support.Blocks(l.tokens, l.block)
	for h := range l.heads {
		draw := rand.New(rand.NewPCG(seed, uint64(h)))
		heads = append(heads, support.New(l.tokens, l.block, causal, func(r int) []int32 {
			score := lots(draw, blocks)
			if causal {
				score = score[:r+1]
			}
			return support.Top(score, support.Budget(.75, r, blocks, causal), r, 0)
		}))
	}
	return heads
}

// keyMasks reads a quarter of the keys, by lot.
func (l *formLayer) keyMasks(seed uint64) (heads []*support.Layout) {
	budget := support.Budget(.75, 0, l.tokens, false)
	for h := range l.heads {
		draw := rand.New(rand.NewPCG(seed, uint64(h)))
		heads = append(heads, keyLayout(l.tokens, budget, func(score []float64, _ int) {
			copy(score, lots(draw, len(score)))
		}))
	}
	return heads
}

// dilated is LongNet's mask with half of the blocks, and the same with half of its own blocks, by
// lot.
func (l *formLayer) dilated(seed uint64) (long, masked []*support.Layout) {
	blocks := support.Blocks(l.tokens, l.block)
	half, quarter := support.Budget(.5, 0, blocks, false), support.Budget(.75, 0, blocks, false)
	half = min(half, blocks/2) // so that every second block of a segment fits
	for h := range l.heads {
		whole := drawDilated(l.tokens, l.block, half, h)
		draw := rand.New(rand.NewPCG(seed, uint64(h)))
		long = append(long, whole)
		masked = append(masked, support.New(l.tokens, l.block, false, func(r int) []int32 {
			listed, _ := whole.Row(r)
			score := make([]float64, blocks)
			for _, c := range listed {
				score[c] = 1 + draw.Float64()
			}
			return support.Top(score, min(quarter, len(listed)))
		}))
	}
	return long, masked
}

// forms times the forms of a layer in turns.
func (l *formLayer) forms(lab *layerLab, seed uint64) (records []record, err error) {
	m, err := lab.load(string(l.config()))
	if err != nil {
		return nil, err
	}
	draw := rand.New(rand.NewPCG(seed, 22))
	forms := l.list(seed)
	var entries []func()
	within := make([][]float64, len(forms)) // by form: attention's share of each run
	for k, f := range forms {
		n := max(f.tokens, l.tokens)
		batch := model.Batch{Starts: []int32{0}}
		for range l.sequences {
			for range n {
				batch.IDs = append(batch.IDs, int32(draw.IntN(1024)))
			}
			batch.Starts = append(batch.Starts, int32(len(batch.IDs)))
		}
		session := m.NewSession(1)
		inner := 0.0
		o := model.Options{Attend: func(jobs []kern.Job, workers int) {
			inner += onceTimed(func() { f.attend(jobs, workers) })
		}}
		entries = append(entries, func() {
			inner = 0
			all := onceTimed(func() {
				if _, e := session.Hidden(batch, o); e != nil {
					err = e
				}
			})
			within[k] = append(within[k], inner/all)
		})
	}
	ms := inTurns(l.rounds, l.repeats, entries...)
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for k, f := range forms {
		at[f.name] = k
		r := record{Text: map[string]string{"part": "forms", "layer": l.name, "form": f.name, "printed": f.printed},
			Values: map[string]float64{"seed": float64(seed), "tokens": float64(l.tokens), "ms": middle(ms[k]),
				"share": 100 * middle(within[k]), "speed": middle(quotients(ms[0], ms[k]))}}
		if f.without != "" {
			r.put("gain", middle(quotients(ms[at[f.without]], ms[k])))
		}
		records = append(records, r)
	}
	return records, nil
}

// layerFormRows has a line for each layer and form.
func layerFormRows(records []record) (rows []record) {
	layers, of := grouped(records, "layer")
	for _, layer := range layers {
		for _, tokens := range distinct(of[layer], "tokens") {
			forms, by := grouped(withValue(of[layer], "tokens", tokens), "form")
			for _, form := range forms {
				some := by[form]
				r := record{Text: map[string]string{"layer": layerName(layer, tokens), "form": form,
					"printed": some[0].Text["printed"]}, Values: map[string]float64{"ms": meanOf(valuesOf(some, "ms")),
					"share": meanOf(valuesOf(some, "share"))}}
				for _, name := range []string{"speed", "gain"} {
					if _, ok := some[0].Values[name]; ok {
						e := estimate.OfRatios(valuesOf(some, name))
						r.put(name, e.Mid)
						r.put(name+"_lo", e.Low)
						r.put(name+"_hi", e.High)
					}
				}
				rows = append(rows, r)
			}
		}
	}
	return rows
}
