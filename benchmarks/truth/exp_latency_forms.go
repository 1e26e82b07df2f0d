package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/support"
)

const latencyFormsText = "12 heads, one thread, in turns. Plain: for every head q·kᵀ by a matrix product, softmax " +
	"of whole rows, and a product with the values (package mat); the scores of all queries in memory at once, as " +
	"the paper's dense baseline has them, or of 48 queries at a time, which stay in the second cache. Tiled: the " +
	"kernel of the first table, online softmax over chunks of keys, which is what FlashAttention is on a CPU (Dao " +
	"et al. 2022). Retention in chunks of 64 (RetNet, Sun et al. 2023) is causal and **another function**: it has " +
	"no softmax, and a model has to be trained with it; only its time is compared. Memory is what a first call " +
	"allocates beyond input and output. What the paper prints is for a whole ViT-Small on a GPU, with 2.4 GB of " +
	"memory dense, 1.8 with FlashAttention, 1.7 with its masks."

var latencyFormColumns = rig.Table[*record]{
	value("keys", "keys", "%.0f"), value("of a head", "dim", "%.0f"), text("form", "form"),
	ratioOf("times as fast as plain (95 %)", "speed"), value("memory, MB", "memory", "%.2f"),
	text("printed", "printed"),
}

// plainAttention is attention with scores in memory, one head after the other.
type plainAttention struct {
	keys, values mat.Weights
	scores       []float32
}

// plainTile is how many rows of scores stay in the second cache.
const plainTile = 48

// forbidden is a score that leaves no weight.
const forbidden = -1e30

// attend computes a job without causality, some rows at a time. keep, unless it
// is nil, lists the keys that a query of a head reads.
func (p *plainAttention) attend(j *kern.Job, rows int, keep func(head, query int) []int32) {
	n := j.K.Rows
	if len(p.scores) < min(rows, j.Q.Rows)*n {
		p.scores = make([]float32, min(rows, j.Q.Rows)*n)
	}
	for h := range j.Heads {
		lo, hi := h*j.Dim, (h+1)*j.Dim
		p.keys.PackT(j.K.Columns(lo, hi))
		p.values.Pack(j.V.Columns(lo, hi))
		for at := 0; at < j.Q.Rows; at += rows {
			end := min(at+rows, j.Q.Rows)
			s := mat.Of(end-at, n, p.scores)
			p.keys.Mul(s, j.Q.Columns(lo, hi).Slice(at, end), mat.Epilogue{}, 1)
			for i := 0; keep != nil && i < s.Rows; i++ {
				keepOnly(s.Row(i), keep(h, at+i))
			}
			mat.Softmax(s, j.Scale)
			p.values.Mul(j.Out.Columns(lo, hi).Slice(at, end), s, mat.Epilogue{}, 1)
		}
	}
}

// keepOnly forbids the scores that are not listed; it changes the list's order.
func keepOnly(scores []float32, list []int32) {
	slices.Sort(list)
	for j := range scores {
		if len(list) > 0 && int(list[0]) == j {
			list = list[1:]
			continue
		}
		scores[j] = forbidden
	}
}

// retention is RetNet's attention in chunks: out_t = scale·Σ γ^(t-j) (q_t·k_j) v_j
// over j ≤ t, without the norm behind it. Within a chunk that is two products;
// what lies before is in a state of Dim×Dim numbers.
type retention struct {
	chunk                 int
	keys, values, packed  mat.Weights
	scores, later, state  []float32
	inside, from, to, all [][]float32 // by head: decays [chunk][chunk], [chunk][Dim] twice, [Dim][Dim]
}

