package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"entropipe/benchmarks/rig"
)

// bench is what all turns share.
type bench struct {
	*common
	ctx     context.Context
	report  *report
	run     string // names the records of this run
	temp    string // folder to remove
	program rig.Program
	kits    map[string]kit
	broker  *rig.Broker
	client  *rig.Client
	turns   int
}

// partitions is the number of partitions of each topic.
const partitions = 4

// open installs what is missing and starts a real Kafka.
func (c *common) open(ctx context.Context) (b *bench, err error) {
	results, err := rig.ResultsFolder(c.Results, rig.KindOf(c.Quick))
	if err != nil {
		return nil, err
	}
	b = &bench{common: c, ctx: ctx, run: time.Now().UTC().Format(time.RFC3339), kits: map[string]kit{}}
	if b.report, err = newReport(results); err != nil {
		return nil, err
	}
	for _, engine := range []string{engineFlink, engineSpark, engineIceberg} {
		if b.kits[engine], err = installed(ctx, engine); err != nil {
			return nil, fmt.Errorf("installing %s: %w", engine, err)
		}
	}
	if c.Scratch == "" {
		if b.temp, err = os.MkdirTemp("", "entropipe-streams-"); err != nil {
			return nil, err
		}
		c.Scratch = b.temp
	}
	if c.Scratch, err = filepath.Abs(c.Scratch); err == nil {
		err = os.MkdirAll(c.Scratch, 0o777)
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	scripts, err := rig.ScriptsFromEnv()
	if err == nil {
		b.program, err = rig.Build(ctx, c.Scratch)
	}
	if err == nil {
		b.broker, err = scripts.NewBroker(ctx, filepath.Join(c.Scratch, "broker"))
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.client = rig.NewClient(b.broker.Addr)
	return b, nil
}

func (b *bench) close() (err error) {
	if b.client != nil {
		b.client.Close()
	}
	if b.broker != nil {
		err = b.broker.Kill()
	}
	if b.temp == "" || b.Keep {
		return err
	}
	return errors.Join(err, os.RemoveAll(b.temp))
}

// produce returns the arguments that send frames over all partitions of a topic.
func (b *bench) produce(topic string, frames int64, points int, rate string) []string {
	return []string{"produce", "synthetic", "--kind", "lidar", "--points", strconv.Itoa(points), "--frames",
		strconv.FormatInt(frames, 10), "--seed", strconv.FormatUint(b.Seed, 10), "--rate", rate, "--key", "frame",
		"--brokers", b.broker.Addr, "--topic", topic, "--log-level", "warn"}
}

// largest is the most that a message of a topic may have, in bytes.
const largest = 16 << 20

// fill makes a topic of a work with at least so many frames: a busy broker may make the
// producer send some again.
func (b *bench) fill(topic, work string, frames int64) error {
	if err := b.client.CreateTopic(b.ctx, topic, partitions, largest); err != nil {
		return err
	}
	if work == workRecords {
		return b.sendRecords(topic, frames)
	}
	if _, said, err := b.program.Run(b.ctx, b.produce(topic, frames, b.Points, "max")...); err != nil {
		return fmt.Errorf("produce: %w\n%s", err, said)
	}
	return nil
}

// ends returns the number of records of each partition of a topic.
func (b *bench) ends(topic string) (map[int32]int64, error) {
	ranges, err := b.client.Ranges(b.ctx, topic, partitions)
	if err != nil {
		return nil, err
	}
	ends := map[int32]int64{}
	for p, r := range ranges {
		ends[p] = r.End
	}
	return ends, nil
}

const (
	recordBytes = 60_000 // a value of the work records
	pointBytes  = 16     // a point of four float32
)

// sendRecords sends values that nobody can read: points of a scan without Arrow's frame, so
// that they can be compressed as much as those of frames.
func (b *bench) sendRecords(topic string, count int64) error {
	random := rand.New(rand.NewPCG(b.Seed, 0))
	const each = 32 // records of a request
	for from := int64(0); from < count; from += each {
		var records []kafka.Record
		for i := from; i < min(from+each, count); i++ {
			records = append(records, kafka.Record{Key: kafka.NewBytes([]byte(fmt.Sprintf("record-%08d", i))),
				Value: kafka.NewBytes(recordOf(random))})
		}
		answer, err := b.client.Produce(b.ctx, &kafka.ProduceRequest{Topic: topic, Partition: int(from / each %
			partitions), RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(records...)})
		if err == nil {
			err = answer.Error
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recordOf returns the points of a part of a scan.
func recordOf(random *rand.Rand) []byte {
	value := make([]byte, 0, recordBytes)
	for len(value) < recordBytes {
		angle, far := 2*math.Pi*float64(len(value))/recordBytes, 5+40*random.Float64()
		for _, v := range []float64{far * math.Cos(angle), far * math.Sin(angle), 2 * random.Float64(),
			float64(random.IntN(100)) / 100} {
			bits := math.Float32bits(float32(v))
			value = append(value, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
		}
	}
	return value
}

// newJob returns a job with a folder of its own.
func (b *bench) newJob(engine, work, topic string) *job {
	b.turns++
	return &job{engine: engine, work: work, brokers: b.broker.Addr, topic: topic, cores: b.Cores, every: b.Every,
		folder: filepath.Join(b.Scratch, fmt.Sprintf("turn-%03d-%s-%s", b.turns, engine, work))}
}

// limit is how long a job may take.
const limit = 10 * time.Minute

// begin starts a job as a tree of processes whose cost is written to a file at their end.
func (b *bench) begin(j *job, file string) (*rig.Process, string, error) {
	if err := os.MkdirAll(j.folder, 0o777); err != nil {
		return nil, "", err
	}
	args, env, err := b.line(j)
	if err != nil {
		return nil, "", err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	tree := append([]string{"tree", "--cores", strconv.Itoa(j.cores), file, "--"}, args...)
	p, err := rig.Start(rig.Spec{Path: self, Args: tree, Env: env, Log: filepath.Join(j.folder, "log")})
	return p, b.withoutFolders(strings.Join(args, " ")), err
}

// withoutFolders writes a command line so that it names no folder of this machine.
func (b *bench) withoutFolders(line string) string {
	line = strings.ReplaceAll(line, b.Scratch, ".")
	if root, err := rig.Root(); err == nil {
		line = strings.ReplaceAll(line, root+string(filepath.Separator), "")
	}
	if cache, err := os.UserCacheDir(); err == nil {
		line = strings.ReplaceAll(line, cache, "CACHE")
	}
	return line
}

// turn runs a job to its end, and returns what it cost.
func (b *bench) turn(j *job) (f figures, err error) {
	file := filepath.Join(b.Scratch, "cost.json")
	brokerBefore, othersBefore := b.brokerTime(), busy()
	p, line, err := b.begin(j, file)
	if err != nil {
		return f, err
	}
	committed := 0.0
	if j.engine == engineIceberg {
		committed, err = b.committedUntil(j, p, j.records)
	} else {
		err = b.ended(p, limit)
	}
	if err != nil {
		return f, fmt.Errorf("%s, %s: %w", j.engine, j.work, err)
	}
	f = figures{Run: b.run, Work: j.work, Engine: j.engine, Seed: b.Seed, Cores: j.cores, EveryS: j.every.Seconds(),
		Points: b.Points, Command: line}
	if err := readCost(file, &f.cost); err != nil {
		return f, err
	}
	if committed > 0 {
		f.WallS = committed
	}
	f.BrokerCPUS = b.brokerTime() - brokerBefore
	f.OthersCPUS = max(0, busy()-othersBefore-f.CPUS-f.BrokerCPUS)
	return f, b.judge(&f, "count", j.engine, j.work, j.out())
}

// ended waits for the end of a tree of processes. One that takes too long is killed, all of it.
func (b *bench) ended(p *rig.Process, limit time.Duration) error {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-p.Done():
		_, err := p.Wait(b.ctx)
		return err
	case <-late.C:
		_, err := p.Stop(time.Minute)
		return fmt.Errorf("no end after %v: %w", limit, err)
	case <-b.ctx.Done():
		_, err := p.Stop(time.Minute)
		return errors.Join(context.Cause(b.ctx), err)
	}
}

func readCost(file string, c *cost) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, c)
}

// brokerTime returns the processor time of the broker so far, in seconds.
func (b *bench) brokerTime() float64 {
	text, err := os.ReadFile(filepath.Join(b.broker.Dir, "pid"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil {
		return 0
	}
	t, err := rig.ProcessorTime(pid)
	if err != nil {
		return 0
	}
	return t.Seconds()
}

// judge has judge.py look at outputs; its answer is one line of JSON.
func (b *bench) judge(answer any, args ...string) error {
	script, err := folderOf("judge.py")
	if err != nil {
		return err
	}
	_, said, err := rig.Run(b.ctx, rig.Spec{Path: b.kits[engineSpark].python, Args: append([]string{script}, args...)})
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(said), answer)
}
