package replay

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate is the speed at which items are sent. The zero value is real time.
type Rate struct {
	max   bool
	speed float64 // times real time; 0: not set
	hz    float64 // frames a second; 0: by event time
}

// ParseRate reads realtime, max, a frequency such as 10hz, or a multiple of
// real time such as 2x. Real time and its multiples keep the gaps of the event
// times; a frequency counts frames, so a pack of 256 drawings at 1000hz takes
// a quarter of a second. Collected drawings come in no order of time: only a
// frequency holds them back.
func ParseRate(s string) (Rate, error) {
	switch s = strings.ToLower(s); s {
	case "", "realtime":
		return Rate{}, nil
	case "max":
		return Rate{max: true}, nil
	}
	if v, ok := strings.CutSuffix(s, "hz"); ok {
		hz, err := positive(v)
		return Rate{hz: hz}, err
	}
	if v, ok := strings.CutSuffix(s, "x"); ok {
		speed, err := positive(v)
		return Rate{speed: speed}, err
	}
	return Rate{}, fmt.Errorf("rate %q: want realtime, max, a frequency like 10hz or a multiple like 2x", s)
}

func positive(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 1e-6 && v <= 1e9) {
		return 0, fmt.Errorf("rate: want a number from 1e-6 to 1e9 before the unit, got %q", s)
	}
	return v, nil
}

// UnmarshalText sets r as ParseRate does.
func (r *Rate) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRate(string(text))
	return err
}

// String returns r in the form that ParseRate reads.
func (r Rate) String() string {
	switch {
	case r.max:
		return "max"
	case r.hz > 0:
		return strconv.FormatFloat(r.hz, 'g', -1, 64) + "hz"
	case r.speed > 0:
		return strconv.FormatFloat(r.speed, 'g', -1, 64) + "x"
	}
	return "realtime"
}

// Times returns the rate of a source that sends n frames where r's sends one:
// a frequency n times as high, else r.
func (r Rate) Times(n int) Rate {
	r.hz *= float64(n)
	return r
}

// Hz returns the frames a second that a source of natural frames a second, in real
// time, sends at this rate; 0 if the rate is max.
func (r Rate) Hz(natural float64) float64 {
	switch {
	case r.max:
		return 0
	case r.hz > 0:
		return r.hz
	case r.speed > 0:
		return natural * r.speed
	}
	return natural
}

// Untimed returns the rate for items that have no time: r if r is a frequency, else
// max.
func (r Rate) Untimed() Rate { return Rate{max: r.hz == 0, hz: r.hz} }

// Pack returns the number of drawings that a message should hold at this rate, at
// most most (0: 256), so that no message waits longer than a tenth of a second for
// its drawings.
func (r Rate) Pack(most int) int {
	if most <= 0 {
		most = defaultPack
	}
	if r.hz == 0 {
		return most
	}
	return int(max(1, min(float64(most), r.hz/10)))
}

// pacer holds items back until they are due. Its zero value, with rate set,
// starts with the first item.
type pacer struct {
	rate   Rate
	start  time.Time
	latest int64         // event time that the next gap is counted from
	played time.Duration // event time that has passed since the first item
	frames int64         // sent before the item
}

const (
	// longestGap bounds the event time between two items: a clock that is set while a
	// recording runs jumps by years.
	longestGap = time.Minute
	// mostDisorder is how far an item may lie before an earlier one, as items of several
	// sensors do. An item further back has another clock, which is followed from there.
	mostDisorder = time.Second
)

// wait returns when the item is due, at once when it is late, or with ctx's
// error. Due times count from the first item, so what was held up, by a broker
// that was away for example, is caught up with.
func (p *pacer) wait(ctx context.Context, eventNs int64, clock Clock, frames int64) error {
	if p.rate.max || p.rate.hz == 0 && clock == Unordered {
		return ctx.Err()
	}
	if p.start.IsZero() {
		p.start, p.latest = time.Now(), eventNs
	}
	ahead := p.due(eventNs) - time.Since(p.start)
	p.frames += frames
	if ahead <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(ahead)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// due returns when the next item is to be sent, counted from the start. An item that lies
// before an earlier one is due at the earlier one's time: times that run backwards make
// neither a pause nor a burst.
func (p *pacer) due(eventNs int64) time.Duration {
	if p.rate.hz > 0 {
		return time.Duration(math.Min(float64(p.frames)/p.rate.hz*1e9, math.MaxInt64/2))
	}
	gap := float64(eventNs) - float64(p.latest)
	if gap > 0 || gap < -float64(mostDisorder) {
		if exact := eventNs - p.latest; math.Abs(gap) < float64(longestGap) {
			gap = float64(exact)
		}
		p.played += time.Duration(math.Max(0, math.Min(gap, float64(longestGap))))
		p.latest = eventNs
	}
	if p.rate.speed > 0 {
		return time.Duration(math.Min(float64(p.played)/p.rate.speed, math.MaxInt64/2))
	}
	return p.played
}
