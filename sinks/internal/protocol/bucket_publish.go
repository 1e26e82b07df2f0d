package protocol

// publish emits the requests that bring a manifest's files to where readers look. All files
// are looked at first, if another process has staged them; then each is copied; frames last.
func (w *bucketWorld) publish(s *bucket, me *client, send send) {
	for k := range uint8(w.files) {
		if me.file[k].what == unknown && !me.fresh {
			w.look(s, me, k, send)
			if !w.parallel {
				return
			}
		}
	}
	for k := range uint8(w.files) {
		if me.file[k].what == unknown {
			if me.fresh { // another tag was found there when it was to be copied
				w.look(s, me, k, send)
			}
			return
		}
	}
	if w.mutant == deleteBeforeCopies && me.file[0].what == isCopied {
		send(opRemove, me.of-1, done, func(t *bucket, me *client) { t.uploads[me.of-1].drop(below(uint8(w.files))) })
	}
	rest := w.files - 1
	for k := range uint8(w.files) {
		if me.file[k].what >= isCopied {
			continue
		}
		if int(k) == w.files-1 && rest > 0 && w.mutant != framesWithOthers && !w.copied(me, rest) {
			break
		}
		w.move(s, me, k, send)
		if !w.parallel && w.mutant != framesWithOthers {
			break
		}
	}
}

func (w *bucketWorld) copied(me *client, files int) bool {
	for k := range files {
		if me.file[k].what < isCopied {
			return false
		}
	}
	return true
}

// look reads a staged object, and compares it with its checksum.
func (w *bucketWorld) look(s *bucket, me *client, k uint8, send send) {
	tag := s.uploads[me.of-1].staged[k]
	switch {
	case tag == noTag:
		send(opLook, k, absent, func(t *bucket, me *client) { me.file[k] = known{isGone, noTag} })
	case tag == meddled && w.mutant != stagedIsTrusted:
		send(opLook, k, changed, func(t *bucket, me *client) { me.at = stuck })
	default:
		send(opLook, k, done, func(t *bucket, me *client) { me.file[k] = known{isStaged, tag} })
	}
}

// move emits what comes next for one file: a look at its name, or the copy.
func (w *bucketWorld) move(s *bucket, me *client, k uint8, send send) {
	a := &s.uploads[me.of-1]
	at := rangeOf(a.start, a.end)
	if me.file[k].what == isStaged || me.file[k].what == isGone {
		w.head(s, me, k, s.final[at][k], send)
		return
	}
	tag := me.file[k].tag
	switch source := a.staged[k]; {
	case w.mutant == publishByCompleting && a.open.has(k):
		send(opCopy, k, done, func(t *bucket, me *client) {
			t.uploads[me.of-1].open &^= 1 << k
			t.final[at][k] = content(me.of)
			w.moved(t, me, k, isThere)
		})
	case source == noTag:
		send(opCopy, k, absent, func(t *bucket, me *client) {
			if me.file[k] = (known{isGone, noTag}); w.mutant == missingIsLost {
				me.at = stuck
			}
		})
	case source != tag && w.mutant != noIfMatch:
		send(opCopy, k, changed, func(t *bucket, me *client) {
			if me.file[k] = (known{}); w.mutant == changedIsLost {
				me.at = stuck
			}
		})
	default:
		blind := again
		if w.mutant == unknownCopyIsDone {
			blind = func(t *bucket, me *client) { w.moved(t, me, k, isCopied) }
		}
		w.request(s, opCopy, k, send, func(t *bucket, me *client) { t.copy(me.of, k) },
			func(t *bucket, me *client) { w.moved(t, me, k, isCopied) },
			func(t *bucket, me *client) { t.uploads[me.of-1].copies[k] = tag }, blind)
	}
}

// copy makes the object at the name of a published file what is staged.
func (s *bucket) copy(of, k uint8) {
	a := &s.uploads[of-1]
	to := &s.final[rangeOf(a.start, a.end)][k]
	if *to = content(of); a.staged[k] == meddled {
		*to = forged
	}
}

// head asks what has the name of a published file.
func (w *bucketWorld) head(_ *bucket, me *client, k uint8, found content, send send) {
	tag := me.file[k].tag
	there := uint8(isCopied)
	if tag == noTag {
		there = isThere
	}
	switch {
	case found == content(me.of), found != 0 && w.mutant == doneBySize:
		send(opHead, k, done, func(t *bucket, me *client) { w.moved(t, me, k, there) })
	case found == 0 && tag != noTag:
		send(opHead, k, absent, func(t *bucket, me *client) { me.file[k].what = isDue })
	default: // it is nowhere, or another file has its name
		send(opHead, k, changed, func(t *bucket, me *client) { me.at = stuck })
	}
}

