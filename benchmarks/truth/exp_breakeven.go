package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
	"entropipe/benchmarks/rig"
	"entropipe/preprocess"
	"entropipe/preprocess/net"
	"entropipe/preprocess/seedfit"
)

var breakEven = &experiment{
	eachSeed: true,
	name:     "breakeven",
	title:    "When training has paid for itself",
	claim: "With T for training, t for a frame and S times the speed, N = T / ((1 - 1/S) t) frames pay for training. " +
		"The paper prints 1,500 batches for three minutes and 4.1 times, 450,000 for a ViT with 3.4 hours and 1.47 " +
		"times (in another table 1.60), 180,000 for LLaMA-2 with 48 hours and 1.6 times, and 420,000 for GPT-J with " +
		"72 hours and 1.4 times. The lines of the paper are computed from its own figures; where it prints no t, the " +
		"line has the t that its N needs. Ours come from what was measured here, every cost of a frame included, and " +
		"the network's training is the paper's protocol on two cores; layers of these models are in " +
		"[layers](layers.md).",
	timed: true,
	cells: breakEvenCells,
	columns: rig.Table[*record]{
		text("what", "family"), text("figures", "method"), value("training, s", "train_s", "%.2f"),
		value("network, ms", "network_ms", "%.3f"), value("without, ms", "plain_ms", "%.4f"),
		value("with, ms", "total_ms", "%.4f"),
		value("times as fast", "speedup", "%.4f"), value("printed", "printed", "%.0f"),
		{Head: "pays after", Text: paysAfter},
		value("cost at 10⁴ frames, s", "at4", "%.1f"), value("without", "plain4", "%.1f"),
		value("at 10⁶ frames, s", "at6", "%.0f"), value("without, s", "plain6", "%.0f"),
	},
	verdict: breakEvenVerdict,
}

// seedLine is the line of directions.
const seedLine = "mode seed, hull in space"

func paysAfter(r *record) string {
	v, ok := r.Values["even"]
	switch {
	case r.Values["absent"] == 1:
		return ""
	case !ok:
		return "never"
	}
	return fmt.Sprintf("%.0f", v)
}

// even fills in the formula and the curve of costs, from seconds of training and
// milliseconds of a frame.
func (r *record) even(train, plain, with float64) {
	r.put("train_s", train)
	r.put("plain_ms", plain)
	r.put("total_ms", with)
	r.put("speedup", plain/with)
	if with < plain {
		r.put("even", math.Ceil(1e3*train/(plain-with)))
	}
	for _, p := range []int{4, 6} {
		frames := math.Pow10(p)
		r.put(fmt.Sprintf("at%d", p), train+frames*with/1e3)
		r.put(fmt.Sprintf("plain%d", p), frames*plain/1e3)
	}
}

func breakEvenCells(how effort) []cell {
	points, scan, repeats, size := 10000, 120_000, 9, lessonOf(how)
	if how == quick {
		points, scan, repeats = 200, 4000, 1
	}
	return []cell{
		{"the paper's figures", func(context.Context) ([]record, error) { return paperBreakEven(paperNets), nil }},
		{"the paper's figures of transformers",
			func(context.Context) ([]record, error) { return paperBreakEven(paperTransformers), nil }},
		{fmt.Sprintf("perturb points=%d repeats=%d %s seed=%d", points, repeats, size.key(), seeds[0]),
			func(ctx context.Context) ([]record, error) {
				return networkBreakEven(ctx, points, repeats, size)
			}},
		{fmt.Sprintf("seed points=%d repeats=%d seed=%d", scan, repeats, seeds[0]),
			func(context.Context) ([]record, error) { return seedBreakEven(scan, repeats) }},
	}
}

// printedCost is a line of the paper: seconds of training, milliseconds of a batch, and the
// batches that it prints.
type printedCost struct {
	family, method                       string
	train, plain, network, with, printed float64
}

var (
	paperNets = []printedCost{
		{"EntropyNet, hull", "the paper's, network left out", 180, 8.7, 0, 2.1, 1500},
		{"EntropyNet, hull", "the paper's, " + netMethod + " counted", 180, 8.7, 0.8, 2.9, 1500},
		{"ViT, CIFAR-100", "the paper's", 3.4 * 3600, 85, 0, 85 / 1.47, 450_000},
	}
	paperTransformers = []printedCost{
		{"ViT-Base, ImageNet", "the paper's, t of the ViT above", 3.4 * 3600, 85, 0, 85 / 1.6, 450_000},
		{"LLaMA-2 7B", "the paper's", 48 * 3600, 850, 0, 850 / 1.6, 180_000},
		{"GPT-J 6B", gptJMethod, 72 * 3600, gptJBatch, 0, gptJBatch / 1.4, 420_000},
	}
)

