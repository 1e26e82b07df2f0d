package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/ingest"
)

// fetchBytes is what the raw loop asks for at a time, a partition.
const fetchBytes = 32 << 20

// fetchCmd reads a topic to its end with the pipeline's own client and does
// nothing with it: the rate that no pipeline on that client can exceed.
type fetchCmd struct {
	Brokers string `required:"" help:"HOST:PORT."`
	Topic   string `required:"" help:"Topic to read."`
}

// fetched is what a raw fetch loop measured. Seconds are from the first request
// to the last answer: joining the group is left out, in the loop's favour.
type fetched struct {
	Records int64   `json:"records"`
	Bytes   int64   `json:"bytes"` // bytes of the values
	Seconds float64 `json:"seconds"`
}

func (f fetched) rate() float64 { return float64(f.Bytes) / f.Seconds }

func (c *fetchCmd) Run(e *env) error {
	f, err := fetchAll(e.ctx, c.Brokers, c.Topic)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

func fetchAll(ctx context.Context, broker, topic string) (fetched, error) {
	var (
		mu          sync.Mutex
		total       fetched
		first, last time.Time
	)
	c, err := ingest.NewConsumer(ingest.Config{Brokers: []string{broker}, Topics: []string{topic},
		Group: group("fetch", topic), UntilEnd: true})
	if err != nil {
		return total, err
	}
	defer c.Close()
	starts, err := c.Starts(ctx, topic, "earliest")
	if err != nil {
		return total, err
	}
	err = c.Run(ctx, func(ctx context.Context, p *ingest.Partition) error {
		begin := time.Now()
		part, err := fetchPartition(ctx, p, starts[p.ID])
		mu.Lock()
		defer mu.Unlock()
		total.Records, total.Bytes = total.Records+part.Records, total.Bytes+part.Bytes
		if first.IsZero() || begin.Before(first) {
			first = begin
		}
		last = time.Now()
		return err
	})
	total.Seconds = last.Sub(first).Seconds()
	return total, err
}

func fetchPartition(ctx context.Context, p *ingest.Partition, from int64) (fetched, error) {
	var sum fetched
	for {
		f, err := p.Fetch(ctx, from, fetchBytes)
		if errors.Is(err, io.EOF) {
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
		for i := range f.Messages {
			sum.Bytes += int64(len(f.Messages[i].Value))
		}
		sum.Records += int64(len(f.Messages))
		from = f.Next
		if f.Release != nil {
			f.Release()
		}
	}
}

// rawFetch runs the loop in a process of its own, as the program is.
func (b *bench) rawFetch(topic string) (fetched, error) {
	var f fetched
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	_, out, err := rig.Run(b.ctx, rig.Spec{Path: self,
		Args: []string{"fetch", "--brokers", b.broker.Addr, "--topic", topic}})
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		return f, fmt.Errorf("fetch: %w: %q", err, out)
	}
	return f, nil
}
