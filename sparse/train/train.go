// Package train makes the small transformers whose masks are frozen here: a
// causal language model of the GPT-2 class and an image classifier of the ViT
// class, trained by hand-written gradients over the matrix kernels of package
// mat, and written as directories that Hugging Face's transformers opens.
//
// It is not a framework: the two networks are one stack of blocks (layer norm,
// attention, residual, layer norm, GELU layers, residual) with two kinds of
// input and two kinds of loss, and what regularises attention is one of the
// four of Regulariser.
//
// Words: a sequence is a window of a text or the patches of an image, all
// sequences of one training having n tokens; a chunk is some sequences that
// one goroutine takes through the network, forward and backward; a step is a
// batch of sequences and one update by AdamW.
//
// Training is a function of data, configuration, binary and class of CPU: the
// bits of a model do not depend on the number of workers, nor on whether
// training was interrupted and resumed. For that every step draws its random
// numbers from seed and step, and what is summed over a batch is summed in the
// order of its chunks. Only a training that is bounded by minutes instead of
// steps depends on the machine's speed.
package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"entropipe/models/mat"
)

// Trainer is a training under way. One goroutine uses it; it starts others.
type Trainer struct {
	cfg  Config
	net  *network
	data source

	m, v    []float32 // moments of the gradients
	step    int
	elapsed time.Duration // of all steps, those before a resumption included
	records []Record

	anchors *anchors // entropy and paper; else nil
	gates   *gates   // L1 and Window; else nil

	parts  []*part // gradients of a batch, in the order of their chunks
	passes chan *pass
}

// source is what a training learns from: a text or images.
type source interface {
	// batch fills the input and the targets of the pass for sequences first,
	// first+1, … of a step, by the random numbers of seed, step and sequence.
	batch(p *pass, seed uint64, step, first int)
	// held fills those of sequence i of the pass with a held-out sequence.
	held(p *pass, i, number int)
	// heldOut returns the number of held-out sequences.
	heldOut() int
}

// Record is one line of a training's history.
type Record struct {
	Step        int      `json:"step"`        // steps taken
	Loss        float64  `json:"loss"`        // of the batch, nats a target
	Regulariser float64  `json:"regulariser"` // its value, not weighted
	Lambda      float64  `json:"lambda"`      // its weight in this step
	Rate        float64  `json:"rate"`
	Norm        float64  `json:"gradient_norm"` // before clipping
	Held        *Quality `json:"held_out,omitempty"`
}

// Quality is what held-out sequences say. Loss is in nats a target: a token of
// a text, an image. Accuracy is the share of targets that the largest logit
// names.
type Quality struct {
	Loss     float64 `json:"loss"`
	Accuracy float64 `json:"accuracy"`
	Targets  int     `json:"targets"`
}

// Perplexity is e^Loss.
func (q Quality) Perplexity() float64 { return math.Exp(q.Loss) }

// begin makes a trainer for a network of this form.
func begin(cfg Config, form form, data source) *Trainer {
	r := rand.New(rand.NewPCG(cfg.Seed, 0))
	t := &Trainer{cfg: cfg, net: newNetwork(form, r), data: data}
	t.m, t.v = make([]float32, len(t.net.params)), make([]float32, len(t.net.params))
	switch cfg.Regulariser {
	case Entropy, Paper:
		t.anchors = newAnchors(&form)
	case L1, Window:
		t.gates = newGates(&form, cfg.Block, cfg.Regulariser == Window)
	}
	t.passes = make(chan *pass, cfg.Workers)
	for range cfg.Workers {
		t.passes <- newPass(t.net, chunkOf(&form, cfg.Batch))
	}
	chunks := (cfg.Batch + chunkOf(&form, cfg.Batch) - 1) / chunkOf(&form, cfg.Batch)
	for range min(chunks, maxParts) {
		t.parts = append(t.parts, t.newPart())
	}
	return t
}

// maxParts bounds the number of separate sums of gradients. It does not depend
// on the number of workers, because the sums' bits depend on it.
const maxParts = 8

// chunkRows is the number of tokens that a chunk has at least, when the batch
// has them: enough for products to run at their speed.
const chunkRows = 256

// chunkOf is the number of sequences of a chunk.
func chunkOf(f *form, batch int) int { return min(batch, max(1, chunkRows/f.n)) }

// part is the gradient of some chunks.
type part struct {
	grads         []float32
	view          weights // of grads
	gates         []float32
	anchors       []float32
	loss, penalty float64
}

