//go:build browser

package browser_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"entropipe/algos/geom"
	"entropipe/ingest/replay"
	"entropipe/ops/live"
	"entropipe/ops/pipeline"
	"entropipe/ops/web"
	"entropipe/schemas"
	"entropipe/schemas/codec"
	"entropipe/sinks/read"
)

// theatre is a server of the page with a tap, to which tests offer scenes.
type theatre struct {
	t       testing.TB
	tap     *live.Tap
	numbers *live.Numbers
	cfg     web.Config
	server  *web.Server
	start   time.Time
}

// newTheatre starts a server with made-up numbers.
func newTheatre(t testing.TB, change func(*web.Config)) *theatre {
	th := &theatre{t: t, tap: &live.Tap{}, numbers: &live.Numbers{Version: "1.2.3", Revision: "4285dd3f7c11"},
		start: time.Now()}
	th.cfg = web.Config{Listen: "127.0.0.1:0", Gatherer: prometheus.NewRegistry(), Version: "1.2.3",
		Ready: func() error { return nil }, Log: slog.New(slog.DiscardHandler), Tap: th.tap, Always: true,
		Numbers: th.numbers, Rejects: refused, Files: files, Settings: settings}
	if change != nil {
		change(&th.cfg)
	}
	for i := range 120 {
		th.numbers.Add(sample(th.start.Add(time.Duration(i-120)*time.Second), i))
	}
	th.open()
	var wait sync.WaitGroup
	done := make(chan struct{})
	wait.Go(func() {
		for {
			select {
			case <-done:
				return
			case now := <-time.After(time.Second):
				// At whole seconds: a machine that is late shows no dip.
				passed := now.Sub(th.start).Truncate(time.Second)
				th.numbers.Add(sample(th.start.Add(passed), 120+int(passed.Seconds())))
			}
		}
	})
	t.Cleanup(func() {
		close(done)
		wait.Wait()
		th.close()
	})
	return th
}

// open starts the server; again on the same port, after close.
func (th *theatre) open() {
	th.t.Helper()
	s, err := web.Serve(th.cfg)
	if err != nil {
		th.t.Fatal(err)
	}
	th.server, th.cfg.Listen = s, s.Addr()
}

func (th *theatre) close() {
	if th.server == nil {
		return
	}
	if err := th.server.Close(); err != nil {
		th.t.Error(err)
	}
	th.server = nil
}

func (th *theatre) address() string { return "http://" + th.cfg.Listen + "/" }

// key names frame n of a stream.
func key(topic, sequence string, n int64) schemas.FrameKey {
	return schemas.FrameKey{Dataset: "synthetic", Sequence: sequence, Sensor: "lidar64", Topic: topic, FrameID: n,
		Offset: n, TimeNs: n * 1e8}
}

// offer runs the operators on a cloud and offers the frame.
func (th *theatre) offer(k schemas.FrameKey, points codec.Points, ops ...schemas.Op) {
	th.t.Helper()
	th.process(message(th.t, k, points), ops...)
}

// message is a Kafka record with a cloud.
func message(t testing.TB, k schemas.FrameKey, points codec.Points) schemas.Message {
	t.Helper()
	var e schemas.Encoder
	value, err := e.AppendPoints(nil, schemas.PointCloud{Points: points})
	if err != nil {
		t.Fatal(err)
	}
	return schemas.Message{Topic: k.Topic, Offset: k.Offset, Time: time.Now(), Value: value,
		Headers: schemas.Headers(k, schemas.SchemaPoints, "test")}
}

// process runs the operators on a record; the pipeline's own code captures and offers it.
func (th *theatre) process(m schemas.Message, ops ...schemas.Op) {
	th.t.Helper()
	frames := pipeline.NewFrames(pipeline.FrameConfig{Ops: ops, Hull3D: true, Tap: th.tap})
	th.run(frames, m)
}

func (th *theatre) run(frames *pipeline.Frames, m schemas.Message) {
	th.t.Helper()
	if _, rejects := frames.Process(m); len(rejects) > 0 {
		th.t.Fatalf("reject: %v", rejects[0].Message)
	}
}

// street returns frame n of the synthetic LiDAR.
func street(t testing.TB, n, points int) codec.Points {
	t.Helper()
	source, err := replay.LiDAR{Seed: 1, Points: points}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	var item replay.Item
	for range n + 1 {
		if err := source.Next(&item); err != nil {
			t.Fatal(err)
		}
	}
	return item.Cloud
}

// cloud32 is a cloud of the given points.
func cloud32(x, y, z []float32) codec.Points {
	return codec.Points{Cloud32: geom.Cloud[float32]{X: x, Y: y, Z: z}}
}

