package train

import (
	"math"

	"entropipe/models/mat"
)

// reference is the network in float64, without any rearrangement: one sequence
// after the other, every weight of attention by itself.
type reference struct {
	f      form
	params []float64
	theta  []float64
	c      []float64
	alpha  []float64
	cfg    *Config
	batch  *pass // input and targets
	places map[string]spot
}

// cut returns the tensors of params in their order, as the program cuts them.
func (r *reference) cut() (m map[string][][]float64, v map[string][]float64) {
	m, v = map[string][][]float64{}, map[string][]float64{}
	if r.places == nil {
		r.places = tensorsOf(&r.f)
	}
	for name, t := range r.places {
		for i := range t.rows {
			row := r.params[t.at+i*t.cols : t.at+(i+1)*t.cols]
			m[name] = append(m[name], row)
			v[name] = row
		}
	}
	return m, v
}

// spot is where a tensor stands among all.
type spot struct{ at, rows, cols int }

// tensorsOf finds where every tensor stands by the addresses of its view.
func tensorsOf(f *form) map[string]spot {
	data := make([]float32, f.size())
	for i := range data {
		data[i] = float32(i)
	}
	w := f.view(data)
	out := map[string]spot{}
	matrix := func(name string, m mat.Matrix) {
		if m.Rows > 0 {
			out[name] = spot{int(m.Data[0]), m.Rows, m.Cols}
		}
	}
	vector := func(name string, v []float32) {
		if len(v) > 0 {
			out[name] = spot{int(v[0]), 1, len(v)}
		}
	}
	matrix("tokens", w.tokens)
	matrix("patches", w.patches)
	matrix("positions", w.positions)
	matrix("head", w.head)
	vector("patchB", w.patchB)
	vector("class", w.class)
	vector("gamma", w.gamma)
	vector("beta", w.beta)
	vector("headB", w.headB)
	for l := range w.blocks {
		b, n := &w.blocks[l], string(rune('0'+l))
		matrix(n+"qkv", b.qkv)
		matrix(n+"proj", b.proj)
		matrix(n+"up", b.up)
		matrix(n+"down", b.down)
		vector(n+"qkvB", b.qkvB)
		vector(n+"projB", b.projB)
		vector(n+"upB", b.upB)
		vector(n+"downB", b.downB)
		vector(n+"gamma1", b.gamma1)
		vector(n+"beta1", b.beta1)
		vector(n+"gamma2", b.gamma2)
		vector(n+"beta2", b.beta2)
	}
	return out
}

func affine(x, bias []float64, w [][]float64) []float64 {
	y := append([]float64(nil), bias...)
	for i, row := range w {
		for j, v := range row {
			y[j] += x[i] * v
		}
	}
	return y
}

func (r *reference) norm(x, gamma, beta []float64) []float64 {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v-mean)/math.Sqrt(square+float64(r.f.eps))*gamma[i] + beta[i]
	}
	return y
}

func (r *reference) act(x float64) float64 {
	if r.f.causal() {
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}
	return x * 0.5 * math.Erfc(-x/math.Sqrt2)
}