func (t *Trainer) newPart() *part {
	g := make([]float32, len(t.net.params))
	p := &part{grads: g, view: t.net.form.view(g)}
	if t.gates != nil {
		p.gates = make([]float32, len(t.gates.theta))
	}
	if t.anchors != nil {
		p.anchors = make([]float32, len(t.anchors.c))
	}
	return p
}

// Config returns the configuration with its defaults filled in.
func (t *Trainer) Config() Config { return t.cfg }

// Steps returns the number of steps taken.
func (t *Trainer) Steps() int { return t.step }

// Parameters returns the number of learned values.
func (t *Trainer) Parameters() int { return len(t.net.params) }

// Records returns the history so far.
func (t *Trainer) Records() []Record { return t.records }

// Tokens returns the tokens that a step takes through the network.
func (t *Trainer) Tokens() int { return t.cfg.Batch * t.net.form.n }

// Multiplications returns those of a step's products, forward and backward,
// regularisers left out: half of its floating-point operations.
func (t *Trainer) Multiplications() float64 {
	return float64(t.Tokens()) * t.net.form.multiplications()
}

// Elapsed returns how long all steps have taken.
func (t *Trainer) Elapsed() time.Duration { return t.elapsed }

// Progress returns the share of the training that is done, 0 to 1.
func (t *Trainer) Progress() float64 {
	if t.cfg.Steps > 0 {
		return min(1, float64(t.step)/float64(t.cfg.Steps))
	}
	return min(1, t.elapsed.Seconds()/t.cfg.Time.Seconds())
}

// Done tells whether training has ended.
func (t *Trainer) Done() bool { return t.Progress() >= 1 }

// recordEvery is how many steps go by between two records.
const recordEvery = 10

// Step takes one step, and looks at held-out sequences where that is due. The
// error is that of a training that has diverged.
func (t *Trainer) Step() error {
	start := time.Now()
	p := t.plan()
	t.regulariserBegins(p)
	t.net.pack(t.cfg.Workers)
	t.gradients(p)
	rec := t.sum(p)
	if math.IsNaN(rec.Loss+rec.Norm) || math.IsInf(rec.Loss+rec.Norm, 0) {
		return fmt.Errorf("training has diverged at step %d: loss %v, gradient %v", t.step, rec.Loss, rec.Norm)
	}
	t.update(p, rec.Norm)
	t.step++
	t.elapsed += time.Since(start)
	rec.Step = t.step
	if t.step%t.cfg.Every == 0 || t.Done() {
		q := t.Judge(t.cfg.Judged)
		rec.Held = &q
	}
	if rec.Held != nil || t.step%recordEvery == 0 || t.step == 1 {
		t.records = append(t.records, rec)
	}
	return nil
}

// gradients takes the batch through the network, every part by one goroutine.
func (t *Trainer) gradients(pl plan) {
	size := chunkOf(&t.net.form, t.cfg.Batch)
	chunks := (t.cfg.Batch + size - 1) / size
	mat.Tiles(len(t.parts), 1, t.cfg.Workers, func(i, _ int) {
		g := t.parts[i]
		clear(g.grads)
		clear(g.gates)
		clear(g.anchors)
		g.loss, g.penalty = 0, 0
		p := <-t.passes
		defer func() { t.passes <- p }()
		for c := i * chunks / len(t.parts); c < (i+1)*chunks/len(t.parts); c++ {
			p.begin(min(size, t.cfg.Batch-c*size))
			t.data.batch(p, t.cfg.Seed, t.step, c*size)
			t.chunk(p, g, pl)
		}
	})
}

// chunk adds the gradients of a chunk to a part.
func (t *Trainer) chunk(p *pass, g *part, pl plan) {
	p.forward(t.gates)
	g.loss += p.loss(&g.view, t.cfg.Batch)
	r := regulariser{kind: t.cfg.Regulariser, lambda: pl.lambda, mu: pl.mu, alpha: pl.alpha,
		share: 1 / float64(t.cfg.Batch*t.net.form.layers*t.net.form.heads), anchors: t.anchors, gates: t.gates, to: g}
	g.penalty += p.backward(&g.view, &r)
}