// sentence is the scene of a token sequence.
func sentence(n int64) *live.Scene {
	words := strings.SplitAfter("The light of the sweep falls on a quiet street, and every hull holds what its points "+
		"say. It turns ten times a second, and no frame is lost on the way to the table.", " ")
	text := &live.Text{ID: fmt.Sprintf("note-%04d", n), Model: "builtin:bytes", Task: "logits",
		NTokens: int32(len(words)), Words: words, BlockSize: 4}
	for i := range words {
		text.IDs = append(text.IDs, int32(i))
	}
	for i, word := range []string{" It", " The", "\n", " And", " A", " Then", " One", " We"} {
		text.Next = append(text.Next, live.Next{ID: int32(i), Word: word, Logprob: float32(-0.9 - 0.6*float64(i))})
	}
	blocks := (len(words) + 3) / 4
	for q := range blocks {
		row := make([]byte, blocks)
		for k := range q + 1 {
			if k == 0 || q-k < 2 || (5*q+3*k)%4 == 0 {
				row[k] = 1
			}
		}
		text.Blocks = append(text.Blocks, row)
	}
	return &live.Scene{FrameKey: key("tokens", "notes", n), CapturedNs: time.Now().UnixNano(), Text: text}
}

// sample is second i of a process that is a little behind.
func sample(now time.Time, i int) live.Sample {
	const a, b = "machine a, process 77", "machine b, process 812"
	age, wave := 0.8, 1+0.15*math.Sin(float64(i)/9)
	total := func(rate float64) int64 { return int64(rate * (float64(i) + 1.3*math.Sin(float64(i)/9))) }
	lag, behind := 30-float64(i)/20, int64(17)
	s := live.Sample{Time: now, Ready: true, Workers: 2, Patience: time.Second,
		Queue: live.Queue{Length: 57, Capacity: 64}, CPUSeconds: 1.8 * float64(i),
		Process: live.Process{RSSBytes: 412e6, HeapBytes: 180e6, Goroutines: 61,
			Memory: live.Memory{Used: 21e6, Limit: 256e6}},
		Health: []live.Health{{What: "brokers", OK: true}, {What: "output", OK: true},
			{What: "disk", OK: false, Reason: "less than 1 % of the disk is free: 4120 MB"}},
		Group: live.Group{Peers: []live.Peer{{Name: b, URL: "http://127.0.0.1:9/", Partitions: 2}},
			Elsewhere: []live.Elsewhere{{Topic: "sketches", Partition: 1, Records: &behind, Owner: b,
				URL: "http://127.0.0.1:9/"}, {Topic: "tokens", Partition: 0, Owner: b, URL: "http://127.0.0.1:9/"}}},
		Partitions: []live.Partition{
			{Topic: "points", Partition: 0, Records: 240, Seconds: lag, Owner: a, CommitAgeS: &age},
			{Topic: "points", Partition: 1, Records: 41, Seconds: 4.2, Owner: a, CommitAgeS: &age,
				OpenFrames: 1, Held: "held by an open chunked frame: offset 417 waits for its chunks since 9 s"},
			{Topic: "sketches", Partition: 0, Records: 3, Seconds: .3, Owner: a, CommitAgeS: &age},
			{Topic: "tokens", Partition: 1, Owner: a, CommitAgeS: &age}},
		Stages: map[string]live.Work{}}
	for stage, work := range map[string]live.Work{"fetch": {Count: 30, Seconds: .012},
		"decode": {Count: 30, Seconds: .06}, "prepare": {Count: 1010, Seconds: .1},
		"operate": {Count: 1010, Seconds: 1.7}, "message": {Count: 30, Seconds: 1.9},
		"batch": {Count: 1010, Seconds: .02}, "commit": {Count: .5, Seconds: .04}} {
		s.Stages[stage] = live.Work{Count: work.Count * float64(i), Seconds: work.Seconds * float64(i)}
	}
	for topic, c := range map[string]live.Counts[int64]{
		"points": {Messages: total(10), Frames: total(10), Points: total(1.2e6), BytesIn: total(2e7),
			BytesOut: total(4e6)},
		"sketches": {Messages: total(10), Frames: total(1000), Points: total(41e3), BytesIn: total(4e5),
			BytesOut: total(1e5)},
		"tokens": {Messages: total(10), Sequences: total(10), Tokens: total(900), BytesIn: total(2e3), Rejects: 14}} {
		s.Topics = append(s.Topics, live.TopicSample{Topic: topic, Totals: c,
			Latency: []live.Times{{Ms: 18 * wave, N: 60}, {Ms: 42 * wave, N: 36}, {Ms: 88 * wave, N: 4}}})
	}
	return s
}

