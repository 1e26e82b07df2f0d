package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"entropipe/benchmarks/rig"
)

// maxMessage is the limit of every topic: eight KITTI frames.
const maxMessage = 16 << 20

// bench is a running measurement: the program, a broker, a scratch folder and
// the file of figures.
type bench struct {
	ctx     context.Context
	program rig.Program
	broker  *rig.Broker
	client  *rig.Client
	scratch string
	temp    bool
	results *results
	outputs int
}

// open builds the program and starts a broker of the kind. The caller closes
// what it returns.
func (e *env) open(name, kind string) (b *bench, err error) {
	b = &bench{ctx: e.ctx, scratch: e.flags.Scratch}
	defer func() {
		if err != nil {
			b.close()
			b = nil
		}
	}()
	if b.scratch == "" {
		b.temp = true
		if b.scratch, err = os.MkdirTemp("", "entropipe-e2e-"); err != nil {
			return b, err
		}
	}
	if err := os.MkdirAll(b.scratch, 0o777); err != nil {
		return b, err
	}
	if b.program, err = rig.Build(e.ctx, b.scratch); err != nil {
		return b, err
	}
	if b.broker, err = b.newBroker(kind); err != nil {
		return b, err
	}
	b.client = rig.NewClient(b.broker.Addr)
	b.results, err = b.openResults(e.flags.Results, name)
	return b, err
}

func (b *bench) newBroker(kind string) (*rig.Broker, error) {
	dir := filepath.Join(b.scratch, "broker-"+kind)
	if kind == rig.Embedded {
		return b.program.NewBroker(b.ctx, dir)
	}
	scripts, err := rig.ScriptsFromEnv()
	if err != nil {
		return nil, err
	}
	return scripts.NewBroker(b.ctx, dir)
}

func (b *bench) close() {
	if b.client != nil {
		b.client.Close()
	}
	if b.broker != nil {
		if err := b.broker.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
		}
		os.RemoveAll(b.broker.Dir)
	}
	if b.temp {
		os.RemoveAll(b.scratch)
	}
}

// newOutput returns a folder that no run has written to.
func (b *bench) newOutput() string {
	b.outputs++
	return filepath.Join(b.scratch, "out-"+strconv.Itoa(b.outputs))
}

// fill creates a topic and sends it frames of a KITTI folder, in as many
// sequences as there are partitions, one in each.
func (b *bench) fill(topic, dir string, frames int64, partitions int) error {
	return b.fillUpTo(topic, dir, frames, partitions, maxMessage)
}

// fillUpTo is fill for a topic with another limit of a message; 0: the broker's.
func (b *bench) fillUpTo(topic, dir string, frames int64, partitions int, limit int64) error {
	if err := b.client.CreateTopic(b.ctx, topic, partitions, limit); err != nil {
		return err
	}
	begin := time.Now()
	for i, sequence := range sequences(partitions) {
		n := frames / int64(partitions)
		if int64(i) < frames%int64(partitions) {
			n++
		}
		if err := b.produceKITTI(topic, dir, sequence, n); err != nil {
			return err
		}
	}
	note("%s: %d frames of %s sent in %.1f s", topic, frames, filepath.Base(dir), time.Since(begin).Seconds())
	return nil
}

// produceKITTI sends n frames of a folder as one sequence, at full rate.
func (b *bench) produceKITTI(topic, dir, sequence string, n int64) error {
	if n == 0 {
		return nil
	}
	_, _, err := b.program.Run(b.ctx, b.produceArgs(topic, dir, sequence, n)...)
	return err
}

func (b *bench) produceArgs(topic, dir, sequence string, n int64) []string {
	return []string{"produce", "kitti", dir, "--brokers", b.broker.Addr, "--topic", topic, "--sequence", sequence,
		"--rate", "max", "--loop", strconv.FormatInt(n, 10), "--limit", strconv.FormatInt(n, 10)}
}

// sequences returns n names of which each goes to another one of n partitions.
func sequences(n int) []string {
	names := make([]string, n)
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	for found, k := 0, 0; found < n; k++ {
		name := "drive-" + strconv.Itoa(k)
		if p := (kafka.Murmur2Balancer{}).Balance(kafka.Message{Key: []byte(name)}, ids...); names[p] == "" {
			names[p] = name
			found++
		}
	}
	return names
}

// runUntilEnd processes what a topic holds into out.
func (b *bench) runUntilEnd(topic, out, ops string) (rig.Exit, error) {
	exit, _, err := b.program.Run(b.ctx, "run", "--brokers", b.broker.Addr, "--topic", topic, "--out", out, "--ops",
		ops, "--until-end")
	return exit, err
}

// group returns a name for a consumer group that nobody else uses.
func group(words ...string) string {
	h := fnv.New64a()
	fmt.Fprint(h, words, time.Now().UnixNano(), os.Getpid())
	return fmt.Sprintf("e2e-%s-%016x", words[0], h.Sum64())
}

// dataDir returns the folder that a flag names, or the part of the real data.
func dataDir(flag string, parts ...string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	return rig.TestData(parts...)
}

// note prints what is going on; figures go to stdout.
func note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func megabytes(n float64) string { return strconv.FormatFloat(n/1e6, 'f', 1, 64) + " MB" }
