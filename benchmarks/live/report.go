package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"entropipe/benchmarks/rig"
)

// The ways of a stretch.
const (
	alone   = "alone"
	watched = "watched"
	stalled = "stalled"
)

var ways = []string{alone, watched, stalled}

// figures are those of one stretch.
type figures struct {
	Round       int     `json:"round"`
	Way         string  `json:"way"`
	Readers     int     `json:"readers"`
	Frames      int     `json:"frames"` // those that operators had meanwhile
	Points      int     `json:"points"`
	WallS       float64 `json:"wall_s"`
	CPUS        float64 `json:"cpu_s"`         // processor time of the run
	ReadersCPUS float64 `json:"readers_cpu_s"` // processor time of all readers
	Scenes      int64   `json:"scenes"`
	Bytes       int64   `json:"bytes"`
}

// report is the page of the newest run.
type report struct{ *rig.Turns[figures] }

func newReport(folder string) (report, error) {
	turns, err := rig.ReadTurns("live", folder, func(f figures) string { return fmt.Sprint(f.Round, " ", f.Way) })
	return report{turns}, err
}

func (r report) write(to io.Writer) error { return r.WritePage(to, r.markdown()) }

// of returns the turn of a round; nil if there is none.
func (r report) of(round int, way string) *figures {
	for i := range r.Newest {
		if f := &r.Newest[i].Figures; f.Round == round && f.Way == way {
			return f
		}
	}
	return nil
}

// limit is the most that twenty readers may cost, as a share of the turn alone.
const limit = 0.02

// verdict compares a cost with the limit.
func verdict(cost rig.Interval) string {
	return map[rig.Side]string{rig.Below: "met", rig.Above: "not met", rig.Undecided: "undecided"}[cost.Side(limit)]
}

// percent returns an interval of shares as percentages.
func percent(i rig.Interval) string {
	return rig.Interval{Mid: 100 * i.Mid, Low: 100 * i.Low, High: 100 * i.High}.Text("%+.1f %%")
}

// cost returns the medians over rounds of a way's share above the stretch alone, with their
// intervals: of a frame's wall time less the readers' processor time, and of the run's
// processor time for a frame.
func (r report) cost(way string) (wall, cpu rig.Interval, rounds int) {
	var walls, cpus []float64
	cores := runtime.NumCPU()
	if len(r.Newest) > 0 && r.Newest[0].Cores > 0 {
		cores = r.Newest[0].Cores
	}
	for round := 0; ; round++ {
		one, other := r.of(round, alone), r.of(round, way)
		if one == nil || other == nil {
			break
		}
		scale := float64(one.Frames) / float64(other.Frames)
		walls = append(walls, scale*(other.WallS-other.ReadersCPUS/float64(cores))/one.WallS-1)
		cpus = append(cpus, scale*other.CPUS/one.CPUS-1)
	}
	return rig.MedianOf(walls), rig.MedianOf(cpus), len(walls)
}

// pace returns the median over rounds of the scenes that a reader gets in a second.
func (r report) pace(way string) float64 {
	var all []float64
	for i := range r.Newest {
		if f := &r.Newest[i].Figures; f.Way == way && f.Readers > 0 && f.WallS > 0 {
			all = append(all, float64(f.Scenes)/float64(f.Readers)/f.WallS)
		}
	}
	return rig.Median(all)
}

func (r report) markdown() string {
	var b strings.Builder
	b.WriteString("# Readers of the live page\n\n")
	if len(r.Newest) == 0 {
		b.WriteString("Nothing was measured yet: `go run ./benchmarks/live`.\n")
		return b.String()
	}
	first := r.Newest[0]
	fmt.Fprintf(&b, "`go run ./benchmarks/live`, commit %s, %s, %d cores, %s. Runs take frames of %d points\n"+
		"from Kafka to committed Parquet. A round is a stretch of some %.1f s in each way, in any order. The\n"+
		"costs of a way are medians over rounds, for a frame, against the stretch alone of its round, with the\n"+
		"ends of their 95 %% intervals. They are compared with a limit of %.0f %%.\n\n",
		first.Commit, first.CPU, first.Cores, first.Go, first.Figures.Points, first.Figures.WallS, 100*limit)
	b.WriteString("| way | readers | rounds | frames a second that a reader gets | " +
		"wall time, less the readers' processor time | below the limit | processor time of the run | " +
		"below the limit |\n")
	b.WriteString("|---|---:|---:|---:|---:|---|---:|---|\n")
	for _, way := range ways[1:] {
		if f := r.of(0, way); f != nil {
			wall, cpu, rounds := r.cost(way)
			fmt.Fprintf(&b, "| %s | %d | %d | %.1f | %s | %s | %s | %s |\n", way, f.Readers, rounds, r.pace(way),
				percent(wall), verdict(wall), percent(cpu), verdict(cpu))
		}
	}
	return b.String()
}
