package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// size is what costs depend on.
type size struct {
	Frames  float64 `json:"frames"`
	Lanes   float64 `json:"lanes"`
	Commits float64 `json:"commits"`
}

// times returns a size so many times as large.
func (s size) times(n float64) size { return size{n * s.Frames, n * s.Lanes, n * s.Commits} }

// terms are 1 and what is counted.
func (s size) terms() [4]float64 { return [4]float64{1, s.Frames, s.Lanes, s.Commits} }

// costs are the numbers of a phase by their names, such as "sync" for calls of fsync.
type costs map[string]float64

// Phases of a backfill. Each is a process of its own: the one that makes the plan, one that
// does all lanes, and one that finds all lanes done, as each further process finds most.
const (
	phasePlan  = "plan"
	phaseWork  = "work"
	phaseStart = "start"
)

var phases = []string{phasePlan, phaseWork, phaseStart}

// constants of one cost: of a process, a frame, a lane and a commit.
type constants [4]float64

// at returns the cost at a size.
func (c constants) at(s size) (sum float64) {
	for i, term := range s.terms() {
		sum += c[i] * term
	}
	return sum
}

// model is what was fitted, and how it predicts.
type model struct {
	One        size                            `json:"one"`         // the size at which constants are fitted
	FrameBytes float64                         `json:"frame_bytes"` // bytes of a frame in the archive
	Constants  map[string]map[string]constants `json:"constants"`   // by phase and cost
	Four       map[string]costs                `json:"four"`        // measured at four times the size
	PlanRSS    float64                         `json:"plan_rss"`    // planning process, at four times the size
	WorkRSS    float64                         `json:"work_rss"`
}

// fitPoints are the sizes, none beyond one, from which constants follow: they differ in frames,
// in lanes and in commits alone.
func fitPoints(one size) []size {
	return []size{{1, 1, 1}, {one.Frames, 1, 1}, {one.Frames, one.Lanes, one.Lanes}, one}
}

// fit returns the constants that the costs at the points of fitPoints have. A constant is never
// negative: what is below 0 is noise.
func fit(points []size, measured []costs) (map[string]constants, error) {
	found := map[string]constants{}
	for _, name := range slices.Sorted(maps.Keys(measured[len(measured)-1])) {
		var rows [4][5]float64
		for i, p := range points {
			terms := p.terms()
			copy(rows[i][:], terms[:])
			rows[i][4] = measured[i][name]
		}
		c, err := solve(rows)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i := range c {
			c[i] = max(c[i], 0)
		}
		found[name] = c
	}
	return found, nil
}

// solve solves four linear equations by elimination.
func solve(rows [4][5]float64) (x constants, err error) {
	for column := range 4 {
		best := column
		for i := column; i < 4; i++ {
			if math.Abs(rows[i][column]) > math.Abs(rows[best][column]) {
				best = i
			}
		}
		rows[column], rows[best] = rows[best], rows[column]
		if rows[column][column] == 0 {
			return x, fmt.Errorf("the sizes do not tell frames, lanes and commits apart")
		}
		for i := range 4 {
			if i == column {
				continue
			}
			factor := rows[i][column] / rows[column][column]
			for k := column; k < 5; k++ {
				rows[i][k] -= factor * rows[column][k]
			}
		}
	}
	for i := range 4 {
		x[i] = rows[i][4] / rows[i][i]
	}
	return x, nil
}

// prediction is a cost at four times the size.
type prediction struct {
	Phase, Cost         string
	Predicted, Measured float64
}

// Ratio is the prediction over the measurement.
func (p prediction) Ratio() float64 { return p.Predicted / p.Measured }

// predictions returns all costs that matter: those of at least least, in the order of phases
// and names.
func (m *model) predictions() (all []prediction) {
	for _, phase := range phases {
		for _, name := range slices.Sorted(maps.Keys(m.Four[phase])) {
			p := prediction{phase, name, m.Constants[phase][name].at(m.One.times(4)), m.Four[phase][name]}
			if p.Measured >= leastOf(name) {
				all = append(all, p)
			}
		}
	}
	return all
}

// leastOf returns the number from which a cost is compared. Fewer calls, and a shorter time
// than that of starting a process, say nothing about growth.
func leastOf(cost string) float64 {
	if cost == costCPU {
		return 0.2
	}
	return 40
}

// worst returns the prediction that is farthest from its measurement.
func (m *model) worst() (worst prediction, off float64) {
	for _, p := range m.predictions() {
		if d := math.Abs(p.Ratio() - 1); d >= off {
			worst, off = p, d
		}
	}
	return worst, off
}

// goalModel is the largest share by which a prediction may be off.
const goalModel = 0.20

// archiveOf returns the size of an archive of so many frames: lanes of at most 20,000 frames
// and 1 GiB, commits of at most 256 MiB.
func (m *model) archiveOf(frames, frameBytes float64) size {
	const laneItems, laneBytes, commitBytes = 20_000, 1 << 30, 256 << 20
	lane := math.Min(laneItems, math.Max(1, math.Floor(laneBytes/frameBytes)))
	commit := math.Max(1, math.Floor(commitBytes/frameBytes))
	lanes := math.Ceil(frames / lane)
	return size{frames, lanes, lanes * math.Ceil(lane/commit)}
}
