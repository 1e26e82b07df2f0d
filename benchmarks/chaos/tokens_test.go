//go:build chaos

package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"entropipe/benchmarks/rig"
)

var (
	sequences = flag.Int64("chaos.sequences", 2000, "sequences of tokens to send")
	tokenKill = flag.Int("chaos.token-kills", 6, "workers to kill while sequences flow")
	lm        = flag.String("chaos.lm", "builtin:bytes", "model that reads them")
	task      = flag.String("chaos.task", "logits", "what it makes of them")
	more      = flag.String("chaos.more", "", "further flags of run, such as --mask DIR --ladder 0.1")
	minutes   = flag.Int("chaos.minutes", 10, "when to give up")
)

const (
	tokenTopic   = "sequences"
	tokenWorkers = 2
	longest      = 512 // tokens: where the traces' lengths are clipped
)

// tokenRun is a run of sequences: two workers share an output and are killed
// while they work. Then another output is made of the same log, by one worker
// with other batches and in peace, and every row of the two must be the same.
type tokenRun struct {
	*run
	stream rig.Sequences
	sent   chan error
	peak   int64 // largest resident set of a process that was not killed
}

// TestTokensSurviveKills: none missing, none twice, every row that of an
// undisturbed run.
func TestTokensSurviveKills(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	limit := time.Duration(*minutes) * time.Minute
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit,
		fmt.Errorf("the run took longer than %v (-chaos.minutes)", limit))
	defer cancel()
	r := newTokenRun(ctx, t)
	r.phase("built, sending")
	r.killings(ctx)
	r.phase("kills over")
	r.finish(ctx)
	r.phase("drained")
	r.judgeTokens(ctx)
}

func newTokenRun(ctx context.Context, t *testing.T) *tokenRun {
	r := &tokenRun{run: &run{begun: time.Now(), t: t, rng: rand.New(rand.NewPCG(*seed, 1))}, sent: make(chan error, 1)}
	lengths, err := rig.TraceLengths(longest)
	if err != nil {
		t.Logf("lengths are made up: %v", err)
		for range 1000 {
			lengths = append(lengths, 1+r.rng.IntN(longest))
		}
	}
	r.stream = rig.Sequences{Lengths: lengths, Seed: *seed, Pack: 16}
	if r.dir, err = os.MkdirTemp("", "entropipe-chaos-"); err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d, folder %s", *seed, r.dir)
	t.Cleanup(r.clean)
	r.out = filepath.Join(r.dir, "out")
	if r.program, err = rig.Build(ctx, r.dir); err != nil {
		t.Fatal(err)
	}
	if r.broker, err = r.newBroker(ctx); err != nil {
		t.Fatal(err)
	}
	r.client = rig.NewClient(r.broker.Addr)
	if err := r.client.CreateTopic(ctx, tokenTopic, partitions, 1<<20); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := r.stream.Send(ctx, r.client, tokenTopic, partitions, *sequences)
		r.sent <- err
	}()
	return r
}

// tokenArgs is the command line of a worker.
func (r *tokenRun) tokenArgs(out string, args ...string) []string {
	return append([]string{"run", "--brokers", r.broker.Addr, "--topic", tokenTopic, "--out", out, "--lm",
		*lm, "--task", *task,
		"--memory", "64MiB", "--session-timeout", session.String(), "--rebalance-timeout", (2 * *session).String()},
		slices.Concat(strings.Fields(*more), args)...)
}

