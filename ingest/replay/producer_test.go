package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kafka "github.com/segmentio/kafka-go"

	"entropipe/algos/geomtest"
	"entropipe/ingest"
	"entropipe/ingest/broker"
	"entropipe/schemas"
)

func startBroker(t testing.TB, cfg broker.Config) *broker.Broker {
	t.Helper()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	b, err := broker.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// soon is a context that ends a test which hangs.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until ok. It may be called beside the test.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("never: %s", what)
			return
		}
	}
}

// consume returns n messages of a topic of that many partitions, in order
// within a partition.
func consume(t *testing.T, addr, topic string, partitions, n int) (out []schemas.Message) {
	t.Helper()
	ctx := soon(t)
	d, err := ingest.Describe(ctx, []string{addr}, ingest.Security{}, topic)
	if err != nil || len(d.Partitions) != partitions {
		t.Fatalf("topic %s has %d partitions, want %d: %v", topic, len(d.Partitions), partitions, err)
	}
	tr := &kafka.Transport{}
	defer tr.CloseIdleConnections()
	client := kafka.Client{Addr: kafka.TCP(addr), Transport: tr}
	for _, p := range d.Partitions {
		for off := p.Start; off < p.End; {
			got := fetch(t, &client, &kafka.FetchRequest{Topic: topic, Partition: int(p.ID), Offset: off, MinBytes: 1,
				MaxBytes: 4 << 20, MaxWait: time.Second})
			out = append(out, got...)
			off += int64(len(got))
		}
	}
	if len(out) != n {
		t.Fatalf("topic %s holds %d messages, want %d", topic, len(out), n)
	}
	return out
}

// fetch returns the records of one answer.
func fetch(t *testing.T, client *kafka.Client, req *kafka.FetchRequest) (out []schemas.Message) {
	t.Helper()
	r, err := client.Fetch(soon(t), req)
	if err == nil {
		err = r.Error
	}
	for err == nil {
		var rec *kafka.Record
		if rec, err = r.Records.ReadRecord(); err != nil {
			break
		}
		if rec.Offset < req.Offset {
			continue // the batch begins before the offset
		}
		m := schemas.Message{Topic: req.Topic, Partition: int32(req.Partition), Offset: rec.Offset, Time: rec.Time}
		m.Key, _ = kafka.ReadAll(rec.Key)
		m.Value, _ = kafka.ReadAll(rec.Value)
		for _, h := range rec.Headers {
			m.Headers = append(m.Headers, schemas.Header{Key: h.Key, Value: h.Value})
		}
		out = append(out, m)
	}
	if err != io.EOF || len(out) == 0 {
		t.Fatalf("%s/%d@%d: %d records, %v", req.Topic, req.Partition, req.Offset, len(out), err)
	}
	return out
}

func decode(t *testing.T, d *schemas.Decoder, m schemas.Message) []schemas.Frame {
	t.Helper()
	frames, err := d.Decode(m)
	if err != nil {
		t.Fatalf("%s/%d@%d: %v", m.Topic, m.Partition, m.Offset, err)
	}
	return frames
}

