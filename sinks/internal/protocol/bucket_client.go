package protocol

// send is a step of one client.
type send func(op op, what uint8, out outcome, change func(t *bucket, me *client))

// step calls f for every state that can follow s.
func (w *bucketWorld) step(s *bucket, f func(action, *bucket)) {
	for i := range uint8(w.clients) {
		w.client(s, i, func(op op, what uint8, out outcome, change func(t *bucket, me *client)) {
			t := *s
			change(&t, &t.clients[i])
			f(action{op, i, what, out}, &t)
		})
	}
	w.air(s, f)
	w.others(s, f)
}

// request emits the ways in which a request may end that the bucket can execute: answered,
// executed without an answer, in the air, dropped. Its sender learns nothing from the last
// three, and sends it again unless it dies.
func (w *bucketWorld) request(s *bucket, op op, what uint8, send send, execute, answer func(t *bucket, me *client),
	keep, blind func(t *bucket, me *client)) {
	send(op, what, done, func(t *bucket, me *client) { execute(t, me); answer(t, me) })
	if s.faults >= w.faults {
		return
	}
	send(op, what, unsure, func(t *bucket, me *client) { t.faults++; execute(t, me); blind(t, me) })
	send(op, what, dropped, func(t *bucket, me *client) { t.faults++; blind(t, me) })
	send(op, what, inTheAir, func(t *bucket, me *client) { t.faults++; keep(t, me); blind(t, me) })
}

func again(*bucket, *client) {}

// client emits the steps of one client.
func (w *bucketWorld) client(s *bucket, i uint8, send send) {
	me := &s.clients[i]
	switch me.at {
	case idle:
		w.resume(s, me, send)
		return // a crash changes nothing but what the process has seen
	case listing:
		send(opResume, 0, done, func(t *bucket, me *client) { w.newest(t, me, 0) })
	case following:
		w.follow(s, me, send)
	case cleaning:
		w.clean(s, me, send)
	case ready:
		w.begin(s, me, send)
	case staging:
		w.stage(s, me, send)
	case creating:
		w.create(s, me, send)
	case asking, abandoning:
		w.ask(s, me, send)
	case publishing:
		w.publish(s, me, send)
	case removing:
		w.remove(s, me, send)
	case losing:
		w.lose(s, me, send)
	case stuck:
		return
	}
	send(opCrash, 0, done, func(t *bucket, me *client) { *me = client{} })
}

// resume begins to look for the newest manifest.
func (w *bucketWorld) resume(_ *bucket, me *client, send send) {
	if me.seen != 0 {
		send(opResume, 0, exists, func(t *bucket, me *client) { *me = client{at: following, seen: me.seen} })
		return
	}
	hints := uint8(1)
	if w.hints {
		hints = w.records + 1
	}
	for hint := range hints {
		send(opResume, hint, done, func(t *bucket, me *client) { w.newest(t, me, hint) })
	}
}

// newest lists the manifests from an offset on.
func (w *bucketWorld) newest(t *bucket, me *client, hint uint8) {
	for start := bucketLog - 1; start >= int(hint); start-- {
		if t.manifest[start] != 0 {
			*me = client{at: following, seen: uint8(start) + 1}
			return
		}
	}
	switch {
	case hint == 0:
		*me = client{at: cleaning}
		w.list(t, me)
	case w.mutant == hintIsTrusted:
		*me = client{at: cleaning, next: hint}
		w.list(t, me)
	default:
		*me = client{at: listing}
	}
}

// follow reads the manifest that may begin where the newest known one ends.
func (w *bucketWorld) follow(s *bucket, me *client, send send) {
	of := s.manifest[me.seen-1]
	end := s.uploads[of-1].end
	if end < bucketLog && s.manifest[end] != 0 {
		send(opFollow, end, done, func(t *bucket, me *client) { me.seen = end + 1 })
		return
	}
	send(opFollow, end, absent, func(t *bucket, me *client) {
		*me = client{at: publishing, of: of, seen: me.seen, next: end}
		if w.mutant == nextWithoutRoll {
			w.published(t, me)
		}
	})
}

// list looks for what has lost in staging.
func (w *bucketWorld) list(t *bucket, me *client) {
	me.at = ready
	for n := range t.uploads {
		a := &t.uploads[n]
		if !a.used {
			continue
		}
		m := t.manifest[a.start]
		lost := m != 0 && m != uint8(n)+1
		if w.mutant == openStartIsLost {
			lost = m == 0
		}
		for k := range a.staged {
			if lost && a.staged[k] != noTag {
				me.lost[n] = me.lost[n].with(uint8(k))
				me.at = cleaning
			}
		}
	}
}

// clean deletes what has lost, attempt by attempt.
func (w *bucketWorld) clean(s *bucket, me *client, send send) {
	for n := range me.lost {
		if me.lost[n] == 0 {
			continue
		}
		w.request(s, opClean, uint8(n), send, func(t *bucket, me *client) { t.uploads[n].drop(me.lost[n]) },
			func(t *bucket, me *client) {
				me.lost[n] = 0
				if me.lost == [bucketTries]bits{} {
					me.at = ready
				}
			}, func(t *bucket, me *client) { t.uploads[n].drops |= me.lost[n] }, again)
	}
}

func (a *upload) drop(files bits) {
	for k := range a.staged {
		if files.has(uint8(k)) {
			a.staged[k] = noTag
		}
	}
}

