package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	kafka "github.com/segmentio/kafka-go"

	"entropipe/benchmarks/rig"
	"entropipe/ingest/broker"
)

// maximaRow is a table's row with the kinds of columns that there are: keys, a
// list, a null.
type maximaRow struct {
	FrameID    int64    `parquet:"frame_id,delta"`
	Partition  int32    `parquet:"partition"`
	Offset     int64    `parquet:"offset,delta"`
	Idx        []int32  `parquet:"idx,list"`
	ErrorBound *float64 `parquet:"error_bound,optional"`
}

func maximaRows(n int) []maximaRow {
	rows := make([]maximaRow, n)
	for i := range rows {
		rows[i] = maximaRow{FrameID: int64(i), Offset: int64(i), Idx: slices.Repeat([]int32{int32(i)}, i%4)}
	}
	return rows
}

// writeTable writes rows into files of at most each rows.
func writeTable(t *testing.T, rows []maximaRow, each int) string {
	t.Helper()
	out := t.TempDir()
	dir := filepath.Join(out, "maxima", "dataset=kitti", "topic=points")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(rows); i += each {
		name := fmt.Sprintf("part-0-%020d.parquet", i)
		if err := parquet.WriteFile(filepath.Join(dir, name), rows[i:min(i+each, len(rows))]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestCompareSeesRowsNotFiles: the cut into files makes no difference, every
// change of a row does.
func TestCompareSeesRowsNotFiles(t *testing.T) {
	const n = 1500
	bound := 0.5
	for _, c := range []struct {
		name         string
		change       func([]maximaRow) []maximaRow
		keys, others int64
		ends         bool
	}{
		{"nothing", func(r []maximaRow) []maximaRow { return r }, 0, 0, false},
		{"a list value", func(r []maximaRow) []maximaRow { r[703].Idx[0]++; return r }, 0, 1, false},
		{"a shorter list", func(r []maximaRow) []maximaRow { r[703].Idx = r[703].Idx[1:]; return r }, 0, 1, false},
		{"a null", func(r []maximaRow) []maximaRow { r[3].ErrorBound = &bound; return r }, 0, 1, false},
		{"an offset", func(r []maximaRow) []maximaRow { r[1499].Offset++; return r }, 1, 0, false},
		{"two rows swapped", func(r []maximaRow) []maximaRow { r[1], r[2] = r[2], r[1]; return r }, 0, 2, false},
		{"a row missing at the end", func(r []maximaRow) []maximaRow { return r[:n-1] }, 0, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := writeTable(t, maximaRows(n), 1000), writeTable(t, c.change(maximaRows(n)), 170)
			d, err := compareTable(a, b, "maxima")
			if (err != nil) != c.ends || d.keyOnly != c.keys || d.other != c.others {
				t.Errorf("got %+v, %v; want %d, %d", d, err, c.keys, c.others)
			}
			if same := c.name == "nothing"; (compareOutputs(a, b, []string{"maxima"}) == nil) != same {
				t.Errorf("compareOutputs: %v", compareOutputs(a, b, []string{"maxima"}))
			}
		})
	}
}

// TestCompareOfNothing: two outputs without rows are no proof of equality.
func TestCompareOfNothing(t *testing.T) {
	if err := compareOutputs(t.TempDir(), t.TempDir(), []string{"hulls"}); err == nil {
		t.Error("two empty outputs compare as equal")
	}
}

// TestSequencesCoverPartitions: keyed as producers key them, every partition
// gets one of the names.
func TestSequencesCoverPartitions(t *testing.T) {
	ids := []int{0, 1, 2, 3, 4, 5, 6}
	for p, name := range sequences(len(ids)) {
		if got := (kafka.Murmur2Balancer{}).Balance(kafka.Message{Key: []byte(name)}, ids...); got != p {
			t.Errorf("%s goes to partition %d, want %d", name, got, p)
		}
	}
}

// TestGrowthComparesLateWithEarly on a curve that rises by one a frame.
func TestGrowthComparesLateWithEarly(t *testing.T) {
	var s []sample
	for i := range int64(100) {
		s = append(s, sample{Frames: i * 100, RSS: 1000 + i*100})
	}
	if g, ok := growth(s, 10000); !ok || g < 6900 || g > 7200 {
		t.Errorf("growth %v, %v; want about 7050", g, ok)
	}
	for _, short := range []struct {
		samples []sample
		frames  int64
	}{{s[:50], 10000}, {s, 4000}, {nil, 10000}} {
		if g, ok := growth(short.samples, short.frames); ok || g != 0 {
			t.Errorf("growth of %d samples over %d frames: %v", len(short.samples), short.frames, g)
		}
	}
}

// TestFramesOfMetrics adds up what is committed in table frames, whatever else
// stands on the page.
func TestFramesOfMetrics(t *testing.T) {
	const page = `# TYPE entropipe_output_rows_total counter
entropipe_output_rows_total{table="hulls"} 7
entropipe_output_rows_total{table="frames"} 1.5e+03
entropipe_output_rows_total_created{table="frames"} 9
go_goroutines 4
`
	if n, err := parseFrames(strings.NewReader(page)); err != nil || n != 1500 {
		t.Errorf("got %d, %v; want 1500", n, err)
	}
	if n, err := parseFrames(strings.NewReader("entropipe_output_rows_total{table=\"frames\"} many\n")); err == nil {
		t.Errorf("got %d from a broken page, want an error", n)
	}
}

// TestFetchReadsEveryByte: the yardstick counts all values of all partitions.
func TestFetchReadsEveryByte(t *testing.T) {
	b, err := broker.Start(broker.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c := rig.NewClient(b.Addr())
	defer c.Close()
	if err := c.CreateTopic(t.Context(), "bytes", 3, maxMessage); err != nil {
		t.Fatal(err)
	}
	var want fetched
	for i := range 30 {
		size := 1000 * i
		r, err := c.Produce(t.Context(), &kafka.ProduceRequest{Topic: "bytes", Partition: i % 3,
			RequiredAcks: kafka.RequireAll,
			Records:      kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes(make([]byte, size))})})
		if err != nil || r.Error != nil {
			t.Fatal(err, r)
		}
		want.Records++
		want.Bytes += int64(size)
	}
	got, err := fetchAll(t.Context(), b.Addr(), "bytes")
	if err != nil || got.Records != want.Records || got.Bytes != want.Bytes || got.Seconds <= 0 {
		t.Errorf("got %+v, %v; want %+v in some time", got, err, want)
	}
}

// The committed page is the one that the committed records make.
func TestPageComesFromRecords(t *testing.T) {
	const results = "../results"
	page, err := report(results)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(results, "e2e.md")); err != nil || string(text) != page {
		t.Errorf("e2e.md is not what `go run ./benchmarks/e2e report` makes (%v)", err)
	}
}