func produce(t *testing.T, p *Producer, src Source) Stats {
	t.Helper()
	st, err := p.Run(soon(t), src)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// What a drive holds comes out of the topic point for point, twice for two
// passes, with its own times in the headers and the time of sending as Kafka's.
func TestDriveArrivesAsItIs(t *testing.T) {
	b := startBroker(t, broker.Config{})
	root := filepath.Join(t.TempDir(), "2011_09_26_drive_0005_sync")
	drive(t, root, []string{"0000000000.bin", "0000000002.bin"}, "2011-09-26 13:02:25.9", "", "2011-09-26 13:02:26.1")
	began := time.Now().Add(-time.Second)
	for _, compression := range []string{"", "lz4", "zstd"} {
		topic := "points" + compression
		p := &Producer{Brokers: []string{b.Addr()}, Topic: topic, Compression: compression,
			Play: Play{Rate: Rate{max: true}, Loop: 2}}
		if st := produce(t, p, open(t, KITTI{Dir: root})); st.Messages != 4 || st.Frames != 4 || st.Points != 12 ||
			st.Retries != 0 || st.Bytes == 0 {
			t.Errorf("%s: %+v", topic, st)
		}
		var d schemas.Decoder
		ids, times := []int64{}, []int64{}
		for _, m := range consume(t, b.Addr(), topic, 4, 4) {
			f := decode(t, &d, m)[0]
			ids, times = append(ids, f.FrameID), append(times, f.TimeNs)
			checkGolden(t, &Item{Cloud: f.Points})
			if f.Dataset != "kitti" || f.Sequence != "2011_09_26_drive_0005_sync" || f.Sensor != "velodyne" ||
				string(m.Key) != f.Sequence {
				t.Errorf("%s: %+v, key %s", topic, f.FrameKey, m.Key)
			}
			if m.Time.Before(began) || m.Time.After(time.Now().Add(time.Second)) {
				t.Errorf("%s: Kafka's time is %s, sent after %s", topic, m.Time, began)
			}
		}
		const t0 = 1317042145900000000
		// last + 1 = 3; span 200 ms, one gap, of 200 ms
		if !slices.Equal(ids, []int64{0, 2, 3, 5}) ||
			!slices.Equal(times, []int64{t0, t0 + 2e8, t0 + 4e8, t0 + 6e8}) {
			t.Errorf("%s: frames %v at %v", topic, ids, times)
		}
	}
}

func TestDrawingsArriveAsTheyAre(t *testing.T) {
	b := startBroker(t, broker.Config{Partitions: 3})
	src := open(t, Sketches{Frames: 1150, Seed: 5})
	want := map[int64]Drawing{}
	for _, it := range all(t, src) {
		for _, d := range it.Drawings {
			want[d.ID] = d
		}
	}
	if err := src.Rewind(); err != nil {
		t.Fatal(err)
	}
	p := &Producer{Brokers: []string{b.Addr()}, Topic: "sketches", Create: ingest.TopicSpec{Partitions: 3},
		Play: Play{Rate: Rate{max: true}}, Names: Names{Sensor: "tablet"}}
	if st := produce(t, p, src); st.Messages != 12 || st.Frames != 1150 {
		t.Errorf("%+v", st)
	}
	var d schemas.Decoder
	seen := map[string]int64{}
	for _, m := range consume(t, b.Addr(), "sketches", 3, 12) {
		for _, f := range decode(t, &d, m) {
			w := want[f.Drawing.ID]
			if f.Drawing.Label != w.Label || f.FrameID != seen[f.Sequence] || f.Sensor != "tablet" ||
				!sameInk(&f, &w) {
				t.Fatalf("%+v: got %+v, want %+v", f.FrameKey, f, w)
			}
			delete(want, f.Drawing.ID)
			seen[f.Sequence]++
		}
	}
	if len(want) != 0 {
		t.Errorf("%d drawings did not arrive", len(want))
	}
}

// sameInk tells whether a frame has the coordinates of a drawing, all of them
// unrounded.
func sameInk(f *schemas.Frame, d *Drawing) bool {
	if f.Double {
		return slices.Equal(f.Cloud64.X, d.X) && slices.Equal(f.Cloud64.Y, d.Y)
	}
	same := func(v float32, w float64) bool { return float64(v) == w }
	return slices.EqualFunc(f.Cloud32.X, d.X, same) && slices.EqualFunc(f.Cloud32.Y, d.Y, same)
}

// Decimals that float32 would round arrive as the nearest float64, and so does
// every coordinate of their message; a message of whole pixels is float32.
func TestDecimalsArriveUnrounded(t *testing.T) {
	b := startBroker(t, broker.Config{})
	raw := func(id int, x, y string) string {
		return fmt.Sprintf(`{"key_id":"%d","word":"cow","drawing":[[[%s],[%s],[0,5,9]]]}`+"\n", id, x, y)
	}
	// float32 holds all of them
	file := write(t, []byte(raw(1, "0,1,2", "3,4,5.5")+raw(2, "0.5,16777216,1e10", "-0.25,7,8")+
		raw(3, "0,1,2", "0,1,2")+raw(4, "62.9,30.000000000000004,1e300", "16777217,0.1,-5e-324")),
		t.TempDir(), "cow.ndjson")
	p := &Producer{Brokers: []string{b.Addr()}, Topic: "q", Create: ingest.TopicSpec{Partitions: 1}}
	produce(t, p, open(t, QuickDraw{Files: []string{file}, Pack: 2}))
	var got []string
	var d schemas.Decoder
	for _, m := range consume(t, b.Addr(), "q", 1, 2) {
		for _, f := range decode(t, &d, m) {
			if f.Double {
				got = append(got, fmt.Sprintf("%d float64 %v %v", f.Drawing.ID, f.Cloud64.X, f.Cloud64.Y))
			} else {
				got = append(got, fmt.Sprintf("%d float32 %v %v", f.Drawing.ID, f.Cloud32.X, f.Cloud32.Y))
			}
		}
	}
	want := []string{
		"1 float32 [0 1 2] [3 4 5.5]", "2 float32 [0.5 1.6777216e+07 1e+10] [-0.25 7 8]",
		"3 float64 [0 1 2] [0 1 2]", "4 float64 [62.9 30.000000000000004 1e+300] [1.6777217e+07 0.1 -5e-324]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRealDrawingsArrive(t *testing.T) {
	raw, _ := filepath.Glob(filepath.Join(geomtest.TestData(t, "sketch", "quickdraw_raw"), "c*.ndjson"))
	flat, _ := filepath.Glob(filepath.Join(geomtest.TestData(t, "sketch", "quickdraw_simplified"), "c*.ndjson"))
	b := startBroker(t, broker.Config{})
	src := open(t, QuickDraw{Files: append(raw, flat...)})
	var want []Drawing
	items := all(t, src)
	for _, it := range items {
		want = append(want, it.Drawings...)
	}
	if err := src.Rewind(); err != nil {
		t.Fatal(err)
	}
	// One partition: messages come in the order of the source.
	// real time: drawings have no rate
	p := &Producer{Brokers: []string{b.Addr()}, Topic: "q", Create: ingest.TopicSpec{Partitions: 1},
		Compression: "zstd"}
	produce(t, p, src)
	var d schemas.Decoder
	n := 0
	for _, m := range consume(t, b.Addr(), "q", 1, len(items)) {
		for _, f := range decode(t, &d, m) {
			w := want[n]
			if f.Drawing.ID != w.ID || f.Drawing.Label != w.Label || f.TimeNs != w.TimeNs || !sameInk(&f, &w) {
				t.Fatalf("drawing %d: %+v", n, f.FrameKey)
			}
			n++
		}
	}
	if n != len(want) || n < 100 {
		t.Errorf("%d drawings arrived of %d", n, len(want))
	}
}

func TestSequencesKeepTheirOrder(t *testing.T) {
	b := startBroker(t, broker.Config{})
	src := &listed{}
	for i := range int64(2000) {
		src.items = append(src.items, Item{Sequence: fmt.Sprint("s", i%7), Number: i / 7})
	}
	p := &Producer{Brokers: []string{b.Addr()}, Topic: "t", Play: Play{Rate: Rate{max: true}}, Window: 10_000}
	produce(t, p, src)
	var d schemas.Decoder
	next := map[string]int64{}
	for _, m := range consume(t, b.Addr(), "t", 4, 2000) {
		f := decode(t, &d, m)[0]
		if f.FrameID != next[f.Sequence] {
			t.Fatalf("frame %d of %s comes when %d is due", f.FrameID, f.Sequence, next[f.Sequence])
		}
		next[f.Sequence]++
	}
	if len(next) != 7 {
		t.Errorf("%d sequences", len(next))
	}
}

func TestFrameLargerThanItsTopicTakes(t *testing.T) {
	b := startBroker(t, broker.Config{})
	addr := []string{b.Addr()}
	if err := ingest.EnsureTopic(soon(t), addr, ingest.Security{}, "small",
		ingest.TopicSpec{Partitions: 1, MaxMessageBytes: 100_000}); err != nil {
		t.Fatal(err)
	}
	src := &listed{items: []Item{{Sequence: "a"}, {Sequence: "a", Number: 7}}}
	src.items[1].Cloud.Cloud32.X, src.items[1].Cloud.Cloud32.Y = make([]float32, 20_000), make([]float32, 20_000)
	st, err := (&Producer{Brokers: addr, Topic: "small"}).Run(soon(t), src)
	var large *ingest.TooLargeError
	if !errors.As(err, &large) || large.Limit != 100_000 || large.Size < 160_000 {
		t.Fatalf("%v", err)
	}
	failsWith(
		t,
		err,
		"frame 7 of a",
		"100000",
		fmt.Sprint(large.Size),
		"kafka-configs.sh --bootstrap-server "+b.Addr(),
		"max.message.bytes=1048576",
	)
	if st.Messages > 1 {
		t.Errorf("%+v", st)
	}

	// Up to the limit frames are taken, by us and by the broker: our sum of a
	// message's size is never below the broker's.
	sent := false
	for n := 12_300; n < 12_420; n += 11 {
		src := &listed{items: []Item{{Sequence: "a"}}}
		src.items[0].Cloud.Cloud32.X, src.items[0].Cloud.Cloud32.Y = make([]float32, n), make([]float32, n)
		_, err := (&Producer{Brokers: addr, Topic: "small"}).Run(soon(t), src)
		if err != nil && (!errors.As(err, &large) || strings.Contains(err.Error(), "refused")) {
			t.Fatalf("%d points: %v", n, err)
		}
		if sent && err != nil {
			return
		}
		sent = sent || err == nil
	}
	t.Error("no size was found that is sent while the next is not")
}

func TestTopicIsCreatedForLargeFrames(t *testing.T) {
	b := startBroker(t, broker.Config{MaxMessageBytes: 1 << 20})
	src := open(t, LiDAR{Frames: 2})
	p := &Producer{Brokers: []string{b.Addr()}, Topic: "lidar", Play: Play{Rate: Rate{max: true}}}
	if st := produce(t, p, src); st.Messages != 2 || st.Bytes < 3_000_000 {
		t.Errorf("%+v", st)
	}
	d, err := ingest.Describe(soon(t), []string{b.Addr()}, ingest.Security{}, "lidar")
	if err != nil || d.MaxMessageBytes != 16<<20 || len(d.Partitions) != 4 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestBadInputEndsTheRunAfterWhatWasGood(t *testing.T) {
	b := startBroker(t, broker.Config{Partitions: 1})
	dir := t.TempDir()
	write(t, golden(t), dir, "0.bin")
	write(t, golden(t)[:40], dir, "1.bin")
	write(t, golden(t), dir, "2.bin")
	p := &Producer{Brokers: []string{b.Addr()}, Topic: "t", Play: Play{Rate: Rate{max: true}, Loop: 2}}
	_, err := p.Run(soon(t), open(t, KITTI{Dir: dir}))
	var bad *BadInputError
	if failsWith(t, err, "1.bin", "8 bytes remain"); !errors.As(err, &bad) {
		t.Errorf("%T", err)
	}
	if st := produce(t, p, open(t, KITTI{Dir: dir, SkipBad: true})); st.Messages != 4 || st.Skipped != 1 {
		t.Errorf("%+v", st)
	}
}

func TestSettingsThatMakeNoSense(t *testing.T) {
	for name, p := range map[string]*Producer{
		"--loop":  {Play: Play{Loop: -1}},
		"--limit": {Play: Play{Limit: -1}},
		"epoch":   {Play: Play{Epoch: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}},
	} {
		_, err := p.Run(soon(t), &ticking{})
		failsWith(t, err, name)
	}
}

// BenchmarkProduce sends KITTI-sized frames to the embedded broker beside it.
func BenchmarkProduce(b *testing.B) {
	k := startBroker(b, broker.Config{})
	dir := b.TempDir()
	const points = 123_397
	scan := make([]byte, points*pointBytes)
	for i := range points * 4 {
		binary.LittleEndian.PutUint32(scan[4*i:], math.Float32bits(float32(i%7919)/100))
	}
	if err := os.WriteFile(filepath.Join(dir, "0.bin"), scan, 0o644); err != nil {
		b.Fatal(err)
	}
	src, err := KITTI{Dir: dir}.Open()
	if err != nil {
		b.Fatal(err)
	}
	const frames = 200
	b.SetBytes(frames * points * pointBytes)
	for i := 0; b.Loop(); i++ {
		p := &Producer{Brokers: []string{k.Addr()}, Topic: fmt.Sprint("t", i%3),
			Play: Play{Rate: Rate{max: true}, Loop: frames}}
		if _, err := p.Run(context.Background(), src); err != nil {
			b.Fatal(err)
		}
		if err := src.Rewind(); err != nil {
			b.Fatal(err)
		}
	}
}
