package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
)

type memoryCmd struct {
	Data       string        `placeholder:"DIR" help:"KITTI .bin files (a drive of the real data)."`
	Frames     int64         `default:"10000" help:"Frames (${default})."`
	Partitions int           `default:"4" help:"Partitions of the topic (${default})."`
	Ops        string        `default:"hull2d,maxima3d" help:"Operators (${default})."`
	Limit      int64         `default:"400" help:"Largest resident set that passes, in MB (${default})."`
	Growth     float64       `default:"32" help:"Growth of the median resident size that fails, in MB (${default})."`
	Prefill    bool          `help:"Send all before the run starts; 2 GB of disk for 1,000 frames."`
	Every      time.Duration `default:"250ms" help:"Time between samples (${default})."`
}

// sample is the state of the running program at one moment.
type sample struct {
	Seconds   float64 `json:"seconds"`
	Frames    int64   `json:"frames"` // committed
	RSS       int64   `json:"rss"`    // bytes
	BrokerRSS int64   `json:"broker_rss"`
}

func (c *memoryCmd) Run(e *env) error {
	if c.Frames < int64(c.Partitions) || c.Partitions < 1 || c.Every < time.Millisecond {
		return fmt.Errorf("%w: want at least a frame a partition, and samples at least 1 ms apart", rig.ErrUsage)
	}
	dir, err := dataDir(c.Data, "kitti", "raw_2011_09_26_drive_0005")
	if err != nil {
		return err
	}
	b, err := e.open("memory", e.flags.Broker)
	if err != nil {
		return err
	}
	defer b.close()
	begin := time.Now()
	samples, exit, err := c.watch(b, dir)
	if err != nil {
		return err
	}
	for _, s := range samples {
		if err := b.results.add(map[string]any{"what": "sample", "seconds": s.Seconds, "frames": s.Frames, "rss": s.RSS,
			"broker_rss": s.BrokerRSS}); err != nil {
			return err
		}
	}
	return c.report(b, samples, exit, time.Since(begin))
}

// watch feeds the topic, runs the program until all frames are committed, and
// samples it meanwhile.
func (c *memoryCmd) watch(b *bench, dir string) ([]sample, rig.Exit, error) {
	if err := b.client.CreateTopic(b.ctx, "memory", c.Partitions, maxMessage); err != nil {
		return nil, rig.Exit{}, err
	}
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	fed := make(chan error, 1)
	feed := func() { fed <- c.feed(ctx, b, dir) }
	if c.Prefill {
		feed()
		if err := <-fed; err != nil {
			return nil, rig.Exit{}, err
		}
		fed <- nil
	} else {
		go feed()
	}
	out := b.newOutput()
	defer os.RemoveAll(out)
	p, err := rig.Start(rig.Spec{Path: b.program.Path, Log: filepath.Join(b.scratch, "run.log"),
		Args: []string{"run", "--brokers", b.broker.Addr, "--topic", "memory",
			"--out", out, "--ops", c.Ops, "--roll-age", "5s", "--listen", "127.0.0.1:0"}})
	if err != nil {
		return nil, rig.Exit{}, err
	}
	samples, err := c.sampleUntilDone(b, p, fed)
	if err != nil {
		p.Kill()
		return nil, rig.Exit{}, err
	}
	exit, err := p.Stop(60 * time.Second)
	if n, e := countRows(out, "frames"); err == nil && (e != nil || n != c.Frames) {
		err = fmt.Errorf("%d rows in frames, %d were sent: %w", n, c.Frames, orMismatch(e))
	}
	return samples, exit, err
}

// feed sends the frames in turns over all partitions, so that none runs dry
// long before the others.
func (c *memoryCmd) feed(ctx context.Context, b *bench, dir string) error {
	const turn = 250
	names := sequences(c.Partitions)
	for sent, i := int64(0), 0; sent < c.Frames; i++ {
		n := min(turn, c.Frames-sent)
		if _, _, err := b.program.Run(ctx, b.produceArgs("memory", dir, names[i%len(names)], n)...); err != nil {
			return err
		}
		sent += n
	}
	return nil
}

// sampleUntilDone samples p until it has committed all frames. It fails when
// the producer does, when p ends, or when nothing is committed for two minutes.
func (c *memoryCmd) sampleUntilDone(b *bench, p *rig.Process, fed <-chan error) ([]sample, error) {
	const stuck = 2 * time.Minute
	url, err := metricsURL(b.ctx, p)
	if err != nil {
		return nil, err
	}
	var samples []sample
	begin := time.Now()
	moved := begin
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return nil, b.ctx.Err()
		case <-p.Done():
			return nil, fmt.Errorf("run ended by itself:\n%s", p.Tail(10))
		case err := <-fed:
			if err != nil {
				return nil, err
			}
			fed = nil
		case <-tick.C:
		}
		s, err := takeSample(b, p, url)
		if err != nil {
			return nil, err
		}
		s.Seconds = time.Since(begin).Seconds()
		if len(samples) == 0 || s.Frames > samples[len(samples)-1].Frames {
			moved = time.Now()
		}
		samples = append(samples, s)
		if s.Frames >= c.Frames {
			return samples, nil
		}
		if time.Since(moved) > stuck {
			return nil, fmt.Errorf("nothing committed for %v after %d frames:\n%s", stuck, s.Frames, p.Tail(10))
		}
	}
}

