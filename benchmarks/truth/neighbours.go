package main

import (
	"cmp"
	"math"
	"slices"

	"entropipe/algos/geom"
)

// neighbours are the nearest points of each point of a cloud.
type neighbours struct {
	near  [][]int32   // ascending by distance, the point itself left out
	apart [][]float64 // their distances
}

// nearest finds the k nearest neighbours of every point, among all of them.
func nearest(c geom.Cloud[float32], k int) neighbours {
	n := c.Len()
	k = min(k, n-1)
	out := neighbours{make([][]int32, n), make([][]float64, n)}
	at := make([]int32, 0, k+1)
	far := make([]float64, 0, k+1)
	for i := range n {
		at, far = at[:0], far[:0]
		for j := range n {
			if j == i {
				continue
			}
			dx, dy, dz := float64(c.X[i]-c.X[j]), float64(c.Y[i]-c.Y[j]), 0.0
			if c.Z != nil {
				dz = float64(c.Z[i] - c.Z[j])
			}
			d := dx*dx + dy*dy + dz*dz
			if len(far) == k && d >= far[k-1] {
				continue
			}
			p, _ := slices.BinarySearch(far, d)
			at, far = slices.Insert(at, p, int32(j)), slices.Insert(far, p, d)
			at, far = at[:min(len(at), k)], far[:min(len(far), k)]
		}
		out.near[i], out.apart[i] = slices.Clone(at), make([]float64, len(far))
		for m, d := range far {
			out.apart[i][m] = math.Sqrt(d)
		}
	}
	return out
}

// medianFiltered moves every point to the median, axis by axis, of itself and
// its k nearest neighbours.
func medianFiltered(c geom.Cloud[float32], nb neighbours, k int) geom.Cloud[float32] {
	var out geom.Cloud[float32]
	v := make([]float32, 0, k+1)
	for d, axis := range [...][]float32{c.X, c.Y, c.Z} {
		if axis == nil {
			continue
		}
		to := make([]float32, len(axis))
		for i := range axis {
			v = append(v[:0], axis[i])
			for _, j := range nb.near[i][:min(k, len(nb.near[i]))] {
				v = append(v, axis[j])
			}
			slices.Sort(v)
			to[i] = v[len(v)/2]
		}
		*[...]*[]float32{&out.X, &out.Y, &out.Z}[d] = to
	}
	return out
}

// withoutStragglers keeps the points whose mean distance to k neighbours is at
// most limit standard deviations above the mean of all (statistical outlier
// removal, Rusu and others 2008).
func withoutStragglers(nb neighbours, k int, limit float64) (kept []int32) {
	n := len(nb.apart)
	mean := make([]float64, n)
	for i, apart := range nb.apart {
		mean[i], _ = spread(apart[:min(k, len(apart))])
	}
	m, sd := spread(mean)
	for i, v := range mean {
		if v <= m+limit*sd {
			kept = append(kept, int32(i))
		}
	}
	return kept
}

// spread returns the mean and the standard deviation.
func spread(v []float64) (mean, sd float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		sd += (x - mean) * (x - mean) / float64(len(v))
	}
	return mean, math.Sqrt(sd)
}

// clustered keeps what DBSCAN (Ester and others 1996) finds to be no noise: points
// with at least least others within radius, and those within radius of such a
// point. Needs at least that many neighbours: a point that has fewer of them
// within radius has all that are within radius in its list.
func clustered(nb neighbours, least int, radius float64) (kept []int32) {
	core := func(i int32) bool {
		a := nb.apart[i]
		return len(a) >= least && a[least-1] <= radius
	}
	for i := range int32(len(nb.near)) {
		keep := core(i)
		for m, j := range nb.near[i] {
			if keep || nb.apart[i][m] > radius {
				break
			}
			keep = core(j)
		}
		if keep {
			kept = append(kept, i)
		}
	}
	return kept
}

// typical is the median distance to the k-th neighbour.
func typical(nb neighbours, k int) float64 {
	var v []float64
	for _, a := range nb.apart {
		if len(a) > 0 {
			v = append(v, a[min(k, len(a))-1])
		}
	}
	slices.SortFunc(v, cmp.Compare[float64])
	if len(v) == 0 {
		return 0
	}
	return v[len(v)/2]
}

// chosen returns the points of a cloud that idx names.
func chosen(c geom.Cloud[float32], idx []int32) (out geom.Cloud[float32]) {
	for d, axis := range [...][]float32{c.X, c.Y, c.Z} {
		if axis == nil {
			continue
		}
		to := make([]float32, len(idx))
		for k, i := range idx {
			to[k] = axis[i]
		}
		*[...]*[]float32{&out.X, &out.Y, &out.Z}[d] = to
	}
	return out
}
