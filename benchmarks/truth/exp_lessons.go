package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"entropipe/algos/geom"
	"entropipe/benchmarks/rig"
	"entropipe/preprocess/net"
)

var lessons = &experiment{
	eachSeed: true,
	name:     "lessons",
	title:    "Does a longer training make another network?",
	claim: "The trainings of [the other page](tradeoff.md) are smaller than the paper's may have been. Here the " +
		"printed setting on the square is trained again with half and with twice the clouds, so with half and with " +
		"twice the steps in as many epochs, and all networks are tested on the same frames of 10,000 points.",
	cells: lessonCells,
	columns: rig.Table[*record]{
		text("training", "training"), value("steps", "steps", "%.0f"), value("epochs", "epochs", "%.0f"),
		overSeeds("fall, %", "fall", "%.1f", 100), overSeeds("hull error, %", "error", "%.3f", 100),
		overSeeds("held-out loss", "loss", "%.4f", 1), overSeeds("held-out H_diff", "hdiff", "%.3f", 1),
	},
	verdict: lessonVerdict,
}

// longerLessons are trainings by their length, the shortest first, in halves of that of the other page.
var longerLessons = []struct {
	name   string
	halves int
}{{"half the steps", 1}, {"as it is", 2}, {"twice the steps", 4}}

func lessonCells(how effort) (cells []cell) {
	f := planarFamilies[0]
	for _, longer := range longerLessons {
		name, size := longer.name, tradeoffSize{10000, 2, lessonOf(how)}
		size.lesson.frames = size.lesson.frames * longer.halves / 2
		if how == quick {
			size.points, size.lesson.epochs = 200, 6
		}
		key := fmt.Sprintf("%s %s n=%d tests=%d %s seed=%d", f.name, name, size.points, size.tests, size.lesson.key(),
			seeds[0])
		cells = append(cells, cell{key, func(ctx context.Context) ([]record, error) {
			l := asPrinted(f, size.points, seeds[0], size.lesson)
			n, t, err := l.run(ctx)
			if err != nil {
				return nil, err
			}
			frames, before := testFrames(f, size)
			mover := net.Mover[float32]{Net: n}
			r := record{Text: map[string]string{"training": name},
				Values: map[string]float64{"hdiff": t.Best().Regulariser}}
			r.putTest(testOf(frames, before, func(_ int, c geom.Cloud[float32]) geom.Cloud[float32] {
				return mover.Move(c)
			}))
			l.put(&r, t)
			return []record{r}, nil
		}})
	}
	return cells
}

func lessonVerdict(records []record) string {
	var b strings.Builder
	_, of := grouped(records, "training")
	for k, longer := range longerLessons[1:] {
		before := longerLessons[k].name
		if short, long := of[before], of[longer.name]; len(short) > 0 && len(long) > 0 {
			longerVerdict(&b, "from "+stepsOf(before)+" to "+stepsOf(longer.name), short[0], long[0])
		}
	}
	if b.Len() == 0 {
		return "No two trainings are measured."
	}
	b.WriteString("\nHeld-out H_diff beside the entropy that the network takes away:")
	for k, longer := range longerLessons {
		if r := of[longer.name]; len(r) > 0 {
			v := r[0].Values
			fmt.Fprintf(&b, "%s %s: %.3f, %.1f ± %.1f %%", []string{"", ";", ";"}[k], stepsOf(longer.name), v["hdiff"],
				100*v["fall"], 100*v["fall_ci"])
		}
	}
	b.WriteString(". H_diff says how evenly anchors share the points. Anchors learn, too, and one that has all " +
		"points takes H_diff to 0, wherever the points are.")
	return b.String()
}

// stepsOf says how long a training is.
func stepsOf(training string) string {
	if training == "as it is" {
		return "the steps of the other page"
	}
	return training
}

// longerVerdict says what a longer training changed.
func longerVerdict(b *strings.Builder, change string, short, long record) {
	if a, c := units(long.seedsOf("loss")), units(short.seedsOf("loss")); len(a.over(c)) > 0 {
		share := meanOf(a.over(c).values())
		word := "so the shorter training was near the end of what it could learn"
		if share < 1-plateauShare {
			word = "so the shorter training stopped short of a plateau, though its own loss was flat when its rate " +
				"had fallen"
		}
		fmt.Fprintf(b, "* %s: the held-out loss becomes %.2f of what it was (%d seeds, paired), %s.\n", change,
			share, len(a.over(c)), word)
	}
	for _, figure := range []struct {
		name, title string
		scale       float64
	}{
		{"fall", "fall of the entropy, in percentage points,", 100},
		{"error", "error of the hull, in percentage points,", 100},
	} {
		a, c := units(long.seedsOf(figure.name)), units(short.seedsOf(figure.name))
		d := a.less(c).values()
		mean, half := interval(d)
		if len(d) == 0 {
			mean = long.Values[figure.name] - short.Values[figure.name]
		}
		word := "which the interval does not tell from 0"
		if half > 0 && math.Abs(mean) > half {
			word = "beyond its interval"
		}
		fmt.Fprintf(b, "* %s: the %s changes by %+.3f ± %.3f (%d seeds, paired), %s.\n", change, figure.title,
			figure.scale*mean, figure.scale*half, max(len(d), 1), word)
	}
}
