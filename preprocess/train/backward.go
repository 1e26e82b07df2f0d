package train

import (
	"entropipe/models/mat"
	"entropipe/preprocess/net"
)

// backward computes grads from dOut, after forward. It leaves the gradients of
// the layers' inputs in dz, and none of x.
func (n *network) backward() {
	n.packBack()
	n.eachCloud(n.outputsBack)
	n.norms[3].settleBack(n.ends)
	n.eachCloud(n.headBack)
	n.norms[2].settleBack(n.ends)
	for l := 2; l >= 0; l-- {
		n.eachCloud(func(b int, s *cloudScratch) { n.localBack(l, b, s) })
		if l > 0 {
			n.norms[l-1].settleBack(n.ends)
		}
	}
	n.sumParts()
}

func (n *network) packBack() {
	for l := 1; l < 3; l++ {
		n.backs[l].Pack(mat.Of(n.width(l), n.in(l), n.weights[l]))
	}
	n.backs[3].Pack(mat.Of(net.Head, 2*net.Global, n.weights[3]).Columns(0, net.Global))
	n.left.Pack(mat.Of(n.dims, net.Head, n.lastS))
}

// outputsBack goes through the last layer of cloud b, dropout and ReLU. What
// dropout cleared is 0 after the ReLU, so its gradient is cleared with it.
func (n *network) outputsBack(b int, s *cloudScratch) {
	p := &n.norms[3]
	p.startBack(b)
	gLast := mat.Of(n.dims, net.Head, s.gLast)
	clear(s.gLast)
	clear(s.gBias)
	n.eachTile(b, func(lo, hi int) {
		dOut, h := rowsOf(n.dOut, n.dims, lo, hi), rowsOf(n.h, net.Head, lo, hi)
		d := rowsOf(n.dz[3], net.Head, lo, hi)
		mat.AddTMul(gLast, dOut, h, 1)
		for i := range dOut.Rows {
			for k, v := range dOut.Row(i) {
				s.gBias[k] += v
			}
		}
		n.left.Mul(d, dOut, mat.Epilogue{}, 1)
		p.addBack(b, s, d, h, rowsOf(n.z[3], net.Head, lo, hi), s.center)
	})
}

// headBack goes through the head of cloud b: to its weights, to the local
// features, and through the global feature to the rows where that stands.
func (n *network) headBack(b int, s *cloudScratch) {
	p, under := &n.norms[3], &n.norms[2]
	rows := float64(n.ends[b] - n.begin(b))
	for j := range s.dRow {
		// Σ(z-batch) of the cloud, whose z includes the global part.
		off := p.sums[b][0][j] + rows*(float64(p.center[j])-float64(p.batch[j]))
		s.dRow[j] = float32(float64(p.a[j])*p.back[b][0][j] + float64(p.b[j])*off + rows*float64(p.c[j]))
	}
	clear(s.dPeak)
	for j, d := range s.dRow {
		w := n.weights[3][j*2*net.Global+net.Global : (j+1)*2*net.Global]
		for k := range s.dPeak {
			s.dPeak[k] += float32(d * w[k])
		}
	}
	under.startBack(b)
	part := mat.Of(net.Head, net.Global, s.parts[3])
	clear(s.parts[3])
	n.eachTile(b, func(lo, hi int) {
		d := rowsOf(n.dz[3], net.Head, lo, hi)
		mat.NormBackward(d, rowsOf(n.z[3], net.Head, lo, hi), s.center, p.a, p.b, p.c)
		h := n.input(3, s, lo, hi)
		mat.AddTMul(part, d, h, 1)
		below := rowsOf(n.dz[2], net.Global, lo, hi)
		n.backs[3].Mul(below, d, mat.Epilogue{}, 1)
		for k, at := range s.at {
			if lo <= int(at) && int(at) < hi {
				below.Row(int(at) - lo)[k] += s.dPeak[k]
			}
		}
		under.addBack(b, s, below, h, rowsOf(n.z[2], net.Global, lo, hi), under.batch)
	})
}

// localBack goes through local layer l of cloud b.
func (n *network) localBack(l, b int, s *cloudScratch) {
	p := &n.norms[l]
	part := mat.Of(n.width(l), n.in(l), s.parts[l])
	clear(s.parts[l])
	if l > 0 {
		n.norms[l-1].startBack(b)
	}
	n.eachTile(b, func(lo, hi int) {
		d := rowsOf(n.dz[l], n.width(l), lo, hi)
		mat.NormBackward(d, rowsOf(n.z[l], n.width(l), lo, hi), p.batch, p.a, p.b, p.c)
		h := n.input(l, s, lo, hi)
		mat.AddTMul(part, d, h, 1)
		if l == 0 {
			return
		}
		below, z := rowsOf(n.dz[l-1], n.width(l-1), lo, hi), rowsOf(n.z[l-1], n.width(l-1), lo, hi)
		n.backs[l].Mul(below, d, mat.Epilogue{}, 1)
		n.norms[l-1].addBack(b, s, below, h, z, n.norms[l-1].batch)
	})
}

func (p *norm) startBack(b int) {
	clear(p.back[b][0])
	clear(p.back[b][1])
}

// addBack masks the gradients of a tile of cloud b and adds their sums.
func (p *norm) addBack(b int, s *cloudScratch, d, h, z mat.Matrix, center []float32) {
	sum, dot := s.sum[0][:d.Cols], s.sum[1][:d.Cols]
	clear(sum)
	clear(dot)
	mat.ReLUBackward(d, h, z, sum, dot, center)
	for j := range sum {
		p.back[b][0][j] += float64(sum[j])
		p.back[b][1][j] += float64(dot[j])
	}
}

// settleBack turns the clouds' sums into the gradients of gamma and beta and
// the factors of the input's gradient.
func (p *norm) settleBack(ends []int) {
	rows := float64(ends[len(ends)-1])
	for j := range p.gamma {
		sum, dot := 0.0, 0.0
		for b := range ends {
			sum += p.back[b][0][j]
			dot += p.back[b][1][j]
		}
		f, g := float64(p.inverse[j]), float64(p.gamma[j])
		p.gBeta[j], p.gGamma[j] = float32(sum), float32(dot*f)
		p.a[j] = float32(g * f)
		p.b[j] = float32(-g * f * f * f * dot / rows)
		p.c[j] = float32(-g * f * sum / rows)
	}
}

// sumParts adds the clouds' parts of the weights' gradients, in their order.
func (n *network) sumParts() {
	for l := range n.gWeights {
		clear(n.gWeights[l])
	}
	clear(n.gLast)
	clear(n.gBias)
	keep := float32(1 - n.dropout)
	for b := range n.ends {
		s := &n.pool[b]
		for l := range 3 {
			for i, v := range s.parts[l] {
				n.gWeights[l][i] += v
			}
		}
		for j, d := range s.dRow {
			row := n.gWeights[3][j*2*net.Global : (j+1)*2*net.Global]
			for k, v := range s.parts[3][j*net.Global : (j+1)*net.Global] {
				row[k] += v
				row[net.Global+k] += float32(d * s.peak[k])
			}
		}
		for i, v := range s.gLast {
			n.gLast[i] += v / keep
		}
		for i, v := range s.gBias {
			n.gBias[i] += v
		}
	}
}
