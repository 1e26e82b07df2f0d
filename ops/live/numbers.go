package live

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// Windows of the numbers, in samples, which are a second apart.
const (
	kept          = 600 // samples of a Series
	rateWindow    = 5
	latencyWindow = 10
	trendWindow   = 60
	leastTrend    = 10 // samples without which no trend is told
)

// Sample is what a process knows of itself at one moment.
type Sample struct {
	Time   time.Time
	Topics []TopicSample

	Partitions []Partition
	Health     []Health
	Ready      bool
	Reason     string
	// Patience is how far a process that keeps up may be behind, because it commits no
	// earlier.
	Patience time.Duration

	// Backfill is how far a process is that computes an archive; nil: it follows topics.
	Backfill *Backfill

	Stages  map[string]Work // by stage: fetch, decode, prepare, operate, message, batch, commit
	Queue   Queue           // messages that wait for a worker
	Workers int             // for decode, stage and operators

	CPUSeconds float64 // since the start
	Process    Process // but for CPUCores
	Group      Group
}

// TopicSample is the part of one topic.
type TopicSample struct {
	Topic   string
	Totals  Counts[int64]
	Latency []Times // since the last sample
}

// Times says that a latency occurred N times.
type Times struct {
	Ms float64
	N  int64
}

// Work is what a stage has done since the start.
type Work struct {
	Count   float64 // messages, frames or commits
	Seconds float64
}

// Numbers makes State and Series of samples. The zero value is ready. Any goroutine may
// call the methods.
type Numbers struct {
	Version, Revision string // set before the first Add

	mu      sync.Mutex
	begin   time.Time
	samples []Sample // the newest ones, oldest first: as many as trendWindow needs
	totals  []Counts[int64]
	points  [kept]point
	n       int // points so far
	state   State
}

// point is one second of the Series.
type point struct {
	second  int64
	rates   Counts[float64]
	latency Latency
	lag     float64
}

// Add adds the sample of a second.
func (n *Numbers) Add(s Sample) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.begin.IsZero() {
		n.begin = s.Time
	}
	var total Counts[int64]
	for i := range s.Topics {
		total.add(&s.Topics[i].Totals)
	}
	if len(n.samples) > trendWindow {
		n.samples, n.totals = slices.Delete(n.samples, 0, 1), slices.Delete(n.totals, 0, 1)
	}
	n.samples, n.totals = append(n.samples, s), append(n.totals, total)
	last := len(n.samples) - 1
	before := max(last-rateWindow, 0)
	old, span := &n.samples[before], s.Time.Sub(n.samples[before].Time).Seconds()
	st := State{TimeNs: s.Time.UnixNano(), UptimeS: s.Time.Sub(n.begin).Seconds(), Version: n.Version,
		Revision: n.Revision, Ready: s.Ready, Reason: s.Reason, Health: s.Health, Totals: total,
		Rates: rates(&n.totals[before], &total, span), Latency: n.latency(""), Topics: []TopicState{},
		Process: s.Process,
		Peers:   s.Group.Peers, PeersNote: s.Group.Note, Backfill: s.Backfill}
	for i := range s.Topics {
		t := &s.Topics[i]
		st.Topics = append(st.Topics, TopicState{Topic: t.Topic, Totals: t.Totals,
			Rates: rates(totalsOf(old, t.Topic), &t.Totals, span), Latency: n.latency(t.Topic)})
	}
	if span > 0 {
		st.Process.CPUCores = max(s.CPUSeconds-old.CPUSeconds, 0) / span
	}
	st.Lag = n.lag()
	st.Way = way(old, &s)
	st.Bottleneck, st.BottleneckReason = bottleneck(st.Way, &st.Lag, &s)
	if st.Health == nil {
		st.Health = []Health{}
	}
	if st.Peers == nil {
		st.Peers = []Peer{}
	}
	n.state = st
	n.record(&st, last)
}

// record appends the second to the series.
func (n *Numbers) record(st *State, last int) {
	p := point{second: time.Unix(0, st.TimeNs).Unix(), latency: st.Latency, lag: st.Lag.Seconds}
	if last > 0 {
		p.rates = rates(&n.totals[last-1], &n.totals[last],
			n.samples[last].Time.Sub(n.samples[last-1].Time).Seconds())
	}
	n.points[n.n%kept] = p
	n.n++
}

// totalsOf returns the totals of a topic in a sample; zeros if it had none.
func totalsOf(s *Sample, topic string) *Counts[int64] {
	for i := range s.Topics {
		if s.Topics[i].Topic == topic {
			return &s.Topics[i].Totals
		}
	}
	return &Counts[int64]{}
}

