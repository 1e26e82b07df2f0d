package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"entropipe/ingest"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/read"
)

// poison sends messages that are refused, until ctx ends: texts, tombstones, values in chunks.
// It returns how many, and the values of those in chunks.
func poison(ctx context.Context, t *testing.T, brokers string) (n int64, large map[string]bool) {
	o, err := ingest.OpenOutbox(context.WithoutCancel(ctx), ingest.OutboxConfig{Brokers: []string{brokers},
		Topic: "points", Chunk: 100_000, Patience: time.Minute})
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	var sending, acked atomic.Int64
	large = map[string]bool{}
	for ; ctx.Err() == nil; n++ {
		r := &schemas.Record{Key: fmt.Append(nil, "key ", n%5), Value: fmt.Append(nil, "no cloud ", n), From: int32(n),
			Headers: []schemas.Header{{Key: "number", Value: strconv.AppendInt(nil, n, 10)}, {Key: "empty"}}}
		switch n % 20 {
		case 3:
			r.Value = nil
		case 7:
			r.Key = nil
		case 11:
			r.Value = bytes.Repeat(r.Value, 250_000/len(r.Value))
			large[string(r.Value)] = true
		}
		sending.Add(1)
		if err := o.Send(context.WithoutCancel(ctx), r, func() { acked.Add(1) }); err != nil {
			t.Error(err)
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := o.Close(); err != nil || sending.Load() != acked.Load() {
		t.Errorf("%d of %d refused messages were acknowledged: %v", acked.Load(), sending.Load(), err)
	}
	return n, large
}

// whole puts the messages of a topic together that are in chunks there. Those whose chunks are
// not complete, because their sender died, are left out.
func whole(messages []schemas.Message) (all []schemas.Message) {
	type part struct {
		schemas.Chunk
		m schemas.Message
	}
	open := map[string]map[int]part{}
	for _, m := range messages {
		c, is, err := schemas.ChunkOf(&m)
		if err != nil || !is {
			all = append(all, m)
			continue
		}
		id := fmt.Sprint(m.Partition, "/", c.ID)
		if open[id] == nil {
			open[id] = map[int]part{}
		}
		open[id][c.Index] = part{c, m}
		if parts := open[id]; len(parts) == c.Count {
			first := parts[0].m
			for _, p := range parts {
				first.Offset = min(first.Offset, p.m.Offset)
			}
			first.Headers, first.Value = schemas.WithoutChunk(first.Headers), nil
			for i := range c.Count {
				first.Value = append(first.Value, parts[i].m.Value...)
			}
			all = append(all, first)
			delete(open, id)
		}
	}
	return all
}

// rejectRow is a row of table rejects.
type rejectRow struct {
	Topic     string `parquet:"-"`
	Partition int32  `parquet:"partition"`
	Offset    int64  `parquet:"offset"`
	Index     int32  `parquet:"index"`
	Stage     string `parquet:"stage"`
	Reason    string `parquet:"reason"`
	Message   string `parquet:"message"`
}

// rejectRows returns the rejects of an output, sorted.
func rejectRows(t *testing.T, out string) (rows []rejectRow) {
	t.Helper()
	err := eachTable(filepath.Join(out, "rejects"), func(f *parquet.File) error {
		r := parquet.NewGenericReader[rejectRow](f)
		defer r.Close()
		some := make([]rejectRow, r.NumRows())
		if n, err := r.Read(some); n < len(some) && err != io.EOF {
			return err
		}
		rows = append(rows, some...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(rows, func(a, b rejectRow) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset),
			cmp.Compare(a.Index, b.Index))
	})
	return rows
}

// matchLetters compares the dead letters of the topic points with the rejects of an output, and
// with the messages that they are about. It returns how many letters came again.
func matchLetters(t *testing.T, brokers, out, dead string) (again int) {
	t.Helper()
	store, err := sinks.OpenExisting(out)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	identity, err := read.Identify(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]schemas.Message{}
	for _, m := range whole(records(t, brokers, "points")) {
		sources[fmt.Sprintf("%s/points/%d/%d", identity.Store, m.Partition, m.Offset)] = m
	}
	rows := map[string][]rejectRow{}
	for _, r := range rejectRows(t, out) {
		of := fmt.Sprintf("%s/points/%d/%d", identity.Store, r.Partition, r.Offset)
		rows[of] = append(rows[of], r)
	}
	seen := map[string]bool{}
	for _, m := range whole(records(t, brokers, dead)) {
		d, err := schemas.ParseDeadLetter(m.Headers)
		if err != nil {
			t.Fatalf("%s/%d@%d: %v", dead, m.Partition, m.Offset, err)
		}
		of := strings.TrimSuffix(d.String(), fmt.Sprintf("/%d", d.Index))
		if seen[of] {
			again++
		}
		seen[of] = true
		source, is := sources[of]
		own := schemas.StripDeadLetter(m.Headers)
		if d.Stage != schemas.StageAssemble && (!is || !bytes.Equal(m.Key, source.Key) ||
			(m.Key == nil) != (source.Key == nil) || !slices.EqualFunc(own, source.Headers, sameHeader) ||
			d.ValueBytes < 0 && (!bytes.Equal(m.Value, source.Value) || (m.Value == nil) != (source.Value == nil))) {
			t.Errorf("letter %s differs from its message: key %q, headers %v, %d bytes (CRC %08x); the message has "+
				"%q, %v, %d bytes", d, m.Key, own, len(m.Value), crc32.ChecksumIEEE(m.Value), source.Key,
				source.Headers, len(source.Value))
		}
		if r := rows[of]; len(r) == 0 || int64(len(r)) != d.Rejects || r[0].Index != d.Index || r[0].Stage != d.Stage ||
			r[0].Reason != d.Reason || r[0].Message != d.Detail {
			t.Errorf("letter %+v has the rows %v", d, r)
		}
	}
	for of, r := range rows {
		if !seen[of] {
			t.Errorf("%s has no letter; rows %v", of, r)
		}
	}
	return again
}

func sameHeader(a, b schemas.Header) bool {
	return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
}

// Whatever dies, every refused message has its letter, whose key, value and headers are those
// of the message. Letters that are too large for their topic go in chunks.
func TestDeadLettersWhateverDies(t *testing.T) {
	t.Parallel()
	dir, address := t.TempDir(), ownAddress(t)
	out := filepath.Join(dir, "out")
	b := brokerProcess(t, dir, address)
	feeding := feed(t, dir, address, "points")
	small := ingest.TopicSpec{Partitions: 3, MaxMessageBytes: 110_000}
	if err := ingest.EnsureTopic(t.Context(), []string{address}, ingest.Security{}, "dead", small); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	type sent struct {
		n     int64
		large map[string]bool
	}
	poisoned := make(chan sent, 1)
	go func() {
		n, large := poison(ctx, t, address)
		poisoned <- sent{n, large}
	}()
	args := fast(address, "points", "--dead-letter", "dead", "--max-rejects", "none")
	r := launch(t, dir, args...)
	for i := range 3 {
		seen := manifests(t, out)
		waitFor(t, "commits", func() bool { return manifests(t, out) > seen+3 })
		if i == 1 {
			b.killed()
			time.Sleep(200 * time.Millisecond) // long enough to be missed
			b = brokerProcess(t, dir, address)
			continue
		}
		r.killed()
		r = launch(t, dir, args...)
	}
	stop()
	bad := <-poisoned
	n := stopFeed(t, address, "points", feeding)
	reaches(t, out, n)
	r.signal(syscall.SIGTERM)
	r.exits(0, patience)
	r.says(`dead_letters=[0-9]+ dead_letter_bytes=[0-9]+`)
	verified(t, out)
	again := matchLetters(t, address, out, "dead")
	if rows := int64(len(rejectRows(t, out))); rows < bad.n {
		t.Errorf("%d rejects of %d messages that cannot be used", rows, bad.n)
	}
	t.Logf("%d refused messages, %d in chunks; %d letters came again", bad.n, len(bad.large), again)
}

// Drawings of one message, a message beyond the limit, and one whose chunks are lost.
func TestWhatADeadLetterHolds(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	must(t, dir, "produce", "synthetic", "--frames", "3", "--points", "100", "--rate", "max", "--brokers", brokers)
	send := func(rs ...*schemas.Record) {
		t.Helper()
		o, err := ingest.OpenOutbox(t.Context(), ingest.OutboxConfig{Brokers: []string{brokers}, Topic: "points"})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			if err := o.Send(t.Context(), r, func() {}); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
	lost := schemas.ChunksOf(&schemas.Record{Key: []byte("lost"), Value: make([]byte, 3000),
		Headers: []schemas.Header{{Key: "a", Value: []byte("b")}}}, 1000, "00112233aabbccdd")
	send(&schemas.Record{Key: []byte("large"), Value: make([]byte, 2<<20)}, &schemas.Record{Key: []byte("text"),
		Value: []byte("hello")}, lost[0], lost[2])
	must(t, dir, "run", "--brokers", brokers, "--out", "out", "--until-end", "--dead-letter", "dead",
		"--max-frame-bytes", "1MiB", "--chunk-age", "1s", "--group", "a-group")
	byKey := map[string]string{}
	for _, m := range records(t, brokers, "dead") {
		d, err := schemas.ParseDeadLetter(m.Headers)
		if err != nil {
			t.Fatal(err)
		}
		byKey[string(m.Key)] = fmt.Sprintf("%s %s/%s %d bytes, %t, %s, %v, value %d, chunks %q, %s, %v", d.Topic,
			d.Stage, d.Reason, len(m.Value), m.Value == nil, schemas.StripDeadLetter(m.Headers), d.Retriable,
			d.ValueBytes, d.ChunkID, d.Group, d.Index)
	}
	want := map[string]string{
		"large": `points decode/too_large 0 bytes, true, [], true, value 2097152, chunks "", a-group, -1`,
		"text":  `points decode/not_arrow 5 bytes, false, [], true, value -1, chunks "", a-group, -1`,
		"lost": `points assemble/incomplete 0 bytes, true, [{a b}], false, value 3000, chunks "00112233aabbccdd", ` +
			`a-group, -1`,
	}
	for key, text := range want {
		if byKey[key] != text {
			t.Errorf("letter of %s:\n%s\nwant\n%s", key, byKey[key], text)
		}
	}
	if len(byKey) != 3 {
		t.Errorf("letters: %v", byKey)
	}
	if again := matchLetters(t, brokers, filepath.Join(dir, "out"), "dead"); again != 0 {
		t.Errorf("%d letters came again", again)
	}
	// The letters are read in their turn: each is refused once more, and goes to another topic.
	must(t, dir, "run", "--brokers", brokers, "--topic", "dead", "--out", "again", "--until-end", "--dead-letter",
		"deader", "--max-rejects", "none")
	for _, m := range records(t, brokers, "deader") {
		d, err := schemas.ParseDeadLetter(m.Headers)
		if err != nil || d.Topic != "dead" || d.Stage != schemas.StageDecode {
			t.Errorf("letter of a letter: %+v, %v", d, err)
		}
	}
}

// Items of an archive that are refused have letters, too, in the topic that the backfill makes.
func TestBackfillSendsDeadLetters(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	for i, points := range []int{10, 2000, 10} {
		text := "x,y,z\n" + strings.Repeat("0.25,0.5,0.75\n", points)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("cloud%d.csv", i)), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	b := launch(t, dir, "backfill", "csv", ".", "--out", "out", "--plan", "archive", "--brokers", brokers,
		"--dead-letter", "dead", "--max-frame-bytes", "16KiB")
	b.exits(0, patience)
	got := b.out() + b.log()
	if !strings.Contains(got, ", 1 rejects in ") || !strings.Contains(got, ", 1 dead letters") {
		t.Error(got)
	}
	letters, rows := records(t, brokers, "dead"), rejectRows(t, filepath.Join(dir, "out"))
	if len(letters) != 1 || len(rows) != 1 {
		t.Fatalf("%d letters of %v", len(letters), rows)
	}
	d, err := schemas.ParseDeadLetter(letters[0].Headers)
	if err != nil || d.Topic != "archive" || d.Offset != rows[0].Offset || d.Reason != schemas.ReasonTooLarge ||
		!d.Retriable || d.ValueBytes >= 0 || len(letters[0].Value) < 2000*12 || d.Group == "" {
		t.Errorf("%+v, %d bytes, %v; row %v", d, len(letters[0].Value), err, rows[0])
	}
}