// begin chooses a batch.
func (w *bucketWorld) begin(s *bucket, me *client, send send) {
	n := 0
	for n < w.attempts && s.uploads[n].used {
		n++
	}
	if n == w.attempts {
		return
	}
	for end := me.next + 1; end <= w.records; end++ {
		send(opBegin, end, done, func(t *bucket, me *client) {
			t.uploads[n] = upload{used: true, start: me.next, end: end}
			*me = client{at: staging, seen: me.seen, next: me.next, own: uint8(n) + 1}
		})
	}
}

// put executes a PUT of a staged object, or the end of an upload in parts.
func (w *bucketWorld) put(a *upload, k uint8) {
	if a.staged[k] == first && w.tags {
		a.staged[k] = second
	} else {
		a.staged[k] = first
	}
	a.open &^= 1 << k
}

// stage writes the next file.
func (w *bucketWorld) stage(s *bucket, me *client, send send) {
	k := uint8(0)
	for me.file[k].what == isDue {
		k++
	}
	a := &s.uploads[me.own-1]
	staged := func(t *bucket, me *client) {
		me.file[k] = known{isDue, t.uploads[me.own-1].staged[k]}
		if int(k) == w.files-1 {
			me.at = creating
		}
	}
	part := w.parts && k == 0 || w.mutant == publishByCompleting
	if part && me.file[k].what == unknown {
		send(opUpload, k, done, func(t *bucket, me *client) {
			t.uploads[me.own-1].open |= 1 << k
			me.file[k].what = uploaded
			if w.mutant == publishByCompleting {
				staged(t, me)
			}
		})
		return
	}
	if part && !a.open.has(k) { // it was ended without an answer, or it was aborted
		switch {
		case a.staged[k] != noTag || w.mutant == missingUploadIsDone:
			send(opPut, k, exists, staged)
		default:
			send(opPut, k, absent, func(t *bucket, me *client) { me.at = abandoning })
		}
		return
	}
	w.request(s, opPut, k, send, func(t *bucket, me *client) { w.put(&t.uploads[me.own-1], k) }, staged,
		func(t *bucket, me *client) { t.uploads[me.own-1].puts |= 1 << k }, again)
	if s.faults < w.faults {
		send(opPut, k, refused, func(t *bucket, me *client) { t.faults++; me.at = abandoning })
	}
}

// create asks for the manifest on condition that there is none.
func (w *bucketWorld) create(s *bucket, me *client, send send) {
	a := &s.uploads[me.own-1]
	start := a.start
	lose := func(t *bucket, me *client) { me.at = losing }
	if s.manifest[start] != 0 && w.mutant != noIfNoneMatch {
		send(opCreate, start, exists, func(t *bucket, me *client) {
			if me.at = asking; w.mutant == existsIsLost {
				me.at = losing
			}
		})
		return
	}
	blind := func(t *bucket, me *client) { me.unsure = true }
	if w.mutant == unknownIsLost {
		blind = lose
	}
	w.request(s, opCreate, start, send, func(t *bucket, me *client) { t.manifest[start] = me.own }, w.won,
		func(t *bucket, me *client) { t.uploads[me.own-1].record = true }, blind)
	if s.faults >= w.faults {
		return
	}
	send(opCreate, start, conflict, func(t *bucket, me *client) {
		if t.faults++; w.mutant == conflictIsLost {
			me.at = losing
		}
	})
	send(opCreate, start, refused, func(t *bucket, me *client) {
		if t.faults++; me.unsure && w.mutant != lastAnswerDecides {
			me.at = asking
		} else {
			me.at = abandoning
		}
	})
}

// won begins to publish the client's own manifest.
func (w *bucketWorld) won(_ *bucket, me *client) {
	me.at, me.of, me.fresh = publishing, me.own, true
}

// ask reads back who has created the manifest.
func (w *bucketWorld) ask(s *bucket, me *client, send send) {
	start := s.uploads[me.own-1].start
	switch found := s.manifest[start]; {
	case found == 0 && me.at == asking:
		send(opAsk, start, absent, func(t *bucket, me *client) { me.at = creating })
	case found == 0:
		send(opAsk, start, absent, func(t *bucket, me *client) { me.at = losing })
	case found == me.own:
		send(opAsk, start, done, w.won)
	default:
		send(opAsk, start, exists, func(t *bucket, me *client) { me.at = losing })
	}
}

// lose deletes what the client itself has staged, in vain.
func (w *bucketWorld) lose(s *bucket, me *client, send send) {
	own := me.own - 1
	files := below(uint8(w.files))
	if a := &s.uploads[own]; a.staged == [bucketFiles]etag{} && a.puts == 0 && me.file[0].what == uploaded {
		send(opLose, own, absent, func(t *bucket, me *client) { *me = client{seen: me.seen} })
		return
	}
	w.request(s, opLose, own, send, func(t *bucket, me *client) {
		t.uploads[own].drop(files)
		for n := range t.uploads {
			if w.mutant == loserDeletesAll && t.uploads[n].used && t.uploads[n].start == t.uploads[own].start {
				t.uploads[n].drop(files)
			}
		}
	}, func(t *bucket, me *client) { *me = client{seen: me.seen} }, func(t *bucket, me *client) {
		t.uploads[own].drops |= files
	}, again)
}
