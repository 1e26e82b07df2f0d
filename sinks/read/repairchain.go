package read

import (
	"errors"
	"fmt"
	"path"

	"entropipe/sinks/record"
)

// repairer gathers the data of a plan while an output is verified. Its methods do
// nothing on a nil repairer.
type repairer struct {
	topics map[string]*repairTopic // by folder of their commit records
	bad    map[string]bool         // files that are missing or differ from their manifest
}

type repairTopic struct {
	base   *record.Base // nil: no base can be read
	chains map[string]*repairChain
}

// repairChain is the manifests of a partition, in order of their starts.
type repairChain struct {
	links []repairLink
	last  *record.Manifest // the newest readable manifest
}

// repairLink is one manifest.
type repairLink struct {
	name       string
	start, end int64 // start = end: it cannot be read
	err        error // the reason why it cannot be read
}

func newRepairer() *repairer {
	return &repairer{topics: map[string]*repairTopic{}, bad: map[string]bool{}}
}

// topic notes a topic that has commit records.
func (r *repairer) topic(folder string, base *record.Base) {
	if r != nil {
		r.topics[folder] = &repairTopic{base, map[string]*repairChain{}}
	}
}

// add notes a manifest, or the reason why it cannot be read.
func (r *repairer) add(name string, m *record.Manifest, err error) {
	if r == nil {
		return
	}
	t, id := r.topics[path.Dir(path.Dir(name))], path.Base(path.Dir(name))
	if t == nil {
		return
	}
	c := t.chains[id]
	if c == nil {
		c = new(repairChain)
		t.chains[id] = c
	}
	start, _ := record.ManifestStart(path.Base(name))
	l := repairLink{name: name, start: start, end: start, err: err}
	if m != nil {
		l.end, c.last = m.End, m
	}
	c.links = append(c.links, l)
}

// spoilt notes a file that is missing or differs from its manifest. The caller holds the
// verifier's lock.
func (r *repairer) spoilt(file string) {
	if r != nil {
		r.bad[file] = true
	}
}

// whole returns the number n of manifests that follow each other from the base, and the
// end of the last of them. why is the reason if the manifests after them cannot be
// moved.
func (c *repairChain) whole(base int64) (n int, end int64, why string) {
	end = base
	for n < len(c.links) && c.links[n].err == nil && c.links[n].start == end {
		end = c.links[n].end
		n++
	}
	for _, l := range c.links[n:] {
		var damaged *record.DamagedError
		switch {
		case l.err == nil && l.start < end:
			return n, end, fmt.Sprintf("its chain is broken: %s begins before the commits in front of it end", l.name)
		case l.err == nil:
			return n, end, fmt.Sprintf("its chain has a hole: offsets %d to %d are in no manifest that can be read, "+
				"but %s and the commits after it go on behind them, so no program would write them again. "+
				"Restore the manifests of these offsets from a backup; files of theirs that still stand are left "+
				"where they are", end, l.start-1, l.name)
		case !errors.As(l.err, &damaged):
			return n, end, fmt.Sprintf("its chain is unknown: %v", l.err)
		}
	}
	return n, end, ""
}
