package ingest

import (
	"context"
	"flag"
	"io"
	"math"
	"testing"
)

var benchBroker = flag.String("bench-broker", "", "HOST:PORT of a broker in another process, for BenchmarkFetch")
var benchTopic = flag.String("bench-topic", "b", "a topic whose partition 0 holds records of 2 MiB")

// BenchmarkFetch reads a topic of another process's broker over and over:
//
//	go test ./ingest -run '^$' -bench Fetch -args -bench-broker 127.0.0.1:9092
func BenchmarkFetch(b *testing.B) {
	if *benchBroker == "" {
		b.Skip("no -bench-broker given")
	}
	for name, size := range map[string]int32{"2MiB": 2 << 20, "32MiB": 32 << 20} {
		b.Run(name, func(b *testing.B) { benchmarkFetch(b, size) })
	}
}

func benchmarkFetch(b *testing.B, size int32) {
	c, err := NewConsumer(Config{Brokers: []string{*benchBroker}, Topics: []string{*benchTopic}, Group: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	p := c.partition(*benchTopic, 0, &generation{})
	p.target = math.MaxInt64
	extents, err := c.cluster.extents(context.Background(), *benchTopic, c.cfg.Timing.Connect)
	if err != nil {
		b.Fatal(err)
	}
	p.target = extents[0].end
	next, before := extents[0].start, c.Stats()
	for b.Loop() {
		f, err := p.Fetch(context.Background(), next, size)
		if err == io.EOF {
			next = extents[0].start
			continue
		}
		if err != nil {
			b.Fatal(err)
		}
		if next = f.Next; f.Release != nil {
			f.Release()
		}
	}
	after := c.Stats()
	b.ReportMetric(float64(after.Bytes-before.Bytes)/b.Elapsed().Seconds()/1e6, "MB/s")
	b.ReportMetric(float64(after.Records-before.Records)/float64(b.N), "records/op")
}
