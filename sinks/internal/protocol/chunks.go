package protocol

import "slices"

// record is one record of a log. A record without a frame is a message by itself.
type record struct {
	frame uint8 // number of the chunked frame, from 1 on; 0: a whole message
	index uint8 // number of the chunk within its frame
	count uint8 // chunks of the frame
	bad   bool  // a whole message that becomes a reject
}

// log is what a partition holds.
type log []record

// window is how many records may follow the first chunk of a frame before the frame is
// given up. The program has two such limits, of bytes and of records, and the lower one ends a
// frame. Both are functions of the log behind the first chunk, and so is the lower one: one
// limit stands for them.
const window = 4

// remembered is how many frames a manifest names, so that later chunks of theirs are known
// to be duplicates. It is small, so that the model meets frames that are forgotten.
const remembered = 1

// recent are the frames that a manifest names, the last one first; 0: none.
type recent [remembered]uint8

func (r recent) has(frame uint8) bool { return slices.Contains(r[:], frame) }

func (r *recent) push(frame uint8) {
	copy(r[1:], r[:])
	r[0] = frame
}

// rule says which frames are remembered.
type rule uint8

const (
	// byBegin: those whose first chunks are the last ones in the log. Which these are at an
	// offset does not depend on where a reader began.
	byBegin rule = iota
	// byEnd: those that were assembled last. A reader that goes on behind a manifest finds
	// them in another order than a reader without a break: it is wrong.
	byEnd
)

// cut is a batch that a writer may commit: its end, and what a manifest says of it.
type cut struct {
	end           uint8
	ahead         bits
	closed        recent
	begun         bits
	rows, rejects bits
}

// frame is a message while it is assembled.
type frame struct {
	lowest  uint8
	ended   uint8 // the offset at which it was decided
	indices bits
	chunks  bits // its offsets
	decided bool
	given   bool // given up, or bad
}

// assembler reads a log once.
type assembler struct {
	log    log
	ahead  bits
	closed recent
	rule   rule
	frames []frame
	open   map[uint8]int // index in frames by number of the frame
}

// assemble reads the log from an offset on, as a writer does that continues a manifest. It
// returns the messages that begin at or after from. clock: the frames that are open at the
// log's end are given up, too.
func (l log) assemble(from uint8, ahead bits, closed recent, rule rule, clock bool) []frame {
	a := &assembler{log: l, ahead: ahead, closed: closed, rule: rule, open: map[uint8]int{}}
	for o := from; o < uint8(len(l)); o++ {
		a.take(o)
		for id := uint8(1); id < 8; id++ { // in order: a map has none
			if at, is := a.open[id]; is && o >= a.frames[at].lowest+window {
				a.decide(id, o, true)
			}
		}
	}
	for id := uint8(1); clock && id < 8; id++ {
		if _, is := a.open[id]; is {
			a.decide(id, uint8(len(l)), true)
		}
	}
	return a.frames
}

// take reads one record.
func (a *assembler) take(o uint8) {
	r := a.log[o]
	at, is := a.open[r.frame]
	switch {
	case r.frame == 0:
		a.frames = append(a.frames, frame{lowest: o, ended: o, chunks: bits(0).with(o), decided: true, given: r.bad})
		return
	case a.ahead.has(o), !is && a.closed.has(r.frame):
		return // a frame before this one has it
	case !is:
		at = len(a.frames)
		a.open[r.frame] = at
		a.frames = append(a.frames, frame{lowest: o})
		if a.rule == byBegin {
			a.closed.push(r.frame)
		}
	}
	f := &a.frames[at]
	f.indices, f.chunks = f.indices.with(r.index), f.chunks.with(o)
	if f.indices == below(r.count) {
		a.decide(r.frame, o, false)
	}
}

// decide ends an open frame.
func (a *assembler) decide(id, o uint8, given bool) {
	f := &a.frames[a.open[id]]
	f.decided, f.given, f.ended = true, given, o
	delete(a.open, id)
	if a.rule == byEnd {
		a.closed.push(id)
	}
}

// cuts returns every batch that may begin at from. beyond allows an end behind an open
// frame, whose row is then missing.
func (l log) cuts(from uint8, ahead bits, closed recent, rule rule, clock, beyond bool) []cut {
	frames := l.assemble(from, ahead, closed, rule, clock)
	var all []cut
	now := cut{ahead: ahead}
	for end := from + 1; end <= uint8(len(l)); end++ {
		at := slices.IndexFunc(frames, func(f frame) bool { return f.lowest == end-1 })
		if at >= 0 {
			f := frames[at]
			if !f.decided && !beyond {
				return all
			}
			now.ahead |= f.chunks
			now.begun = now.begun.with(f.lowest)
			switch {
			case !f.decided:
			case f.given:
				now.rejects = now.rejects.with(f.lowest)
			default:
				now.rows = now.rows.with(f.lowest)
			}
		}
		c := now
		c.end, c.ahead, c.closed = end, now.ahead.from(end), l.remember(frames, end, closed, rule)
		all = append(all, c)
	}
	return all
}

// remember returns the frames that a manifest with this end names.
func (l log) remember(frames []frame, end uint8, closed recent, rule rule) recent {
	var mine []frame
	for _, f := range frames {
		if f.lowest < end && f.decided && l[f.lowest].frame != 0 {
			mine = append(mine, f)
		}
	}
	if rule == byEnd {
		slices.SortStableFunc(mine, func(a, b frame) int { return int(a.ended) - int(b.ended) })
	}
	for _, f := range mine {
		closed.push(l[f.lowest].frame)
	}
	return closed
}

// truth returns the rows and rejects of a log that one writer reads from an offset to the
// end without a break.
func (l log) truth(from uint8, rule rule) (rows, rejects bits) {
	all := l.cuts(from, 0, recent{}, rule, true, false)
	if len(all) == 0 {
		return 0, 0
	}
	last := all[len(all)-1]
	return last.rows, last.rejects
}