var listening = regexp.MustCompile(`metrics="?(http://[^\s"]+)`)

// metricsURL finds in the log of the program where it serves its metrics.
func metricsURL(ctx context.Context, p *rig.Process) (string, error) {
	for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(20 * time.Millisecond) {
		if m := listening.FindStringSubmatch(p.Tail(100)); m != nil {
			return m[1], nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-p.Done():
			return "", fmt.Errorf("run ended at once:\n%s", p.Tail(10))
		default:
		}
	}
	return "", fmt.Errorf("run does not say where its metrics are:\n%s", p.Tail(10))
}

func takeSample(b *bench, p *rig.Process, url string) (s sample, err error) {
	if s.RSS, err = residentSet(p.Pid()); err != nil {
		return s, err
	}
	if pid := b.broker.Pid(); pid != 0 {
		if s.BrokerRSS, err = residentSet(pid); err != nil {
			return s, err
		}
	}
	s.Frames, err = committedFrames(b.ctx, url)
	return s, err
}

// residentSet reads VmRSS of a process.
func residentSet(pid int) (int64, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(string(v)), "kB")), 10,
				64)
			return kib << 10, err
		}
	}
	return 0, errors.New("no VmRSS: the process has ended")
}

// committedFrames reads the rows of table frames from the program's metrics.
func committedFrames(ctx context.Context, url string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return parseFrames(resp.Body)
}

func parseFrames(r io.Reader) (int64, error) {
	frames, err := sumMetric(r, "entropipe_output_rows_total{", `table="frames"`)
	return int64(frames), err
}

// sumMetric adds up the values of a metric whose labels contain label. name ends
// where the labels begin.
func sumMetric(r io.Reader, name, label string) (sum float64, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		labels, value, ok := strings.Cut(lines.Text(), "} ")
		if !ok || !strings.HasPrefix(labels, name) || !strings.Contains(labels, label) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metrics: %q: %w", lines.Text(), err)
		}
		sum += n
	}
	return sum, lines.Err()
}

// report prints the curve in ten steps and judges peak and growth.
func (c *memoryCmd) report(b *bench, samples []sample, exit rig.Exit, took time.Duration) error {
	fmt.Printf("%10s %10s %12s %12s\n", "frames", "seconds", "RSS MB", "broker MB")
	for i := int64(1); i <= 10; i++ {
		k, _ := slices.BinarySearchFunc(samples, c.Frames*i/10,
			func(s sample, n int64) int { return int(s.Frames - n) })
		s := samples[min(k, len(samples)-1)]
		fmt.Printf("%10d %10.1f %12.1f %12.1f\n", s.Frames, s.Seconds, float64(s.RSS)/1e6, float64(s.BrokerRSS)/1e6)
	}
	growth, ok := growth(samples, c.Frames)
	curve := "too few frames to judge a curve"
	if ok {
		curve = fmt.Sprintf("last quarter against frames 1,000 to a quarter: %+.1f MB", growth/1e6)
	}
	fmt.Printf("%s, %s broker, %d frames in %.0f s: peak RSS %s; %s\n", c.Ops, b.broker.Kind, c.Frames, took.Seconds(),
		megabytes(float64(exit.MaxRSS)), curve)
	if err := b.results.add(map[string]any{"what": "peak", "ops": c.Ops, "frames": c.Frames, "max_rss": exit.MaxRSS,
		"growth": growth, "cpu_seconds": exit.CPU.Seconds(), "prefill": c.Prefill}); err != nil {
		return err
	}
	if exit.MaxRSS > c.Limit*1e6 || growth > c.Growth*1e6 {
		return fmt.Errorf("peak RSS %d MB, growth %.1f MB: want at most %d MB and %.1f", exit.MaxRSS/1e6,
			growth/1e6, c.Limit, c.Growth)
	}
	return nil
}

// growth returns the median resident set of the last quarter of the frames minus
// that of those from 1,000 on up to a quarter. Not ok, and 0, where there are no
// samples of either, as with fewer than some 5,000 frames.
func growth(samples []sample, frames int64) (bytes float64, ok bool) {
	var early, late []float64
	for _, s := range samples {
		switch {
		case s.Frames >= 1000 && s.Frames < frames/4:
			early = append(early, float64(s.RSS))
		case s.Frames >= frames-frames/4:
			late = append(late, float64(s.RSS))
		}
	}
	if len(early) == 0 || len(late) == 0 {
		return 0, false
	}
	return rig.Median(late) - rig.Median(early), true
}
