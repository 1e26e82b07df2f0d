package top

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"entropipe/ops/live"
	"entropipe/ops/web"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
)

var update = flag.Bool("update", false, "write the pictures of testdata")

// began is the time of every picture.
var began = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func pointer(v float64) *float64 { return &v }

// busy is a process with much to show; some of its names are hostile.
func busy() *reading {
	s := &live.State{Version: "0.1.0", Revision: "0123456789abcdef", UptimeS: 3725, Ready: true,
		Health: []live.Health{{What: "brokers", OK: true}, {What: "output", Reason: "no space left on device"}},
		Totals: live.Counts[int64]{Messages: 36000, Frames: 36000, Points: 4_320_000_000, Sequences: 120,
			Tokens: 9000, Rejects: 42, BytesIn: 52_000_000_000, BytesOut: 1_234_567, Rows: 72000},
		Rates: live.Counts[float64]{Messages: 10, Frames: 9.8, Points: 1.2e6, Tokens: 250.5, Rejects: .2,
			BytesIn: 14.4e6, BytesOut: 512, Rows: 20},
		Latency: live.Latency{P50: pointer(41.25), P95: pointer(88), P99: pointer(1234)},
		Topics: []live.TopicState{{Topic: "points"},
			{Topic: "日本\x1b[2Jtexts", Latency: live.Latency{P95: pointer(88)}}},
		Lag: live.Lag{Verdict: "12 s behind, gaining 3 s a minute", Seconds: 12},
		Way: []live.Stage{{Stage: "fetch", Rate: 10, Ms: .4, Busy: .01},
			{Stage: "decode", Rate: 10, Ms: 2, Busy: .02, Queue: &live.Queue{Length: 63, Capacity: 64}},
			{Stage: "stage"}, {Stage: "operators", Rate: 10, Ms: 93.4, Busy: .93},
			{Stage: "batch", Queue: &live.Queue{Length: 1 << 20, Capacity: 1 << 28}},
			{Stage: "commit", Rate: .5, Ms: 20, Busy: .01}},
		Bottleneck:       "operators",
		BottleneckReason: "operators take 93 % of the time of 2 workers, 63 of 64 messages wait",
		Process: live.Process{CPUCores: 1.98, RSSBytes: 300 << 20, HeapBytes: 120 << 20, Goroutines: 88,
			Memory: live.Memory{Used: 1 << 20, Limit: 1 << 28}},
		Peers:    []live.Peer{{Name: "lidar2", URL: "http://lidar2:8421", Partitions: 2}},
		Watchers: live.Watchers{Pages: 1}}
	for i := range 8 {
		p := live.Partition{Topic: "points", Partition: int32(i), Records: int64(100 * i), Seconds: float64(i) * 1.5,
			Owner: "lidar1", CommitAgeS: pointer(float64(i))}
		if i == 3 {
			p.Held, p.CommitAgeS = "held by an open chunked frame", nil
		}
		s.Lag.Partitions = append(s.Lag.Partitions, p)
	}
	s.Lag.Elsewhere = []live.Elsewhere{{Topic: "points", Partition: 8, Owner: "lidar2"},
		{Topic: "points", Partition: 9}}
	series := &live.Series{}
	for i := range 60 {
		series.Frames = append(series.Frames, float64(i%10))
		series.Points = append(series.Points, float64(i))
		series.BytesIn = append(series.BytesIn, 1)
		series.P95 = append(series.P95, pointer(float64(60-i)))
	}
	r := &reading{at: began, state: s, series: series, rejects: []refusal{
		{Stage: "decode", Reason: "bad_stream", Count: 2}, {Stage: "decode", Reason: "no_points", Count: 40}},
		files: &web.Files{Out: "/data/out", Disk: web.Disk{Free: 5e9, Total: 1e12}, Tables: []web.Table{
			{Table: "frames", Files: 12, Rows: 36000, Bytes: 1 << 20, LastClose: began.Unix() - 90},
			{Table: "hulls", Files: 12, Rows: 36000, Bytes: 3 << 20}}}}
	r.rejects[0].Sample.Topic, r.rejects[0].Sample.Offset = "points", 77
	r.rejects[0].Sample.Message = "\x1b]0;owned\x07\u202e\u009b31m\r\n\xff begin"
	return r
}

// idle is a process that has just started.
func idle() *reading {
	return &reading{at: began, state: &live.State{Version: "0.1.0", Reason: "brokers do not answer",
		Lag: live.Lag{Verdict: "no partition is assigned"}}}
}

// folder is an output.
func folder() *reading {
	counts := record.Counts{Frames: 500, Sequences: 3, Rejects: 7}
	return &reading{at: began, outHistory: []float64{0, 5, 10}, outRates: map[string]float64{"frames": 10}, left: 0,
		out: &read.Summary{Store: "8c5de8ac-0000-4000-8000-000000000000",
			Tables: []read.TableReport{{Table: "frames", Files: 3, Rows: 500, Bytes: 9000}, {Table: "hulls"}},
			Partitions: []read.PartitionSummary{
				{PartitionReport: read.PartitionReport{Topic: "points", End: 510, Manifests: 3, Counts: counts},
					LastCommit: began.Add(-4 * time.Second)},
				{PartitionReport: read.PartitionReport{Topic: "points", Partition: 1},
					LastCommit: began.Add(-time.Hour)}}}}
}

