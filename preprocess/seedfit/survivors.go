package seedfit

import (
	"entropipe/algos/geom"
	"entropipe/algos/hull"
	"entropipe/models"
	"entropipe/preprocess"
)

// Survivors returns the mean fraction of points that hull3d's sieve leaves with
// the model's hints, over the frames that get any: the calibration's fraction.
// It is 1 when none does.
func Survivors[T geom.Float](m *models.EntropyNet, frames []geom.Cloud[T]) (float64, error) {
	s, err := preprocess.New[T](preprocess.Config{Mode: preprocess.Seed, Model: m, For: []preprocess.Op{preprocess.Hull3D}})
	if err != nil {
		return 0, err
	}
	var h hull.Hull3D[T]
	sum, count := 0.0, 0
	for _, c := range frames {
		p, _ := s.Apply(c)
		if h.Seeds = p.Hints.Hull3D; len(h.Seeds) == 0 {
			continue
		}
		h.Append(nil, nil, p.Cloud)
		n, _ := h.Survivors()
		sum, count = sum+float64(n)/float64(p.Cloud.Len()), count+1
	}
	if count == 0 {
		return 1, nil
	}
	return sum / float64(count), nil
}

// Unhinted returns the mean fraction of points that hull3d's sieve leaves
// without hints, of the frames in space; 1 for none.
func Unhinted[T geom.Float](frames []geom.Cloud[T]) float64 {
	var h hull.Hull3D[T]
	sum, count := 0.0, 0
	for _, c := range frames {
		if c.Z == nil || c.Len() == 0 {
			continue
		}
		h.Append(nil, nil, c)
		n, _ := h.Survivors()
		sum, count = sum+float64(n)/float64(c.Len()), count+1
	}
	if count == 0 {
		return 1
	}
	return sum / float64(count)
}
