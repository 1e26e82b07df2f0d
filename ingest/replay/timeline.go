package replay

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// gapWithoutClock separates frames that have no times of their own: 10 Hz.
const gapWithoutClock = int64(100 * time.Millisecond)

// DefaultEpoch is the default of Play.Epoch.
var DefaultEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// timeline plays a source several times as one long recording: every pass
// numbers its frames on behind the pass before and takes place after it. Frames
// without a clock get one.
//
// Pass k adds k·(last + 1) to the frame numbers, last being the highest of the
// sequence, and k·(span + median gap) to the times.
type timeline struct {
	source Source
	loops  int64 // passes asked for
	limit  int64 // frames asked for; 0: all
	epoch  int64
	names  Names
	single bool // the source is one input: its packs are of one sequence and numbered through

	pass    int64
	items   int64            // items of this pass
	played  int64            // frames of this pass
	frames  int64            // frames of all passes
	last    map[string]int64 // highest frame number, by sequence
	first   int64            // least time of a pass, without its shift
	final   int64            // greatest
	before  int64            // time of the item before
	gaps    []int64          // between neighbours of the first pass
	shiftNs int64            // shift of this pass's times
}

// maxGaps bounds the memory for gaps: more do not change the median of a
// recording much.
const maxGaps = 1 << 20

// next fills it with the next item, its number and time final: the clock is
// UTC or Unordered. io.EOF: all passes are done, or the limit is reached.
func (t *timeline) next(it *Item) error {
	if t.limit > 0 && t.frames >= t.limit {
		return io.EOF
	}
	err := t.source.Next(it)
	if err == io.EOF && t.items > 0 && t.pass+1 < t.loops {
		if err = t.rewind(); err == nil {
			err = t.source.Next(it)
		}
	}
	if err != nil {
		return err
	}
	t.cut(it)
	t.rename(it)
	if err := t.date(it); err != nil {
		return err
	}
	return t.number(it)
}

// cut shortens a pack that would pass the limit.
func (t *timeline) cut(it *Item) {
	if left := t.limit - t.frames; t.limit > 0 && it.Frames() > left {
		it.Drawings = it.Drawings[:min(left, int64(len(it.Drawings)))]
		it.Sequences = it.Sequences[:min(left, int64(len(it.Sequences)))]
	}
	t.frames += it.Frames()
}

// rename gives the item the names that were asked for. Where the packs of several
// sequences become those of one, what is in them is numbered through.
func (t *timeline) rename(it *Item) {
	if n := t.names.Sequence; n != "" {
		it.Sequence = n
		if !t.single && (it.Drawings != nil || it.Sequences != nil) {
			it.Number = t.played
		}
	}
	if n := t.names.Dataset; n != "" {
		it.Dataset = n
	}
	if n := t.names.Sensor; n != "" {
		it.Sensor = n
	}
	t.played += it.Frames()
}

// date gives the item a time since 1970, shifted by the passes before.
func (t *timeline) date(it *Item) error {
	switch it.Clock {
	case NoClock:
		it.TimeNs, it.Clock = t.epoch+it.Position*gapWithoutClock, UTC
	case SinceEpoch:
		it.TimeNs, it.Clock = t.epoch+it.TimeNs, UTC
	}
	if t.pass == 0 {
		t.observe(it.TimeNs)
	}
	t.items++
	latest := it.TimeNs
	for i := range it.Drawings {
		d := &it.Drawings[i]
		if d.TimeNs == 0 {
			d.TimeNs = it.TimeNs
		}
		latest = max(latest, d.TimeNs)
	}
	if latest > math.MaxInt64-t.shiftNs {
		return t.tooLate()
	}
	it.TimeNs += t.shiftNs
	for i := range it.Drawings {
		it.Drawings[i].TimeNs += t.shiftNs
	}
	return nil
}

func (t *timeline) tooLate() error {
	return fmt.Errorf("pass %d of the data set would end after the year 2262; ask for fewer with --loop", t.pass+1)
}

func (t *timeline) observe(ns int64) {
	if t.items == 0 {
		t.first, t.final = ns, ns
	} else if gap := ns - t.before; gap > 0 && t.loops > 1 && len(t.gaps) < maxGaps {
		t.gaps = append(t.gaps, gap)
	}
	t.first, t.final, t.before = min(t.first, ns), max(t.final, ns), ns
}

// number numbers the item on behind the passes before.
func (t *timeline) number(it *Item) error {
	if t.last == nil {
		t.last = map[string]int64{}
	}
	own := it.Number
	if t.pass == 0 {
		t.last[it.Sequence] = max(t.last[it.Sequence], own+it.Frames()-1)
	}
	step := t.last[it.Sequence] + 1
	if t.pass > 0 && (step <= 0 || step > (math.MaxInt64-own)/t.pass) {
		return fmt.Errorf("frame numbers of pass %d would pass %d; ask for fewer with --loop", t.pass+1,
			int64(math.MaxInt64))
	}
	it.Number = own + t.pass*step
	return nil
}

// rewind begins the next pass.
func (t *timeline) rewind() error {
	if err := t.source.Rewind(); err != nil {
		return err
	}
	t.pass++
	t.items, t.played = 0, 0
	gap := gapWithoutClock
	if n := len(t.gaps); n > 0 {
		if t.pass == 1 {
			slices.Sort(t.gaps)
		}
		gap = t.gaps[n/2]
	}
	period := t.final - t.first + gap
	if period <= 0 || t.pass > math.MaxInt64/period {
		return t.tooLate()
	}
	t.shiftNs = t.pass * period
	return nil
}
