package demo

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"entropipe/ingest/replay"
	"entropipe/schemas"
)

// sentences is a source of made-up notes from a harbour, a few hundred a second:
// texts for a language model to read. The same seed gives the same notes.
type sentences struct {
	total int64 // 0: without end
	seed  uint64

	next int64
	pack []schemas.Sequence
}

// What notes are made of.
var (
	watchers = []string{"the pilot", "a fisher", "the keeper of the lamp", "an old sailor", "the night watch",
		"a child on the pier", "the crane driver"}
	sights = []string{"counted seven gulls", "heard a bell", "lost sight of the buoy", "painted the last plank",
		"waited for the tide", "found a blue bottle", "turned the wheel to port"}
	places = []string{"by the north mole", "under the old crane", "off the sand bank", "near the rope yard",
		"between two ferries", "at the fish market"}
	weathers = []string{"while the rain went on", "before the fog came in", "after a calm night", "as the wind turned",
		"though nobody asked"}
)

func pick(r *rand.Rand, words []string) string { return words[r.IntN(len(words))] }

// note is text number i. Its last word is cut short, which leaves the model
// something to expect.
func (s *sentences) note(i int64) string {
	r := rand.New(rand.NewPCG(s.seed, uint64(i)))
	var b strings.Builder
	for k := range 1 + r.IntN(3) {
		if k > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s %s %s %s.", pick(r, watchers), pick(r, sights), pick(r, places), pick(r, weathers))
	}
	return b.String()[:b.Len()-2-r.IntN(12)]
}

// Next implements replay.Source: a tenth of a second of notes.
func (s *sentences) Next(it *replay.Item) error {
	n := int64(sentencesEach)
	if s.total > 0 {
		n = min(n, s.total-s.next)
	}
	if n == 0 {
		return io.EOF
	}
	s.pack = s.pack[:0]
	for i := range n {
		s.pack = append(s.pack, schemas.Sequence{ID: fmt.Sprintf("note-%d", s.next+i),
			Text: s.note(s.next + i), IsText: true})
	}
	*it = replay.Item{Dataset: "synthetic", Sequence: "notes", Sensor: "pen", Number: s.next,
		TimeNs: s.next * 1e8 / sentencesEach, Clock: replay.SinceEpoch, Sequences: s.pack}
	s.next += n
	return nil
}

// Rewind implements replay.Source.
func (s *sentences) Rewind() error {
	s.next = 0
	return nil
}

// Close implements replay.Source.
func (s *sentences) Close() error { return nil }
