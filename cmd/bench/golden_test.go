package bench

import (
	"math/rand/v2"
	"testing"

	"entropipe/algos/geomtest"
)

// Recorded results were measured on these clouds: each stays the same bit by bit.
func TestCloudsAreThoseRecorded(t *testing.T) {
	geomtest.SkipWhereFused(t)
	for _, d := range distributions {
		c, err := d.make(500, rand.New(rand.NewPCG(7, 7)))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := geomtest.CloudHash(c), recordedClouds[d.name]; got != want {
			t.Errorf("%q: %q, // recorded: %q", d.name, got, want)
		}
	}
	if len(distributions) != len(recordedClouds) {
		t.Errorf("%d distributions, %d recorded", len(distributions), len(recordedClouds))
	}
}

var recordedClouds = map[string]string{
	"anti":     "de263fe008eab89b",
	"ball":     "b9c974a6524c8ec8",
	"circle":   "d132bd5ac8defa27",
	"cluster":  "de406d2e1b3d1737",
	"cube":     "1bef5372c146821d",
	"disk":     "5596870073b4ee2c",
	"front":    "c415fab08057ef57",
	"gauss":    "2dbc8f1ad6ee1d47",
	"grid":     "e04b7f19db0fa4a4",
	"lidar":    "022e8a9d207eac83",
	"octant":   "752978be44d028ae",
	"parabola": "d9d818409e3fda6b",
	"rings":    "022e8a9d207eac83",
	"sphere":   "04ac26592f412485",
	"square":   "d8e663377173df53",
	"strokes":  "ea66461257702421",
}
