package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
)

// settling is the time from a change of readers to the begin of a stretch.
const settling = 250 * time.Millisecond

// measure is what all runs share.
type measure struct {
	*cli
	program rig.Program
	broker  string
	report  report
	rounds  int // those that are whole
}

// run processes all frames, and measures round after round while it goes on. A round that
// meets the end of the frames does not count, nor one with a stretch without a frame.
func (m *measure) run(ctx context.Context, out string) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	p, err := rig.Start(rig.Spec{Path: m.program.Path, Args: []string{"run", "--brokers", m.broker, "--topic", topic,
		"--until-end", "--out", out, "--listen", address, "--log-level", "warn"}})
	if err != nil {
		return err
	}
	defer os.RemoveAll(out)
	defer p.Kill()
	watching := &stretch{measure: m, process: p, address: address}
	if err := watching.begun(ctx); err != nil {
		return err
	}
	for whole := true; whole; {
		if whole, err = watching.round(ctx); err != nil {
			return err
		}
	}
	exit, err := p.Wait(ctx)
	if err == nil && exit.Status != 0 {
		err = fmt.Errorf("run: exit status %d\n%s", exit.Status, p.Tail(20))
	}
	return err
}

// stretch is a run that is measured while it goes on.
type stretch struct {
	*measure
	process *rig.Process
	address string
}

// begun waits for the first frames.
func (s *stretch) begun(ctx context.Context) error {
	for ctx.Err() == nil {
		if at, err := s.sample(ctx); err == nil && at.frames > 0 {
			return nil
		}
		select {
		case <-s.process.Done():
			return fmt.Errorf("the run ended before it was measured\n%s", s.process.Tail(20))
		case <-time.After(50 * time.Millisecond):
		}
	}
	return ctx.Err()
}

// round measures each way once, in any order. It is false where the run has ended.
func (s *stretch) round(ctx context.Context) (whole bool, err error) {
	var all []figures
	for _, i := range rand.Perm(len(ways)) {
		f, err := s.measureWay(ctx, ways[i])
		select {
		case <-s.process.Done():
			return false, nil
		default:
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", ways[i], err)
		}
		if f.Frames == 0 {
			return true, nil
		}
		f.Round = s.rounds
		all = append(all, f)
	}
	s.rounds++
	for _, f := range all {
		fmt.Printf(
			"%3d %-8s %4d frames in %5.2f s, processor %5.2f s, readers' processor %5.2f s, %d scenes, %.0f MB\n",
			f.Round,
			f.Way,
			f.Frames,
			f.WallS,
			f.CPUS,
			f.ReadersCPUS,
			f.Scenes,
			float64(f.Bytes)/1e6,
		)
		if err := s.report.Add(f); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (s *stretch) measureWay(ctx context.Context, way string) (figures, error) {
	f := figures{Way: way, Points: s.Points}
	var r *readers
	if way != alone {
		f.Readers = s.Readers
		r = watch(ctx, s.address, s.Readers, way == stalled)
		defer r.end()
	}
	time.Sleep(settling)
	scenes, bytes := r.counts()
	from, err := s.sample(ctx)
	if err != nil {
		return f, err
	}
	time.Sleep(s.Stretch)
	to, err := s.sample(ctx)
	if err != nil {
		return f, err
	}
	f.Scenes, f.Bytes = r.counts()
	f.Scenes, f.Bytes = f.Scenes-scenes, f.Bytes-bytes
	f.Frames = int(to.frames - from.frames)
	f.WallS, f.CPUS = to.at.Sub(from.at).Seconds(), (to.run - from.run).Seconds()
	f.ReadersCPUS = (to.readers - from.readers).Seconds()
	if way == watched && f.Frames > 0 && f.Scenes == 0 {
		return f, errors.New("no reader got a scene")
	}
	return f, nil
}

// sample is the state of run and readers at a moment.
type sample struct {
	at      time.Time
	frames  int64         // those that operators have had
	run     time.Duration // processor time of the run
	readers time.Duration // processor time of this process
}

func (s *stretch) sample(ctx context.Context) (at sample, err error) {
	if at.frames, err = framesOf(ctx, s.address); err != nil {
		return at, err
	}
	at.at, at.readers = time.Now(), processorTime()
	at.run, err = rig.ProcessorTime(s.process.Pid())
	return at, err
}

// framesOf returns how many frames the operators of a process have had.
func framesOf(ctx context.Context, address string) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	sum := 0.0
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if series, value, _ := strings.Cut(lines.Text(), "} "); strings.HasPrefix(series, "entropipe_frames_total{") &&
			strings.Contains(series, `stage="operate"`) && strings.Contains(series, `direction="in"`) {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	return int64(sum), lines.Err()
}
