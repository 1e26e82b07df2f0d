// Command buckets measures what an output in a bucket costs a run beside one in a folder: the
// same frames from Kafka to committed Parquet into both, in turns, in one run.
//
// The server is versitygw, a program of others that keeps objects as files on the same disk and
// works on the same cores. So the page has the ratio of wall times as they are, the one less the
// server's processor time, and the processor time of the run alone.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
)

type cli struct {
	Quick     bool   `help:"Few frames and turns; keeps no result."`
	Rounds    int    `default:"7" help:"Turns of each way (${default}; --quick: 2)."`
	Frames    int    `default:"2000" help:"Frames of a turn (${default}; --quick: 60)."`
	Points    int    `default:"120000" help:"Points of a made-up frame (${default})."`
	Roll      int    `default:"50" help:"Records of a commit (${default})."`
	Ops       string `default:"hull2d,maxima3d" help:"Operators (${default})."`
	Server    string `default:"versitygw" placeholder:"PATH" help:"The program versitygw."`
	Results   string `placeholder:"DIR" help:"Folder of the result (benchmarks/results; --quick: none); -: none."`
	Synthetic bool   `help:"Made-up frames, although there are real ones."`
	Render    bool   `help:"Measure nothing; write the page again from buckets.jsonl."`
}

const (
	topic  = "points"
	bucket = "archive"
	user   = "user"
	secret = "password"
)

func main() {
	var c cli
	kong.Parse(&c, kong.Name("buckets"), kong.Description("Measures outputs in buckets beside those in folders."))
	rig.Main("buckets", c.run)
}

