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
	globalBack(s.dPeak, s.dRow, n.weights[3])
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

// globalBack sets dPeak to the gradient of the global feature, for gradients dRow of the head's
// outputs. Outputs are added in their order, four in one pass; net.Head is a multiple of four.
func globalBack(dPeak, dRow, weights []float32) {
	const g = net.Global
	clear(dPeak)
	for j := 0; j < len(dRow); j += 4 {
		rows := weights[j*2*g : (j+4)*2*g]
		w0, w1, w2, w3 := rows[g:2*g], rows[3*g:4*g], rows[5*g:6*g], rows[7*g:8*g]
		d0, d1, d2, d3 := dRow[j], dRow[j+1], dRow[j+2], dRow[j+3]
		for k, v := range dPeak[:g] {
			v += float32(d0 * w0[k])
			v += float32(d1 * w1[k])
			v += float32(d2 * w2[k])
			v += float32(d3 * w3[k])
			dPeak[k] = v
		}
	}
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

// sumTile is the number of weights whose gradients are summed at once: they stay in the
// first-level cache while the clouds' parts go by.
const sumTile = 1 << 12

// sumParts adds the clouds' parts of the weights' gradients, in their order.
func (n *network) sumParts() {
	for l := range 3 {
		mat.Tiles(len(n.gWeights[l]), sumTile, n.workers, func(lo, hi int) {
			to := n.gWeights[l][lo:hi]
			clear(to)
			for b := range n.ends {
				add(to, n.pool[b].parts[l][lo:hi])
			}
		})
	}
	mat.Tiles(net.Head, sumTile/(2*net.Global), n.workers, n.sumHead)
	clear(n.gLast)
	clear(n.gBias)
	keep := float32(1 - n.dropout)
	for b := range n.ends {
		for i, v := range n.pool[b].gLast {
			n.gLast[i] += v / keep
		}
		add(n.gBias, n.pool[b].gBias)
	}
}

// sumHead adds the clouds' parts for outputs lo to hi-1 of the head, on its local and its
// global features.
func (n *network) sumHead(lo, hi int) {
	const g = net.Global
	for j := lo; j < hi; j++ {
		row := n.gWeights[3][j*2*g : (j+1)*2*g]
		clear(row)
		for b := range n.ends {
			s := &n.pool[b]
			add(row[:g], s.parts[3][j*g:(j+1)*g])
			d, global := s.dRow[j], row[g:]
			for k, v := range s.peak[:g] {
				global[k] += float32(d * v)
			}
		}
	}
}

// add adds from to to.
func add(to, from []float32) {
	to = to[:len(from)]
	for i, v := range from {
		to[i] += v
	}
}