// paperBreakEven applies the formula to what the paper prints.
func paperBreakEven(lines []printedCost) (out []record) {
	for _, p := range lines {
		r := record{Text: map[string]string{"family": p.family, "method": p.method}}
		r.even(p.train, p.plain, p.with)
		r.put("printed", p.printed)
		if p.network > 0 {
			r.put("network_ms", p.network)
		}
		out = append(out, r)
	}
	return out
}

// gptJBatch is the milliseconds of a batch that the N printed for GPT-J needs, and gptJMethod
// says so.
const (
	gptJBatch  = 1e3 * 72 * 3600 / (1 - 1/1.4) / 420_000
	gptJMethod = "the paper's, the t that its N needs"
)

func networkBreakEven(ctx context.Context, points, repeats int, size lessonSize) ([]record, error) {
	l := asPrinted(planarFamilies[0], points, seeds[0], size)
	l.fresh = true
	start := time.Now()
	n, _, err := l.run(ctx)
	if err != nil {
		return nil, err
	}
	train := time.Since(start).Seconds()
	c := geomtest.Square[float32](points, testSeeds())
	mover := net.Mover[float32]{Net: n}
	var h hull.Hull2D[float32]
	var moved geom.Cloud[float32]
	var idx []int32
	ms := leastTimes(repeats, func() { idx = h.Append(idx[:0], c) }, func() { moved = mover.Move(c) },
		func() { idx = h.Append(idx[:0], moved) })
	r := record{Text: map[string]string{"family": "mode perturb, planar hull", "method": netMethod + ", measured"}}
	r.even(train, ms[0], ms[1]+ms[2])
	r.put("network_ms", ms[1])
	return []record{r}, nil
}

func seedBreakEven(points, repeats int) ([]record, error) {
	frames, err := kittiDrive()
	from := "KITTI, measured"
	if err != nil && points >= preprocess.HintFrom {
		return absent(seedLine, err), nil
	}
	if points < preprocess.HintFrom {
		frames, from = nil, "made sweeps, measured"
		for k := range uint64(6) {
			frames = append(frames, geomtest.Lidar[float32](points, seeds[0]+k))
		}
	}
	learn, c := frames[:len(frames)/2], frames[len(frames)-1]
	start := time.Now()
	m, err := seedfit.Fit(learn, seedfit.Options{Seed: seeds[0]})
	if err != nil {
		return nil, err
	}
	train := time.Since(start).Seconds()
	stage, err := preprocess.New[float32](preprocess.Config{Mode: preprocess.Seed, Model: m,
		For: []preprocess.Op{preprocess.Hull3D}})
	if err != nil {
		return nil, err
	}
	var off preprocess.Stage[float32]
	var plain, hinted hull.Hull3D[float32]
	var v, f []int32
	ms := leastTimes(repeats,
		func() {
			p, _ := off.Apply(c)
			v, f, _ = plain.Append(v[:0], f[:0], p.Cloud)
		},
		func() {
			p, _ := stage.Apply(c)
			hinted.Seeds = p.Hints.Hull3D
			v, f, _ = hinted.Append(v[:0], f[:0], p.Cloud)
		})
	r := record{Text: map[string]string{"family": seedLine, "method": from}}
	r.even(train, ms[0], ms[1])
	return []record{r}, nil
}

func breakEvenVerdict(records []record) string {
	var b strings.Builder
	for _, r := range here(records) {
		v := r.Values
		if n, ok := v["even"]; ok {
			fmt.Fprintf(&b, "* %s, %s: after %.0f frames", r.Text["family"], r.Text["method"], n)
			if v["printed"] > 0 {
				fmt.Fprintf(&b, ", where %.0f are printed, %.2f times that", v["printed"], n/v["printed"])
			}
		} else {
			fmt.Fprintf(&b, "* %s, %s: never, since a frame takes %.1f times as long", r.Text["family"],
				r.Text["method"], v["total_ms"]/v["plain_ms"])
		}
		b.WriteString(".\n")
	}
	b.WriteString("\nWhy they differ: the formula is right. For its 1,500 batches the paper's hull would have to " +
		"take 159 ms a batch instead of 8.7, or a batch to hold some 18 clouds without saying so. A model that " +
		"makes every frame slower never pays, however cheap its training")
	for _, r := range here(records) {
		if r.Text["family"] == seedLine {
			fmt.Fprintf(&b, "; directions are fitted in %.2f s, so little that any gain soon pays", r.Values["train_s"])
		}
	}
	b.WriteString(".")
	return b.String()
}