// State returns the state at the newest sample.
func (n *Numbers) State() State {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state
}

// Series returns the last seconds, at most ten minutes.
func (n *Numbers) Series(seconds int) Series {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := max(min(seconds, kept, n.n), 0)
	s := Series{Seconds: make([]int64, 0, count)}
	for _, column := range []*[]float64{&s.Frames, &s.Points, &s.BytesIn, &s.BytesOut, &s.Tokens, &s.Rejects,
		&s.LagSeconds} {
		*column = make([]float64, 0, count)
	}
	for _, column := range []*[]*float64{&s.P50, &s.P95, &s.P99} {
		*column = make([]*float64, 0, count)
	}
	for i := n.n - count; i < n.n; i++ {
		p := &n.points[i%kept]
		s.Seconds = append(s.Seconds, p.second)
		s.Frames, s.Points = append(s.Frames, p.rates.Frames), append(s.Points, p.rates.Points)
		s.BytesIn, s.BytesOut = append(s.BytesIn, p.rates.BytesIn), append(s.BytesOut, p.rates.BytesOut)
		s.Tokens, s.Rejects = append(s.Tokens, p.rates.Tokens), append(s.Rejects, p.rates.Rejects)
		s.P50, s.P95 = append(s.P50, p.latency.P50), append(s.P95, p.latency.P95)
		s.P99, s.LagSeconds = append(s.P99, p.latency.P99), append(s.LagSeconds, p.lag)
	}
	return s
}

// latency returns quantiles of the last seconds, of one topic or of all (empty).
func (n *Numbers) latency(topic string) Latency {
	var all []Times
	for i := max(len(n.samples)-latencyWindow, 0); i < len(n.samples); i++ {
		for k := range n.samples[i].Topics {
			if t := &n.samples[i].Topics[k]; topic == "" || t.Topic == topic {
				all = append(all, t.Latency...)
			}
		}
	}
	return quantiles(all)
}

// quantiles returns the quantiles of times, which it sorts.
func quantiles(times []Times) (l Latency) {
	slices.SortFunc(times, func(a, b Times) int { return cmp.Compare(a.Ms, b.Ms) })
	var n int64
	for _, t := range times {
		n += t.N
	}
	if n == 0 {
		return l
	}
	at := func(p float64) *float64 {
		rank, seen := int64(math.Ceil(p*float64(n))), int64(0)
		for _, t := range times {
			if seen += t.N; seen >= rank {
				return &t.Ms
			}
		}
		return &times[len(times)-1].Ms
	}
	return Latency{P50: at(.5), P95: at(.95), P99: at(.99)}
}

// lag returns the lag at the newest sample, with its trend.
func (n *Numbers) lag() Lag {
	s := &n.samples[len(n.samples)-1]
	l := Lag{Partitions: s.Partitions, Elsewhere: elsewhere(s), ElsewhereNote: s.Group.ElsewhereNote}
	if l.Partitions == nil {
		l.Partitions = []Partition{}
	}
	worst := worstOf(s)
	if worst != nil {
		l.Seconds = worst.Seconds
	}
	trend := math.NaN()
	if len(n.samples) > leastTrend {
		first := &n.samples[0]
		before := 0.
		if w := worstOf(first); w != nil {
			before = w.Seconds
		}
		trend = (l.Seconds - before) / s.Time.Sub(first.Time).Minutes()
	}
	if worst != nil && worst.keepsUp(s.Patience) { // a partition that is held may show no lag
		if i := slices.IndexFunc(s.Partitions, func(p Partition) bool { return p.Held != "" }); i >= 0 {
			worst = &s.Partitions[i]
		}
	}
	l.Verdict = verdict(worst, trend, s.Patience)
	if s.Backfill != nil && (worst == nil || worst.Held == "") {
		l.Verdict = s.Backfill.String()
	}
	return l
}

// elsewhere returns the partitions of others that this process does not read itself.
func elsewhere(s *Sample) []Elsewhere {
	others := []Elsewhere{}
	for _, o := range s.Group.Elsewhere {
		if !slices.ContainsFunc(s.Partitions, func(p Partition) bool {
			return p.Topic == o.Topic && p.Partition == o.Partition
		}) {
			others = append(others, o)
		}
	}
	return others
}

// worstOf returns the partition that is most behind; nil if there is none.
func worstOf(s *Sample) (worst *Partition) {
	for i := range s.Partitions {
		if p := &s.Partitions[i]; worst == nil || p.Seconds > worst.Seconds {
			worst = p
		}
	}
	return worst
}
