package protocol

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
// given up. It is counted in bytes in the program; both are functions of the log.
const window = 4

// cut is a batch that a writer may commit: its end, and what a manifest says of it.
type cut struct {
	end           uint8
	ahead, closed bits
	begun         bits
	rows, rejects bits
}

// frame is a chunked frame while it is assembled.
type frame struct {
	lowest  uint8
	indices bits
	chunks  bits // its offsets
	decided bool
	given   bool // given up
}

// assemble reads the log from an offset on, as a writer does that continues a manifest with
// these frames closed and chunks ahead. It returns the frames that begin at or after from.
// clock: the frames that are open at the log's end are given up, too.
func (l log) assemble(from uint8, ahead, closed bits, clock bool) []frame {
	var frames []frame
	open := map[uint8]int{}
	for o := from; o < uint8(len(l)); o++ {
		r := l[o]
		at, is := open[r.frame]
		switch {
		case r.frame == 0:
			frames = append(frames, frame{lowest: o, chunks: bits(0).with(o), decided: true, given: r.bad})
		case ahead.has(o), closed.has(r.frame): // a chunk of a frame that an earlier manifest has
		case !is:
			open[r.frame] = len(frames)
			frames = append(frames, frame{lowest: o})
			at = len(frames) - 1
			fallthrough
		default:
			f := &frames[at]
			f.indices, f.chunks = f.indices.with(r.index), f.chunks.with(o)
			if f.indices == below(r.count) {
				f.decided = true
				delete(open, r.frame)
				closed = closed.with(r.frame)
			}
		}
		for id, at := range open {
			if f := &frames[at]; o >= f.lowest+window {
				f.decided, f.given = true, true
				delete(open, id)
				closed = closed.with(id)
			}
		}
	}
	if clock {
		for _, at := range open {
			frames[at].decided, frames[at].given = true, true
		}
	}
	return frames
}

// cuts returns every batch that may begin at from. beyond allows an end behind an open
// frame, whose row is then missing.
func (l log) cuts(from uint8, ahead, closed bits, clock, beyond bool) []cut {
	frames := l.assemble(from, ahead, closed, clock)
	var all []cut
	now := cut{ahead: ahead, closed: closed}
	at := 0
	for end := from + 1; end <= uint8(len(l)); end++ {
		for at < len(frames) && frames[at].lowest < end {
			f := frames[at]
			if !f.decided && !beyond {
				return all
			}
			at++
			now.ahead |= f.chunks
			now.begun = now.begun.with(f.lowest)
			switch {
			case !f.decided:
			case f.given:
				now.rejects = now.rejects.with(f.lowest)
			default:
				now.rows = now.rows.with(f.lowest)
			}
			if id := l[f.lowest].frame; id > 0 && f.decided {
				now.closed = now.closed.with(id)
			}
		}
		c := now
		c.end, c.ahead = end, now.ahead.from(end)
		all = append(all, c)
	}
	return all
}

// truth returns the rows and rejects of a log that one writer reads from an offset to the
// end without a break.
func (l log) truth(from uint8) (rows, rejects bits) {
	all := l.cuts(from, 0, 0, true, false)
	if len(all) == 0 {
		return 0, 0
	}
	last := all[len(all)-1]
	return last.rows, last.rejects
}
