package command

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// progress shows how long work goes on: a bar on a terminal, a log line every
// ten seconds elsewhere. It polls, so the work itself never waits for it.
type progress struct {
	stop chan struct{}
	once sync.Once
	wg   sync.WaitGroup
}

// ProgressSource returns what is done so far and a text beside it, such as
// rates. It is called from another goroutine.
type ProgressSource func() (done int64, text string)

// StartProgress begins to show name on w, which is a *screen where bars are wanted.
// total 0 means that the end is not known; else the time that is left is estimated,
// from what is done since now. Work may end below its total, or above.
func StartProgress(w io.Writer, log *slog.Logger, name string, total int64, source ProgressSource) *progress {
	p := &progress{stop: make(chan struct{})}
	show := p.lines
	if s, ok := w.(*screen); ok && s.width != nil {
		show = func(_ *slog.Logger, name string, total int64, source ProgressSource) { p.bar(s, name, total, source) }
	}
	p.wg.Go(func() { show(log, name, total, source) })
	return p
}

// Stop shows the last state and returns when nothing more will be written. It waits
// for nothing else, however much of the work is done. Further calls do nothing.
func (p *progress) Stop() {
	p.once.Do(func() { close(p.stop) })
	p.wg.Wait()
}

// bar draws the state on a terminal until the work ends. Then it leaves it there.
func (p *progress) bar(s *screen, name string, total int64, source ProgressSource) {
	left := newTimeLeft(source, total)
	turn := 0
	show := func(last bool) {
		done, text := source()
		if !last {
			text += left.Text(done)
		}
		turn++
		s.draw(barLine(name, done, total, turn, text, s.width()))
	}
	show(false)
	p.poll(150*time.Millisecond, show)
	s.leave()
}

// barLine returns the line of a bar: the share of the total that is done, or
// something that turns where the total is not known, the amount, and a text.
func barLine(name string, done, total int64, turn int, text string, width int) string {
	if total <= 0 {
		return fmt.Sprintf("%s %c %d %s", name, []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[turn%10], done, text)
	}
	cells := min(32, width/3)
	full := int(float64(cells) * float64(min(max(done, 0), total)) / float64(total))
	return fmt.Sprintf("%s %s%s %d/%d %s", name, strings.Repeat("█", full), strings.Repeat("░", cells-full), done, total, text)
}

// lines writes the state to the log every ten seconds, and when the work ends.
func (p *progress) lines(log *slog.Logger, name string, total int64, source ProgressSource) {
	left := newTimeLeft(source, total)
	p.poll(10*time.Second, func(last bool) {
		done, text := source()
		if !last {
			text += left.Text(done)
		}
		if total > 0 {
			text = fmt.Sprintf("%d/%d %s", done, total, text)
		} else {
			text = fmt.Sprintf("%d %s", done, text)
		}
		log.Info(name + " " + text)
	})
}

// TimeLeft estimates how long work goes on, as if it went on as it did since
// the start. What an earlier run had done took no time of this one.
type TimeLeft struct {
	start       time.Time
	done, total int64
}

// Since is a TimeLeft of work of a known total that began at start with nothing done.
func Since(start time.Time, total int64) TimeLeft { return TimeLeft{start: start, total: total} }

func newTimeLeft(source ProgressSource, total int64) TimeLeft {
	done, _ := source()
	return TimeLeft{start: time.Now(), done: done, total: total}
}

// Text returns ", 2m30s left"; nothing while the end or the speed is not known.
func (l TimeLeft) Text(done int64) string {
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

// Rate says how fast n things of a unit came since start.
func Rate(n int64, unit string, since time.Duration) string {
	s := max(since.Seconds(), 1e-9)
	return fmt.Sprintf("%s %s/s", Count(int64(float64(n)/s)), unit)
}

// Count writes n with thousands separated by blanks: 12 345 678.
func Count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// ByteSize writes n bytes in binary units with three digits: 1.86 MiB.
func ByteSize(n int64) string {
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
