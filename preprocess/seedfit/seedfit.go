// Package seedfit finds the directions of a seed model: the directions whose
// extreme points span the largest inner polytope of a stream's frames.
//
// Seedfit chooses few directions, one by one. It trains no network.
package seedfit

import (
	"errors"
	"fmt"

	"entropipe/algos/geom"
	"entropipe/models"
)

// Options are the settings of Fit.
type Options struct {
	Directions int    // number of directions, 24 to 1024; 0: 32
	Seed       uint64 // seed of the first directions' rotation and of the directions that Refine tries
	Refine     int    // steps of descent on F after the choice

	Dataset, Sensor string // names of the stream, for the model's metadata
	DataSHA256      string
	Command         string
}

const (
	usual = 32 // directions by default
	even  = 8  // directions that are spread evenly
	least = even + rings*around
	most  = 1024
)

// Fit returns a seed model for hull3d. Fit skips frames without z, without volume,
// with fewer than four points or with non-finite coordinates, and fails if no frame
// is left. The model is a function of frames and options: equal inputs give the same
// bits on one class of CPU.
//
// Fit begins with eight directions spread evenly and sixteen that point down, to
// find the ground. Then it repeats: in each frame it takes the hull of the points
// that the directions find; among all facets of these hulls it takes the one with
// most points beyond it, and adds its outer normal. Cost: less than a second for
// five frames of 120,000 points.
//
// Refine is a number of steps. Each step turns one direction a little, and keeps the
// turn if it lowers the mean of F (package entropy) over the frames. F has no
// derivative with respect to directions: the points that they find change by jumps.
func Fit[T geom.Float](frames []geom.Cloud[T], o Options) (*models.EntropyNet, error) {
	boxed := boxedFrames(frames)
	if len(boxed) == 0 {
		return nil, errors.New("no frame has four points in space that are not in one plane")
	}
	if o.Directions == 0 {
		o.Directions = usual
	}
	if o.Directions < least || o.Directions > most {
		return nil, fmt.Errorf("a seed model cannot have %d directions, want %d to %d", o.Directions, least, most)
	}
	u := append(evenly(even, o.Seed), ground()...)
	u = choose(boxed, u, o.Directions)
	if o.Refine > 0 {
		refine(boxed, u, o.Refine, o.Seed)
	}
	m := &models.EntropyNet{
		Meta: models.Meta{
			Mode: models.Seed, Dims: 3, Ops: []string{"hull3d"}, Normalise: models.NormaliseBox,
			Dataset: o.Dataset, Sensor: o.Sensor, DataSHA256: o.DataSHA256, Command: o.Command, Seed: o.Seed,
			Steps: o.Directions - least + o.Refine,
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
