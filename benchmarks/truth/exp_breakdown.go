package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
	"entropipe/benchmarks/rig"
	"entropipe/preprocess"
	"entropipe/preprocess/net"
)

var breakdown = &experiment{
	eachSeed: true,
	name:     "breakdown",
	title:    "Where a frame's time goes behind a network",
	claim: "The paper prints, for 10,000 uniform points, 0.8 ms of EntropyNet and 2.1 ms of Chan's algorithm, 2.9 " +
		"ms in all, so 5.8 ms saved; for drawings 0.6, 1.5 and 2.1 ms, so 1.3 ms saved. Here the stage's own parts: " +
		"a check that coordinates are finite, the network with the normalising of points and their moving, the hull " +
		"of the moved points, and the exact error of that answer, which every row in the tables carries. Saved is " +
		"against the exact hull alone. The network is trained by the paper's protocol on other frames. Means over " +
		"frames.",
	timed: true,
	cells: breakdownCells,
	columns: rig.Table[*record]{
		text("frames", "family"), text("method", "method"), value("points", "points", "%.0f"),
		value("check, ms", "check_ms", "%.4f"), value("network, ms", "network_ms", "%.4f"),
		value("hull, ms", "hull_ms", "%.4f"), value("error, ms", "error_ms", "%.4f"),
		value("total, ms", "total_ms", "%.4f"), value("saved, ms", "saved_ms", "%.4f"),
	},
	verdict: breakdownVerdict,
}

func breakdownCells(how effort) (cells []cell) {
	points, repeats, size := 10000, 7, lessonOf(how)
	if how == quick {
		points, repeats = 300, 1
	}
	streams := []streamOf{
		{name: "square", learn: planarFamilies[0].lessonFrames(points),
			frames: func(seed uint64) ([]geom.Cloud[float32], error) {
				return drift(boxed([]geom.Cloud[float32]{geomtest.Square[float32](points, seed)})[0], 3, seed), nil
			}},
		{name: "QuickDraw drawings", still: true, learn: laterDrawings(300),
			frames: func(uint64) ([]geom.Cloud[float32], error) {
				all, err := drawings(50)
				return boxed(all), err
			}},
	}
	if how == quick {
		streams = streams[:1]
	}
	for _, s := range streams {
		cells = append(cells, cell{
			fmt.Sprintf("%s points=%d repeats=%d %s seed=%d", s.name, points, repeats, size.key(), seeds[0]),
			func(ctx context.Context) ([]record, error) {
				frames, err := s.frames(seeds[0])
				if err != nil {
					return absent(s.name, err), nil
				}
				n, err := streamNet(ctx, s, seeds[0], size)
				if err != nil {
					return nil, err
				}
				return breakdownRun(s.name, n, frames, repeats), nil
			}})
	}
	return cells
}

func breakdownRun(family string, n *net.Net, frames []geom.Cloud[float32], repeats int) []record {
	exact := record{Text: map[string]string{"family": family, "method": oursMethod},
		Values: map[string]float64{"saved_ms": 0}}
	moving := record{Text: map[string]string{"family": family, "method": netMethod + ", " + oursMethod},
		Values: map[string]float64{"saved_ms": 0}}
	var off preprocess.Stage[float32]
	var h hull.Hull2D[float32]
	var judge net.Judge[float32]
	mover := net.Mover[float32]{Net: n}
	share := 1 / float64(len(frames))
	add := func(r *record, name string, v float64) { r.Values[name] += share * v }
	for _, c := range frames {
		var p preprocess.Prepared[float32]
		var moved geom.Cloud[float32]
		var answer, other, judged []int32
		ms := leastTimes(repeats,
			func() { p, _ = off.Apply(c) },
			func() { other = h.Append(other[:0], p.Cloud) },
			func() { moved = mover.Move(p.Cloud) },
			func() { answer = h.Append(answer[:0], moved) },
			func() { judged, _ = judge.Hull2D(judged[:0], p.Cloud, answer) })
		for _, r := range []*record{&exact, &moving} {
			add(r, "points", float64(c.Len()))
			add(r, "check_ms", ms[0])
		}
		add(&exact, "hull_ms", ms[1])
		add(&exact, "total_ms", ms[0]+ms[1])
		add(&moving, "network_ms", ms[2])
		add(&moving, "hull_ms", ms[3])
		add(&moving, "error_ms", ms[4])
		add(&moving, "total_ms", ms[0]+ms[2]+ms[3]+ms[4])
	}
	moving.put("saved_ms", exact.Values["total_ms"]-moving.Values["total_ms"])
	return []record{exact, moving}
}

func breakdownVerdict(records []record) string {
	var b strings.Builder
	for _, group := range byText(here(records), "family") {
		exact, moving := group[0].Values, group[1].Values
		word := "saves"
		if moving["saved_ms"] < 0 {
			word = "costs"
		}
		fmt.Fprintf(&b, "* %s: the network takes %.3f of %.3f ms, %.1f %%; the exact hull takes %.4f ms in all. So "+
			"the network %s %.3f ms a frame.\n",
			group[0].Text["family"], moving["network_ms"], moving["total_ms"],
			100*moving["network_ms"]/moving["total_ms"], exact["total_ms"], word, math.Abs(moving["saved_ms"]))
	}
	b.WriteString("\nWhy they differ: 10,000 points in 0.8 ms would be 1.9 to 2.7 billion operations a millisecond " +
		"on the paper's network, more than its processor can do in single precision. What is saved there is the " +
		"difference of two algorithms, Qhull and Chan's.")
	return b.String()
}
