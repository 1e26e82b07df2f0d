package protocol

import (
	"fmt"
	"slices"
)

// op is what an action does. Each is one call of a store, or of a broker, or a step that
// nobody else sees.
type op uint8

const (
	opResume  op = iota // reads base and newest manifest
	opAdopt             // publishes the next file of the newest manifest
	opClean             // discards the staging of one attempt that has lost
	opBegin             // chooses a batch and writes its files into staging
	opLetters           // sends dead letters
	opCreate            // creates the manifest
	opAsk               // reads back after an answer that was lost
	opPublish           // publishes the next own file
	opLose              // discards its own staging
	opCrash             // the process dies
	opLate              // the store executes a request that nobody waits for
	opCompact           // the compacted output grows
	opVacuum            // the next step of a deletion
	opList              // the reader lists
	opAbort             // the store aborts what was staged long ago

	// What only the model of a bucket has.
	opFollow // reads the manifest that may follow the newest known one
	opLook   // reads a staged object
	opHead   // asks for a published object
	opCopy   // copies a staged object to its name
	opRemove // deletes staged objects that are copied
	opPut    // writes a staged object
	opUpload // begins an upload in parts
	opMeddle // another program replaces an object
	opExpire // a rule of the bucket deletes what was staged long ago
)

// outcome is how a call ends for its caller.
type outcome uint8

const (
	done     outcome = iota
	exists           // another manifest has the name
	unsure           // it was executed, and the answer is lost
	inTheAir         // the answer is lost, and the store may execute it later
	dropped          // the answer is lost, and it will never be executed

	// Answers of a bucket.
	absent   // there is no such object, upload or manifest
	changed  // a condition on the source does not hold
	conflict // another request for the same object is at work: neither won nor lost
	refused  // it is certainly not executed
	partly   // some of the objects are deleted
)

// action is one transition. who is a writer's number; what depends on op: the end of a
// batch, the number of an attempt, a file.
type action struct {
	op      op
	who     uint8
	what    uint8
	outcome outcome
}

var opNames = [...]string{"resume", "adopt", "clean", "begin", "letters", "create", "ask", "publish", "lose",
	"crash", "late", "compact", "vacuum", "list", "abort", "follow", "look", "head", "copy", "remove", "put", "upload",
	"meddle", "expire"}

var outcomeNames = [...]string{"done", "exists", "executed, answer lost", "in the air", "dropped", "absent", "changed",
	"conflict", "refused", "partly"}

// String describes the action, for the trace of a violation.
func (a action) String() string {
	return fmt.Sprintf("writer %d: %s %d (%s)", a.who, opNames[a.op], a.what, outcomeNames[a.outcome])
}

// emit takes a state that follows.
type emit = func(action, *state)

// next calls f for every state that can follow s.
func (w *world) next(s *state, f emit) {
	for i := range uint8(w.writers) {
		w.writer(s, i, f)
	}
	w.late(s, f)
	if w.vacuum {
		w.compactor(s, f)
	}
	if w.reader {
		w.list(s, f)
	}
}

// writer emits the actions of one writer.
func (w *world) writer(s *state, i uint8, f emit) {
	me := &s.writers[i]
	step := func(op op, what uint8, out outcome, change func(t *state, me *writer)) {
		t := *s
		change(&t, &t.writers[i])
		f(action{op, i, what, out}, &t)
	}
	switch me.at {
	case idle:
		for p := range uint8(len(w.logs)) {
			w.resume(s, i, p, step)
		}
		return // a crash changes nothing
	case adopting:
		w.adopt(s, i, step)
	case cleaning:
		w.clean(s, i, step)
	case ready:
		w.begin(s, i, step)
	case reporting:
		step(opLetters, 0, done, func(t *state, me *writer) {
			a := &t.attempts[me.own-1]
			t.letters[a.partition] |= a.rejects
			me.at = creating
			if w.mutant == lettersAfterManifest {
				me.at, me.file = publishing, 0
			}
		})
	case creating:
		w.create(s, i, step)
	case asking:
		w.ask(s, i, step)
	case publishing:
		w.publish(s, i, step)
	case losing:
		step(opLose, me.own-1, done, func(t *state, me *writer) {
			t.attempts[me.own-1].discard()
			*me = writer{}
		})
	case stuck:
		return
	}
	step(opCrash, 0, done, func(t *state, me *writer) { *me = writer{} })
}

