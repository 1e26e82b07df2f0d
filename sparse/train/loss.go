package train

import (
	"math"

	"entropipe/models/mat"
)

// outputs computes the logits of every token of a text, or of the class token of
// every image.
func (p *pass) outputs() mat.Matrix {
	f, w := &p.net.form, &p.net.w
	from, normed := p.of(f.dim, p.final), p.of(f.dim, p.normed)
	var bias []float32
	cols := f.vocab
	if !f.causal() {
		from, normed, cols, bias = p.classRows(), mat.Of(p.seqs, f.dim, p.normed), f.classes, w.headB
	}
	mat.LayerNorm(normed, from, w.gamma, w.beta, f.eps)
	logits := mat.Of(from.Rows, cols, p.logits)
	p.net.last.out.Mul(logits, normed, mat.Epilogue{Bias: bias}, 1)
	return logits
}

// classRows copies the class tokens' rows of the final output.
func (p *pass) classRows() mat.Matrix {
	f := &p.net.form
	for s := range p.seqs {
		copy(p.hidden[s*f.dim:(s+1)*f.dim], p.final[s*f.n*f.dim:])
	}
	return mat.Of(p.seqs, f.dim, p.hidden)
}

// target returns the number of the target of row i of the logits, or NoTarget.
func (p *pass) target(i int) int32 {
	if p.net.form.causal() {
		return p.next[i]
	}
	return p.labels[i]
}

// loss returns the chunk's share of the mean cross entropy of a batch of batch
// sequences, in nats. The share smoothing of a target goes to all columns alike. loss
// sets dx to the gradient of the final output and adds the gradients of the last norm
// and of the layer of the logits to w.
func (p *pass) loss(w *weights, batch int, smoothing float64) float64 {
	f := &p.net.form
	logits := p.outputs()
	mat.Softmax(logits, 1)
	share := 1 / float64(batch*f.targets())
	sum := 0.0
	for i := range logits.Rows {
		row, at := logits.Row(i), p.target(i)
		if at == NoTarget {
			clear(row)
			continue
		}
		sum -= (1 - smoothing) * logarithm(row[at])
		if smoothing > 0 {
			each := smoothing / float64(len(row))
			for j, v := range row {
				sum -= each * logarithm(v)
				row[j] -= float32(each)
			}
		}
		row[at] -= float32(1 - smoothing)
		for j := range row {
			row[j] *= float32(share)
		}
	}
	p.lossBackward(w, logits)
	return sum * share
}

// logarithm is that of a probability; one that is rounded to 0 counts as the least
// number that is not.
func logarithm(p float32) float64 { return math.Log(max(float64(p), math.SmallestNonzeroFloat32)) }

// lossBackward computes the gradient of the final output from the gradient d of
// the logits.
func (p *pass) lossBackward(w *weights, d mat.Matrix) {
	f, n := &p.net.form, p.net
	clear(p.dx[:p.rows*f.dim])
	da := mat.Of(d.Rows, f.dim, p.da)
	n.last.in.Mul(da, d, mat.Epilogue{}, 1)
	normed := mat.Of(d.Rows, f.dim, p.normed)
	if f.causal() {
		mat.AddTMul(w.tokens, d, normed, 1)
		mat.LayerNormBackward(p.of(f.dim, p.dx), da, p.of(f.dim, p.final), n.w.gamma, w.gamma, w.beta, f.eps)
		return
	}
	mat.AddTMul(w.head, normed, d, 1)
	p.columnSums(w.headB, d)
	rows := mat.Matrix{Rows: p.seqs, Cols: f.dim, Stride: f.n * f.dim, Data: p.dx}
	mat.LayerNormBackward(rows, da, mat.Of(p.seqs, f.dim, p.hidden), n.w.gamma, w.gamma, w.beta, f.eps)
}

// judge sets, for every sequence, its mean loss in nats a target and the number of
// its targets that have the largest logit.
func (p *pass) judge(losses []float64, right []int) {
	f := &p.net.form
	logits, per := p.outputs(), f.outputs()
	for s := range p.seqs {
		losses[s], right[s] = 0, 0
		for i := s * per; i < (s+1)*per; i++ {
			if p.target(i) == NoTarget {
				continue
			}
			l, best := CrossEntropy(logits.Row(i), p.target(i))
			losses[s] += l / float64(f.targets())
			if best == p.target(i) {
				right[s]++
			}
		}
	}
}

// CrossEntropy returns -ln softmax(logits)[target], in nats, and the number of the
// largest logit; among equal logits, the first. It panics if target is no index of
// logits. Cost: one exponential for each logit.
func CrossEntropy(logits []float32, target int32) (loss float64, best int32) {
	for j, v := range logits {
		if v > logits[best] {
			best = int32(j)
		}
	}
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v - logits[best]))
	}
	return math.Log(sum) - float64(logits[target]-logits[best]), best
}