// A line is of the newest run, and the Python pipeline is compared with the run
// of its own command.
func TestReportTakesRunsTogether(t *testing.T) {
	share := func(round int, seconds float64) measurement {
		return measurement{Figures: figures{What: "share", Broker: rig.Kafka, Ops: opsPlain, Round: round, Frames: 100,
			Seconds: seconds, FetchSeconds: 1, ValueBytes: 1e8}}
	}
	python := measurement{Figures: figures{What: "python", Broker: rig.Kafka, Ops: "hull,maxima", Frames: 30,
		Seconds: 10, FramesPerSecond: 5}}
	lines := throughputLines([]measurement{share(1, 4), share(2, 4), share(3, 5), python, share(1, 2)})
	if len(lines) != 2 {
		t.Fatalf("lines: %v", lines)
	}
	if want := "50 frames/s, 50 MB/s; raw fetch 100 MB/s; share 0.50 (net 0.50)"; lines[0].result != want ||
		len(lines[0].run) != 1 {
		t.Errorf("%q of %d rounds, want %q of one", lines[0].result, len(lines[0].run), want)
	}
	if want := "5.0 times: 25.0 frames/s beside 5.00"; lines[1].result != want || len(lines[1].run) != 3 {
		t.Errorf("%q of %d rounds, want %q of three", lines[1].result, len(lines[1].run), want)
	}
}

// Shares are of pairs, memory of the largest run of each kind.
func TestChunksArePaired(t *testing.T) {
	pair := func(round int, seconds, whole float64) measurement {
		return measurement{Figures: figures{What: "pair", Broker: rig.Kafka, Ops: opsPlain, Round: round, Frames: 100,
			Seconds: seconds, WholeSeconds: whole, CPUSeconds: 3, WholeCPUSeconds: 2, MaxRSS: 300e6,
			WholeMaxRSS: 290e6}}
	}
	lines := chunkLines([]measurement{pair(1, 1, 9), pair(1, 10, 9), pair(2, 20, 19), pair(3, 5, 2)})
	if len(lines) != 1 || len(lines[0].run) != 3 {
		t.Fatalf("lines: %v", lines)
	}
	if want := "0.90 of the rate of whole frames (10 frames/s beside 11), 1.50 times the processor time; peak 300 MB " +
		"resident beside 290"; lines[0].result != want {
		t.Errorf("%q, want %q", lines[0].result, want)
	}
}