// Pictures of all sizes are as wide and high as the window, hold no control character, and look as
// in testdata.
func TestPictures(t *testing.T) {
	large := folder()
	large.left = 98000
	for _, c := range []struct {
		name          string
		shown         *reading
		width, height int
		events        []any
	}{
		{"busy-40x10", busy(), 40, 10, nil},
		{"busy-80x24", busy(), 80, 24, nil},
		{"busy-80x24-lag", busy(), 80, 24, []any{keyPane3}},
		{"busy-80x24-scrolled", busy(), 80, 24, []any{keyPageDown, keyDown}},
		{"busy-160x50", busy(), 160, 50, nil},
		{"busy-30x4", busy(), 30, 4, nil},
		{"busy-80x24-rejects", busy(), 80, 24, []any{keyBack}},
		{"busy-80x24-help", busy(), 80, 24, []any{keyHelp}},
		{"busy-80x24-paused", busy(), 80, 24, []any{keyPause, idle(), keyPane2}},
		{"busy-80x24-lost", busy(), 80, 24, []any{failure{began.Add(3 * time.Second),
			errors.New("connection\x1b[31m refused"), 4 * time.Second}, began.Add(5 * time.Second)}},
		{"idle-80x24", idle(), 80, 24, nil},
		{"output-80x24", folder(), 80, 24, nil},
		{"output-130x12", folder(), 130, 12, nil},
		{"output-40x10-reading", large, 40, 10, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newModel("127.0.0.1:8421", began)
			m.take(c.shown)
			m.update(size{c.width, c.height})
			for _, event := range c.events {
				if m.update(event) {
					t.Fatalf("%v ended the program", event)
				}
			}
			got := pictureOf(t, m)
			path := filepath.Join("testdata", c.name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || got != string(want) {
				t.Errorf("%v; got\n%swant\n%s", err, got, want)
			}
		})
	}
}

// pictureOf returns the rows of the picture, after checks.
func pictureOf(t *testing.T, m *model) string {
	t.Helper()
	var b strings.Builder
	rows := m.view()
	if len(rows) != m.height {
		t.Errorf("%d rows, want %d", len(rows), m.height)
	}
	for i, r := range rows {
		if n := r.width(); n != m.width {
			t.Errorf("row %d has %d columns, want %d: %q", i, n, m.width, r.String())
		}
		if text := r.String(); text != safe(text) {
			t.Errorf("row %d has control characters: %q", i, text)
		}
		b.WriteString(r.String() + "\n")
	}
	return b.String()
}

// Every size has a picture, in every pane and position.
func TestAllSizes(t *testing.T) {
	for width := range 45 {
		for height := range 14 {
			for _, r := range []*reading{busy(), idle(), folder()} {
				m := newModel("[2001:db8::1]:8421", began)
				m.take(r)
				m.update(size{width, height})
				for pane := range panes {
					m.update(keyPane1 + key(pane))
					m.update(keyEnd)
					pictureOf(t, m)
				}
			}
		}
	}
}

// Keys and readings change the model as the list of keys says.
func TestUpdate(t *testing.T) {
	for _, c := range []struct {
		events []any
		want   string // pane, scroll, paused, help
		quit   bool
	}{
		{[]any{keyDown, keyDown, keyUp}, "0 1 false false", false},
		{[]any{keyUp, keyPageUp}, "0 0 false false", false},
		{[]any{keyPageDown, keyTop}, "0 0 false false", false},
		{[]any{keyNext, keyNext, keyBack}, "1 0 false false", false},
		{[]any{keyBack}, "3 0 false false", false},
		{[]any{keyEnd, keyPane2}, "1 0 false false", false},
		{[]any{keyPause, keyPause, keyPause}, "0 0 true false", false},
		{[]any{keyHelp}, "0 0 false true", false},
		{[]any{keyHelp, keyClose}, "0 0 false false", false},
		{[]any{keyHelp, keyQuit}, "0 0 false true", true},
		{[]any{keyQuit}, "0 0 false false", true},
		{[]any{keyNone, nil}, "0 0 false false", false},
		{[]any{keyEnd, size{80, 200}}, "0 0 false false", false},
	} {
		m := newModel("name", began)
		m.take(busy())
		m.update(size{80, 24})
		quit := false
		for _, event := range c.events {
			quit = m.update(event)
		}
		m.view()
		if got := fmt.Sprint(m.pane, " ", m.scroll, " ", m.paused, " ", m.help); got != c.want || quit != c.quit {
			t.Errorf("%v: %s, ends: %v; want %s, %v", c.events, got, quit, c.want, c.quit)
		}
	}
}

// Numbers count as stale when a reading fails or stays away, and no longer when one comes.
func TestStale(t *testing.T) {
	m := newModel("name", began)
	m.interval = time.Second
	m.take(busy())
	for i, c := range []struct {
		event any
		want  bool
	}{
		{began.Add(time.Second), false},
		{failure{began.Add(2 * time.Second), errors.New("gone"), time.Second}, true},
		{began.Add(3 * time.Second), true},
		{&reading{at: began.Add(4 * time.Second), state: busy().state}, false},
		{began.Add(9 * time.Second), false},
		{began.Add(11 * time.Second), true},
		{keyPause, false},
	} {
		m.update(c.event)
		if m.stale() != c.want {
			t.Errorf("event %d: stale %v", i, m.stale())
		}
	}
}