// newRetention returns one for jobs of a number of heads; head h forgets by
// γ = 1-2^-(5+h) a step, as in RetNet, but no more slowly than 1-2^-16.
func newRetention(heads, dim, chunk int, scale float32) *retention {
	r := &retention{chunk: chunk, scores: make([]float32, chunk*chunk), later: make([]float32, chunk*dim),
		state: make([]float32, dim*dim)}
	for h := range heads {
		gamma := retentionDecay(h)
		inside, from, to, all := make([]float32, chunk*chunk), make([]float32, chunk*dim), make([]float32, chunk*dim),
			make([]float32, dim*dim)
		for i := range chunk {
			for j := range i + 1 {
				inside[i*chunk+j] = scale * float32(math.Pow(gamma, float64(i-j)))
			}
			for c := range dim {
				from[i*dim+c] = scale * float32(math.Pow(gamma, float64(i+1)))
				to[i*dim+c] = float32(math.Pow(gamma, float64(chunk-1-i)))
			}
		}
		for c := range all {
			all[c] = float32(math.Pow(gamma, float64(chunk)))
		}
		r.inside, r.from, r.to, r.all = append(r.inside, inside), append(r.from, from),
			append(r.to, to), append(r.all, all)
	}
	return r
}

func retentionDecay(head int) float64 { return 1 - math.Exp2(-float64(min(5+head, 16))) }

// attend computes a job, whose Causal is taken to be true.
func (r *retention) attend(j *kern.Job) {
	for h := range j.Heads {
		clear(r.state)
		for at := 0; at < j.Q.Rows; at += r.chunk {
			r.step(j, h, at, min(at+r.chunk, j.Q.Rows))
		}
	}
}

// step takes rows at to end-1 of a head.
func (r *retention) step(j *kern.Job, h, at, end int) {
	n, dim := end-at, j.Dim
	part := func(m mat.Matrix) mat.Matrix { return m.Columns(h*dim, (h+1)*dim).Slice(at, end) }
	q, k, v, out := part(j.Q), part(j.K), part(j.V), part(j.Out)
	state := mat.Of(dim, dim, r.state)
	r.packed.Pack(state)
	r.packed.Mul(out, q, mat.Epilogue{Times: mat.Of(n, dim, r.from[h])}, 1)
	r.keys.PackT(k)
	scores := mat.Of(n, n, r.scores)
	r.keys.Mul(scores, q, mat.Epilogue{Times: mat.Of(r.chunk, r.chunk, r.inside[h]).Slice(0, n).Columns(0, n)}, 1)
	r.values.Pack(v)
	r.values.Mul(out, scores, mat.Epilogue{Add: true}, 1)
	if n < r.chunk {
		return // the last chunk has nothing behind it
	}
	later := mat.Of(n, dim, r.later)
	for i := range n {
		mat.Multiply(later.Row(i), k.Row(i), r.to[h][i*dim:(i+1)*dim])
	}
	mat.Multiply(r.state, r.state, r.all[h])
	mat.AddTMul(state, later, v, 1)
}

// latencyForm is a form of attention; start returns a run with memory of its own.
type latencyForm struct {
	name, printed string
	start         func() func()
}

const (
	formPlain     = "plain, all scores in memory"
	formRows      = "plain, 48 rows at a time"
	formTiled     = "tiled, dense"
	formCausal    = "tiled, dense, causal"
	formWindow    = "tiled, window at 75 %"
	formClusters  = "tiled, clusters at 75 %"
	formDilated   = "tiled, dilated at 75 %"
	formRetention = "retention in chunks, causal"
)

