package command

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Progress displays the state of work: a bar on a terminal, a log line every ten seconds
// elsewhere. It polls, so the work never waits for it.
type Progress struct {
	stop chan struct{}
	once sync.Once
	wg   sync.WaitGroup
}

// ProgressSource returns the amount of work that is done and a text beside it, such as
// rates. It is called from another goroutine.
type ProgressSource func() (done int64, text string)

// StartProgress displays work called name on w, which must be a *Screen for a bar. total is
// the amount at the end, 0 if it is unknown; with a total the time left is estimated from
// the work since this call. Work may end below or above its total.
func StartProgress(w io.Writer, log *slog.Logger, name string, total int64, source ProgressSource) *Progress {
	p := &Progress{stop: make(chan struct{})}
	show := p.lines
	if s, ok := w.(*Screen); ok && s.width != nil {
		show = func(_ *slog.Logger, name string, total int64, source ProgressSource) { p.bar(s, name, total, source) }
	}
	p.wg.Go(func() { show(log, name, total, source) })
	return p
}

// Stop displays the last state and returns when nothing more will be written. Further
// calls do nothing.
func (p *Progress) Stop() {
	p.once.Do(func() { close(p.stop) })
	p.wg.Wait()
}

// bar draws the state on a terminal until Stop, and leaves the last state there.
func (p *Progress) bar(s *Screen, name string, total int64, source ProgressSource) {
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

// barLine returns the line of a bar: name, the share of the total in blocks (or a turning
// sign if the total is unknown), the amount, and a text.
func barLine(name string, done, total int64, turn int, text string, width int) string {
	if total <= 0 {
		return fmt.Sprintf("%s %c %d %s", name, []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[turn%10], done, text)
	}
	cells := min(32, width/3)
	full := int(float64(cells) * float64(min(max(done, 0), total)) / float64(total))
	return fmt.Sprintf("%s %s%s %d/%d %s", name, strings.Repeat("█", full),
		strings.Repeat("░", cells-full), done, total, text)
}

// lines writes the state to the log every ten seconds, and at Stop.
func (p *Progress) lines(log *slog.Logger, name string, total int64, source ProgressSource) {
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

// TimeLeft estimates the time until work ends from its speed since the start. Work that an
// earlier run had done does not count for the speed.
type TimeLeft struct {
	start       time.Time
	done, total int64
}

// Since returns the TimeLeft of work that began at start with nothing done.
func Since(start time.Time, total int64) TimeLeft { return TimeLeft{start: start, total: total} }

func newTimeLeft(source ProgressSource, total int64) TimeLeft {
	done, _ := source()
	return TimeLeft{start: time.Now(), done: done, total: total}
}

// Text returns ", 2m30s left" for the amount that is done; "" while the end or the speed
// is unknown.
func (l TimeLeft) Text(done int64) string {
	since := time.Since(l.start)
	if l.total <= done || done <= l.done || since < time.Second {
		return ""
	}
	seconds := since.Seconds() / float64(done-l.done) * float64(l.total-done)
	if seconds > 1e8 { // three years: the speed is not known yet
		return ""
	}
	return ", " + Approximate(time.Duration(seconds*float64(time.Second))) + " left"
}

// Approximate returns a time as a text that is as precise as an estimate: 59s, 2m30s, 1h5m.
func Approximate(d time.Duration) string {
	exact := time.Second
	switch {
	case d >= time.Hour:
		exact = time.Minute
	case d >= time.Minute:
		exact = 10 * time.Second
	}
	text := d.Round(exact).String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		return short + "m"
	}
	return text
}

// poll calls f at every interval, and once more with last set after Stop.
func (p *Progress) poll(every time.Duration, f func(last bool)) {
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

// Rate returns n/since as a text: 12 345 frames/s.
func Rate(n int64, unit string, since time.Duration) string {
	s := max(since.Seconds(), 1e-9)
	return fmt.Sprintf("%s %s/s", Count(int64(float64(n)/s)), unit)
}

// Count returns n with blanks between thousands: 12 345 678.
func Count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// ByteSize returns n bytes in binary units with three digits: 1.86 MiB.
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
