// Package train trains the models that move points: EntropyNet (package net) on the
// frames of a stream, with hand-written gradients over the matrix kernels of package
// mat.
//
// Training is offline; processing a stream never changes a model. A model is a
// function of data, configuration, binary and class of CPU: its bits depend neither
// on the number of workers nor on interruptions, after which Resume continues from a
// checkpoint. For that, every step draws its random numbers from seed and step, and
// sums over a batch are taken in the order of its clouds.
//
// A "step" is a forward and a backward pass over one batch of clouds and an update
// by AdamW. A "judgement" runs the network in its form for inference on held-out
// frames. It measures the entropy G of a legal partition of the moved cloud
// (entropy.Surrogate.Hard) and the exact error of the answer (net.Judge), or, in
// mode denoise, the F1 of the maxima. Judgements choose the model that is kept and
// end the training; the loss does neither.
package train

import (
	"fmt"
	"math"
	"math/rand/v2"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/models"
	"entropipe/models/mat"
	"entropipe/preprocess/net"
)

// Trainer is the state of one training. It is not safe for concurrent use; its
// methods start goroutines of their own (Config.Workers).
type Trainer struct {
	cfg  Config
	data *Data

	net        *network
	m, v       []float32 // moments of the network's gradients
	step       int
	directions [][3]float64
	objectives []objective
	frames     []int // frame of each cloud of the batch

	// Parameters that HDiff and HSoft learn with the network, and their moments.
	extra, gExtra, mExtra, vExtra []float32
	anchors                       [][3]float64
	halves                        []entropy.HalfSpace

	best    keep
	waited  int     // judgements since the last that gained
	bar     float64 // held-out loss of that one
	records []Record
}

// Record is one line of the training's history. Losses are means over the batch.
type Record struct {
	Step        int        `json:"step"` // steps taken
	Loss        float64    `json:"loss"`
	Task        float64    `json:"task"`
	Regulariser float64    `json:"regulariser"`
	Lambda      float64    `json:"lambda"`
	Tau         float64    `json:"tau"`
	Norm        float64    `json:"gradient_norm"` // before clipping
	Judged      *Judgement `json:"judged,omitempty"`
}

// New begins a training. New fails if the configuration is invalid or does not fit
// the data.
func New(cfg Config, data *Data) (*Trainer, error) {
	cfg, err := cfg.withDefaults(data)
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(cfg.Seed, 0))
	t := &Trainer{cfg: cfg, data: data, net: newNetwork(data.Dims, cfg.Workers, dropoutRate, r)}
	t.m, t.v = make([]float32, len(t.net.params)), make([]float32, len(t.net.params))
	t.directions = taskDirections(cfg.Ops)
	t.objectives, t.frames = make([]objective, cfg.Batch), make([]int, cfg.Batch)
	t.beginExtra(r)
	return t, nil
}

// Config returns the configuration with its defaults filled in.
func (t *Trainer) Config() Config { return t.cfg }

// Steps returns the number of steps taken.
func (t *Trainer) Steps() int { return t.step }

// Done reports whether training has ended: after Config.Steps steps, or after
// Config.Patience judgements without a better one. Judgements count against the
// patience after two fifths of the steps, when the regulariser has had its full
// weight for a while.
func (t *Trainer) Done() bool {
	return t.step >= t.cfg.Steps || t.waited >= t.cfg.Patience
}

// Records returns the history so far.
func (t *Trainer) Records() []Record { return t.records }

// recordEvery is the number of steps between two records.
const recordEvery = 10

// Step takes one step, and judges the network every Config.Every steps and after the
// last step. Step fails if the loss or the gradient is not finite: the training has
// diverged.
func (t *Trainer) Step() error {
	p := planOf(&t.cfg, t.step)
	t.batch()
	t.net.forward()
	t.losses(p)
	t.net.backward()
	rec := t.record(p)
	if rec.Norm = lengthOf(t.net.grads); math.IsNaN(rec.Norm+rec.Loss) || math.IsInf(rec.Norm+rec.Loss, 0) {
		return fmt.Errorf("training has diverged at step %d: loss %v, gradient %v", t.step, rec.Loss, rec.Norm)
	}
	t.update(p, rec.Norm)
	t.step++
	if rec.Step = t.step; t.step%t.cfg.Every == 0 || t.step == t.cfg.Steps {
		j, err := t.judge()
		if err != nil {
			return err
		}
		rec.Judged = &j
	}
	if rec.Judged != nil || t.step%recordEvery == 0 || t.step == 1 {
		t.records = append(t.records, rec)
	}
	return nil
}

