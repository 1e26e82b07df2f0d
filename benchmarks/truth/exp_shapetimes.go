package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/benchmarks/rig"
	"entropipe/benchmarks/truth/pointnet"
	"entropipe/benchmarks/truth/solids"
	"entropipe/preprocess/net"
)

var shapeTimes = &experiment{
	eachSeed: true,
	name:     "shapetimes",
	title:    "Made shapes: the time of an auto-encoder and a classifier",
	claim: "The paper prints 1.6 times as fast for EntropyNet before a PointNet auto-encoder on ShapeNet, and 10.9 " +
		"instead of 12.8 ms for the inference of PointNet++ with the regulariser; what is faster it does not say. " +
		"Here both networks have PointNet's widths (64, 128, 1024 on each of 2,048 points), the auto-encoder layers " +
		"of 512, 1024 and 6,144 behind the maxima, the classifier 512, 256 and 10. Times are those of a forward pass " +
		"in one goroutine, means over shapes, and hold EntropyNet's, which is trained on other shapes by the paper's " +
		"protocol. A regulariser of the training leaves the network as large as it is, so that a classifier with it " +
		"takes as long as one without.",
	timed: true,
	cells: shapeTimeCells,
	columns: rig.Table[*record]{
		text("network", "family"), text("method", "method"), value("network, ms", "network_ms", "%.3f"),
		value("total, ms", "total_ms", "%.3f"), value("times as fast as alone", "speedup", "%.3f"),
	},
	verdict: shapeTimeVerdict,
}

const (
	encoderName    = "auto-encoder"
	classifierName = "classifier"
	aloneMethod    = "alone"
)

func shapeTimeCells(how effort) []cell {
	points, shapes, repeats, size := 2048, 3, 5, lessonOf(how)
	if how == quick {
		points, shapes, repeats = 64, 1, 1
	}
	key := fmt.Sprintf("points=%d shapes=%d repeats=%d %s seed=%d", points, shapes, repeats, size.key(), seeds[0])
	return []cell{{key,
		func(ctx context.Context) ([]record, error) {
			return shapeTimeRun(ctx, points, shapes, repeats, size, seeds[0])
		}}}
}

func shapeTimeRun(ctx context.Context, points, shapes, repeats int, size lessonSize, seed uint64) (out []record,
	err error) {
	r := rand.New(rand.NewPCG(seed, 24))
	var clouds [][]float32
	var frames []geom.Cloud[float32]
	for range shapes {
		clouds = append(clouds, solids.New(r.IntN(len(solids.Classes)), r).Append(nil, points, shapeNoise, r))
	}
	for range size.frames {
		class := r.IntN(len(solids.Classes))
		frames = append(frames, cloudOf(solids.New(class, r).Append(nil, points, shapeNoise, r)))
	}
	moves, err := learnedFrom(ctx, "made shapes", entropy.Hull3D, frames, size)
	if err != nil {
		return nil, err
	}
	mover := net.Mover[float32]{Net: moves}
	for _, family := range []string{encoderName, classifierName} {
		head := []int{512, 1024, 3 * points}
		if family == classifierName {
			head = []int{512, 256, len(solids.Classes)}
		}
		n := pointnet.New([]int{64, 128, 1024}, head, r)
		part := make([]record, 4)
		for k, name := range []string{aloneMethod, netMethod, "every second point", fourthMethod} {
			part[k].Text = map[string]string{"family": family, "method": name}
		}
		for _, points := range clouds {
			cloud, moved := cloudOf(points), points
			ms := leastTimes(repeats, func() { n.Forward(points, len(points)/3) },
				func() { moved = pointsOf(mover.Move(cloud)) }, func() { n.Forward(moved, len(moved)/3) },
				func() { half := thinned(2)(points); n.Forward(half, len(half)/3) },
				func() { few := thinned(4)(points); n.Forward(few, len(few)/3) })
			share := 1 / float64(len(clouds))
			for k, total := range []float64{ms[0], ms[1] + ms[2], ms[3], ms[4]} {
				part[k].put("total_ms", part[k].Values["total_ms"]+share*total)
			}
			part[1].put("network_ms", part[1].Values["network_ms"]+share*ms[1])
		}
		out = append(out, speedups(part)...)
	}
	return out, nil
}

func shapeTimeVerdict(records []record) string {
	var b strings.Builder
	for _, group := range byText(records, "family") {
		v := group[1].Values
		fmt.Fprintf(&b, "* %s: %.2f ms alone, %.2f ms with EntropyNet before it, %.2f of them EntropyNet's: %.2f ± "+
			"%.2f times as fast. From every second point it is %.2f times as fast, from every fourth %.2f times.\n",
			group[0].Text["family"], group[0].Values["total_ms"], v["total_ms"], v["network_ms"], v["speedup"],
			v["speedup_ci"], group[2].Values["speedup"], group[3].Values["speedup"])
	}
	b.WriteString("\nWhy they differ: a PointNet does the same work for every point wherever the point is, so a " +
		"network that moves points adds its time and saves none. Fewer points save time; what they cost in quality " +
		"stands " +
		"in the experiment shapes.")
	return b.String()
}