// sum adds the parts, in their order, into the first one.
func (t *Trainer) sum(p plan) Record {
	rec := Record{Lambda: p.lambda, Rate: p.rate}
	for _, g := range t.parts {
		rec.Loss += g.loss
		rec.Regulariser += g.penalty
	}
	first := t.parts[0]
	const tile = 1 << 14
	squares := make([]float64, (len(first.grads)+tile-1)/tile)
	mat.Tiles(len(first.grads), tile, t.cfg.Workers, func(lo, hi int) {
		to := first.grads[lo:hi]
		for _, g := range t.parts[1:] {
			for i, v := range g.grads[lo:hi] {
				to[i] += v
			}
		}
		sum := 0.0
		for _, v := range to {
			sum += float64(v) * float64(v)
		}
		squares[lo/tile] = sum
	})
	for _, g := range t.parts[1:] {
		add(first.gates, g.gates)
		add(first.anchors, g.anchors)
	}
	norm := 0.0
	for _, s := range squares {
		norm += s
	}
	rec.Norm = math.Sqrt(norm)
	if t.gates != nil {
		rec.Regulariser += t.gates.penalty(first.gates, p)
	}
	return rec
}

func add(to, from []float32) {
	for i, v := range from {
		to[i] += v
	}
}

// update moves all that is learned. Matrices decay towards zero; vectors, which
// come after them, do not.
func (t *Trainer) update(p plan, norm float64) {
	scale := float32(min(1, gradientNorm/max(norm, 1e-30)))
	o := mat.AdamW{Rate: p.rate, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, Decay: weightDecay}
	still := o
	still.Decay = 0
	split := t.net.form.matrices()
	const tile = 1 << 15
	mat.Tiles(len(t.net.params), tile, t.cfg.Workers, func(lo, hi int) {
		mid := min(max(split, lo), hi)
		g := t.parts[0].grads
		o.Update(t.net.params[lo:mid], g[lo:mid], t.m[lo:mid], t.v[lo:mid], t.step+1, scale)
		still.Update(t.net.params[mid:hi], g[mid:hi], t.m[mid:hi], t.v[mid:hi], t.step+1, scale)
	})
	switch {
	case t.gates != nil:
		t.gates.update(t.parts[0].gates, t.step, p)
	case t.cfg.Regulariser == Paper && p.lambda > 0:
		t.anchors.update(t.parts[0].anchors, p.rate, t.step)
	}
}

// regulariserBegins places anchors in a step that needs them, and closes gates
// for good when their time has come.
func (t *Trainer) regulariserBegins(p plan) {
	if t.gates != nil && p.hard && !t.gates.hard {
		t.gates.close(t.cfg.Sparsity)
	}
	if t.anchors == nil || p.lambda == 0 || t.anchors.placed && (t.cfg.Regulariser == Paper || t.step%anchorEvery != 0) {
		return
	}
	t.net.pack(t.cfg.Workers)
	s := <-t.passes
	defer func() { t.passes <- s }()
	s.begin(min(s.most, t.cfg.Batch))
	t.data.batch(s, t.cfg.Seed, t.step, 0)
	s.forward(nil)
	t.anchors.follow(s, rand.New(rand.NewPCG(t.cfg.Seed, uint64(t.step)|1<<63)))
}

// Judge looks at up to most held-out sequences, evenly spread; 0: all of them.
func (t *Trainer) Judge(most int) Quality { return t.quality(t.Each(most)) }

func (t *Trainer) quality(losses []float64, right []int) Quality {
	q := Quality{Targets: len(losses) * t.net.form.targets()}
	hits := 0
	for i, l := range losses {
		q.Loss += l / float64(len(losses))
		hits += right[i]
	}
	q.Accuracy = float64(hits) / float64(max(1, q.Targets))
	return q
}

// Each returns the mean loss of each of up to most held-out sequences (0: all),
// nats a target, and the number of its targets that the largest logit names.
func (t *Trainer) Each(most int) (losses []float64, right []int) {
	n := t.data.heldOut()
	if most <= 0 || most > n {
		most = n
	}
	losses, right = make([]float64, most), make([]int, most)
	t.net.pack(t.cfg.Workers)
	size := chunkOf(&t.net.form, t.cfg.Batch)
	mat.Tiles(most, size, t.cfg.Workers, func(lo, hi int) {
		p := <-t.passes
		defer func() { t.passes <- p }()
		p.begin(hi - lo)
		for i := lo; i < hi; i++ {
			t.data.held(p, i-lo, i*n/most)
		}
		p.forward(t.gates)
		p.judge(losses[lo:hi], right[lo:hi])
	})
	return losses, right
}
