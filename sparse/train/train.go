// Package train trains two small transformers whose masks the project freezes: a
// causal language model of the GPT-2 class and an image classifier of the ViT
// class. The gradients are written by hand over the matrix kernels of package
// mat, and models are saved as directories that Hugging Face's transformers opens.
//
// It is not a framework: both networks are one stack of blocks (layer norm,
// attention, residual, layer norm, GELU layers, residual) with two kinds of
// input and two kinds of loss. Regulariser lists the regularisers of attention.
//
// Words: a sequence is a window of a text or the patches of an image, and all
// sequences of one training have n tokens; a chunk is a run of sequences that one
// goroutine takes through the network, forward and backward; a part is a separate
// sum of the gradients of several chunks; a step is a batch of sequences and one
// update by AdamW.
//
// Training is a function of data, configuration, binary and class of CPU: the
// bits of a model do not depend on the number of workers, nor on whether
// training was interrupted and resumed. To that end every step draws its random
// numbers from seed and step, and sums over a batch are taken in the order of the
// chunks. Only a training bounded by Config.Time depends on the machine's speed.
package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"entropipe/models/mat"
)

// Trainer is a training in progress. It serves one goroutine at a time; a step
// starts Config.Workers goroutines of its own. NewLM and NewViT make one.
type Trainer struct {
	cfg  Config
	net  *network
	data source

	m, v    []float32 // moments of the gradients
	step    int
	elapsed time.Duration // time of all steps, including steps before a resumption
	records []Record

	anchors *anchors  // nil unless the regulariser is Entropy or Paper
	gates   *gates    // nil unless the regulariser is L1 or Window
	kept    []float32 // of the blocks' matrices: 1 for weights, 0 for pruned ones; nil unless weights are pruned

	parts  []*part // gradients of a batch, in the order of their chunks
	passes chan *pass
}

// source is the training data: a text or images.
type source interface {
	// batch fills the input and the targets of the pass for sequences first,
	// first+1, … of a step, by the random numbers of seed, step and sequence.
	batch(p *pass, seed uint64, step, first int)
	// held fills input and targets of sequence i of the pass with the held-out
	// sequence of a number.
	held(p *pass, i, number int)
	// heldOut returns the number of held-out sequences.
	heldOut() int
}

// Record is one line of a training's history.
type Record struct {
	Step        int      `json:"step"`        // steps taken
	Loss        float64  `json:"loss"`        // mean loss of the batch, in nats a target
	Regulariser float64  `json:"regulariser"` // the regulariser's value, not weighted
	Lambda      float64  `json:"lambda"`      // the regulariser's weight in this step
	Rate        float64  `json:"rate"`
	Norm        float64  `json:"gradient_norm"` // before clipping
	Held        *Quality `json:"held_out,omitempty"`
}

// Quality measures a model on held-out sequences. Loss is the mean cross entropy
// in nats a target, which is a token of a text or an image. Accuracy is the share
// of targets that have the largest logit. Targets is their number.
type Quality struct {
	Loss     float64 `json:"loss"`
	Accuracy float64 `json:"accuracy"`
	Targets  int     `json:"targets"`
}