func (c *cli) run(ctx context.Context) error {
	results, err := rig.ResultsFolder(c.Results, rig.KindOf(c.Quick))
	if err != nil {
		return err
	}
	r, err := newReport(results)
	if err != nil {
		return err
	}
	if c.Render {
		return r.write(os.Stdout)
	}
	if c.Quick {
		c.Rounds, c.Frames = min(c.Rounds, 2), min(c.Frames, 60)
	}
	dir, err := os.MkdirTemp("", "entropipe-buckets-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{cli: c, dir: dir}
	if b.program, err = rig.Build(ctx, dir); err != nil {
		return err
	}
	if b.broker, err = b.program.NewBroker(ctx, filepath.Join(dir, "broker")); err != nil {
		return err
	}
	defer b.broker.Kill()
	if err := b.fill(ctx); err != nil {
		return err
	}
	if err := b.serve(ctx); err != nil {
		return err
	}
	defer b.server.Kill()
	for round := range c.Rounds {
		for _, i := range rand.Perm(len(ways)) {
			f, err := b.turn(ctx, ways[i], round)
			if err != nil {
				return fmt.Errorf("%s: %w", ways[i], err)
			}
			fmt.Printf("%2d %-7s %6.2f s, processor %6.2f s, server's processor %5.2f s, %4.0f MB, %d commits, %d "+
				"requests\n",
				round, f.Way, f.WallS, f.CPUS, f.ServerCPUS, float64(f.MaxRSS)/1e6, f.Commits, f.Requests)
			if err := r.Add(f); err != nil {
				return err
			}
		}
	}
	return r.write(os.Stdout)
}

// bench is what all turns share.
type bench struct {
	*cli
	dir     string
	program rig.Program
	broker  *rig.Broker
	server  *rig.Process
	url     string
	data    string // where the frames are from
}

// fill sends the frames: scans of KITTI, over and over, or made-up ones of as many points.
func (b *bench) fill(ctx context.Context) error {
	args := []string{"produce", "synthetic", "--kind", "lidar", "--points", strconv.Itoa(b.Points), "--frames",
		strconv.Itoa(b.Frames)}
	b.data = "made-up frames"
	if drive, err := rig.TestData("kitti", "raw_2011_09_26_drive_0005"); err == nil && !b.Synthetic {
		scans, err := filepath.Glob(filepath.Join(drive, "*.bin"))
		if err != nil || len(scans) == 0 {
			return cmp.Or(err, fmt.Errorf("%s has no scans", drive))
		}
		b.data = "KITTI frames"
		args = []string{"produce", drive, "--loop", strconv.Itoa((b.Frames + len(scans) - 1) / len(scans))}
		b.Frames = (b.Frames + len(scans) - 1) / len(scans) * len(scans)
	}
	args = append(args, "--rate", "max", "--brokers", b.broker.Addr, "--topic", topic, "--log-level", "warn")
	if _, said, err := b.program.Run(ctx, args...); err != nil {
		return fmt.Errorf("produce: %w\n%s", err, said)
	}
	return nil
}

// serve starts versitygw and makes the bucket.
func (b *bench) serve(ctx context.Context) error {
	path, err := exec.LookPath(b.Server)
	if err != nil {
		return fmt.Errorf("%w: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0", err)
	}
	root := filepath.Join(b.dir, "objects")
	if err := os.MkdirAll(filepath.Join(root, bucket), 0o777); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	b.url = "http://" + address
	b.server, err = rig.Start(rig.Spec{Path: path, Args: []string{"--port", address, "--quiet", "posix", root},
		Env: []string{"ROOT_ACCESS_KEY=" + user, "ROOT_SECRET_KEY=" + secret}})
	if err != nil {
		return err
	}
	for {
		answer, err := http.Get(b.url)
		if err == nil {
			return answer.Body.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.server.Done():
			return fmt.Errorf("versitygw has ended: %s", b.server.Tail(5))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// requestsOf finds the number of requests at the end of a run's log.
var requestsOf = regexp.MustCompile(`\brequests=(\d+)`)

// turn runs until the end of the topic into a new output.
func (b *bench) turn(ctx context.Context, way string, round int) (figures, error) {
	f := figures{Way: way, Round: round, Frames: b.Frames, Roll: b.Roll, Ops: b.Ops, Data: b.data}
	out := filepath.Join(b.dir, fmt.Sprintf("out-%d", round))
	var env []string
	if way == inBucket {
		out = fmt.Sprintf("s3://%s/out-%d", bucket, round)
		env = []string{"AWS_ACCESS_KEY_ID=" + user, "AWS_SECRET_ACCESS_KEY=" + secret, "AWS_SESSION_TOKEN="}
	}
	before, err := rig.ProcessorTime(b.server.Pid())
	if err != nil {
		return f, err
	}
	log := filepath.Join(b.dir, fmt.Sprintf("run-%d-%s.log", round, way))
	p, err := rig.Start(rig.Spec{Path: b.program.Path, Env: env, Log: log,
		Args: []string{"run", "--brokers", b.broker.Addr,
			"--topic", topic, "--until-end", "--out", out, "--ops", b.Ops, "--roll-records", strconv.Itoa(b.Roll),
			"--listen", "off", "--s3-endpoint", b.url}})
	if err != nil {
		return f, err
	}
	defer p.Kill()
	exit, err := p.Wait(ctx)
	if err != nil {
		return f, err
	}
	if exit.Status != 0 {
		return f, fmt.Errorf("run: exit status %d\n%s", exit.Status, p.Tail(20))
	}
	after, err := rig.ProcessorTime(b.server.Pid())
	if err != nil {
		return f, err
	}
	f.WallS, f.CPUS, f.MaxRSS = exit.Wall.Seconds(), exit.CPU.Seconds(), exit.MaxRSS
	f.ServerCPUS = (after - before).Seconds()
	text, err := os.ReadFile(log)
	if err != nil {
		return f, err
	}
	found := requestsOf.FindSubmatch(text)
	if way == inBucket && found == nil {
		return f, errors.New("the log of run has no number of requests")
	}
	if found != nil {
		f.Requests, _ = strconv.ParseInt(string(found[1]), 10, 64)
	}
	return f, errors.Join(b.count(ctx, out, env, &f), b.remove(way, round))
}

// count fills in what the output holds, and fails unless it has all frames.
func (b *bench) count(ctx context.Context, out string, env []string, f *figures) error {
	_, text, err := rig.Run(ctx, rig.Spec{Path: b.program.Path, Env: env, Args: []string{"info", out, "--json",
		"--s3-endpoint", b.url}})
	if err != nil {
		return fmt.Errorf("info: %w", err)
	}
	var found struct {
		Partitions []struct{ Manifests, Frames int64 }
		Tables     []struct{ Files, Bytes int64 }
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		return err
	}
	frames := int64(0)
	for _, p := range found.Partitions {
		f.Commits += p.Manifests
		frames += p.Frames
	}
	for _, t := range found.Tables {
		f.Files += t.Files
		f.Bytes += t.Bytes
	}
	if frames != int64(b.Frames) {
		return fmt.Errorf("%d frames are in the output, and %d in the topic", frames, b.Frames)
	}
	return nil
}

// remove removes the output of a turn.
func (b *bench) remove(way string, round int) error {
	if way == inBucket {
		return os.RemoveAll(filepath.Join(b.dir, "objects", bucket, fmt.Sprintf("out-%d", round)))
	}
	return os.RemoveAll(filepath.Join(b.dir, fmt.Sprintf("out-%d", round)))
}
