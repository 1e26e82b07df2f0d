package main

import (
	"context"
	"math"

	"entropipe/algos/entropy"
	"entropipe/algos/extreme"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
	"entropipe/models"
	"entropipe/preprocess/net"
	"entropipe/preprocess/train"
)

// perturbSpace is perturbRun for the hull in space, of frames of a simulated
// scanner. The ε-kernel is the points farthest out in even directions, the fewest
// (a power of two) whose error on no frame is above the network's.
func perturbSpace(ctx context.Context, size perturbSize) ([]record, error) {
	frames := func(count int, first uint64) (out []geom.Cloud[float32]) {
		for k := range uint64(count) {
			out = append(out, geomtest.Lidar[float32](size.points, first+k))
		}
		return out
	}
	cfg := train.Config{Mode: models.Perturb, Ops: []entropy.Problem{entropy.Hull3D}, Steps: size.steps, Seed: seeds[0],
		Batch: 4, Points: 1024,
		Every: max(size.steps/10, 1), Patience: size.steps, Tolerance: 0.8 * tolerated, Workers: 2}
	n, _, err := trainOn(ctx, cfg, 3, frames(15, learnSeeds()))
	if err != nil {
		return nil, err
	}
	m, tests := net.Mover[float32]{Net: n}, frames(size.tests, testSeeds())
	var errs []float64
	for _, c := range tests {
		errs = append(errs, solidError(c, outputOf(m.Move(c), entropy.Hull3D)))
	}
	directions := directionsFor(tests, errs)
	out := []record{
		{Text: map[string]string{"method": exactMethod}},
		{Text: map[string]string{"method": kernelMethod + " beside F"}},
		{Text: map[string]string{"method": movedMethod("F")}},
	}
	for k := range out {
		out[k].Text["family"] = "simulated scanner, in space"
		out[k].Values = map[string]float64{"points": float64(size.points)}
	}
	out[1].Values["strips"] = float64(len(directions) / 3)
	for _, c := range tests {
		perturbSolid(out, &m, c, directions, size.repeats, 1/float64(len(tests)))
	}
	for k := range out {
		out[k].Values["speedup"] = out[0].Values["total_ms"] / out[k].Values["total_ms"]
	}
	return out, nil
}

// perturbSolid adds one frame's share to the three records.
func perturbSolid(out []record, m *net.Mover[float32], c geom.Cloud[float32], directions []float32,
	repeats int, share float64) {
	var h hull.Hull3D[float32]
	var f extreme.Finder[float32]
	var moved geom.Cloud[float32]
	var exact, kernel, network, faces []int32
	ms := leastTimes(repeats,
		func() { exact, faces, _ = h.Append(exact[:0], faces[:0], c) },
		func() { f.Look(c); kernel = f.Append(kernel[:0], directions) },
		func() { moved = m.Move(c) },
		func() { network, faces, _ = h.Append(network[:0], faces[:0], moved) })
	before := truthOf(c, entropy.Hull3D)
	for k, answer := range [][]int32{exact, kernel, network} {
		v := out[k].Values
		own, entropyOf := ms[k], before
		if k == 2 {
			v["network_ms"] += share * ms[2]
			own, entropyOf = ms[3], truthOf(moved, entropy.Hull3D)
		}
		v["hull_ms"] += share * own
		v["total_ms"] = v["network_ms"] + v["hull_ms"]
		v["entropy"] += share * entropyOf
		e := 100 * solidError(c, answer)
		v["error"] += share * e
		v["worst"] = max(v["worst"], e)
	}
}

// solidError is hullError in space.
func solidError(c geom.Cloud[float32], predicted []int32) float64 {
	_, _, _, e := (&net.Judge[float32]{}).Hull3D(nil, nil, c, predicted)
	return e / diagonalOf(c)
}

// directionsFor is the least power of two of even directions with which no
// frame's error is above that given, or 4096.
func directionsFor(frames []geom.Cloud[float32], errs []float64) []float32 {
	for count := 8; ; count *= 2 {
		directions, fits := evenDirections(count), true
		for k, c := range frames {
			var f extreme.Finder[float32]
			f.Look(c)
			fits = fits && solidError(c, f.Append(nil, directions)) <= errs[k]
		}
		if fits || count == 4096 {
			return directions
		}
	}
}

// evenDirections spread over the sphere along a spiral.
func evenDirections(count int) (out []float32) {
	golden := math.Pi * (3 - math.Sqrt(5))
	for k := range count {
		z := 1 - (2*float64(k)+1)/float64(count)
		r := math.Sqrt(1 - z*z)
		sin, cos := math.Sincos(golden * float64(k))
		out = append(out, float32(r*cos), float32(r*sin), float32(z))
	}
	return out
}
