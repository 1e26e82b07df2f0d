package live

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func TestVerdict(t *testing.T) {
	at := func(records int64, seconds float64) *Partition {
		return &Partition{Topic: "points", Records: records, Seconds: seconds}
	}
	unknown := math.NaN()
	for _, c := range []struct {
		worst    *Partition
		trend    float64
		patience time.Duration
		want     string
	}{
		{nil, unknown, 0, "no partition is assigned"},
		{at(0, 0), unknown, 0, "keeping up"},
		{at(5, 2.9), 10, 0, "keeping up"},
		{at(5, 12), unknown, 0, "12 s behind"},
		{at(5, 12), -3, 0, "12 s behind, gaining 3 s a minute"},
		{at(5, 12), 3, 0, "12 s behind, losing 3 s a minute"},
		{at(5, 12), .4, 0, "12 s behind, neither gaining nor losing"},
		{at(5, 12), 60, 10 * time.Second, "keeping up"},
		{at(5, 34), 60, 30 * time.Second, "34 s behind, losing 60 s a minute"},
		{at(5, 600), -200, 0, "10 min behind, gaining 3 min a minute"},
		{at(5, 7*3600+120), unknown, 0, "7 h 2 min behind"},
		{&Partition{Records: 5, Seconds: 12, Held: "held: the output cannot be written"}, 3, 0,
			"held: the output cannot be written"},
	} {
		if got := verdict(c.worst, c.trend, c.patience); got != c.want {
			t.Errorf("%+v, trend %g, patience %v: %q, want %q", c.worst, c.trend, c.patience, got, c.want)
		}
	}
}

// A partition that is held is told, though others are further behind, unless one of these does
// not keep up.
func TestVerdictOfHeldPartition(t *testing.T) {
	held := Partition{Partition: 1, Held: "held by an open transaction"}
	for _, c := range []struct {
		seconds float64
		want    string
	}{{0, held.Held}, {2, held.Held}, {20, "20 s behind"}} {
		var n Numbers
		n.Add(Sample{Time: time.Unix(1, 0), Partitions: []Partition{{Records: 5, Seconds: c.seconds}, held}})
		if got := n.State().Lag.Verdict; got != c.want {
			t.Errorf("%g s behind: %q, want %q", c.seconds, got, c.want)
		}
	}
}

// A backfill says how far its lanes are, unless it stands still.
func TestVerdictOfBackfill(t *testing.T) {
	left := 171.
	for _, c := range []struct {
		is   Backfill
		held string
		want string
	}{
		{Backfill{Lanes: 97, LanesDone: 12, LeftS: &left}, "", "backfill: 12 of 97 lanes, 3 min left"},
		{Backfill{Lanes: 97, LanesDone: 12}, "", "backfill: 12 of 97 lanes"},
		{Backfill{Lanes: 97, LanesDone: 97, LeftS: &left}, "", "backfill: 97 of 97 lanes"},
		{Backfill{}, "", "backfill: 0 of 0 lanes"},
		{Backfill{Lanes: 97}, "held: the disk is full", "held: the disk is full"},
	} {
		var n Numbers
		n.Add(second(0, func(s *Sample) {
			s.Backfill, s.Partitions = &c.is, []Partition{{Records: 7, Held: c.held}}
		}))
		if s := n.State(); s.Lag.Verdict != c.want || s.Backfill == nil {
			t.Errorf("%+v: %q, want %q", c.is, s.Lag.Verdict, c.want)
		}
	}
}

