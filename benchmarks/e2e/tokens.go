package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/sparse/model"
	"entropipe/sparse/sched"
)

type tokensCmd struct {
	LM         string  `name:"lm" default:"builtin:bytes" help:"Model that reads the sequences (${default})."`
	Task       string  `enum:"embed,logits" default:"embed" help:"What it makes of them (${enum})."`
	Sequences  int64   `default:"10000" help:"Sequences in the topic (${default})."`
	Clip       int     `default:"512" help:"Longest sequence: the traces' lengths are clipped there (${default})."`
	Pack       int     `default:"64" help:"Sequences of a message (${default})."`
	Budget     int     `default:"4096" help:"Tokens of a batch (${default})."`
	Partitions int     `default:"4" help:"Partitions of the topic (${default})."`
	Rounds     int     `default:"3" help:"How often each contender runs (${default})."`
	Waste      float64 `default:"0.05" help:"Most padding that passes, as a share of the tokens computed (${default})."`
	Limit      int64   `default:"400" help:"Largest resident set that passes, in MB (${default})."`
}

// Run lets the model read the sequences by itself, in memory, and the program
// read them from the broker and commit its rows, in turns.
func (c *tokensCmd) Run(e *env) error {
	if c.Sequences < 1 || c.Clip < 1 || c.Pack < 1 || c.Budget < 1 || c.Partitions < 1 || c.Rounds < 1 {
		return fmt.Errorf("%w: want at least one of everything", rig.ErrUsage)
	}
	lengths, err := rig.TraceLengths(c.Clip)
	if err != nil {
		return err
	}
	stream := rig.Sequences{Lengths: lengths, Seed: 1, Pack: c.Pack}
	b, err := e.open("tokens", e.flags.Broker)
	if err != nil {
		return err
	}
	defer b.close()
	if err := b.client.CreateTopic(b.ctx, "tokens", c.Partitions, maxMessage); err != nil {
		return err
	}
	if _, err := stream.Send(b.ctx, b.client, "tokens", c.Partitions, c.Sequences); err != nil {
		return err
	}
	tokens := stream.Tokens(c.Sequences)
	note("%d sequences of %d tokens sent", c.Sequences, tokens)
	var bare, ours, net, rates []float64
	var worst tokenRun
	for round := range c.Rounds {
		alone, err := c.alone(&stream)
		if err != nil {
			return err
		}
		r, err := c.piped(b)
		if err != nil {
			return err
		}
		if r.sequences != c.Sequences || r.tokens != tokens {
			return fmt.Errorf("%d sequences of %d tokens came through, %d of %d were sent", r.sequences, r.tokens,
				c.Sequences, tokens)
		}
		n := float64(tokens)
		bare, ours = append(bare, n/alone.Seconds()), append(ours, n/r.exit.Wall.Seconds())
		net, rates = append(net, n/(r.exit.Wall-r.startUp).Seconds()),
			append(rates, float64(c.Sequences)/r.exit.Wall.Seconds())
		worst.waste, worst.exit.MaxRSS = max(worst.waste, r.waste), max(worst.exit.MaxRSS, r.exit.MaxRSS)
		note("round %d: model alone %.0f tokens/s, pipeline %.0f", round+1, bare[round], ours[round])
		err = b.results.add(map[string]any{"what": "tokens", "round": round + 1, "lm": c.LM, "task": c.Task,
			"sequences": c.Sequences, "tokens": tokens, "pack": c.Pack, "clip": c.Clip, "budget": c.Budget,
			"alone_seconds": alone.Seconds(), "seconds": r.exit.Wall.Seconds(), "start_up_seconds": r.startUp.Seconds(),
			"cpu_seconds": r.exit.CPU.Seconds(), "max_rss": r.exit.MaxRSS,
			"fill": r.fill, "padding_share": r.waste, "table_bytes": r.bytes})
		if err != nil {
			return err
		}
	}
	fmt.Printf("%s %s, %s broker, %d sequences of %.0f tokens (traces, clipped to %d), %d a message: %.0f "+
		"sequences/s, %.0f tokens/s; the model alone %.0f tokens/s; share %.2f (net of start-up %.2f); padding %.1f "+
		"%%; peak RSS %s; medians of %d rounds\n",
		c.LM, c.Task, b.broker.Kind, c.Sequences, float64(tokens)/float64(c.Sequences), c.Clip, c.Pack,
		rig.Median(rates), rig.Median(ours), rig.Median(bare),
		rig.Median(ours)/rig.Median(bare), rig.Median(net)/rig.Median(bare), 100*worst.waste,
		megabytes(float64(worst.exit.MaxRSS)), c.Rounds)
	if worst.waste > c.Waste || worst.exit.MaxRSS > c.Limit*1e6 {
		return fmt.Errorf("padding %.3f, peak RSS %d MB: want at most %.3f and %d MB", worst.waste,
			worst.exit.MaxRSS/1e6, c.Waste, c.Limit)
	}
	return nil
}