type step func(op op, what uint8, out outcome, change func(t *state, me *writer))

func (a *attempt) discard() {
	for k := range a.file {
		a.file[k] &^= staged
	}
}

// resume reads the base, or makes it, and the newest manifest.
func (w *world) resume(s *state, i, p uint8, step step) {
	starts := w.starts
	if s.base[p] != 0 {
		starts = []uint8{s.base[p] - 1}
	}
	for _, start := range starts {
		step(opResume, p<<4|start, done, func(t *state, me *writer) {
			if w.mutant != noBase {
				t.base[p] = start + 1
			}
			*me = writer{at: cleaning, partition: p, next: start}
			n := t.newest(p)
			if n == 0 {
				return
			}
			a := &t.attempts[n-1]
			me.next, me.ahead, me.closed = a.end, a.ahead, a.closed
			if w.mutant == forgetAhead {
				me.ahead = 0
			}
			if w.mutant == forgetClosed {
				me.closed = recent{}
			}
			if w.mutant != nextBeforePublished {
				me.at, me.newest = adopting, n
			}
		})
	}
}

// newest returns the attempt + 1 of the manifest with the highest start; 0: none.
func (s *state) newest(p uint8) uint8 {
	for start := maxLog; start >= 0; start-- {
		if n := s.manifest[p][start]; n != 0 {
			return n
		}
	}
	return 0
}

// adopt publishes the newest manifest.
func (w *world) adopt(s *state, i uint8, step step) {
	w.move(s, i, s.writers[i].newest-1, opAdopt, step, func(me *writer) { me.at, me.newest, me.file = cleaning, 0, 0 })
}

// publish publishes the writer's own manifest.
func (w *world) publish(s *state, i uint8, step step) {
	own := s.writers[i].own - 1
	w.move(s, i, own, opPublish, step, func(me *writer) {
		a := s.attempts[own]
		*me = writer{at: ready, partition: me.partition, next: a.end, ahead: a.ahead, closed: a.closed}
	})
}

// move moves the next file of attempt n, or after the last one removes what is staged.
func (w *world) move(s *state, i, n uint8, op op, step step, end func(me *writer)) {
	file := s.writers[i].file
	if file == 2 { // only S3 has anything to remove
		step(op, 2, done, func(t *state, me *writer) { t.attempts[n].discard(); end(me) })
		step(op, 2, inTheAir, func(t *state, me *writer) { t.attempts[n].late |= lateDelete; *me = writer{} })
		return
	}
	number := file
	if w.mutant == framesFirst {
		number = 1 - file
	}
	there := s.attempts[n].file[number]
	if a := &s.attempts[n]; there == 0 && s.retired[a.partition].has(a.start) && w.mutant != ignoreRetired {
		step(op, number, exists, func(t *state, me *writer) { *me = writer{} }) // others are far ahead
		return
	}
	if there == 0 {
		step(op, number, exists, func(t *state, me *writer) { *me = writer{at: stuck} })
		return
	}
	step(op, number, done, func(t *state, me *writer) {
		t.attempts[n].moveFile(w.store, number)
		if me.file++; me.file == 2 && w.store == local {
			end(me)
		}
	})
	if w.store == s3 && there == staged {
		step(
			op,
			number,
			inTheAir,
			func(t *state, me *writer) { t.attempts[n].late |= lateCopy0 << number; *me = writer{} },
		)
	}
}

// moveFile makes a staged file a published one.
func (a *attempt) moveFile(store kind, file uint8) {
	if a.file[file]&staged == 0 {
		return
	}
	a.file[file] |= published
	if store == local {
		a.file[file] &^= staged
	}
}