// second returns the sample of second i of a process that works at a constant rate.
func second(i int, change func(*Sample)) Sample {
	n := int64(i)
	s := Sample{Time: time.Unix(1_700_000_000+n, 0), Ready: true, Workers: 2, Queue: Queue{0, 8},
		Topics: []TopicSample{
			{Topic: "a", Totals: Counts[int64]{Messages: 10 * n, Frames: 10 * n, Points: 1000 * n, BytesIn: 500 * n},
				Latency: []Times{{100, 9}, {900, 1}}},
			{Topic: "b", Totals: Counts[int64]{Messages: n, Sequences: n, Tokens: 40 * n, Rejects: n},
				Latency: []Times{{20, 10}}}},
		Partitions: []Partition{{Topic: "a"}, {Topic: "b"}},
		Stages: map[string]Work{"fetch": {float64(n), float64(n) * .1}, "decode": {10 * float64(n), .02 * float64(n)},
			"operate": {10 * float64(n), .4 * float64(n)}, "batch": {float64(n), float64(n)},
			"commit": {float64(n), .1 * float64(n)}},
		CPUSeconds: 1.5 * float64(n), Process: Process{Memory: Memory{10, 100}}}
	if change != nil {
		change(&s)
	}
	return s
}

func TestNumbers(t *testing.T) {
	n := Numbers{Version: "1.2.3"}
	for i := range 700 {
		n.Add(second(i, nil))
	}
	s := n.State()
	if s.Rates.Frames != 10 || s.Rates.Points != 1000 || s.Rates.Tokens != 40 || s.Rates.Messages != 11 {
		t.Errorf("rates %+v", s.Rates)
	}
	if s.Totals.Frames != 6990 || s.UptimeS != 699 || s.Process.CPUCores != 1.5 || s.Version != "1.2.3" {
		t.Errorf("totals %+v, up %g, cores %g", s.Totals, s.UptimeS, s.Process.CPUCores)
	}
	if *s.Latency.P50 != 20 || *s.Latency.P95 != 100 || *s.Latency.P99 != 900 {
		t.Errorf("latency of all %g %g %g", *s.Latency.P50, *s.Latency.P95, *s.Latency.P99)
	}
	if a := s.Topics[0]; a.Topic != "a" || a.Rates.Frames != 10 || *a.Latency.P50 != 100 || *a.Latency.P99 != 900 {
		t.Errorf("topic a %+v", a)
	}
	if s.Lag.Verdict != "keeping up" || s.Bottleneck != "" || s.BottleneckReason != "nothing waits" {
		t.Errorf("%q, bottleneck %q: %q", s.Lag.Verdict, s.Bottleneck, s.BottleneckReason)
	}
	if op := s.Way[3]; op.Stage != "operators" || op.Rate != 10 || math.Abs(op.Ms-40) > 1e-9 ||
		math.Abs(op.Busy-.2) > 1e-9 {
		t.Errorf("operators %+v", op)
	}
	all := n.Series(10_000)
	if len(all.Seconds) != 600 || all.Seconds[599] != 1_700_000_699 || all.Frames[0] != 10 || len(all.P99) != 600 {
		t.Errorf("%d seconds to %d, %d quantiles", len(all.Seconds), all.Seconds[599], len(all.P99))
	}
	if one := n.Series(-1); one.Seconds == nil || len(one.Seconds) != 0 {
		t.Errorf("no seconds: %v", one.Seconds)
	}
	if len(n.samples) > trendWindow+1 {
		t.Errorf("%d samples are kept", len(n.samples))
	}
}

