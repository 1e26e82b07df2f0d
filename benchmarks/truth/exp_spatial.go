package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/maxima"
	"entropipe/benchmarks/rig"
	"entropipe/preprocess/net"
	"entropipe/preprocess/train"
)

var spatial = &experiment{
	eachSeed: true,
	name:     "maxima3d",
	title:    "Maxima in space, on scans",
	claim: "The paper prints, for KITTI, 14.3 instead of 45.2 ms (3.16 times as fast) and a maxima F1 of 0.891 " +
		"instead of 0.847; for Waymo 18.9 instead of 52.7 ms (2.79 times) and 0.876 instead of 0.823. Here the " +
		"totals hold the network's time, and F1 compares an answer with the exact maxima of the same frame, so that " +
		"every exact method has 1; what a network gains on noisy frames is the experiment denoise. Waymo's frames " +
		"are not free to pass on: a made sweep of 64 beams stands in. A network never learned from the frames that " +
		"it is timed on, and learned by the paper's protocol, with frames in the unit box: each seed draws made " +
		"sweeps anew, and parts the drive of KITTI anew; the one sweep of nuScenes has a network of KITTI. The " +
		"strongest peer is moocore, a library for Pareto fronts in C, whose call alone is timed. Means over frames.",
	timed: true,
	cells: spatialCells,
	columns: rig.Table[*record]{
		text("frames", "family"), text("method", "method"), value("points", "points", "%.0f"),
		value("maxima", "maxima", "%.1f"), value("network, ms", "network_ms", "%.1f"),
		value("total, ms", "total_ms", "%.3f"), value("ns a point", "ns", "%.2f"),
		value("times as fast as the first", "speedup", "%.3f"), value("F1", "f1", "%.3f"),
		value("error, % of the diagonal", "error", "%.3f"),
	},
	verdict: spatialVerdict,
}

// scans are frames that a network learns from, and others that all methods are timed on.
type scans struct {
	name  string
	split func(seed uint64) (learn, test []geom.Cloud[float32], err error)
}

// sparseSweep is the number of points of a sweep to learn from: a training takes 64 of it at a time.
const sparseSweep = 8192

// spatialTests is the number of frames that a seed times.
const spatialTests = 3

func spatialCells(how effort) (cells []cell) {
	points, repeats, size := 150_000, 3, lessonOf(how)
	if how == quick {
		points, repeats = 400, 1
	}
	sources := []scans{{"made sweep of 64 beams", func(uint64) (learn, test []geom.Cloud[float32], err error) {
		for k := range uint64(size.frames) {
			learn = append(learn, geomtest.Lidar[float32](min(points, sparseSweep), learnSeeds()+k))
		}
		for k := range uint64(spatialTests) {
			test = append(test, geomtest.Lidar[float32](points, testSeeds()+k))
		}
		return learn, test, nil
	}}, {"KITTI", func(seed uint64) (learn, test []geom.Cloud[float32], err error) {
		frames, err := kittiDrive()
		if err != nil {
			return nil, nil, err
		}
		learn, test = parted(frames, seed)
		return learn, test, nil
	}}, {"nuScenes, network of KITTI", func(uint64) (learn, test []geom.Cloud[float32], err error) {
		learn, errLearn := kittiDrive()
		test, errTest := nuscenesSweeps()
		return learn, test, errors.Join(errLearn, errTest)
	}}}
	if how == quick {
		sources = sources[:1]
	}
	for _, s := range sources {
		key := fmt.Sprintf("%s points=%d repeats=%d %s seed=%d", s.name, points, repeats, size.key(), seeds[0])
		cells = append(cells, cell{key, func(ctx context.Context) ([]record, error) {
			learn, test, err := s.split(seeds[0])
			if err != nil {
				return absent(s.name, err), nil
			}
			return spatialRun(ctx, s.name, learn, test, size, repeats)
		}})
	}
	return cells
}

// parted draws frames to time, and learns from the second half of the same order.
func parted(frames []geom.Cloud[float32], seed uint64) (learn, test []geom.Cloud[float32]) {
	order := rand.New(rand.NewPCG(seed, 16)).Perm(len(frames))
	for k, i := range order {
		switch {
		case k >= (len(order)+1)/2:
			learn = append(learn, frames[i])
		case k < spatialTests:
			test = append(test, frames[i])
		}
	}
	return learn, test
}

const (
	sortMethod   = "sort, Fenwick tree"
	maximaMethod = "maxima.Append3D"
)