// sequence returns the loss of one sequence, a mean over its targets, and the
// value of the regulariser, a mean over layers and heads. x are the rows that
// the first block reads.
func (r *reference) sequence(x [][]float64, targets []int32, lambda, mu float64) (loss, penalty float64) {
	m, v := r.cut()
	for l := range r.f.layers {
		n := string(rune('0' + l))
		qkv := make([][]float64, len(x))
		for i := range x {
			qkv[i] = affine(r.norm(x[i], v[n+"gamma1"], v[n+"beta1"]), v[n+"qkvB"], m[n+"qkv"])
		}
		o := make([][]float64, len(x))
		for i := range o {
			o[i] = make([]float64, r.f.dim)
		}
		for h := range r.f.heads {
			penalty += r.head(qkv, o, l, h, lambda, mu) / float64(r.f.layers*r.f.heads)
		}
		for i := range x {
			for j, y := range affine(o[i], v[n+"projB"], m[n+"proj"]) {
				x[i][j] += y
			}
			up := affine(r.norm(x[i], v[n+"gamma2"], v[n+"beta2"]), v[n+"upB"], m[n+"up"])
			for j := range up {
				up[j] = r.act(up[j])
			}
			for j, y := range affine(up, v[n+"downB"], m[n+"down"]) {
				x[i][j] += y
			}
		}
	}
	asked := 0
	for _, target := range targets {
		if target != NoTarget {
			asked++
		}
	}
	for i, target := range targets {
		if target == NoTarget {
			continue
		}
		y := r.norm(x[i], v["gamma"], v["beta"])
		var logits []float64
		if r.f.causal() {
			for _, row := range m["tokens"] {
				s := 0.0
				for j := range row {
					s += row[j] * y[j]
				}
				logits = append(logits, s)
			}
		} else {
			logits = affine(y, v["headB"], m["head"])
		}
		sum := 0.0
		for _, z := range logits {
			sum += math.Exp(z)
		}
		loss += (math.Log(sum) - logits[target]) / float64(asked)
	}
	return loss, penalty
}

func (r *reference) head(qkv, o [][]float64, l, h int, lambda, mu float64) float64 {
	c, n := r.f.headDim(), len(qkv)
	part := func(i, k int) []float64 { return qkv[i][k*r.f.dim+h*c : k*r.f.dim+(h+1)*c] }
	w := make([][]float64, n)
	for t := range n {
		w[t] = make([]float64, n)
		sum := 0.0
		for j := range n {
			if r.f.causal() && j > t {
				break
			}
			s := 0.0
			for x, q := range part(t, 0) {
				s += q * part(j, 1)[x] / math.Sqrt(float64(c))
			}
			w[t][j] = math.Exp(s) * r.gate(l, h, t, j)
			sum += w[t][j]
		}
		for j := range n {
			w[t][j] /= sum
			for x, value := range part(j, 2) {
				o[t][h*c+x] += w[t][j] * value
			}
		}
	}
	if r.c == nil || lambda == 0 {
		return 0
	}
	return r.clusters(w, func(j int) []float64 { return part(j, 1) }, l, h, lambda, mu)
}

func (r *reference) gate(l, h, t, j int) float64 {
	if r.theta == nil {
		return 1
	}
	rows := (r.f.n + r.cfg.Block - 1) / r.cfg.Block
	u, b := t/r.cfg.Block, j/r.cfg.Block
	if u == b {
		return 1
	}
	return logistic(r.theta[((l*r.f.heads+h)*rows+u)*rows+b])
}

func (r *reference) clusters(w [][]float64, key func(int) []float64, l, h int, lambda, mu float64) float64 {
	n, c := len(w), r.f.headDim()
	k := len(r.c) / (r.f.layers * r.f.heads * c)
	lh := l*r.f.heads + h
	p, s := make([][]float64, n), make([]float64, k)
	for j := range n {
		p[j] = make([]float64, k)
		sum := 0.0
		for i := range k {
			d := 0.0
			for x, v := range key(j) {
				y := v - r.c[(lh*k+i)*c+x]
				d += y * y
			}
			p[j][i] = math.Exp(-r.alpha[lh] * d)
			sum += p[j][i]
		}
		for i := range k {
			p[j][i] /= sum
			s[i] += p[j][i] / float64(n)
		}
	}
	balance := 0.0
	for _, v := range s {
		balance -= v * math.Log(v)
	}
	if r.cfg.Regulariser == Paper {
		return balance
	}
	mean := 0.0
	for t := range n {
		for i := range k {
			a := 0.0
			for j := range n {
				a += w[t][j] * p[j][i]
			}
			mean -= a * math.Log(a) / float64(n)
		}
	}
	return mean - mu/lambda*balance
}
