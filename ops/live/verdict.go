package live

import (
	"fmt"
	"math"
	"time"
)

// behindFrom is by how much a process must be behind what its batches explain, before it
// counts as behind.
const behindFrom = 3 * time.Second

// verdict says in words how far the worst partition is behind. trend is by how much that
// grows, seconds a minute; NaN: not known yet. worst is nil if there is no partition.
func verdict(worst *Partition, trend float64, patience time.Duration) string {
	switch {
	case worst == nil:
		return "no partition is assigned"
	case worst.Held != "":
		return worst.Held
	case worst.keepsUp(patience):
		return "keeping up"
	}
	text := duration(worst.Seconds) + " behind"
	switch {
	case math.IsNaN(trend):
		return text
	case trend >= .5:
		return fmt.Sprintf("%s, losing %s a minute", text, duration(trend))
	case trend <= -.5:
		return fmt.Sprintf("%s, gaining %s a minute", text, duration(-trend))
	}
	return text + ", neither gaining nor losing"
}

// keepsUp reports whether the partition is no further behind than batches explain.
func (p *Partition) keepsUp(patience time.Duration) bool {
	return p.Records == 0 || p.Seconds < (patience+behindFrom).Seconds()
}

// duration returns seconds as people write them: 12 s, 5 min, 2 h 5 min.
func duration(seconds float64) string {
	switch s := int64(seconds + .5); {
	case s < 120:
		return fmt.Sprintf("%d s", s)
	case s < 120*60:
		return fmt.Sprintf("%d min", (s+30)/60)
	default:
		minutes := (s + 30) / 60
		return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
	}
}

// way returns the stages of a frame's way between two samples.
func way(from, to *Sample) []Stage {
	span := to.Time.Sub(from.Time).Seconds()
	stage := func(name, work string, resources int) Stage {
		s := Stage{Stage: name}
		count := to.Stages[work].Count - from.Stages[work].Count
		seconds := to.Stages[work].Seconds - from.Stages[work].Seconds
		if count > 0 {
			s.Ms = seconds / count * 1e3
		}
		if span > 0 {
			s.Rate = max(count, 0) / span
			if resources > 0 {
				s.Busy = min(max(seconds, 0)/span/float64(resources), 1)
			}
		}
		return s
	}
	partitions := len(to.Partitions)
	stages := []Stage{stage("fetch", "fetch", partitions), stage("decode", "decode", to.Workers),
		stage("stage", "prepare", to.Workers), stage("operators", "operate", to.Workers),
		stage("batch", "batch", 0), stage("commit", "commit", partitions)}
	queue := to.Queue
	stages[1].Queue = &queue
	stages[4].Queue = &Queue{Length: float64(to.Process.Memory.Used), Capacity: float64(to.Process.Memory.Limit)}
	return stages
}

// Shares from which a resource counts as in use, and a queue as full.
const (
	mostlyBusy = .8
	nearlyFull = .9
)

// bottleneck names the stage that bounds the throughput, with the reason; none if nothing
// is behind and nothing is full.
func bottleneck(way []Stage, lag *Lag, s *Sample) (stage, reason string) {
	for _, h := range s.Health {
		switch {
		case h.OK || h.What == "disk": // a disk that is nearly full slows nothing down
		case h.What == "output":
			return "commit", h.Reason
		default: // brokers or archive
			return "fetch", h.Reason
		}
	}
	workers, commit, memory := &way[1], &way[5], way[4].Queue
	busy := 0.
	for i := 1; i <= 3; i++ {
		busy += way[i].Busy
		if way[i].Busy > workers.Busy {
			workers = &way[i]
		}
	}
	full := s.Queue.Capacity > 0 && s.Queue.Length >= nearlyFull*s.Queue.Capacity
	behind := lag.Seconds >= (s.Patience+behindFrom).Seconds() ||
		s.Backfill != nil && s.Backfill.ItemsDone < s.Backfill.Items
	switch {
	case commit.Busy >= mostlyBusy:
		return "commit", fmt.Sprintf("commits take %.0f %% of the time of %d partitions", 100*commit.Busy,
			len(s.Partitions))
	case full || busy >= mostlyBusy:
		return workers.Stage, fmt.Sprintf("%s take %.0f %% of the time of %d workers, %.0f of %.0f messages wait",
			plural(workers.Stage), 100*workers.Busy, s.Workers, s.Queue.Length, s.Queue.Capacity)
	case memory.Capacity > 0 && memory.Length >= nearlyFull*memory.Capacity:
		return "commit", "the memory is full of results that wait for a commit"
	case behind:
		return "fetch", fmt.Sprintf("workers are busy for %.0f %% of their time: they wait for records", 100*busy)
	}
	return "", "nothing waits"
}

func plural(stage string) string {
	switch stage {
	case "decode":
		return "decoders"
	case "stage":
		return "learned stages"
	}
	return stage
}
