package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"entropipe/schemas"
)

var errFull = errors.New("no space left on device")

// fullOutput is an output whose disk is full for a while. A commit that it refuses
// may have been made.
type fullOutput struct {
	memoryOutput
	lock    sync.Mutex
	full    bool
	made    func(b *schemas.Batch) bool // nil: none is
	blind   bool                        // a resumption is refused too
	half    bool                        // a commit was made and its files are not published: so it is too
	commits int
}

func (o *fullOutput) set(full bool) { o.lock.Lock(); defer o.lock.Unlock(); o.full = full }

func (o *fullOutput) refusal() error {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.full {
		return &schemas.UnavailableError{Err: errFull}
	}
	return nil
}

func (o *fullOutput) Resume(ctx context.Context, topic string, id int32) (schemas.Position, error) {
	if err := o.refusal(); err != nil && (o.blind || o.half) {
		return schemas.Position{}, fmt.Errorf("resume: %w", err)
	}
	return o.memoryOutput.Resume(ctx, topic, id)
}

func (o *fullOutput) Stage(ctx context.Context, b *schemas.Batch) error {
	if err := o.refusal(); err != nil {
		return err
	}
	return o.memoryOutput.Stage(ctx, b)
}

func (o *fullOutput) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	o.lock.Lock()
	o.commits++
	o.lock.Unlock()
	if err := o.refusal(); err != nil {
		if o.made == nil || !o.made(b) {
			return schemas.Committed{}, fmt.Errorf("stage: %w", err)
		}
		o.half = true
		done, _ := o.memoryOutput.Commit(ctx, b)
		return done, fmt.Errorf("publish: %w", err)
	}
	return o.memoryOutput.Commit(ctx, b)
}

// Law: an output that cannot be written for a while delays records and loses none,
// whether or not it can be resumed, and whether or not a refused commit was made.
// Nothing is read twice, the log has a line a minute, and whoever asks whether the
// output can be written hears why not.
func TestOutputThatCannotBeWrittenIsWaitedFor(t *testing.T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			const away = 305 * time.Second
			var log bytes.Buffer
			l, o := randomLog(seed, 300), &fullOutput{full: seed%2 == 0, blind: seed%3 == 0}
			rng := rand.New(rand.NewPCG(seed, 2))
			if seed%4 > 1 {
				o.made = func(*schemas.Batch) bool { return rng.IntN(2) == 0 }
			}
			p := newPipeline(o, echo(10*time.Millisecond), func(c *Config) {
				c.RetryFor, c.Log = 10*time.Minute, slog.New(slog.NewTextHandler(&log, nil))
			})
			defer p.Close()
			if seed%2 == 1 { // in the middle
				time.AfterFunc(20*time.Millisecond, func() { o.set(true) })
			}
			time.AfterFunc(away, func() { o.set(false) })
			time.AfterFunc(away/2, func() {
				if err := p.Unavailable(); !errors.Is(err, errFull) {
					t.Errorf("seed %d: meanwhile the output is unavailable for: %v", seed, err)
				}
			})
			begin := time.Now()
			if err := p.Partition(t.Context(), "t", 0, l); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if took := time.Since(begin); took < away || took > away+2*mostPause+10*time.Second {
				t.Errorf("seed %d: it took %v", seed, took)
			}
			checkChain(t, &o.memoryOutput, l, l.end)
			checkMemory(t, p, l)
			if err := p.Unavailable(); err != nil {
				t.Errorf("seed %d: afterwards: %v", seed, err)
			}
			if n := l.checks.Load(); n != 1 {
				t.Errorf("seed %d: %d sessions, want one that keeps its batch", seed, n)
			}
			if st := p.Stats(); int(st.Messages) != countFrom(l, 0) || st.Frames+st.Rejects != st.Messages ||
				st.Rows != st.Frames {
				t.Errorf("seed %d: stats %+v, want %d messages", seed, st, countFrom(l, 0))
			}
			lines := strings.Count(log.String(), "the output cannot be written, trying again")
			if lines < 5 || lines > 6 || strings.Count(log.String(), "can be written again") != 1 {
				t.Errorf("seed %d: %d lines in %v:\n%s", seed, lines, away, log.String())
			}
		})
	}
}