// losses computes the losses of the batch and the gradient of their mean.
func (t *Trainer) losses(p plan) {
	t.net.eachCloud(func(b int, _ *cloudScratch) {
		lo, hi := t.net.begin(b)*t.data.Dims, t.net.ends[b]*t.data.Dims
		t.objectives[b].gradient(t, p, t.net.out[lo:hi], t.net.dOut[lo:hi], 1/float64(len(t.net.ends)))
	})
}

func lengthOf(g []float32) float64 {
	sum := 0.0
	for _, v := range g {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

// batch draws the clouds of this step, for the network and the objectives.
func (t *Trainer) batch() {
	ends := make([]int, t.cfg.Batch)
	rows := 0
	for b := range ends {
		t.frames[b] = t.random(b).IntN(len(t.data.Learn))
		rows += min(t.cfg.Points, t.data.Learn[t.frames[b]].Cloud.Len())
		ends[b] = rows
	}
	x, dims := t.net.reserve(ends), t.data.Dims
	state := t.cfg.Seed ^ uint64(t.step)<<32
	t.net.state = next(&state)
	t.net.eachCloud(func(b int, _ *cloudScratch) {
		o := &t.objectives[b]
		t.draw(o, &t.data.Learn[t.frames[b]], t.random(b))
		o.prepare(&t.cfg, dims)
		for d := range dims {
			for i, v := range axis(o.original, d) {
				x[(t.net.begin(b)+i)*dims+d] = v
			}
		}
	})
}

// random returns the source of random numbers for cloud b of this step.
func (t *Trainer) random(b int) *rand.Rand {
	return rand.New(rand.NewPCG(t.cfg.Seed, uint64(t.step+1)<<16+uint64(b)))
}

// draw samples points of a frame for the objective and normalises them.
func (t *Trainer) draw(o *objective, f *Frame, r *rand.Rand) {
	f.sample(&o.raw, t.cfg.Points, r)
	lo, hi := f.Lo, f.Hi
	if t.cfg.Mode == models.Denoise {
		t.cfg.Noise.Add(&o.noisy, o.raw, r)
		lo, hi = boxOf(o.noisy)
		normalised(&o.original, o.noisy, lo, hi)
	} else {
		normalised(&o.original, o.raw, lo, hi)
	}
	o.width = normalised(&o.clean, o.raw, lo, hi)
}

// record returns the record of this step, without norm and judgement.
func (t *Trainer) record(p plan) Record {
	rec := Record{Lambda: p.lambda, Tau: p.tau}
	for b := range t.net.ends {
		rec.Task += t.objectives[b].task / float64(len(t.net.ends))
		rec.Regulariser += t.objectives[b].regulariser / float64(len(t.net.ends))
	}
	rec.Loss = rec.Task + p.lambda*rec.Regulariser
	return rec
}

// update updates the network and the parameters of the regulariser.
func (t *Trainer) update(p plan, size float64) {
	scale := float32(min(1, gradientNorm/max(size, 1e-30)))
	o := mat.AdamW{Rate: p.rate, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: weightDecay}
	o.Update(t.net.params, t.net.grads, t.m, t.v, t.step+1, scale)
	if len(t.extra) == 0 || p.lambda == 0 {
		return
	}
	t.extraGradient(p.lambda / float64(len(t.net.ends)))
	o.Decay = 0 // an anchor near the origin is no simpler than another
	o.Update(t.extra, t.gExtra, t.mExtra, t.vExtra, t.step+1, 1)
	t.extraViews()
}

func tanh(dst, src []float32) { mat.Tanh(dst, src) }

// taskDirections are those along which the task holds the support: all around
// for hulls, the positive ones for maxima.
func taskDirections(ops []entropy.Problem) (u [][3]float64) {
	const k = 32
	golden := math.Pi * (3 - math.Sqrt(5))
	for _, op := range ops {
		for i := range k {
			t := (float64(i) + 0.5) / k
			switch op {
			case entropy.Hull2D:
				u = append(u, [3]float64{math.Cos(2 * math.Pi * t), math.Sin(2 * math.Pi * t)})
			case entropy.Maxima2D:
				u = append(u, [3]float64{math.Cos(math.Pi / 2 * t), math.Sin(math.Pi / 2 * t)})
			default:
				z := 1 - 2*t
				r := math.Sqrt(1 - z*z)
				d := [3]float64{r * math.Cos(golden*float64(i)), r * math.Sin(golden*float64(i)), z}
				if op == entropy.Maxima3D {
					d = [3]float64{math.Abs(d[0]), math.Abs(d[1]), math.Abs(d[2])}
				}
				u = append(u, d)
			}
		}
	}
	return u
}

// Model returns the model of the best judgement, or the current network before the
// first judgement. The model owns its memory.
func (t *Trainer) Model() *models.EntropyNet {
	if t.best.params != nil {
		return t.export(&t.best)
	}
	k := t.current()
	return t.export(&k)
}

// keep is the state of a network after one step.
type keep struct {
	params     []float32
	mean, vari [4][]float32
	step       int
	judgement  Judgement
}

// current returns a view of the network's current state.
func (t *Trainer) current() keep {
	k := keep{params: t.net.params, step: t.step}
	for l := range t.net.norms {
		k.mean[l], k.vari[l] = t.net.norms[l].mean, t.net.norms[l].vari
	}
	return k
}

func (k *keep) clone() keep {
	c := keep{params: append([]float32(nil), k.params...), step: k.step, judgement: k.judgement}
	for l := range k.mean {
		c.mean[l], c.vari[l] = append([]float32(nil), k.mean[l]...), append([]float32(nil), k.vari[l]...)
	}
	return c
}

// export returns the state as a model.
func (t *Trainer) export(k *keep) *models.EntropyNet {
	dims := t.data.Dims
	m := &models.EntropyNet{Tensors: map[string]models.Tensor{}, Meta: models.Meta{
		Mode: t.cfg.Mode, Dims: dims, Normalise: models.NormaliseBox, Sigma: t.cfg.Sigma,
		Regulariser: string(t.cfg.Regulariser),
		Tau:         planOf(&t.cfg, k.step-1).tau, Dataset: t.data.Dataset, Sensor: t.data.Sensor,
		DataSHA256: t.data.SHA256,
		Seed:       t.cfg.Seed, Steps: k.step}}
	for _, op := range t.cfg.Ops {
		m.Meta.Ops = append(m.Meta.Ops, op.String())
	}
	at := 0
	take := func(name string, shape ...int) {
		size := 1
		for _, s := range shape {
			size *= s
		}
		m.Tensors[name] = models.Tensor{Shape: shape, Data: append([]float32(nil), k.params[at:at+size]...)}
		at += size
	}
	for l := range 4 {
		name, in, out := fmt.Sprintf("local.%d", l), t.net.in(l), t.net.width(l)
		if l == 3 {
			name, in = "head.0", 2*net.Global
		}
		take(name+".weight", out, in)
		take(name+".bn.gamma", out)
		take(name+".bn.beta", out)
		// normalisation takes any bias away
		m.Tensors[name+".bias"] = models.Tensor{Shape: []int{out}, Data: make([]float32, out)}
		m.Tensors[name+".bn.mean"] = models.Tensor{Shape: []int{out}, Data: append([]float32(nil), k.mean[l]...)}
		m.Tensors[name+".bn.var"] = models.Tensor{Shape: []int{out}, Data: positive(k.vari[l])}
	}
	take("head.1.weight", dims, net.Head)
	take("head.1.bias", dims)
	return m
}

// positive returns a copy of variances in which 0, the variance of a feature that is
// never active, is replaced by the least value that the format allows.
func positive(v []float32) []float32 {
	out := append([]float32(nil), v...)
	for i := range out {
		out[i] = max(out[i], math.SmallestNonzeroFloat32)
	}
	return out
}

// firstFrame returns the first frame in normalised coordinates.
func (t *Trainer) firstFrame() geom.Cloud[float32] {
	var c geom.Cloud[float32]
	f := &t.data.Learn[0]
	normalised(&c, f.Cloud, f.Lo, f.Hi)
	return c
}
