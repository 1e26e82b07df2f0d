package protocol

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"unsafe"
)

// Violation is a state in which an invariant does not hold, with the way there.
type Violation struct {
	Problem string
	Trace   []action
}

// Error lists the actions.
func (v *Violation) Error() string {
	text := v.Problem
	for _, a := range v.Trace {
		text += "\n  " + a.String()
	}
	return text
}

// print is the fingerprint of a state. Two states of 10^7 have the same one with a
// probability of 10^-24.
type print [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func printOf[S comparable](s *S) print {
	return print{maphash.Comparable(seeds[0], *s), maphash.Comparable(seeds[1], *s)}
}

// came says how a state was reached first.
type came struct {
	from int32
	by   action
}

// Explore visits all states breadth first, and returns their number. It stops at the first
// violation, whose trace is therefore a shortest one, or behind most states.
func (w *world) Explore(most int) (states int, _ *Violation) {
	normal := func(*state) {}
	if w.symmetry {
		normal = canonical
	}
	finished := map[print]string{}
	return explore(most, normal, w.next, func(s *state) string {
		if problem := w.check(s); problem != "" {
			return problem
		}
		rest := *s
		rest.writers, rest.reader, rest.vacuum = [maxWriters]writer{}, reader{}, vacuum{}
		return once(finished, &rest, w.finish)
	})
}

// once calls check for a state that it was not called for before.
func once[S comparable](results map[print]string, s *S, check func(*S) string) string {
	of := printOf(s)
	problem, is := results[of]
	if !is {
		problem = check(s)
		results[of] = problem
	}
	return problem
}

// explore visits all states that next leads to from the zero state. normal makes states that
// differ in numbers only the same one; check says what is wrong with a state.
func explore[S comparable](most int, normal func(*S), next func(*S, func(action, *S)),
	check func(*S) string) (states int, _ *Violation) {
	seen := map[print]struct{}{}
	var ways []came
	var queue []S
	add := func(s *S, from int32, by action) string {
		normal(s)
		p := printOf(s)
		if _, is := seen[p]; is {
			return ""
		}
		seen[p] = struct{}{}
		ways, queue = append(ways, came{from, by}), append(queue, *s)
		return check(s)
	}
	if problem := add(new(S), -1, action{}); problem != "" {
		return 1, &Violation{Problem: problem}
	}
	var found *Violation
	for at := int32(0); len(queue) > 0 && found == nil; at++ {
		if len(ways) > most {
			return len(ways), &Violation{Problem: fmt.Sprintf("more than %d states", most)}
		}
		s := queue[0]
		queue = queue[1:]
		next(&s, func(a action, t *S) {
			if found != nil {
				return
			}
			if problem := add(t, at, a); problem != "" {
				found = &Violation{problem, trace(ways, int32(len(ways)-1))}
			}
		})
	}
	return len(ways), found
}

// trace returns the actions that lead to a state.
func trace(ways []came, at int32) (actions []action) {
	for ; ways[at].from >= 0; at = ways[at].from {
		actions = append(actions, ways[at].by)
	}
	slices.Reverse(actions)
	return actions
}

// canonical gives attempts and writers the numbers that depend on what they are only.
// States that are the same but for numbers become one.
func canonical(s *state) {
	var order [maxAttempts]uint8
	for i := range order {
		order[i] = uint8(i)
	}
	slices.SortStableFunc(order[:], func(a, b uint8) int { return compareAttempts(&s.attempts[a], &s.attempts[b]) })
	var to [maxAttempts + 1]uint8 // by old number + 1
	old := s.attempts
	var frames bits
	for i, from := range order {
		s.attempts[i] = old[from]
		to[from+1] = uint8(i) + 1
		if s.reader.frames.has(from) {
			frames = frames.with(uint8(i))
		}
	}
	s.reader.frames = frames
	for p := range s.manifest {
		for start := range s.manifest[p] {
			s.manifest[p][start] = to[s.manifest[p][start]]
		}
	}
	for i := range s.writers {
		s.writers[i].own, s.writers[i].newest = to[s.writers[i].own], to[s.writers[i].newest]
	}
	slices.SortFunc(s.writers[:], func(a, b writer) int { return bytes.Compare(bytesOf(&a), bytesOf(&b)) })
	slices.Reverse(s.writers[:]) // idle ones, and those that the world does not have, last
}

func compareAttempts(a, b *attempt) int {
	if a.used != b.used {
		if a.used {
			return -1
		}
		return 1
	}
	return cmp.Or(bytes.Compare(bytesOf(a), bytesOf(b)))
}

// bytesOf returns the memory of a struct without pointers.
func bytesOf[T writer | attempt | client | upload](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}