// Perplexity returns e^Loss.
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
		t.gates = newGates(&form, cfg.Block, cfg.Regulariser)
	}
	if cfg.Pruned > 0 {
		t.kept = t.allKept()
	}
	t.passes = make(chan *pass, cfg.Workers)
	for range cfg.Workers {
		p := newPass(t.net, chunkOf(&form, cfg.Batch))
		if cfg.Adversarial > 0 {
			p.adversary = newAdversary(&form)
		}
		t.passes <- p
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

// chunkRows is the target number of tokens of a chunk: enough for products to run
// at full speed.
const chunkRows = 256

// chunkOf returns the number of sequences of a chunk: chunkRows/n, at least 1 and
// at most batch.
func chunkOf(f *form, batch int) int { return min(batch, max(1, chunkRows/f.n)) }

// part is the sum of the gradients of several chunks.
type part struct {
	grads         []float32
	view          weights // views of grads
	gates         []float32
	anchors       []float32
	loss, penalty float64
}

func (t *Trainer) newPart() *part {
	grads := make([]float32, len(t.net.params))
	p := &part{grads: grads, view: t.net.form.view(grads)}
	if t.gates != nil {
		p.gates = make([]float32, len(t.gates.theta))
	}
	if t.anchors != nil {
		p.anchors = make([]float32, len(t.anchors.c))
	}
	return p
}

// Config returns the configuration, with defaults in place of zero values.
func (t *Trainer) Config() Config { return t.cfg }

// Steps returns the number of steps taken.
func (t *Trainer) Steps() int { return t.step }

// Parameters returns the number of learned values.
func (t *Trainer) Parameters() int { return len(t.net.params) }

// Records returns the history so far: a record of step 1, of every tenth step, and
// of each step with a judgement. The slice belongs to the Trainer.
func (t *Trainer) Records() []Record { return t.records }

// Tokens returns the number of tokens of a step: Batch·n.
func (t *Trainer) Tokens() int { return t.cfg.Batch * t.net.form.n }

// Multiplications returns the number of multiplications in the matrix products of
// a step, forward and backward, without the regulariser: half of the step's
// floating-point operations.
func (t *Trainer) Multiplications() float64 {
	return float64(t.Tokens()) * t.net.form.multiplications()
}

// Elapsed returns the time of all steps, including steps before a resumption,
// without the time of judgements.
func (t *Trainer) Elapsed() time.Duration { return t.elapsed }

// Progress returns the share of the training that is done, 0 to 1: of Steps, or of
// Time if Steps is 0.
func (t *Trainer) Progress() float64 {
	if t.cfg.Steps > 0 {
		return min(1, float64(t.step)/float64(t.cfg.Steps))
	}
	return min(1, t.elapsed.Seconds()/t.cfg.Time.Seconds())
}

// Done reports whether Progress is 1.
func (t *Trainer) Done() bool { return t.Progress() >= 1 }

// recordEvery is the number of steps between two records.
const recordEvery = 10

// Step takes one step, and judges held-out sequences after every Config.Every
// steps and after the last step. It returns an error if the training has diverged:
// the loss or the gradient is not finite. The weights then stay as they were.
func (t *Trainer) Step() error {
	start := time.Now()
	plan := t.plan()
	t.prepareRegulariser(plan)
	t.net.pack(t.cfg.Workers)
	t.gradients(plan)
	rec := t.sum(plan)
	if math.IsNaN(rec.Loss+rec.Norm) || math.IsInf(rec.Loss+rec.Norm, 0) {
		return fmt.Errorf("training has diverged at step %d: loss %v, gradient %v", t.step, rec.Loss, rec.Norm)
	}
	t.update(plan, rec.Norm)
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

// gradients takes the batch through the network; one goroutine computes each part.
func (t *Trainer) gradients(now plan) {
	size := chunkOf(&t.net.form, t.cfg.Batch)
	chunks := (t.cfg.Batch + size - 1) / size
	mat.Tiles(len(t.parts), 1, t.cfg.Workers, func(i, _ int) {
		to := t.parts[i]
		clear(to.grads)
		clear(to.gates)
		clear(to.anchors)
		to.loss, to.penalty = 0, 0
		p := <-t.passes
		defer func() { t.passes <- p }()
		for c := i * chunks / len(t.parts); c < (i+1)*chunks/len(t.parts); c++ {
			p.begin(min(size, t.cfg.Batch-c*size))
			t.data.batch(p, t.cfg.Seed, t.step, c*size)
			if p.adversary != nil {
				p.adversary.move(p, t, c*size)
			}
			t.chunk(p, to, now)
		}
	})
}

// chunk adds the gradients of a chunk to a part.
func (t *Trainer) chunk(p *pass, to *part, now plan) {
	p.forward(t.gates)
	to.loss += p.loss(&to.view, t.cfg.Batch, t.cfg.Smoothing)
	r := regulariser{
		kind: t.cfg.Regulariser, lambda: now.lambda, mu: now.mu, alpha: now.alpha,
		share:   1 / float64(t.cfg.Batch*t.net.form.layers*t.net.form.heads),
		anchors: t.anchors, gates: t.gates, to: to,
	}
	to.penalty += p.backward(&to.view, &r)
}

// sum adds the parts, in their order, into the first one, and returns the step's
// record without its number.
func (t *Trainer) sum(now plan) Record {
	rec := Record{Lambda: now.lambda, Rate: now.rate}
	for _, part := range t.parts {
		rec.Loss += part.loss
		rec.Regulariser += part.penalty
	}
	first := t.parts[0]
	const tile = 1 << 14
	squares := make([]float64, (len(first.grads)+tile-1)/tile)
	mat.Tiles(len(first.grads), tile, t.cfg.Workers, func(lo, hi int) {
		to := first.grads[lo:hi]
		for _, part := range t.parts[1:] {
			for i, v := range part.grads[lo:hi] {
				to[i] += v
			}
		}
		sum := 0.0
		for _, v := range to {
			sum += float64(v) * float64(v)
		}
		squares[lo/tile] = sum
	})
	for _, part := range t.parts[1:] {
		add(first.gates, part.gates)
		add(first.anchors, part.anchors)
	}
	norm := 0.0
	for _, s := range squares {
		norm += s
	}
	rec.Norm = math.Sqrt(norm)
	if t.gates != nil {
		rec.Regulariser += t.gates.penalty(first.gates, now)
	}
	return rec
}

func add(to, from []float32) {
	for i, v := range from {
		to[i] += v
	}
}

// update moves all learned values by AdamW. Matrices decay towards zero; vectors,
// which follow the matrices in params, do not.
func (t *Trainer) update(now plan, norm float64) {
	scale := float32(min(1, gradientNorm/max(norm, 1e-30)))
	decaying := mat.AdamW{Rate: now.rate, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, Decay: weightDecay}
	still := decaying
	still.Decay = 0
	split := t.net.form.matrices()
	const tile = 1 << 15
	mat.Tiles(len(t.net.params), tile, t.cfg.Workers, func(lo, hi int) {
		mid := min(max(split, lo), hi)
		g := t.parts[0].grads
		decaying.Update(t.net.params[lo:mid], g[lo:mid], t.m[lo:mid], t.v[lo:mid], t.step+1, scale)
		still.Update(t.net.params[mid:hi], g[mid:hi], t.m[mid:hi], t.v[mid:hi], t.step+1, scale)
	})
	t.dropPruned()
	switch {
	case t.gates != nil:
		t.gates.update(t.parts[0].gates, t.step, now)
	case t.cfg.Regulariser == Paper && now.lambda > 0:
		t.anchors.update(t.parts[0].anchors, now.rate, t.step)
	}
}

// prepareRegulariser closes gates and prunes weights for good when the plan says so, and places or
// moves the anchors in the steps that require it.
func (t *Trainer) prepareRegulariser(now plan) {
	if t.gates != nil && now.hard && !t.gates.hard {
		t.gates.close(t.cfg.Sparsity)
	}
	if now.prune {
		t.prune()
	}
	if t.anchors == nil || now.lambda == 0 {
		return
	}
	if t.anchors.placed && (t.cfg.Regulariser == Paper || t.step%anchorEvery != 0) {
		return
	}
	t.net.pack(t.cfg.Workers)
	p := <-t.passes
	defer func() { t.passes <- p }()
	p.begin(min(p.most, t.cfg.Batch))
	t.data.batch(p, t.cfg.Seed, t.step, 0)
	p.forward(nil)
	t.anchors.follow(p, rand.New(rand.NewPCG(t.cfg.Seed, uint64(t.step)|1<<63)))
}

// Judge measures the model on up to most held-out sequences, one of each of most
// equal runs, always the same; if most is 0, on all of them. Cost: a forward pass of
// each.
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

// spread returns the i-th of most numbers below n, a random one of its run of n/most. The
// first of each run would not do: where classes alternate, it is of few classes.
func spread(i, most, n int) int {
	from, to := i*n/most, (i+1)*n/most
	return from + rand.New(rand.NewPCG(uint64(i), uint64(n))).IntN(to-from)
}

// Each returns, for each of up to most held-out sequences (if most is 0, for all),
// the mean loss in nats a target, and the number of targets that have the largest
// logit.
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
			t.data.held(p, i-lo, spread(i, most, n))
		}
		p.forward(t.gates)
		p.judge(losses[lo:hi], right[lo:hi])
	})
	return losses, right
}
