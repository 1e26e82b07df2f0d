package seedfit

import (
	"entropipe/algos/geom"
	"entropipe/algos/hull"
	"entropipe/models"
	"entropipe/preprocess"
)

// Survivors returns the mean fraction of points that hull3d's sieve keeps with the
// model's hints, over the frames that get hints: the fraction of the calibration.
// Survivors returns 1 if no frame gets hints. It fails if the model is no seed model
// for hull3d.
func Survivors[T geom.Float](m *models.EntropyNet, frames []geom.Cloud[T]) (float64, error) {
	s, err := preprocess.New[T](preprocess.Config{Mode: preprocess.Seed, Model: m,
		For: []preprocess.Op{preprocess.Hull3D}})
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

// Unhinted returns the mean fraction of points that hull3d's sieve keeps without
// hints, over the frames with points in space, and 1 without such a frame.
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
