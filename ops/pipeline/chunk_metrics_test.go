package pipeline

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"entropipe/ops/metrics"
	"entropipe/schemas"
)

// Each metric of chunks moves by its cause: duplicates, conflicts, lost chunks, wrong sums and
// large messages, and what waits is seen while it waits.
func TestChunkMetrics(t *testing.T) {
	chunks := func(id int, value string) []*schemas.Record {
		return schemas.ChunksOf(&schemas.Record{Value: []byte(value)}, 2, fmt.Sprintf("%016x", id))
	}
	twice, conflict, wrong, large := chunks(1, "abcdef"), chunks(2, "ghij"), chunks(3, "klmn"),
		chunks(4, strings.Repeat("o", 60))
	other, changed := *conflict[0], *wrong[1]
	other.Value, changed.Value = []byte("XX"), []byte("YY")
	lost := chunks(5, "pqrstu")
	order := []*schemas.Record{twice[0], twice[0], {Value: []byte("whole")}, conflict[0], &other, twice[1], wrong[0],
		&changed, large[0], large[1], twice[2], twice[1], lost[0], lost[1]}
	synctest.Test(t, func(t *testing.T) {
		l := &messageLog{end: int64(len(order)), perFetch: 3, rng: rand.New(rand.NewPCG(1, 1))}
		for i, r := range order {
			l.messages = append(l.messages, schemas.Message{Topic: "t", Offset: int64(i), Value: r.Value,
				Headers: r.Headers, Time: time.Unix(1, 0)})
		}
		reg, out := prometheus.NewRegistry(), &memoryOutput{}
		p := newPipeline(out, sums, func(c *Config) {
			c.Metrics, c.Chunks = metrics.New(reg, "test"), Chunks{Max: 50}
		})
		compare := func(when string, want ...string) {
			t.Helper()
			names := []string{"entropipe_chunks_total", "entropipe_chunked_frames_total",
				"entropipe_chunked_frames_open", "entropipe_chunked_frames_open_bytes"}
			var text bytes.Buffer
			for _, d := range metrics.Definitions() {
				name, some := metrics.Prefix+d.Name, false
				for _, line := range want {
					some = some || strings.HasPrefix(line, name+"{")
				}
				if some {
					fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, d.Help, d.Kind)
				}
				for _, line := range want {
					if strings.HasPrefix(line, name+"{") {
						fmt.Fprintln(&text, line)
					}
				}
			}
			if err := testutil.GatherAndCompare(reg, &text, names...); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		ended := make(chan error)
		go func() { ended <- p.Partition(t.Context(), "t", 0, l) }()
		time.Sleep(defaultChunkAge / 2)
		counted := []string{`entropipe_chunks_total{kind="duplicate",source="t"} 3`,
			`entropipe_chunks_total{kind="new",source="t"} 10`}
		decided := []string{`entropipe_chunked_frames_total{result="bad_checksum",source="t"} 1`,
			`entropipe_chunked_frames_total{result="chunk_conflict",source="t"} 1`}
		last := []string{`entropipe_chunked_frames_total{result="ok",source="t"} 1`,
			`entropipe_chunked_frames_total{result="too_large",source="t"} 1`}
		open := []string{`entropipe_chunked_frames_open{partition="0",topic="t"} 1`,
			fmt.Sprintf(`entropipe_chunked_frames_open_bytes{partition="0",topic="t"} %d`, 6+partCost)}
		compare("while a frame waits", slices.Concat(counted, decided, last, open)...)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		compare("at the end", slices.Concat(counted, decided,
			[]string{`entropipe_chunked_frames_total{result="incomplete",source="t"} 1`}, last)...)
		p.Close()
	})
}

// A chunk whose message an earlier commit has counts by itself.
func TestChunksAheadAreCounted(t *testing.T) {
	a := newAssembler(Chunks{}, &schemas.Chunked{Ahead: []int64{7}, Closed: []string{"00000000000000aa"}})
	records := schemas.ChunksOf(&schemas.Record{Value: []byte("ab")}, 1, "00000000000000aa")
	for i, r := range []*schemas.Record{records[1], records[0]} {
		m := schemas.Message{Offset: int64(7 + i), Value: r.Value, Headers: r.Headers}
		if is, opened, err := a.take(&m, time.Now(), free); is != continuation || opened != nil || err != nil {
			t.Errorf("offset %d: %v, %v, %v", m.Offset, is, opened, err)
		}
	}
	if want := (metrics.Chunks{Ahead: 1, Duplicate: 1}); a.counts != want {
		t.Errorf("%+v, want %+v", a.counts, want)
	}
}

// Chunks without bytes fill no window: the number of records bounds what waits, in any log, and
// the memory for it.
func TestChunksWithoutBytesAreGivenUp(t *testing.T) {
	a := newAssembler(Chunks{Records: 10}, nil)
	var given []int64
	for offset := range int64(100) {
		m := schemas.Message{Offset: offset, Headers: []schemas.Header{
			{Key: schemas.HeaderChunkID, Value: fmt.Appendf(nil, "%016x", offset)},
			{Key: schemas.HeaderChunkIndex, Value: []byte("0")}, {Key: schemas.HeaderChunkCount, Value: []byte("2")},
			{Key: schemas.HeaderFrameBytes, Value: []byte("5")},
			{Key: schemas.HeaderFrameCRC32C, Value: []byte("00000000")}}}
		if is, _, err := a.take(&m, time.Now(), free); is != beginning || err != nil {
			t.Fatalf("offset %d: %v, %v", offset, is, err)
		}
		for _, f := range a.decided(time.Now(), false) {
			if f.reason() != schemas.ReasonIncomplete || f.message.Offset != offset-10 {
				t.Errorf("after offset %d: %d is given up: %v", offset, f.message.Offset, f.refused)
			}
			given = append(given, f.message.Offset)
		}
		if len(a.open) > 10 {
			t.Fatalf("after offset %d: %d messages wait", offset, len(a.open))
		}
	}
	if len(given) != 90 {
		t.Errorf("given up: %v", given)
	}
}

// Headers of chunks fill the window as values do, and those that a message keeps are reserved.
func TestHeadersOfChunksCount(t *testing.T) {
	const size = 1 << 20
	a := newAssembler(Chunks{Window: 10 * size}, nil)
	var reserved, most int64
	for offset := range int64(40) {
		r := schemas.ChunksOf(&schemas.Record{Value: []byte("ab"), Headers: []schemas.Header{
			{Key: "large", Value: make([]byte, size)}}}, 1, fmt.Sprintf("%016x", offset))[0]
		m := schemas.Message{Offset: offset, Value: r.Value, Headers: r.Headers}
		is, _, err := a.take(&m, time.Now(), func(bytes int64) error {
			reserved += bytes
			return nil
		})
		if is != beginning || err != nil {
			t.Fatalf("offset %d: %v, %v", offset, is, err)
		}
		if waits := int64(len(a.open)) * size; reserved < waits {
			t.Fatalf("offset %d: %d bytes are reserved for headers of %d", offset, reserved, waits)
		}
		most = max(most, reserved)
		for _, f := range a.decided(time.Now(), false) {
			reserved -= f.reserved
		}
	}
	if most > 11*size {
		t.Errorf("%d bytes wait in a window of %d", most, 10*size)
	}
	for _, f := range a.open {
		reserved -= f.reserved
	}
	if reserved != 0 {
		t.Errorf("%d bytes were reserved and are in no message", reserved)
	}
}