// alone is how long the model takes for the sequences without a pipeline: one
// core each for as many goroutines as there are cores, in batches of the budget.
func (c *tokensCmd) alone(stream *rig.Sequences) (time.Duration, error) {
	m, err := model.Open(c.LM)
	if err != nil {
		return 0, err
	}
	cores := runtime.GOMAXPROCS(0)
	errs := make([]error, cores)
	var all sync.WaitGroup
	begin := time.Now()
	for g := range cores {
		all.Go(func() { errs[g] = c.read(m.NewSession(1), stream, int64(g), int64(cores)) })
	}
	all.Wait()
	took := time.Since(begin)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return took, nil
}

// read reads every step-th message of the stream.
func (c *tokensCmd) read(s *model.Session, stream *rig.Sequences, first, step int64) error {
	packer := sched.Packer{Budget: c.Budget}
	var b model.Batch
	pack := int64(c.Pack)
	for from := first * pack; from < c.Sequences; from += step * pack {
		var lengths []int
		for i := from; i < min(from+pack, c.Sequences); i++ {
			lengths = append(lengths, stream.Lengths[i%int64(len(stream.Lengths))])
		}
		for _, batch := range packer.Pack(lengths) {
			b.IDs, b.Starts = b.IDs[:0], append(b.Starts[:0], 0)
			for _, i := range batch {
				b.IDs = stream.IDs(b.IDs, from+int64(i))
				b.Starts = append(b.Starts, int32(len(b.IDs)))
			}
			if _, err := s.Hidden(b, model.Options{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// tokenRun is one run of the program over the topic.
type tokenRun struct {
	exit              rig.Exit
	startUp           time.Duration // time of a second run, which finds nothing to do
	sequences, tokens int64
	fill, waste       float64
	bytes             int64 // size of the tables
}

func (c *tokensCmd) piped(b *bench) (r tokenRun, err error) {
	out := b.newOutput()
	defer os.RemoveAll(out)
	args := []string{"run", "--brokers", b.broker.Addr, "--topic", "tokens", "--out", out, "--lm", c.LM, "--task",
		c.Task, "--token-budget", strconv.Itoa(c.Budget), "--until-end"}
	p, err := rig.Start(rig.Spec{Path: b.program.Path, Args: args, Log: filepath.Join(b.scratch, "tokens.log")})
	if err != nil {
		return r, err
	}
	if r.exit, err = p.Wait(b.ctx); err != nil {
		return r, err
	}
	tail := p.Tail(5)
	for name, to := range map[string]*int64{"sequences": &r.sequences, "tokens": &r.tokens} {
		n, err := logged(tail, name)
		if err != nil {
			return r, err
		}
		*to = int64(n)
	}
	if r.fill, err = logged(tail, "batch_fill"); err != nil {
		return r, err
	}
	padding, err := logged(tail, "padding")
	if err != nil {
		return r, err
	}
	r.waste = padding / max(padding+float64(r.tokens), 1)
	again, _, err := b.program.Run(b.ctx, args...)
	if err != nil {
		return r, err
	}
	r.startUp = again.Wall
	rows, err := countRows(out, "tokens")
	if err != nil || rows != r.sequences {
		return r, fmt.Errorf("%s: %d rows in tokens, the run says %d: %w", out, rows, r.sequences, orMismatch(err))
	}
	r.bytes, err = tableBytes(out)
	return r, err
}

// logged returns a number of the last line that says done.
func logged(log, name string) (float64, error) {
	found := regexp.MustCompile(`msg=done .*\b` + name + `=(\S+)`).FindStringSubmatch(log)
	if found == nil {
		return 0, fmt.Errorf("the log has no %s:\n%s", name, log)
	}
	return strconv.ParseFloat(found[1], 64)
}