// A disk that is full again and again is a line a minute too, with the end of the
// outage that it names.
func TestDiskThatIsFullAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := &fullOutput{}
		p := newPipeline(o, echo(0), func(c *Config) {
			c.RetryFor, c.Log, c.Roll.Records = time.Minute, slog.New(slog.NewTextHandler(&log, nil)), 1
		})
		defer p.Close()
		calls := 0
		flapping := &staging{fullOutput: o, before: func() error {
			if calls++; calls%2 == 1 {
				return &schemas.UnavailableError{Err: errFull}
			}
			return nil
		}}
		p.cfg.Output = flapping
		begin := time.Now()
		l := randomLog(6, 1000)
		if err := p.Partition(t.Context(), "t", 0, l); err != nil {
			t.Fatal(err)
		}
		minutes := int(time.Since(begin)/time.Minute) + 1
		if warned, ended := strings.Count(log.String(), "level=WARN msg=\"the output"),
			strings.Count(log.String(), "written again"); minutes < 2 || warned > minutes || ended > minutes {
			t.Errorf("%d and %d lines in %d minutes", warned, ended, minutes)
		}
		checkChain(t, &o.memoryOutput, l, l.end)
	})
}

// A minute has one line for all partitions together.
func TestFullDiskIsOneLineAMinuteForAllPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := newPipeline(&fullOutput{full: true}, echo(0), func(c *Config) {
			c.RetryFor, c.Log = 4*time.Minute, slog.New(slog.NewTextHandler(&log, nil))
		})
		defer p.Close()
		var wg sync.WaitGroup
		for id := range int32(50) {
			wg.Go(func() {
				if err := p.Partition(t.Context(), "t", id, randomLog(uint64(id), 30)); !errors.Is(err, errFull) {
					t.Errorf("partition %d: %v", id, err)
				}
			})
		}
		wg.Wait()
		if n := strings.Count(log.String(), "level=WARN msg=\"the output cannot be written"); n != 4 {
			t.Errorf("%d lines in four minutes:\n%s", n, log.String())
		}
		if err := p.Unavailable(); err != nil {
			t.Errorf("nobody waits any more: %v", err)
		}
	})
}

// Patience is bounded: then there is one error, with its cause, and nothing is
// committed. What does not pass is not waited for at all.
func TestPatienceWithAnOutputEnds(t *testing.T) {
	for _, patience := range []time.Duration{0, 90 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l, o := randomLog(3, 100), &fullOutput{full: true}
			p := newPipeline(o, echo(0), func(c *Config) { c.RetryFor = patience })
			defer p.Close()
			begin := time.Now()
			err := p.Partition(t.Context(), "t", 0, l)
			took := time.Since(begin)
			if !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(),
				"t/0@0: commit: stage: no space left on device") {
				t.Errorf("patience of %v: %v", patience, err)
			}
			if tried := strings.Contains(err.Error(), "(retried for 1m"); tried != (patience > 0) || took < patience ||
				took > patience+2*mostPause {
				t.Errorf("patience of %v: it took %v: %v", patience, took, err)
			}
			if patience == 0 && o.commits != 1 {
				t.Errorf("%d commits without patience", o.commits)
			}
			checkMemory(t, p, l)
		})
	}
	broken := &memoryOutput{fail: errors.New("the file is neither here nor there")}
	p := newPipeline(broken, echo(0), func(c *Config) { c.RetryFor = time.Hour })
	defer p.Close()
	if err := p.Partition(t.Context(), "t", 0, randomLog(3, 100)); !errors.Is(err, broken.fail) {
		t.Errorf("what does not pass: %v", err)
	}
}