// moved notes that a file is published.
func (w *bucketWorld) moved(t *bucket, me *client, k, what uint8) {
	me.file[k].what = what
	if !w.copied(me, w.files) {
		return
	}
	me.at = removing
	if me.copies(w.files) == 0 {
		w.published(t, me)
	}
}

// copies are the files whose staged objects are to be deleted.
func (c *client) copies(files int) (set bits) {
	for k := range uint8(files) {
		if c.file[k].what == isCopied {
			set = set.with(k)
		}
	}
	return set
}

// remove deletes the staged objects of what is published.
func (w *bucketWorld) remove(s *bucket, me *client, send send) {
	of, files := me.of-1, me.copies(w.files)
	w.request(s, opRemove, of, send, func(t *bucket, me *client) { t.uploads[of].drop(files) }, w.published,
		func(t *bucket, me *client) { t.uploads[of].drops |= files }, again)
	if s.faults < w.faults {
		send(opRemove, of, partly, func(t *bucket, me *client) { t.faults++; t.uploads[of].drop(files & -files) })
	}
}

// published makes the client go on behind the manifest.
func (w *bucketWorld) published(t *bucket, me *client) {
	a := &t.uploads[me.of-1]
	if me.fresh {
		*me = client{at: ready, seen: a.start + 1, next: a.end}
		return
	}
	*me = client{at: cleaning, seen: a.start + 1, next: a.end}
	w.list(t, me)
}

// air emits the requests that nobody waits for.
func (w *bucketWorld) air(s *bucket, f func(action, *bucket)) {
	late := func(n int, what uint8, change func(t *bucket, a *upload)) {
		t := *s
		change(&t, &t.uploads[n])
		f(action{opLate, uint8(n), what, done}, &t)
	}
	for n := range s.uploads {
		a := &s.uploads[n]
		if a.record {
			late(n, LatePut, func(t *bucket, a *upload) {
				if a.record = false; t.manifest[a.start] == 0 || w.mutant == noIfNoneMatch {
					t.manifest[a.start] = uint8(n) + 1
				}
			})
		}
		if a.drops != 0 {
			late(n, LateDelete, func(t *bucket, a *upload) { a.drop(a.drops); a.drops = 0 })
		}
		for k := range uint8(w.files) {
			if a.puts.has(k) {
				late(n, LateStage+k, func(t *bucket, a *upload) {
					a.puts &^= 1 << k
					if !w.parts || k != 0 || a.open.has(k) {
						w.put(a, k)
					}
				})
			}
			if a.copies[k] != noTag {
				late(n, LateCopy+k, func(t *bucket, a *upload) {
					tag := a.copies[k]
					a.copies[k] = noTag
					if a.staged[k] == tag || a.staged[k] != noTag && w.mutant == noIfMatch {
						t.copy(uint8(n)+1, k)
					}
				})
			}
		}
	}
}

// others emits what rules of the bucket, other programs and a reader do.
func (w *bucketWorld) others(s *bucket, f func(action, *bucket)) {
	for n := range s.uploads {
		for k := range uint8(w.files) {
			if s.uploads[n].open.has(k) {
				t := *s
				t.uploads[n].open &^= 1 << k
				f(action{opAbort, uint8(n), k, done}, &t)
			}
			if w.mutant == stagingExpires && s.uploads[n].staged[k] != noTag {
				t := *s
				t.uploads[n].staged[k] = noTag
				f(action{opExpire, uint8(n), k, done}, &t)
			}
			if w.meddling && !s.meddled && s.uploads[n].used {
				w.meddle(s, uint8(n), k, f)
			}
		}
	}
	if w.reader {
		w.read(s, f)
	}
}

// meddle emits what another program may replace: a staged object, or the name of a file that
// is not published yet.
func (w *bucketWorld) meddle(s *bucket, n, k uint8, f func(action, *bucket)) {
	a := &s.uploads[n]
	if a.staged[k] != noTag {
		t := *s
		t.uploads[n].staged[k], t.meddled = meddled, true
		f(action{opMeddle, n, k, done}, &t)
	}
	if at := rangeOf(a.start, a.end); s.final[at][k] == 0 {
		t := *s
		t.final[at][k], t.meddled = strange, true
		f(action{opMeddle, n, k, exists}, &t)
	}
}

// read emits the two listings of a reader: of table frames, and later of the others.
func (w *bucketWorld) read(s *bucket, f func(action, *bucket)) {
	t := *s
	t.listed, t.frames = !s.listed, 0
	for at := range uint8(bucketRanges) {
		if !s.listed && s.final[at][w.files-1] != 0 {
			t.frames = t.frames.with(at)
		}
		for k := range w.files - 1 {
			t.torn = t.torn || s.frames.has(at) && s.final[at][k] == 0
		}
	}
	f(action{opList, 0, 0, done}, &t)
}
