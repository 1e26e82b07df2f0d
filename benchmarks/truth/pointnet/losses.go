package pointnet

import "math"

// CrossEntropy returns the mean of -log p(class) over clouds, for outputs
// [clouds][classes] as logits, sets d to its gradient, and counts the clouds whose
// greatest output is their class.
func CrossEntropy(d, out []float32, class []int) (loss float64, right int) {
	k := len(out) / len(class)
	for c, want := range class {
		row, g := out[c*k:][:k], d[c*k:][:k]
		top := 0
		for j, v := range row {
			if v > row[top] {
				top = j
			}
		}
		if top == want {
			right++
		}
		sum := 0.0
		for _, v := range row {
			sum += math.Exp(float64(v - row[top]))
		}
		share := 1 / float64(len(class))
		loss += share * (math.Log(sum) - float64(row[want]-row[top]))
		for j, v := range row {
			p := math.Exp(float64(v-row[top])) / sum
			if j == want {
				p--
			}
			g[j] = float32(share * p)
		}
	}
	return loss, right
}

// Matcher finds nearest points of two clouds. The zero value is ready; it keeps its
// memory, and is not safe for concurrent use.
type Matcher struct {
	// Of each made point the squared distance to the nearest point of the truth, and of
	// each point of the truth that to the nearest made point.
	Made, Truth []float32
	to, from    []int32
}

// Match fills Made and Truth for clouds [n][3]. Cost: every pair.
func (m *Matcher) Match(made, truth []float32) {
	p, q := len(made)/Dims, len(truth)/Dims
	m.Made, m.to = grown(m.Made, p), grown(m.to, p)
	m.Truth, m.from = grown(m.Truth, q), grown(m.from, q)
	for j := range m.Truth {
		m.Truth[j] = math.MaxFloat32
	}
	for i := range p {
		x, y, z := made[Dims*i], made[Dims*i+1], made[Dims*i+2]
		least, to := float32(math.MaxFloat32), int32(0)
		for j := range m.Truth {
			t := truth[Dims*j:][:Dims:Dims]
			dx, dy, dz := x-t[0], y-t[1], z-t[2]
			d := dx*dx + dy*dy + dz*dz
			if d < least {
				least, to = d, int32(j)
			}
			if d < m.Truth[j] {
				m.Truth[j], m.from[j] = d, int32(i)
			}
		}
		m.Made[i], m.to[i] = least, to
	}
}

// Chamfer matches the clouds and returns the Chamfer distance: the mean over made points of the
// squared distance to the nearest point of the truth, plus that over points of the truth
// to the nearest made point. Unless d is nil, it sets d to weight times the gradient by
// the made points.
func (m *Matcher) Chamfer(d, made, truth []float32, weight float64) float64 {
	m.Match(made, truth)
	p, q := float64(len(m.Made)), float64(len(m.Truth))
	loss := 0.0
	for _, v := range m.Made {
		loss += float64(v) / p
	}
	for _, v := range m.Truth {
		loss += float64(v) / q
	}
	if d == nil {
		return loss
	}
	clear(d)
	pull := func(i, j int32, share float64) {
		for k := range int32(Dims) {
			d[Dims*i+k] += float32(2 * weight / share * float64(made[Dims*i+k]-truth[Dims*j+k]))
		}
	}
	for i, j := range m.to {
		pull(int32(i), j, p)
	}
	for j, i := range m.from {
		pull(i, int32(j), q)
	}
	return loss
}

// F1 returns the harmonic mean of the share of made points within a distance of the
// truth and the share of points of the truth within it of a made point, after Match.
func (m *Matcher) F1(within float64) float64 {
	near := func(squares []float32) float64 {
		count := 0.0
		for _, v := range squares {
			if float64(v) <= within*within {
				count++
			}
		}
		return count / float64(len(squares))
	}
	precision, recall := near(m.Made), near(m.Truth)
	if precision+recall == 0 {
		return 0
	}
	return 2 * precision * recall / (precision + recall)
}
