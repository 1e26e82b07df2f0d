package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"entropipe/ingest"
	"entropipe/schemas"
	"entropipe/sparse/hf"
)

// badProducer fills two topics so that a run with settings refuses a part of each: clouds of
// topic points that exceed settings' limit, some of them in chunks, and all scans of topic scans,
// which no header describes. mended are settings that accept all.
func badProducer(t *testing.T, brokers, dir string, scans int) (settings, mended []string) {
	t.Helper()
	produce := func(args ...string) {
		must(t, dir, append([]string{"produce", "synthetic", "--brokers", brokers, "--rate", "max"}, args...)...)
	}
	produce("--sequence", "small", "--frames", "20", "--points", "300")
	produce("--sequence", "large", "--frames", "6", "--points", "4000")
	produce("--sequence", "parted", "--frames", "6", "--points", "4000", "--chunk", "20KB")
	sendScans(t, brokers, "scans", 0, scans)
	common := []string{"run", "--brokers", brokers, "--topic", "points,scans", "--until-end", "--ops", "hull2d"}
	return append(slices.Clone(common), "--max-frame-bytes", "40KB"),
		append(slices.Clone(common), "--content-type", "scans=kitti")
}

// sendScans sends raw scans without a header, from number first on.
func sendScans(t *testing.T, brokers, topic string, first, n int) {
	t.Helper()
	ready(t, brokers, topic, 2)
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var rs []*kgo.Record
	for i := first; i < first+n; i++ {
		rs = append(rs, &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, "drive %d", i%3), Value: scan(20, i)})
	}
	if err := c.ProduceSync(t.Context(), rs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// sendLargeScans sends n raw scans of 160 KB.
func sendLargeScans(t *testing.T, brokers, topic string, n int) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range n {
		r := &kgo.Record{Topic: topic, Key: []byte("large"), Value: scan(10_000, i)}
		if err := c.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// inOut are args with an output.
func inOut(args []string, out string) []string { return append(slices.Clone(args), "--out", out) }

// sameByFrame checks that two outputs have the same rows but for where their records lie.
func sameByFrame(t *testing.T, got, want string) {
	t.Helper()
	for _, table := range []string{"frames", "hulls"} {
		rows := func(out string) (all []string) {
			for _, line := range rowsOf(t, out, table, "hull2d_ns", "latency_ns", "partition", "offset") {
				_, row, _ := strings.Cut(line, " ")
				all = append(all, row)
			}
			slices.Sort(all)
			return all
		}
		a, b := rows(got), rows(want)
		if len(b) == 0 {
			t.Fatalf("%s has no rows in table %s", want, table)
		}
		if !slices.Equal(a, b) {
			t.Fatalf("table %s: %d rows differ from the %d rows of %s", table, len(a), len(b), want)
		}
	}
}

// replayed returns how often each message was sent again to a topic.
func replayed(t *testing.T, brokers, topic string) map[string]int {
	t.Helper()
	l, err := ingest.OpenLookup(t.Context(), []string{brokers}, ingest.Security{}, topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	times := map[string]int{}
	for _, p := range l.Partitions {
		err := l.Each(t.Context(), p.ID, p.Start, p.End, func(m *schemas.Message) (bool, error) {
			c, chunk, _ := schemas.ChunkOf(m)
			if id, _, ok := schemas.ReplayOf(m.Headers); ok && (!chunk || c.Index == 0) {
				times[id.String()]++
			}
			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return times
}

// eachOnce checks that n messages were sent again to a topic, each once.
func eachOnce(t *testing.T, brokers, topic string, n int) {
	t.Helper()
	times := replayed(t, brokers, topic)
	for id, k := range times {
		if k != 1 {
			t.Errorf("%s was sent again %d times", id, k)
		}
	}
	if len(times) != n {
		t.Errorf("topic %s: %d messages were sent again, want %d", topic, len(times), n)
	}
}

// replaySummary is what replay --json says.
type replaySummary struct {
	Sent    int64 `json:"sent"`
	Before  int64 `json:"sent_before"`
	AtLimit int64 `json:"at_limit"`
	Partial int64 `json:"partial"`
	Gone    int64 `json:"gone"`
}

// summaryOf reads what replay --json said.
func summaryOf(t *testing.T, said string) (s replaySummary) {
	t.Helper()
	if err := json.Unmarshal([]byte(said), &s); err != nil {
		t.Fatalf("%v in %s", err, said)
	}
	return s
}

// A producer is bad, the settings are mended, and its messages are sent again by replays that
// are killed at many moments: each message is mended once, and the tables are those of a run
// that refused nothing.
func TestReplayMendsEachOnceWhateverDies(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	const scans, clouds = 900, 12
	bad, mended := badProducer(t, brokers, dir, scans)
	must(t, dir, inOut(mended, "want")...)
	must(t, dir, inOut(bad, "out")...)
	verified(t, filepath.Join(dir, "out"))

	args := func(to, reason string) []string {
		return []string{"replay", "out", "--brokers", brokers, "--to", to, "--reason", reason, "--json"}
	}
	dry := summaryOf(t, must(t, dir, append(args("scans", "not_arrow"), "--dry-run")...))
	if dry != (replaySummary{Sent: scans}) {
		t.Errorf("a dry run says %+v", dry)
	}
	eachOnce(t, brokers, "scans", 0)

	kills := 0
	for pause := time.Duration(0); ; pause += 45*time.Millisecond + pause/4 {
		p := launch(t, dir, args("scans", "not_arrow")...)
		time.Sleep(pause)
		p.killed()
		if p.cmd.ProcessState.ExitCode() == 0 {
			break
		}
		kills++
	}
	t.Logf("%d replays were killed; %d messages were there", kills, len(replayed(t, brokers, "scans")))
	both := []*process{launch(t, dir, args("points", "too_large")...), launch(t, dir, args("points", "too_large")...)}
	for _, p := range both { // one may be fenced by the other
		<-p.done
	}
	for to, reason := range map[string]string{"scans": "not_arrow", "points": "too_large"} {
		must(t, dir, args(to, reason)...)
		again := summaryOf(t, must(t, dir, args(to, reason)...))
		if again != (replaySummary{Before: map[string]int64{"scans": scans, "points": clouds}[to]}) {
			t.Errorf("%s: the last replay says %+v", to, again)
		}
	}
	eachOnce(t, brokers, "scans", scans)
	eachOnce(t, brokers, "points", clouds)

	must(t, dir, inOut(mended, "out")...)
	verified(t, filepath.Join(dir, "out"))
	sameByFrame(t, filepath.Join(dir, "out"), filepath.Join(dir, "want"))
	if rejects, err := countRows(filepath.Join(dir, "out", "rejects")); err != nil || rejects != scans+clouds {
		t.Errorf("%d rejects, %v; they stay", rejects, err)
	}
}

// What neither the topic nor the row has is gone, with exit status 1: retention has deleted the
// records, others have their offsets, or there is no topic.
func TestReplayOfWhatIsGone(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	for sequence, points := range map[string]string{"small": "20", "large": "9000"} {
		must(t, dir, "produce", "synthetic", "--brokers", brokers, "--rate", "max", "--partitions", "1",
			"--sequence", sequence, "--frames", "4", "--points", points)
	}
	must(t, dir, "run", "--brokers", brokers, "--topic", "points", "--until-end", "--out", "out",
		"--max-frame-bytes", "8KB")
	ready(t, brokers, "mended", 1)
	for _, c := range []struct {
		name string
		lose func()
	}{
		{"retention", func() { deleteRecords(t, brokers, "points", sent(t, brokers, "points")) }},
		{"recreated", func() {
			gone(t, brokers, "points")
			fill(t, brokers, "points", "other", 1, 60)
		}},
		{"deleted", func() { gone(t, brokers, "points") }},
	} {
		c.lose()
		p := launch(t, dir, "replay", "out", "--brokers", brokers, "--to", "mended", "--json")
		p.exits(1, patience)
		if s := summaryOf(t, p.out()); s != (replaySummary{Gone: 4}) {
			t.Errorf("%s: it says %+v: of no message the row is whole", c.name, s)
		}
		p.says("the values of 4 messages are gone")
		eachOnce(t, brokers, "mended", 0)
	}
}

// ready makes a topic.
func ready(t *testing.T, brokers, topic string, partitions int) {
	t.Helper()
	if err := ingest.EnsureTopic(t.Context(), []string{brokers}, ingest.Security{}, topic,
		ingest.TopicSpec{Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
}

// Rows that have the whole value replace a topic that is gone, to a topic of another name: the
// frames keep their keys. A message that is refused again and again is sent --max-replays times.
func TestReplayFromRowsAndItsLimit(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	sendScans(t, brokers, "scans", 0, 30)
	run := func(out, topic string, more ...string) {
		must(t, dir, append([]string{"run", "--brokers", brokers, "--topic", topic, "--until-end", "--out", out,
			"--ops", "hull2d", "--max-rejects", "none"}, more...)...)
	}
	run("want", "scans", "--content-type", "scans=kitti")
	run("out", "scans")
	gone(t, brokers, "scans")
	ready(t, brokers, "mended", 3)
	replay := func(more ...string) replaySummary {
		return summaryOf(t, must(t, dir, append([]string{"replay", "out", "--brokers", brokers, "--json",
			"--to", "mended"}, more...)...))
	}
	if s := replay(); s != (replaySummary{Sent: 30}) {
		t.Errorf("%+v", s)
	}
	run("mended", "mended", "--content-type", "mended=kitti")
	sameByFrame(t, filepath.Join(dir, "mended"), filepath.Join(dir, "want"))

	run("out", "mended") // refused again, by the settings of before
	if s := replay("--max-replays", "2"); s != (replaySummary{Sent: 30, Before: 30}) {
		t.Errorf("refused again: %+v", s)
	}
	run("out", "mended")
	if s := replay("--max-replays", "2"); s != (replaySummary{Before: 60, AtLimit: 30}) {
		t.Errorf("at the limit: %+v", s)
	}
	verified(t, filepath.Join(dir, "out"))
}

// Where the target is deleted while a replay goes on, or made again, the replay fails; another
// one sends all to the new topic.
func TestReplayToATopicThatIsMadeAgain(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	sendScans(t, brokers, "scans", 0, 50)
	must(t, dir, "run", "--brokers", brokers, "--topic", "scans", "--until-end", "--out", "out", "--max-rejects",
		"none")
	replay := []string{"replay", "out", "--brokers", brokers, "--to", "mended", "--json"}
	p := launch(t, dir, replay...)
	p.exits(1, patience)
	p.says("--to mended: topic .*does not exist")
	ready(t, brokers, "mended", 1)
	must(t, dir, replay...)
	gone(t, brokers, "mended")
	ready(t, brokers, "mended", 1)
	if s := summaryOf(t, must(t, dir, replay...)); s != (replaySummary{Sent: 50}) {
		t.Errorf("to the new topic: %+v", s)
	}
	eachOnce(t, brokers, "mended", 50)
	verified(t, filepath.Join(dir, "out"))
}

// Dead letters have the values that neither topic nor rows have, also in chunks; replays of the
// output and of the letters' topic know of each other. Letters without a value are gone.
func TestReplayOfDeadLetters(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	must(t, dir, "produce", "synthetic", "--brokers", brokers, "--rate", "max", "--sequence", "small", "--frames", "4",
		"--points", "100")
	must(t, dir, "produce", "synthetic", "--brokers", brokers, "--rate", "max", "--sequence", "huge", "--frames", "3",
		"--points", "30000")
	sendScans(t, brokers, "scans", 0, 8)
	sendLargeScans(t, brokers, "scans", 2) // their letters come in chunks
	if err := ingest.EnsureTopic(t.Context(), []string{brokers}, ingest.Security{}, "dead",
		ingest.TopicSpec{Partitions: 2, MaxMessageBytes: 60_000}); err != nil {
		t.Fatal(err)
	}
	run := func(out string, more ...string) {
		must(t, dir, append([]string{"run", "--brokers", brokers, "--until-end", "--out", out, "--ops", "hull2d"},
			more...)...)
	}
	run("want", "--topic", "scans", "--content-type", "scans=kitti")
	ready(t, brokers, "mended", 2)
	run("out", "--topic", "points,scans", "--dead-letter", "dead", "--max-frame-bytes", "300KB")
	gone(t, brokers, "points")
	gone(t, brokers, "scans")

	replay := func(status int, args ...string) replaySummary {
		p := launch(t, dir, append([]string{"replay", "--brokers", brokers, "--to", "mended", "--json"}, args...)...)
		p.exits(status, patience)
		return summaryOf(t, p.out())
	}
	if s := replay(1, "dead", "--reason", "too_large"); s != (replaySummary{Gone: 3}) {
		t.Errorf("letters without values: %+v", s)
	}
	if s := replay(0, "dead", "--reason", "not_arrow"); s != (replaySummary{Sent: 10}) {
		t.Errorf("from letters: %+v", s)
	}
	for range 2 {
		if s := replay(0, "dead", "--reason", "not_arrow"); s != (replaySummary{Before: 10}) {
			t.Errorf("letters again: %+v", s)
		}
		if s := replay(0, "out", "--reason", "not_arrow", "--dead-letter", "dead"); s != (replaySummary{Before: 10}) {
			t.Errorf("the output knows: %+v", s)
		}
	}
	ready(t, brokers, "other", 2)
	p := launch(t, dir, "replay", "out", "--brokers", brokers, "--to", "other", "--json", "--dead-letter", "dead")
	p.exits(1, patience)
	if s := summaryOf(t, p.out()); s != (replaySummary{Sent: 10, Gone: 3}) {
		t.Errorf("the output to another topic: %+v", s)
	}
	eachOnce(t, brokers, "mended", 10)
	eachOnce(t, brokers, "other", 10)
	for _, topic := range []string{"mended", "other"} {
		run(topic, "--topic", topic, "--content-type", topic+"=kitti")
		frames := func(out string) (rows []string) { // times are those of the letters
			for _, line := range rowsOf(t, filepath.Join(dir, out), "hulls", "partition", "offset", "ts", "ts_ns") {
				_, row, _ := strings.Cut(line, " ")
				rows = append(rows, row)
			}
			slices.Sort(rows)
			return rows
		}
		if got, want := frames(topic), frames("want"); len(want) != 10 || !slices.Equal(got, want) {
			t.Errorf("topic %s: %d hulls differ from %d", topic, len(got), len(want))
		}
	}
	verified(t, filepath.Join(dir, "out"))
}

// A message of which a part has rows is sent again only when that is asked for, since its other
// rows come again with it.
func TestReplayOfAPartlyRefusedMessage(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	lm := writeLM(t, dir, hf.BERT)
	sendSequences(t, brokers, "texts") // one message of two texts, of which the second is too long
	run := func(out, topic string, more ...string) {
		must(t, dir, append([]string{"run", "--brokers", brokers, "--topic", topic, "--out", out, "--until-end",
			"--lm", lm, "--max-rejects", "none"}, more...)...)
	}
	run("out", "texts")
	ready(t, brokers, "mended", 1)
	for _, c := range []struct {
		flags []string
		want  replaySummary
		sent  int
	}{
		{nil, replaySummary{Partial: 1}, 0},
		{[]string{"--partial", "--dry-run"}, replaySummary{Sent: 1}, 0},
		{[]string{"--partial"}, replaySummary{Sent: 1}, 1},
		{[]string{"--partial"}, replaySummary{Before: 1}, 1},
	} {
		args := append([]string{"replay", "out", "--brokers", brokers, "--to", "mended", "--json"}, c.flags...)
		p := launch(t, dir, args...)
		p.exits(0, patience)
		if s := summaryOf(t, p.out()); s != c.want {
			t.Errorf("%q: %+v, want %+v", c.flags, s, c.want)
		}
		eachOnce(t, brokers, "mended", c.sent)
	}
	run("mended", "mended", "--truncate")
	for out, want := range map[string]int64{"out": 1, "mended": 2} {
		if n, err := countRows(filepath.Join(dir, out, "tokens")); err != nil || n != want {
			t.Errorf("%s: %d sequences, want %d; %v", out, n, want, err)
		}
		verified(t, filepath.Join(dir, out))
	}
}