func (r *tokenRun) begin(name string, args []string) *rig.Process {
	p, err := rig.Start(rig.Spec{Path: r.program.Path, Args: args, Log: filepath.Join(r.dir, name+".log")})
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// killings kills one of the crew whenever another share of the sequences is
// committed, so that the kills meet the whole of the stream.
func (r *tokenRun) killings(ctx context.Context) {
	var crew [tokenWorkers]*rig.Process
	start := func(i int) {
		crew[i] = r.begin(fmt.Sprintf("worker%d", i), r.tokenArgs(r.out, "--workers", "1", "--roll-age", "250ms"))
	}
	for i := range crew {
		start(i)
	}
	defer func() {
		for _, p := range crew {
			p.Kill() // once more, all of them: the last run begins with whatever they left
		}
	}()
	messages := (*sequences + int64(r.stream.Pack) - 1) / int64(r.stream.Pack)
	for k := range *tokenKill {
		r.until(ctx, messages*int64(k+1)/int64(*tokenKill+1), crew[:])
		r.wait(ctx, time.Duration(r.rng.Int64N(int64(*pause))))
		i := r.rng.IntN(tokenWorkers)
		crew[i].Kill()
		r.kills++
		r.wait(ctx, time.Duration(r.rng.Int64N(int64(*pause/2))))
		start(i)
	}
	if err := <-r.sent; err != nil {
		r.t.Fatal(err)
	}
}

// until waits until so many messages are committed.
func (r *tokenRun) until(ctx context.Context, messages int64, crew []*rig.Process) {
	for r.committed() < messages {
		r.wait(ctx, 50*time.Millisecond)
		for _, p := range crew {
			select {
			case <-p.Done():
				r.t.Fatalf("a worker ended by itself:\n%s", p.Tail(8))
			default:
			}
		}
	}
}

// committed counts the messages behind the files of table tokens, by their
// names.
func (r *tokenRun) committed() (n int64) {
	files, err := filepath.Glob(filepath.Join(r.out, "tokens", "*", "*", "part-*.parquet"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range files {
		parts := strings.Split(strings.TrimSuffix(filepath.Base(f), ".parquet"), "-")
		if len(parts) != 4 {
			r.t.Fatalf("what is %s?", f)
		}
		from, err1 := strconv.ParseInt(parts[2], 10, 64)
		to, err2 := strconv.ParseInt(parts[3], 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			r.t.Fatal(err)
		}
		n += to - from
	}
	return n
}

// finish has one process do what is left, and another all of it again.
func (r *tokenRun) finish(ctx context.Context) {
	left := r.committed()
	for name, args := range map[string][]string{
		"drain": r.tokenArgs(r.out, "--until-end"),
		"peace": r.tokenArgs(r.peace(), "--until-end", "--workers", "1", "--token-budget", "1500"),
	} {
		exit, err := r.begin(name, args).Wait(ctx)
		if err != nil {
			r.t.Fatal(err)
		}
		r.peak = max(r.peak, exit.MaxRSS)
		r.phase(name)
	}
	if left == 0 {
		r.t.Error("the crew committed nothing: it was never at work when it was killed")
	}
}

func (r *tokenRun) peace() string { return filepath.Join(r.dir, "peace") }

// judgeTokens compares the two outputs, and makes sure that the judge can say
// no.
func (r *tokenRun) judgeTokens(ctx context.Context) {
	v := r.verdict()
	fmt.Printf("chaos of sequences: broker %s, seed %d, model %s, task %s, %d sequences of %d tokens, kills %d, "+
		"commits %d, peak RSS %.0f MB, missing %d, doubled %d, stray %d, different %d\n",
		r.broker.Kind, *seed, *lm, *task, *sequences, r.stream.Tokens(*sequences), r.kills, r.commits(),
		float64(r.peak)/1e6, v.Missing, v.Doubled, v.Stray, v.Differ)
	if !v.OK() {
		r.t.Fatal(v)
	}
	for _, out := range []string{r.out, r.peace()} {
		if _, text, err := r.program.Run(ctx, "verify", out); err != nil {
			r.t.Errorf("verify %s: %v\n%s", out, err, text)
		}
	}
	files, err := filepath.Glob(filepath.Join(r.out, "tokens", "*", "*", "*.parquet"))
	if err != nil || len(files) == 0 {
		r.t.Fatalf("files of tokens: %v, %v", files, err)
	}
	victim := files[r.rng.IntN(len(files))]
	if err := os.Rename(victim, filepath.Join(r.dir, "aside")); err != nil {
		r.t.Fatal(err)
	}
	if v := r.verdict(); v.Missing == 0 {
		r.t.Errorf("without %s the judge says %v", victim, v)
	}
	if _, text, err := r.program.Run(ctx, "verify", r.out); err == nil {
		r.t.Errorf("without %s verify says\n%s", victim, text)
	}
}

func (r *tokenRun) verdict() *TokenVerdict {
	got, _, err1 := ReadTokens(r.out, tokenTopic)
	want, _, err2 := ReadTokens(r.peace(), tokenTopic)
	if err := errors.Join(err1, err2); err != nil {
		r.t.Fatal(err)
	}
	return JudgeTokens(got, want, *sequences, r.stream.ID)
}
