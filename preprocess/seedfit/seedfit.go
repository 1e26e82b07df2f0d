// Package seedfit finds the directions of a seed model: those in which the
// frames of a stream have the points that make the largest inner polytope.
//
// It is no training of a network: directions are few, and chosen one by one.
package seedfit

import (
	"errors"
	"fmt"

	"entropipe/algos/geom"
	"entropipe/models"
)

// Options say what to fit.
type Options struct {
	Directions int    // how many, from 24; 0: 32
	Seed       uint64 // turns the directions that fitting begins with, and draws those that Refine tries
	Refine     int    // steps of descent on F after the choice; see Fit

	Dataset, Sensor string // names of the stream, for the model's metadata
	DataSHA256      string
	Command         string
}

const (
	usual = 32 // directions
	even  = 8  // directions that are spread evenly
	least = even + rings*around
	most  = 1024
)

// Fit returns a seed model for hull3d. Frames without z, without volume or with
// fewer than four points are left out; it is an error when none is left. The
// model is a function of the frames and the options: equal ones give the same
// bits on processors of one kind.
//
// It begins with eight directions spread evenly and sixteen that find the
// ground, and adds the outer normal of the facet that has most points beyond it,
// among the hulls of what the directions find in each frame. Cost: less than a
// second for five frames of 120,000 points.
//
// With Refine, that many times one direction is turned a little, and stays so
// if that lowers the mean of F, the entropy of what the points found leave open
// (package entropy). F has no derivative by directions: which points they find
// changes by jumps.
func Fit[T geom.Float](frames []geom.Cloud[T], o Options) (*models.EntropyNet, error) {
	boxed := boxedFrames(frames)
	if len(boxed) == 0 {
		return nil, errors.New("no frame with four points in space that are not in one plane")
	}
	if o.Directions == 0 {
		o.Directions = usual
	}
	if o.Directions < least || o.Directions > most {
		return nil, fmt.Errorf("%d directions: want %d to %d", o.Directions, least, most)
	}
	u := append(evenly(even, o.Seed), ground()...)
	u = choose(boxed, u, o.Directions)
	if o.Refine > 0 {
		refine(boxed, u, o.Refine, o.Seed)
	}
	m := &models.EntropyNet{
		Meta: models.Meta{
			Mode: models.Seed, Dims: 3, Ops: []string{"hull3d"}, Normalise: models.NormaliseBox,
			Dataset: o.Dataset, Sensor: o.Sensor, DataSHA256: o.DataSHA256, Command: o.Command, Seed: o.Seed, Steps: o.Directions - least + o.Refine,
		},
		Tensors: map[string]models.Tensor{"directions3": {Shape: []int{len(u) / 3, 3}, Data: u}},
	}
	survived, err := Survivors(m, frames)
	if err != nil {
		return nil, err
	}
	m.Meta.Survivors = map[string]float64{"hull3d": survived}
	return m, m.Validate()
}
