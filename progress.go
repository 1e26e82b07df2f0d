package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows how long work goes on: a bar on a terminal, a log line every
// ten seconds elsewhere. It polls, so the work itself never waits for it.
type progress struct {
	stop chan struct{}
	wg   sync.WaitGroup
}

// progressSource returns what is done so far and a text beside it, such as
// rates. It is called from another goroutine.
type progressSource func() (done int64, text string)

// startProgress begins to show name. total 0 means that the end is not known;
// else the time that is left is estimated, from what is done since now.
func startProgress(w io.Writer, log *slog.Logger, name string, total int64, source progressSource) *progress {
	p := &progress{stop: make(chan struct{})}
	show := p.lines
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		show = p.bar
	}
	p.wg.Go(func() { show(w, log, name, total, source) })
	return p
}

// Stop shows the last state and returns when nothing more will be written.
func (p *progress) Stop() {
	close(p.stop)
	p.wg.Wait()
}

func (p *progress) bar(w io.Writer, _ *slog.Logger, name string, total int64, source progressSource) {
	_, text := source()
	var mu sync.Mutex
	pool := mpb.New(mpb.WithOutput(w), mpb.WithWidth(32), mpb.WithRefreshRate(150*time.Millisecond))
	left := newTimeLeft(source, total)
	beside := decor.Any(func(decor.Statistics) string { mu.Lock(); defer mu.Unlock(); return " " + text })
	var style mpb.BarFillerBuilder = mpb.SpinnerStyle()
	count := decor.CurrentNoUnit(" %d")
	if total > 0 {
		style = mpb.BarStyle().Lbound("").Filler("█").Tip("█").Padding("░").Rbound("")
		count = decor.CountersNoUnit(" %d/%d")
	}
	b := pool.New(total, style, mpb.PrependDecorators(decor.Name(name+" ")), mpb.AppendDecorators(count, beside))
	p.poll(150*time.Millisecond, func(last bool) {
		done, now := source()
		mu.Lock()
		text = now
		if !last {
			text += left.text(done)
		}
		mu.Unlock()
		b.SetCurrent(done)
		if last {
			b.SetTotal(done, true)
		}
	})
	pool.Wait()
}

func (p *progress) lines(_ io.Writer, log *slog.Logger, name string, total int64, source progressSource) {
	left := newTimeLeft(source, total)
	p.poll(10*time.Second, func(last bool) {
		done, text := source()
		if !last {
			text += left.text(done)
		}
		if total > 0 {
			text = fmt.Sprintf("%d/%d %s", done, total, text)
		} else {
			text = fmt.Sprintf("%d %s", done, text)
		}
		log.Info(name + " " + text)
	})
}

// timeLeft estimates how long work goes on, as if it went on as it did since
// the start. What an earlier run had done took no time of this one.
type timeLeft struct {
	start       time.Time
	done, total int64
}

func newTimeLeft(source progressSource, total int64) timeLeft {
	done, _ := source()
	return timeLeft{start: time.Now(), done: done, total: total}
}

// text returns ", 2m30s left"; nothing while the end or the speed is not known.
func (l timeLeft) text(done int64) string {
	since := time.Since(l.start)
	if l.total <= done || done <= l.done || since < time.Second {
		return ""
	}
	seconds := since.Seconds() / float64(done-l.done) * float64(l.total-done)
	if seconds > 1e8 { // years: a guess of nothing
		return ""
	}
	exact := time.Second // as far as it can be known
	switch {
	case seconds >= 3600:
		exact = time.Minute
	case seconds >= 60:
		exact = 10 * time.Second
	}
	left := time.Duration(seconds * float64(time.Second)).Round(exact).String()
	if short, ok := strings.CutSuffix(left, "m0s"); ok {
		left = short + "m"
	}
	return ", " + left + " left"
}

// poll calls f at every interval and once more, with last set, at the end.
func (p *progress) poll(every time.Duration, f func(last bool)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f(false)
		case <-p.stop:
			f(true)
			return
		}
	}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// rate says how fast n things of a unit came since start.
func rate(n int64, unit string, since time.Duration) string {
	s := max(since.Seconds(), 1e-9)
	return fmt.Sprintf("%s %s/s", count(int64(float64(n)/s)), unit)
}

// count writes n with thousands separated by blanks: 12 345 678.
func count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// byteSize writes n bytes in binary units with three digits: 1.86 MiB.
func byteSize(n int64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, u
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}
