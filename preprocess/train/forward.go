package train

import (
	"math"

	"entropipe/models/mat"
	"entropipe/preprocess/net"
)

// forward computes out from x for the batch that reserve announced, with the
// statistics of the batch, and takes them into the running ones.
//
// The head's product with the local features does not wait for the global one,
// which adds the same to all rows of a cloud: it is added to the statistics
// and to the shift afterwards.
func (n *network) forward() {
	n.pack()
	for l := range 3 {
		n.eachCloud(func(b int, s *cloudScratch) {
			n.norms[l].startCloud(b)
			n.eachTile(b, func(lo, hi int) {
				z := rowsOf(n.z[l], n.width(l), lo, hi)
				n.packs[l].Mul(z, n.input(l, s, lo, hi), mat.Epilogue{}, 1)
				n.norms[l].addMoments(b, s, z)
			})
		})
		n.norms[l].settle(n.ends)
	}
	n.eachCloud(n.headOf)
	n.norms[3].settle(n.ends)
	n.eachCloud(n.outputsOf)
}

// input returns rows of the input of a layer: x, or the normalised layer below.
func (n *network) input(l int, s *cloudScratch, lo, hi int) mat.Matrix {
	if l == 0 {
		return rowsOf(n.x, n.dims, lo, hi)
	}
	h := mat.Of(hi-lo, n.width(l-1), s.tile[0])
	mat.AffineReLU(h, rowsOf(n.z[l-1], n.width(l-1), lo, hi), n.norms[l-1].scale, n.norms[l-1].shift)
	return h
}

// pack copies the weights into the order that products read them in.
func (n *network) pack() {
	for l := range 3 {
		n.packs[l].PackT(mat.Of(n.width(l), n.in(l), n.weights[l]))
	}
	n.packs[3].PackT(mat.Of(net.Head, 2*net.Global, n.weights[3]).Columns(0, net.Global))
	keep := float32(1 - n.dropout)
	for i, w := range n.last {
		n.lastS[i] = w / keep
	}
	n.final.PackT(mat.Of(n.dims, net.Head, n.lastS))
	for l := range n.norms {
		copy(n.norms[l].center, n.norms[l].mean)
	}
}

// headOf computes the head of cloud b before normalisation, without the part
// of the global feature, and that part by itself.
func (n *network) headOf(b int, s *cloudScratch) {
	p := &n.norms[3]
	p.startCloud(b)
	for i := range s.peak {
		s.peak[i], s.at[i] = float32(math.Inf(-1)), 0
	}
	n.eachTile(b, func(lo, hi int) {
		z, h := rowsOf(n.z[3], net.Head, lo, hi), n.input(3, s, lo, hi)
		mat.ColumnMax(s.peak, s.at, h, int32(lo))
		n.packs[3].Mul(z, h, mat.Epilogue{}, 1)
		p.addMoments(b, s, z)
	})
	rows := float64(n.ends[b] - n.begin(b))
	clear(s.offset)
	if rows > 0 {
		globalPart(s.offset, n.weights[3], s.peak)
	}
	for j := range s.offset {
		o := float64(s.offset[j])
		p.sums[b][1][j] += 2*o*p.sums[b][0][j] + rows*o*o
		p.sums[b][0][j] += rows * o
	}
}

// globalPart sets offset to the product of the head's weights with the global feature. Each sum
// is taken in the order of the features; four outputs at once do not wait for one another. net.Head
// is a multiple of four.
func globalPart(offset, weights, peak []float32) {
	const g = net.Global
	for j := 0; j < len(offset); j += 4 {
		rows := weights[j*2*g : (j+4)*2*g]
		w0, w1, w2, w3 := rows[g:2*g], rows[3*g:4*g], rows[5*g:6*g], rows[7*g:8*g]
		var s0, s1, s2, s3 float32
		for k, p := range peak[:g] {
			s0 += float32(w0[k] * p)
			s1 += float32(w1[k] * p)
			s2 += float32(w2[k] * p)
			s3 += float32(w3[k] * p)
		}
		offset[j], offset[j+1], offset[j+2], offset[j+3] = s0, s1, s2, s3
	}
}

// outputsOf computes the rows of out of cloud b.
func (n *network) outputsOf(b int, s *cloudScratch) {
	p := &n.norms[3]
	for j, o := range s.offset {
		s.shift[j] = p.shift[j] + float32(p.scale[j]*o)
		s.center[j] = p.batch[j] - o
	}
	n.eachTile(b, func(lo, hi int) {
		h := rowsOf(n.h, net.Head, lo, hi)
		mat.AffineReLU(h, rowsOf(n.z[3], net.Head, lo, hi), p.scale, s.shift)
		n.dropOut(h, lo)
		n.final.Mul(rowsOf(n.out, n.dims, lo, hi), h, mat.Epilogue{Bias: n.bias}, 1)
	})
}

func (p *norm) startCloud(b int) {
	clear(p.sums[b][0])
	clear(p.sums[b][1])
}

// addMoments adds the moments of a tile of cloud b.
func (p *norm) addMoments(b int, s *cloudScratch, z mat.Matrix) {
	sum, square := s.sum[0][:z.Cols], s.sum[1][:z.Cols]
	clear(sum)
	clear(square)
	mat.Moments(sum, square, z, p.center)
	for j := range sum {
		p.sums[b][0][j] += float64(sum[j])
		p.sums[b][1][j] += float64(square[j])
	}
}

// settle turns the clouds' sums into the statistics of the batch.
func (p *norm) settle(ends []int) {
	rows := float64(ends[len(ends)-1])
	for j := range p.batch {
		sum, square := 0.0, 0.0
		for b := range ends {
			sum += p.sums[b][0][j]
			square += p.sums[b][1][j]
		}
		off := sum / rows
		variance := max(0, square/rows-off*off)
		mean := float64(p.center[j]) + off
		inverse := 1 / math.Sqrt(variance+normEps)
		p.batch[j], p.inverse[j] = float32(mean), float32(inverse)
		p.scale[j] = float32(float64(p.gamma[j]) * inverse)
		p.shift[j] = float32(float64(p.beta[j]) - float64(p.gamma[j])*inverse*mean)
		p.mean[j] += float32(momentum * (mean - float64(p.mean[j])))
		if rows > 1 {
			p.vari[j] += float32(momentum * (variance*rows/(rows-1) - float64(p.vari[j])))
		}
	}
}

// dropOut clears each number with the network's probability. Which fall depends
// on n.state and the row alone.
func (n *network) dropOut(h mat.Matrix, first int) {
	threshold := uint64(n.dropout * 256)
	if threshold == 0 {
		return
	}
	var stay [net.Head / 64]uint64
	for i := range h.Rows {
		state := n.state ^ uint64(first+i+1)*0xd1342543de82ef95
		for k := range stay {
			stay[k] = ^below(&state, threshold)
		}
		mat.Keep(h.Row(i), stay[:])
	}
}

// below returns 64 bits, each set with probability threshold/256: it compares
// 64 random numbers of eight bits with the threshold at once, of whose bits one
// word each holds the first, the second, … the least significant first.
func below(state *uint64, threshold uint64) uint64 {
	var less uint64
	for bit := range 8 {
		r := next(state)
		if threshold>>bit&1 == 1 {
			less |= ^r
		} else {
			less &^= r
		}
	}
	return less
}

// next is SplitMix64 (Steele, Lea and Flood).
func next(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	z := *state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