// A process that has done nothing yet has a state, whose lists are no null.
func TestEmptyStateIsWhole(t *testing.T) {
	var n Numbers
	n.Add(Sample{Time: time.Now()})
	for name, v := range map[string]any{"state": n.State(), "series": n.Series(5)} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if rest := strings.ReplaceAll(string(text), `"queue":null`, ""); strings.Contains(
			strings.NewReplacer(`"p50_ms":null`, "", `"p95_ms":null`, "", `"p99_ms":null`, "", "[null]",
				"").Replace(rest),
			"null") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestTrend(t *testing.T) {
	for _, c := range []struct {
		grows float64 // seconds a second
		want  string
	}{{-.05, "gaining 3 s a minute"}, {.05, "losing 3 s a minute"}, {1, "losing 60 s a minute"},
		{0, "neither gaining nor losing"}} {
		var n Numbers
		for i := range 100 {
			n.Add(second(i, func(s *Sample) {
				s.Partitions[1].Records, s.Partitions[1].Seconds = 9, 200+c.grows*float64(i)
			}))
			if v := n.State().Lag.Verdict; i < leastTrend && strings.Contains(v, ",") {
				t.Errorf("%g: %q after %d seconds", c.grows, v, i)
			}
		}
		if v := n.State().Lag.Verdict; !strings.HasSuffix(v, c.want) {
			t.Errorf("%g: %q, want %q", c.grows, v, c.want)
		}
	}
}

func TestBottleneck(t *testing.T) {
	for _, c := range []struct {
		name, want, reason string
		change             func(i float64, s *Sample)
	}{
		{"idle", "", "nothing waits", func(float64, *Sample) {}},
		{"operators", "operators", "operators take 95 % of the time of 2 workers, 8 of 8 messages wait",
			func(i float64, s *Sample) {
				s.Stages["operate"], s.Queue.Length = Work{10 * i, 1.9 * i}, 8
			}},
		{"decode", "decode", "decoders take 90 %", func(i float64, s *Sample) {
			s.Stages["decode"], s.Queue.Length = Work{10 * i, 1.8 * i}, 8
		}},
		{"learned stage", "stage", "learned stages take 70 %", func(i float64, s *Sample) {
			s.Stages["prepare"], s.Queue.Length = Work{10 * i, 1.4 * i}, 8
		}},
		{"commit", "commit", "commits take 95 % of the time of 2 partitions", func(i float64, s *Sample) {
			s.Stages["commit"], s.Queue.Length = Work{i, 1.9 * i}, 8
		}},
		{"memory", "commit", "the memory is full", func(_ float64, s *Sample) { s.Process.Memory.Used = 95 }},
		{"fetch", "fetch", "they wait for records", func(_ float64, s *Sample) {
			s.Partitions[0].Records, s.Partitions[0].Seconds = 9, 60
		}},
		{"archive", "fetch", "they wait for records", func(_ float64, s *Sample) {
			s.Backfill = &Backfill{Lanes: 3, Items: 9, ItemsDone: 8}
		}},
		{"archive at its end", "", "nothing waits", func(_ float64, s *Sample) {
			s.Backfill = &Backfill{Lanes: 3, LanesDone: 3, Items: 9, ItemsDone: 9}
		}},
		{"output", "commit", "disk full", func(_ float64, s *Sample) {
			s.Health = []Health{{"brokers", true, ""}, {"output", false, "disk full"}}
		}},
		{"brokers", "fetch", "no broker answers", func(_ float64, s *Sample) {
			s.Health = []Health{{"brokers", false, "no broker answers"}}
		}},
		{"full disk", "", "nothing waits", func(_ float64, s *Sample) {
			s.Health = []Health{{"brokers", true, ""}, {"output", true, ""}, {"disk", false, "less than 1 %"}}
		}},
	} {
		var n Numbers
		for i := range 8 {
			n.Add(second(i, func(s *Sample) { c.change(float64(i), s) }))
		}
		if s := n.State(); s.Bottleneck != c.want || !strings.Contains(s.BottleneckReason, c.reason) {
			t.Errorf("%s: %q because %q, want %q because %q", c.name, s.Bottleneck, s.BottleneckReason, c.want,
				c.reason)
		}
	}
}

// A counter that begins anew, and two samples of one moment, give no rate below zero and no
// infinity.
func TestRatesStayFinite(t *testing.T) {
	var n Numbers
	for _, i := range []int{100, 100, 3, 4} {
		n.Add(second(i, nil))
		s := n.State()
		for k, r := range s.Rates.all() {
			if *r < 0 || *r-*r != 0 {
				t.Errorf("after %d: rate %d is %g", i, k, *r)
			}
		}
		text := fmt.Sprint(s.Way, s.Process.CPUCores)
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("after %d: %s", i, text)
		}
	}
}