// clean discards the staging of the first attempt of the partition that has lost.
func (w *world) clean(s *state, i uint8, step step) {
	p := s.writers[i].partition
	for n := range s.attempts {
		a := &s.attempts[n]
		if !a.used || a.partition != p || (a.file[0]|a.file[1])&staged == 0 {
			continue
		}
		m := s.manifest[p][a.start]
		lost := m != 0 && m != uint8(n)+1
		if w.mutant == cleanOpenStart {
			lost = m == 0
		}
		if lost {
			step(opClean, uint8(n), done, func(t *state, me *writer) { t.attempts[n].discard() })
			return
		}
	}
	step(opClean, maxAttempts, done, func(t *state, me *writer) { me.at = ready })
}

// begin chooses a batch and stages its files. That is one step: nobody else acts on the
// files of an attempt before its manifest could be there. The attempt takes the first
// number that is free.
func (w *world) begin(s *state, i uint8, step step) {
	me := &s.writers[i]
	n := 0
	for n < w.attempts && s.attempts[n].used {
		n++
	}
	if n == w.attempts {
		return
	}
	log := w.logs[me.partition]
	for _, c := range w.batches(log, me) {
		step(opBegin, c.end, done, func(t *state, me *writer) {
			t.attempts[n] = attempt{used: true, partition: me.partition, start: me.next, end: c.end, ahead: c.ahead,
				closed: c.closed, begun: c.begun, rows: c.rows, rejects: c.rejects, file: [2]uint8{staged, staged}}
			me.own, me.at = uint8(n)+1, creating
			if w.letters && c.rejects != 0 && w.mutant != lettersAfterManifest {
				me.at = reporting
			}
		})
	}
}