func latencyFormList(s latencyShape) []latencyForm {
	job, block := newLatencyJob(s), 64
	for block > 16 && s.keys/block < 4 {
		block /= 2
	}
	blocks := support.Blocks(s.keys, block)
	kernel := func(change func(kern.Job) kern.Job) func() func() {
		jobs := []kern.Job{change(job)}
		return func() func() {
			scratch := new(kern.Scratch)
			return func() { scratch.Attend(jobs, 1) }
		}
	}
	masked := func(name string) func(kern.Job) kern.Job {
		m := latencyMaskList[slices.IndexFunc(latencyMaskList, func(m latencyMask) bool { return m.name == name })]
		return func(j kern.Job) kern.Job {
			return m.masked(j, block, support.Budget(.75, 0, blocks, false))
		}
	}
	plain := func(rows int) func() func() {
		return func() func() {
			p := new(plainAttention)
			return func() { p.attend(&job, rows, nil) }
		}
	}
	return []latencyForm{
		{formPlain, "1.00", plain(s.keys)},
		{formRows, "", plain(plainTile)},
		{formTiled, "1.63 FlashAttention v2", kernel(func(j kern.Job) kern.Job { return j })},
		{formWindow, "2.07 FlashAttention v2 and its masks", kernel(masked(windowMask))},
		{formClusters, "2.07", kernel(masked(clustersMask))},
		{formDilated, "1.15 LongNet", kernel(masked(dilatedMask))},
		{formCausal, "", kernel(func(j kern.Job) kern.Job { j.Causal = true; return j })},
		{formRetention, "1.20 RetNet", func() func() {
			r := newRetention(s.heads, s.dim, 64, job.Scale)
			return func() { r.attend(&job) }
		}},
	}
}

// latencyForms times the forms of one shape, and what memory each takes.
func latencyForms(s latencyShape) (records []record, err error) {
	var entries []func()
	for _, f := range latencyFormList(s) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		run := f.start()
		run()
		runtime.ReadMemStats(&after)
		entries = append(entries, run)
		records = append(records, record{Text: map[string]string{"part": "forms", "form": f.name, "printed": f.printed},
			Values: map[string]float64{
				"keys": float64(s.keys), "dim": float64(s.dim),
				"memory": float64(after.TotalAlloc-before.TotalAlloc) / 1e6}})
	}
	ms := inTurns(s.rounds, s.repeats, entries...)
	for k := range records {
		records[k].putRatio("speed", quotients(ms[0], ms[k]))
		records[k].put("least", slices.Min(ms[0])/slices.Min(ms[k]))
	}
	return records, nil
}

func latencyFormsVerdict(records []record) string {
	if len(records) == 0 {
		return "No forms are timed yet."
	}
	longest := slices.Max(valuesOf(records, "keys"))
	mean := func(name string, keys float64, value string) float64 {
		var v []float64
		for _, r := range records {
			if r.Text["form"] == name && (keys == 0 || r.Values["keys"] == keys) {
				v = append(v, r.Values[value])
			}
		}
		return geometric(v)
	}
	var b strings.Builder
	for _, f := range []string{formRows, formTiled, formWindow, formClusters, formDilated, formRetention} {
		fmt.Fprintf(&b, "* %s: %.2f times as fast as plain on average, %.2f at %.0f keys.\n", f, mean(f, 0, "speed"),
			mean(f, longest, "speed"), longest)
	}
	var ahead []float64 // speed relative to the faster plain form, by shape
	for k, r := range records {
		if r.Text["form"] == formTiled {
			rows := records[k-1].Values["speed"]
			ahead = append(ahead, r.Values["speed"]/max(rows, 1))
		}
	}
	word := "so what tiling brings is mostly that scores stay in the caches"
	if geometric(ahead) > 1.1 {
		word = "so it is not only that scores stay in the caches"
	}
	fmt.Fprintf(&b, "\nTiled is %.2f times as fast as the faster plain form, %s; at %.0f keys it takes %.0f times "+
		"less memory than all scores. A mask is worth %.2f times on top of it at three quarters (window), where the "+
		"paper prints %.2f (2.07 for 1.63, of a whole model). Retention, which computes something else, is %.2f "+
		"times as fast as causal tiled attention at %.0f keys: its cost grows with their number, not with its square.",
		geometric(ahead), word, longest, mean(formPlain, longest, "memory")/mean(formTiled, longest, "memory"),
		mean(formWindow, 0, "speed")/mean(formTiled, 0, "speed"), 2.07/1.63,
		mean(formRetention, longest, "speed")/mean(formCausal, longest, "speed"), longest)
	return b.String()
}