// A resumption that was refused for a while is over when it is not, although no record
// comes after it: the output is available, and the next outage has all of the patience.
func TestPatienceBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, o := randomLog(4, 0), &fullOutput{full: true, blind: true}
		l.follow = true
		p := newPipeline(o, echo(0), func(c *Config) { c.RetryFor = time.Minute })
		defer p.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Partition(ctx, "t", 0, l) }()
		time.Sleep(40 * time.Second)
		if err := p.Unavailable(); !errors.Is(err, errFull) {
			t.Errorf("a resumption that is refused: %v", err)
		}
		o.set(false)
		time.Sleep(20 * time.Second)
		if err := p.Unavailable(); err != nil {
			t.Errorf("the outage is over: %v", err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for _, at := range []string{"a resumption", "a commit"} {
		r := &retry{p: newPipeline(&fullOutput{}, echo(0), func(c *Config) { c.RetryFor = time.Minute })}
		defer r.p.Close()
		err := fmt.Errorf("%s: %w", at, &schemas.UnavailableError{Err: errFull})
		synctest.Test(t, func(t *testing.T) {
			for range 5 {
				begin := time.Now()
				if at == "a resumption" {
					r.resumed(err)
				}
				for time.Since(begin) < 40*time.Second {
					if !r.again(t.Context(), err) {
						t.Fatalf("%s: patience is over after %v", at, time.Since(begin))
					}
				}
				if at == "a resumption" {
					r.resumed(nil)
				} else {
					r.resumed(nil) // no news of a commit
					if r.since.IsZero() {
						t.Error("a resumption ended the wait for a commit")
					}
					r.succeeded()
				}
			}
		})
	}
}

// A revoked partition is given up at once, with an error that says why it is not
// committed; its next owner loses nothing.
func TestRevokedWhileTheOutputCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, o := randomLog(5, 200), &fullOutput{full: true}
		p := newPipeline(o, echo(0), func(c *Config) { c.RetryFor = time.Hour })
		defer p.Close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		begin, passing := time.Now(), (*schemas.UnavailableError)(nil)
		if err := p.Partition(ctx, "t", 0, l); !errors.As(err, &passing) || time.Since(begin) > 61*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		checkMemory(t, p, l)
		o.set(false)
		if err := p.Partition(t.Context(), "t", 0, l); err != nil {
			t.Fatal(err)
		}
		checkChain(t, &o.memoryOutput, l, l.end)
	})
}

// Rows of a large message that were staged are forgotten with a refused part: the
// message is read again, and all of its rows are there once.
func TestLargeMessageOnAFullDisk(t *testing.T) {
	l := &listLog{messages: []schemas.Message{idMessage(t, 0, someIDs(rand.New(rand.NewPCG(1, 1)), 4000)...)}}
	cfg, o := tokenConfig(tiny(t, 1), Embed), &fullOutput{}
	calls := 1
	for refused := 0; refused < calls; refused++ { // with which call of Stage, and at last of Commit
		o.memoryOutput = memoryOutput{}
		calls = 0
		out := &staging{fullOutput: o, before: func() error {
			if calls++; calls == refused+1 {
				return &schemas.UnavailableError{Err: errFull}
			}
			return nil
		}}
		p := newPipeline(out, echo(0), func(c *Config) {
			c.Memory, c.RetryFor = 8<<20, time.Minute
			c.NewTokens = func() *Tokens { return NewTokens(cfg) }
		})
		if err := p.Partition(t.Context(), "t", 0, l); err != nil {
			t.Fatalf("refused %d of %d: %v", refused, calls, err)
		}
		p.Close()
		if calls -= refused + 1; calls < 3 { // the second time: all of them
			t.Fatalf("%d parts", calls)
		}
		if len(o.batches) != 1 || len(o.batches[0].Results)+len(o.batches[0].Rejects) != 4000 {
			t.Fatalf("refused %d: %d batches", refused, len(o.batches))
		}
		if s := p.Stats(); s.Messages != 1 || s.Sequences+s.Rejects != 4000 || p.budget.used() != 0 {
			t.Errorf("refused %d: stats %+v", refused, s)
		}
	}
}

// staging has a say before each part and commit; a refusal forgets what is staged.
type staging struct {
	*fullOutput
	before func() error
}

func (o *staging) Stage(ctx context.Context, b *schemas.Batch) error {
	if err := o.before(); err != nil {
		o.staged = schemas.Batch{}
		return err
	}
	return o.fullOutput.Stage(ctx, b)
}

func (o *staging) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	if err := o.before(); err != nil {
		o.staged = schemas.Batch{}
		return schemas.Committed{}, err
	}
	return o.fullOutput.Commit(ctx, b)
}