// batches returns what the writer may commit next, for every offset up to which it may have
// read the log. Only at the log's end does a clock give frames up.
func (w *world) batches(l log, me *writer) (all []cut) {
	by := w.rule()
	for to := int(me.next) + 1; to <= len(l); to++ {
		for _, c := range l[:to].cuts(me.next, me.ahead, me.closed, by, false, w.mutant == endBeyondOpenFrame) {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	for _, c := range l.cuts(me.next, me.ahead, me.closed, by, true, false) {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// rule says which frames this world remembers.
func (w *world) rule() rule {
	if w.mutant == rememberByEnd {
		return byEnd
	}
	return byBegin
}

// create asks the store to create the manifest.
func (w *world) create(s *state, i uint8, step step) {
	me := &s.writers[i]
	a := &s.attempts[me.own-1]
	if found := s.manifest[a.partition][a.start]; found != 0 && w.mutant != noCompareAndSet {
		step(opCreate, a.start, exists, func(t *state, me *writer) { w.settle(t, me) })
		return
	}
	put := func(t *state, me *writer) {
		a := &t.attempts[me.own-1]
		t.manifest[a.partition][a.start] = me.own
	}
	step(opCreate, a.start, done, func(t *state, me *writer) { put(t, me); w.win(t, me) })
	step(opCreate, a.start, unsure, func(t *state, me *writer) { put(t, me); me.at = asking })
	step(opCreate, a.start, dropped, func(t *state, me *writer) { me.at = asking })
	if w.store == s3 {
		step(opCreate, a.start, inTheAir, func(t *state, me *writer) {
			t.attempts[me.own-1].late |= latePut
			me.at = asking
		})
	}
}

// win makes the writer publish.
func (w *world) win(t *state, me *writer) {
	me.at, me.file = publishing, 0
	if w.letters && w.mutant == lettersAfterManifest && t.attempts[me.own-1].rejects != 0 {
		me.at = reporting
	}
}

// settle makes the writer win or lose by the manifest that has its name.
func (w *world) settle(t *state, me *writer) {
	a := &t.attempts[me.own-1]
	if t.manifest[a.partition][a.start] == me.own {
		w.win(t, me)
	} else {
		me.at = losing
	}
}

// ask reads back whether the manifest is there.
func (w *world) ask(s *state, i uint8, step step) {
	me := &s.writers[i]
	a := &s.attempts[me.own-1]
	if w.mutant == discardAfterUnknown {
		step(opAsk, a.start, dropped, func(t *state, me *writer) {
			t.attempts[me.own-1].discard()
			*me = writer{}
		})
		return
	}
	if s.manifest[a.partition][a.start] == 0 {
		step(opAsk, a.start, dropped, func(t *state, me *writer) { me.at = creating })
		return
	}
	step(opAsk, a.start, done, func(t *state, me *writer) { w.settle(t, me) })
}

// late emits the requests that nobody waits for.
func (w *world) late(s *state, f emit) {
	for n := range s.attempts {
		a := &s.attempts[n]
		for request := latePut; request <= lateDelete; request <<= 1 {
			if a.late&request == 0 {
				continue
			}
			t := *s
			to := &t.attempts[n]
			to.late &^= request
			switch request {
			case latePut:
				if t.manifest[a.partition][a.start] == 0 || w.mutant == noCompareAndSet {
					t.manifest[a.partition][a.start] = uint8(n) + 1
				}
			case lateCopy0, lateCopy1:
				to.moveFile(w.store, request>>2)
			case lateDelete:
				to.discard()
			}
			f(action{opLate, uint8(n), request, done}, &t)
		}
		if w.mutant == multipartPublication && a.used && (a.file[0]|a.file[1])&staged != 0 {
			t := *s
			t.attempts[n].discard()
			f(action{opAbort, uint8(n), 0, done}, &t)
		}
	}
}

// compactor emits the growth of the compacted output and the steps of vacuum.
func (w *world) compactor(s *state, f emit) {
	for p := range uint8(len(w.logs)) {
		if n := s.at(p, s.compacted[p]); n != 0 && s.attempts[n-1].isPublished() {
			t := *s
			t.compacted[p] = s.attempts[n-1].end
			f(action{opCompact, p, t.compacted[p], done}, &t)
		}
	}
	v := &s.vacuum
	if v.at == 0 {
		w.retire(s, f)
		return
	}
	t := *s
	m := s.manifest[v.partition][v.start]
	t.attempts[m-1].file[v.at-1] &^= published
	if t.vacuum.at++; t.vacuum.at > 2 {
		t.vacuum = vacuum{}
	}
	f(action{opVacuum, v.partition, v.start, done}, &t)
	t = *s
	t.vacuum = vacuum{}
	f(action{opCrash, maxWriters, 0, done}, &t)
}

// retire begins a deletion, or one that a crash has ended.
func (w *world) retire(s *state, f emit) {
	for p := range uint8(len(w.logs)) {
		newest := s.newest(p)
		for start := range uint8(maxLog) {
			m := s.manifest[p][start]
			if m == 0 || m == newest && w.mutant != vacuumNewest {
				continue
			}
			if s.attempts[m-1].end > s.compacted[p] && w.mutant != vacuumUncovered {
				continue
			}
			if s.retired[p].has(start) && (s.attempts[m-1].file[0]|s.attempts[m-1].file[1])&published == 0 {
				continue // it is done
			}
			t := *s
			if w.mutant != vacuumWithoutRecord {
				t.retired[p] = t.retired[p].with(start)
			}
			t.vacuum = vacuum{1, p, start}
			f(action{opVacuum, p, start, done}, &t)
		}
	}
}

// at returns the attempt + 1 whose manifest begins at start; the begin of the output
// stands for 0.
func (s *state) at(p, start uint8) uint8 {
	if start == 0 && s.base[p] > 0 {
		start = s.base[p] - 1
	}
	return s.manifest[p][start]
}

func (a *attempt) isPublished() bool { return a.file[0]&a.file[1]&published != 0 }

// list emits the two listings of the reader.
func (w *world) list(s *state, f emit) {
	t := *s
	t.reader.frames = 0
	if !s.reader.listed {
		t.reader.listed = true
		for n := range s.attempts {
			if s.attempts[n].file[1]&published != 0 {
				t.reader.frames = t.reader.frames.with(uint8(n))
			}
		}
		f(action{opList, 0, 1, done}, &t)
		return
	}
	t.reader.listed = false
	for n := range s.attempts {
		a := &s.attempts[n]
		if s.reader.frames.has(uint8(n)) && a.file[0]&published == 0 && !s.retired[a.partition].has(a.start) {
			t.reader.torn = true
		}
	}
	f(action{opList, 0, 0, done}, &t)
}
