package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	kafka "github.com/segmentio/kafka-go"

	"entropipe/ingest"
	"entropipe/models"
	"entropipe/schemas"
)

// rowsOf returns all rows of a table as text, without the columns named, in
// order of partition and offset.
func rowsOf(t *testing.T, out, table string, without ...string) []string {
	t.Helper()
	var lines []string
	err := eachTable(filepath.Join(out, table), func(f *parquet.File) error {
		names := f.Schema().Columns()
		rows := parquet.NewReader(f)
		defer rows.Close()
		for {
			row := make([]parquet.Row, 1)
			n, err := rows.ReadRows(row)
			if n > 0 {
				var line strings.Builder
				var key [2]int64
				for _, v := range row[0] {
					name := strings.Join(names[v.Column()], ".")
					switch name {
					case "partition":
						key[0] = int64(v.Int32())
					case "offset":
						key[1] = v.Int64()
					}
					if !slices.Contains(without, name) {
						fmt.Fprintf(&line, " %s=%x", name, v.Bytes())
					}
				}
				lines = append(lines, fmt.Sprintf("%d/%020d%s", key[0], key[1], &line))
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

// records returns what a topic holds, by partition in order.
func records(t *testing.T, brokers, topic string) (all []schemas.Message) {
	t.Helper()
	d, err := ingest.Describe(t.Context(), []string{brokers}, ingest.Security{}, topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Partitions {
		r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{brokers}, Topic: topic, Partition: int(p.ID), MaxWait: 100 * time.Millisecond})
		for next := p.Start; next < p.End; {
			m, err := r.ReadMessage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			msg := schemas.Message{Topic: topic, Partition: p.ID, Offset: m.Offset, Time: m.Time, Key: m.Key, Value: m.Value}
			for _, h := range m.Headers {
				msg.Headers = append(msg.Headers, schemas.Header{Key: h.Key, Value: h.Value})
			}
			all = append(all, msg)
			next = m.Offset + 1
		}
		r.Close()
	}
	return all
}

// What a consumer of the survivors writes is what a run on the whole frames
// writes, row for row; the rest of frames is times.
func TestConsumersOfSurvivorsWriteTheSameRows(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	for _, name := range []string{"a", "b", "e"} {
		must(t, dir, "produce", "synthetic", "--frames", "6", "--points", "9000", "--rate", "max", "--brokers", brokers, "--sequence", name)
	}
	must(t, dir, "produce", "synthetic", "--kind", "sketch", "--frames", "50", "--rate", "max", "--brokers", brokers)
	run := func(topic, out string, more ...string) string {
		p := launch(t, dir, append([]string{"run", "--brokers", brokers, "--topic", topic, "--out", out, "--until-end"}, more...)...)
		p.exits(0, patience)
		return p.log()
	}
	tables := []string{"--ops", "hull2d,hull3d,maxima2d,maxima3d,delaunay2d"}
	log := run("points", "whole", append(tables, "--publish", "survivors", "--for", "hull2d,hull3d,maxima3d")...)
	if want := fmt.Sprintf("published=%d ", sent(t, brokers, "points")); !strings.Contains(log, want) {
		t.Errorf("the log does not say %s", want)
	}
	run("points", "none", "--ops", "none", "--publish", "pruned", "--for", "hull2d,hull3d,maxima3d")
	for _, topic := range []string{"survivors", "pruned"} {
		run(topic, topic, tables...)
		whole, part := filepath.Join(dir, "whole"), filepath.Join(dir, topic)
		holdsAll(t, part)
		for _, table := range []string{"hulls", "hulls3d"} {
			if diff := cmp.Diff(rowsOf(t, whole, table), rowsOf(t, part, table)); diff != "" {
				t.Errorf("%s of %s (-whole +survivors):\n%.2000s", table, topic, diff)
			}
		}
		pruned := func(s string) bool { // maxima2d of what was pruned for other operators
			return strings.Contains(s, fmt.Sprintf("directions=%x ", "x:max,y:max")) && strings.Contains(s, fmt.Sprintf("sensor=%x", "lidar64"))
		}
		if diff := cmp.Diff(slices.DeleteFunc(rowsOf(t, whole, "maxima"), pruned), rowsOf(t, part, "maxima")); diff != "" {
			t.Errorf("maxima of %s (-whole +survivors):\n%.2000s", topic, diff)
		}
		status := map[string]map[string]int{}
		for _, op := range []string{"hull2d", "hull3d", "maxima2d", "maxima3d", "delaunay2d"} {
			counts, err := countValues(filepath.Join(part, "frames"), "status_"+op)
			if err != nil {
				t.Fatal(err)
			}
			status[op] = counts
		}
		want := map[string]map[string]int{"hull2d": {"ok": 67, "degenerate_line": 1}, "hull3d": {"ok": 18, "not_run": 50}, "maxima3d": {"ok": 18, "not_run": 50},
			"maxima2d": {"ok": 50, "pruned_input": 18}, "delaunay2d": {"ok": 49, "degenerate_line": 1, "pruned_input": 18}}
		if diff := cmp.Diff(want, status); diff != "" {
			t.Errorf("statuses of %s (-want +have):\n%s", topic, diff)
		}
	}
}

// Survivors that a producer sends are those that run would publish.
func TestProducedSurvivorsWriteTheSameRows(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	scene := []string{"produce", "synthetic", "--frames", "12", "--points", "12000", "--rate", "max", "--brokers", brokers}
	model := filepath.Join(dir, "model.safetensors")
	writeSeeds(t, model, 64, 0, models.Meta{})
	must(t, dir, scene...)
	summary := must(t, dir, append(scene, "--topic", "survivors", "--stage", "prune", "--for", "hull2d,hull3d,maxima3d", "--model", model)...)
	if frames(t, summary) != 12 {
		t.Errorf("the producer says %s", summary)
	}
	for _, topic := range []string{"points", "survivors"} {
		must(t, dir, "run", "--brokers", brokers, "--topic", topic, "--out", topic, "--until-end", "--ops", "hull2d,hull3d,maxima3d")
	}
	for _, table := range []string{"hulls", "hulls3d", "maxima"} {
		rows := rowsOf(t, filepath.Join(dir, "points"), table)
		if diff := cmp.Diff(rows, rowsOf(t, filepath.Join(dir, "survivors"), table)); diff != "" || len(rows) != 12 {
			t.Errorf("%s, %d rows (-whole +survivors):\n%.2000s", table, len(rows), diff)
		}
	}
	whole, part := 0, 0
	for _, m := range records(t, brokers, "points") {
		whole += len(m.Value)
	}
	for _, m := range records(t, brokers, "survivors") {
		part += len(m.Value)
	}
	if whole < 10*part {
		t.Errorf("%d bytes became %d", whole, part)
	}
}

// holdsAll checks that the three sequences and the drawings are all there.
func holdsAll(t *testing.T, out string) {
	t.Helper()
	verified(t, out)
	if rows, err := countRows(filepath.Join(out, "frames")); err != nil || rows != 68 {
		t.Fatalf("%d frames, %v", rows, err)
	}
}

// Whatever dies, each record's survivors are in the topic, again and again but
// always the same, and in order where they are there for the first time.
func TestSurvivorsArePublishedWhateverDies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	address := ownAddress(t)
	b := brokerProcess(t, dir, address)
	feeding := feed(t, dir, address, "points")
	args := fast(address, "points", "--publish", "survivors", "--for", "hull2d,maxima3d")
	r := launch(t, dir, args...)
	for i := range 4 {
		seen := manifests(t, out)
		waitFor(t, "commits", func() bool { return manifests(t, out) > seen+3 })
		if i == 2 {
			b.killed()
			time.Sleep(200 * time.Millisecond) // long enough to be missed
			b = brokerProcess(t, dir, address)
			continue
		}
		r.killed()
		r = launch(t, dir, args...)
	}
	n := stopFeed(t, address, "points", feeding)
	waitFor(t, "the rest", func() bool { return reached(t, out) >= n })
	r.signal(syscall.SIGTERM)
	r.exits(0, patience)
	holds(t, out, n)

	values, next := map[string]string{}, map[int32]map[string]int64{}
	for _, m := range records(t, address, "survivors") {
		var from string
		for _, h := range m.Headers {
			if h.Key == schemas.HeaderPublishedFrom {
				from = string(h.Value)
			}
		}
		if old, ok := values[from]; ok {
			if old != string(m.Value) {
				t.Fatalf("%s was published twice, and differently", from)
			}
			continue
		}
		values[from] = string(m.Value)
		var partition int32
		var offset int64
		if _, err := fmt.Sscanf(from, "points/%d/%d", &partition, &offset); err != nil {
			t.Fatalf("%s: %q", schemas.HeaderPublishedFrom, from)
		}
		if next[partition] == nil {
			next[partition] = map[string]int64{}
		}
		if last := next[partition][string(m.Key)]; offset < last {
			t.Fatalf("%s follows offset %d", from, last)
		}
		next[partition][string(m.Key)] = offset
	}
	if int64(len(values)) != n {
		t.Errorf("survivors of %d records are in the topic, want %d", len(values), n)
	}
}