func refused() []pipeline.Refused {
	value, _ := hex.DecodeString("ffffffff700000000400000045ff88ff0a0000000000000068656c6c6f2c20776f726c64" +
		strings.Repeat("00112233445566778899aabbccddeeff", 6))
	reject := func(stage, reason, message string, offset int64) schemas.Reject {
		return schemas.Reject{Stage: stage, Reason: reason, Message: message, Topic: "points", Partition: 1,
			Offset: offset, TimeNs: time.Now().UnixNano(), Key: []byte("drive"), Value: value, ValueSize: 1_920_344}
	}
	return []pipeline.Refused{
		{Count: 11, Sample: reject("decode", "lengths_differ", "column x has 119,998 values, column y 120,000", 20417)},
		{Count: 3, Sample: reject("decode", "too_large", "<b>a frame</b> has 4,000,001 points", 20991)}}
}

func files(context.Context) (web.Files, error) {
	closed := time.Now().Add(-14 * time.Second).Unix()
	return web.Files{Out: "./entropipe-demo", Tables: []web.Table{
		{Table: "frames", Files: 12, Rows: 20_400, Bytes: 1_900_000, LastClose: closed},
		{Table: "hulls", Files: 12, Rows: 410_222, Bytes: 14_200_000, LastClose: closed},
		{Table: "maxima", Files: 12, Rows: 91_002, Bytes: 3_100_000, LastClose: closed},
		{Table: "tokens", Files: 4, Rows: 1_200, Bytes: 220_000, LastClose: closed}},
		SQL:  read.SQL("./entropipe-demo", []string{"frames", "hulls", "maxima", "tokens"}),
		Disk: web.Disk{Free: 4.12e9, Total: 512e9}}, nil
}

func settings() []web.Setting {
	var all []web.Setting
	for _, line := range []string{"brokers 127.0.0.1:9092 file", "topic points,sketches,tokens flag",
		"out ./entropipe-demo flag", "sasl-password (secret) environment", "workers 2 default",
		"tables frames,hulls,maxima file"} {
		part := strings.Fields(line)
		all = append(all, web.Setting{Key: part[0], Value: part[1], Source: part[2]})
	}
	return all
}

type scene = live.Scene

// capture is the scene of a record, as the pipeline captures it.
func capture(t testing.TB, frames *pipeline.Frames, m schemas.Message) *scene {
	t.Helper()
	var d schemas.Decoder
	decoded, err := d.Decode(m)
	if err != nil {
		t.Fatal(err)
	}
	results, _ := frames.Process(m)
	return live.Capture(&m, &decoded[0], &results[0])
}

// paletteOf returns 256 colours of all, which begins with the most frequent ones: these, and
// some that are far from them all, so that a small green dot stays green.
func paletteOf(all []color.RGBA) (chosen color.Palette) {
	const frequent = 224
	distance := func(a, b color.RGBA) int {
		r, g, b2 := int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B)
		return r*r + g*g + b2*b2
	}
	nearest := make([]int, len(all)) // distance to the nearest chosen colour
	choose := func(c color.RGBA) {
		for i := range all {
			if d := distance(all[i], c); len(chosen) == 0 || d < nearest[i] {
				nearest[i] = d
			}
		}
		chosen = append(chosen, c)
	}
	for _, c := range all[:min(len(all), frequent)] {
		choose(c)
	}
	for len(chosen) < min(len(all), 256) {
		choose(all[slices.Index(nearest, slices.Max(nearest))])
	}
	return chosen
}

// shrink makes a PNG of 256 colours: such files are small.
func shrink(t testing.TB, data []byte) []byte {
	t.Helper()
	m := decode(t, data)
	counts := map[color.RGBA]int{}
	r := m.Bounds()
	each := func(use func(x, y int, c color.RGBA)) {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				use(x, y, color.RGBAModel.Convert(m.At(x, y)).(color.RGBA))
			}
		}
	}
	each(func(_, _ int, c color.RGBA) { counts[color.RGBA{c.R &^ 3, c.G &^ 3, c.B &^ 3, 255}]++ })
	all := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G),
			cmp.Compare(a.B, b.B))
	})
	chosen := paletteOf(all)
	to, known := image.NewPaletted(r, chosen), map[color.RGBA]uint8{}
	each(func(x, y int, c color.RGBA) {
		i, found := known[c]
		if !found {
			i = uint8(chosen.Index(c))
			known[c] = i
		}
		to.SetColorIndex(x, y, i)
	})
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&b, to); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
