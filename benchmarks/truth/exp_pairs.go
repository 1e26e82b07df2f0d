package main

import (
	"context"
	"fmt"
	"strings"

	"entropipe/benchmarks/rig"
)

var pairs = &experiment{
	name:  "pairs",
	title: "The stage with a model against the stage off, end to end",
	claim: "Not in the paper: a stage with a model must not cost what it does not give back. The whole program " +
		"reads a topic of KITTI scans to its end, from its start to its end, tables committed, without a model and " +
		"with builtin:lidar, in turns; ratios are medians over pairs, their intervals from resampling (95 %). " +
		"Processor time is that of all threads. For planar hulls and maxima the model has nothing to say, and may " +
		"cost 2 %.",
	timed: true,
	cells: pairsCells,
	columns: rig.Table[*record]{
		text("operators", "family"), value("frames", "frames", "%.0f"), value("pairs", "pairs", "%.0f"),
		value("off, s", "off_s", "%.3f"), value("seed, s", "seed_s", "%.3f"), ratioColumn,
		ratioOf("processor time, times less (95 %)", "cpu"),
	},
	verdict: pairsVerdict,
}

func pairsCells(how effort) (cells []cell) {
	frames, turns := 200, 50
	operators := []string{"hull2d,maxima2d", "hull3d"}
	if how == quick {
		frames, turns, operators = 2, 1, operators[1:]
	}
	for _, ops := range operators {
		cells = append(cells, cell{fmt.Sprintf("KITTI ops=%s frames=%d turns=%d", ops, frames, turns),
			func(ctx context.Context) ([]record, error) {
				return pairsRun(ctx, ops, frames, turns)
			}})
	}
	return cells
}

func pairsRun(ctx context.Context, ops string, frames, turns int) ([]record, error) {
	folder, err := scanFolder()
	if err != nil {
		return absent(ops, err), nil
	}
	s, err := newSession(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if _, err := s.produce(ctx, "scans", folder, frames); err != nil {
		return nil, err
	}
	modes := [2][]string{{"--ops", ops}, {"--ops", ops, "--stage", "seed", "--model", "builtin:lidar"}}
	var seconds [2][]float64
	var ratios, cpu []float64
	for k := range turns + 1 {
		var pair, spent [2]float64
		for j := range 2 {
			mode := (j + k) % 2
			exit, _, err := s.run(ctx, "scans", modes[mode]...)
			if err != nil {
				return nil, err
			}
			pair[mode], spent[mode] = exit.Wall.Seconds(), exit.CPU.Seconds()
		}
		if k == 0 {
			continue // the files of the broker are read for the first time
		}
		seconds[0], seconds[1] = append(seconds[0], pair[0]), append(seconds[1], pair[1])
		ratios, cpu = append(ratios, pair[0]/pair[1]), append(cpu, spent[0]/spent[1])
	}
	r := record{Text: map[string]string{"family": ops}}
	r.put("frames", float64(frames))
	r.put("pairs", float64(len(ratios)))
	r.put("off_s", middle(seconds[0]))
	r.put("seed_s", middle(seconds[1]))
	r.putRatio("ratio", ratios)
	r.putRatio("cpu", cpu)
	return []record{r}, nil
}

func pairsVerdict(records []record) string {
	records = here(records)
	if len(records) == 0 {
		return "The scans are not there."
	}
	const allowed = 1 / 1.02
	var b strings.Builder
	for _, r := range records {
		v := r.Values
		word := "the interval does not decide whether it is 2 % slower"
		switch times := r.interval("ratio"); {
		case times.Low > 1:
			word = "faster"
		case times.Side(allowed) == rig.Above:
			word = "not 2 % slower"
		case times.Side(allowed) == rig.Below:
			word = "more than 2 % slower"
		}
		fmt.Fprintf(&b, "* %s: %.3f s without and %.3f s with the model, %.3f times as fast, %.3f to %.3f over %.0f "+
			"pairs: %s. Processor time is %.3f times less, %.3f to %.3f.\n",
			r.Text["family"], v["off_s"], v["seed_s"], v["ratio"], v["ratio_lo"], v["ratio_hi"], v["pairs"], word,
			v["cpu"], v["cpu_lo"], v["cpu_hi"])
	}
	b.WriteString("\nWhy it is so: hints are made only for operators that use them, and those of the plane do not: " +
		"their own filters take less time than a look along learned directions would. In a whole run an operator is " +
		"a part of the time beside fetching, checking and writing, so what it gains there is less than in the " +
		"experiment seeding.")
	return b.String()
}