// spatialRun trains a network on some frames and times every method on others. Without
// moocore on the machine its line is missing.
func spatialRun(ctx context.Context, family string, learn, test []geom.Cloud[float32], size lessonSize,
	repeats int) ([]record, error) {
	test = boxed(cloned(test))
	n, err := learnedFrom(ctx, family, entropy.Maxima3D, learn, size)
	if err != nil {
		return nil, err
	}
	names := []string{sortMethod, maximaMethod, maximaMethod + ", 2 threads", netMethod + ", " + maximaMethod}
	out := make([]record, len(names))
	for k, name := range names {
		out[k] = record{Text: map[string]string{"family": family, "method": name}}
	}
	mover := net.Mover[float32]{Net: n}
	one, two := &maxima.Maxima[float32]{}, &maxima.Maxima[float32]{Workers: 2}
	share := 1 / float64(len(test))
	for _, c := range test {
		var moved geom.Cloud[float32]
		answers := make([][]int32, 4)
		ms := leastTimes(repeats,
			func() { answers[0] = geomtest.Maxima(c, 3, [3]bool{}) },
			func() { answers[1] = one.Append3D(answers[1][:0], c) },
			func() { answers[2] = two.Append3D(answers[2][:0], c) })
		network := leastTimes(1, func() { moved = mover.Move(c) },
			func() { answers[3] = one.Append3D(answers[3][:0], moved) })
		for k := range out {
			total := network[0] + network[1]
			if k < 3 {
				total = ms[k]
			} else {
				out[k].put("network_ms", out[k].Values["network_ms"]+share*network[0])
			}
			for name, v := range map[string]float64{
				"total_ms": total, "points": float64(c.Len()), "ns": 1e6 * total / float64(c.Len()),
				"maxima": float64(len(answers[k])), "f1": train.F1(answers[0], answers[k]),
				"error": 100 * (&net.Judge[float32]{}).Maxima(c, answers[k], 3, [3]bool{}) / diagonalOf(c),
			} {
				out[k].put(name, out[k].Values[name]+share*v)
			}
		}
	}
	if peer, err := moocoreRecord(ctx, family, test, repeats, out[0].Values["maxima"]); err == nil {
		out = append(out, peer)
	} else if !errors.Is(err, errNoMoocore) {
		return nil, err
	}
	return speedups(out), nil
}

// moocoreRecord is the line of moocore, which must find as many maxima.
func moocoreRecord(ctx context.Context, family string, test []geom.Cloud[float32], repeats int,
	want float64) (record, error) {
	m, err := startMoocore(ctx)
	if err != nil {
		return record{}, err
	}
	r := record{Text: map[string]string{"family": family, "method": moocoreName, "setting": m.version}}
	share := 1 / float64(len(test))
	for _, c := range test {
		ms, count, err := m.maxima3D(c, repeats)
		if err != nil {
			return record{}, errors.Join(fmt.Errorf("moocore: %w", err), m.close())
		}
		for name, v := range map[string]float64{"total_ms": ms, "points": float64(c.Len()),
			"ns": 1e6 * ms / float64(c.Len()), "maxima": float64(count)} {
			r.put(name, r.Values[name]+share*v)
		}
	}
	if got := r.Values["maxima"]; math.Abs(got-want) > 1e-6 {
		return record{}, errors.Join(fmt.Errorf("moocore finds %v maxima, not %v", got, want), m.close())
	}
	r.put("f1", 1) // the number of maxima was compared
	r.put("error", 0)
	return r, m.close()
}

func spatialVerdict(records []record) string {
	var b strings.Builder
	least, inexact := math.Inf(1), 0
	peer := math.Inf(1)
	for _, group := range byText(here(records), "family") {
		ours, network := group[1].Values, group[3].Values
		if len(group) > 4 {
			peer = min(peer, group[4].Values["total_ms"]/ours["total_ms"])
		}
		for _, r := range group[:3] {
			if r.Values["f1"] < 1 {
				inexact++
			}
		}
		least = min(least, network["total_ms"]/ours["total_ms"])
		fmt.Fprintf(&b, "* %s: %.3f ms by sorting, %.3f ms (%.2f ns a point) by maxima.Append3D, %.1f ms with the "+
			"network, %.1f of them its own, whose answer has F1 %.3f.\n",
			group[0].Text["family"], group[0].Values["total_ms"], ours["total_ms"], ours["ns"], network["total_ms"],
			network["network_ms"], network["f1"])
	}
	beside := " There is no line of moocore."
	if !math.IsInf(peer, 1) {
		beside = fmt.Sprintf(" moocore takes at least %.0f times as long as maxima.Append3D.", peer)
	}
	fmt.Fprintf(&b, "\nWith the network it takes at least %.0f times as long as maxima.Append3D. Of the lines of "+
		"exact methods, %d have an F1 below 1.%s\n\nWhy they differ: an exact algorithm on the raw frame has F1 1 by "+
		"definition; the paper's 0.847 has another truth in mind, which it does not state. Its 45.2 ms are several "+
		"hundred nanoseconds a point. Scans have few maxima, and a handful of good points dominates nearly all "+
		"others, so that one pass decides; the entropy of such frames is below 0.2 nat, and there is nothing left "+
		"for a network to lower.", least, inexact, beside)
	return b.String()
}
