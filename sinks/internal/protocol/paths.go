package protocol

import "slices"

// Step is an action as code that follows a path sees it.
type Step struct {
	Writer  int
	Op      string // such as resume, begin, create
	What    int    // the end of a batch, or the number of a file or an attempt
	Outcome string // such as done, exists, unsure, dropped
}

// View is what can be seen of an output after a step.
type View struct {
	Manifests map[int]int // end by start
	Published []Range     // files that readers see
	Staged    []Range     // files that are staged
	Ready     map[int]int // where writers that are ready go on
}

// Range is one file: the offsets of its batch, and whether it is of table frames.
type Range struct {
	Start, End int
	Frames     bool
}

// NoAttempt is What of the step clean that finds nothing to discard.
const NoAttempt = maxAttempts

// Paths calls f for paths through the local protocol with two writers and a log of messages,
// of which every stride-th is taken: together with stride 1 they have every transition
// between the states that attempts attempts can reach. A path begins with an empty output.
func Paths(messages, attempts, stride int, f func(steps []Step, views []View)) {
	w := &world{store: local, writers: 2, attempts: attempts, logs: []log{make(log, messages)}, starts: []uint8{0}}
	walk(w.next, func(_ action, known bool, edges int) bool {
		return known && edges%stride == 0 // the others lie on the way to some of these
	}, func(actions []action, states []state) {
		var path []Step
		var views []View
		for i, a := range actions {
			path, views = append(path, stepOf(a)), append(views, viewOf(&states[i]))
		}
		f(path, views)
	})
}

// walk visits all states from the zero state on. For each transition that take wants, f gets
// a shortest way to it: the actions, and the state after each.
func walk[S comparable](next func(*S, func(action, *S)), take func(a action, known bool, edges int) bool,
	f func([]action, []S)) {
	var ways []came
	var states []S
	seen := map[print]bool{}
	add := func(s *S, from int32, by action) (is bool) {
		p := printOf(s)
		if is = seen[p]; !is {
			seen[p] = true
			ways, states = append(ways, came{from, by}), append(states, *s)
		}
		return is
	}
	add(new(S), -1, action{})
	edges := 0
	for at := int32(0); int(at) < len(states); at++ {
		s := states[at]
		next(&s, func(a action, t *S) {
			known := add(t, at, a)
			if edges++; !take(a, known, edges) {
				return
			}
			var actions []action
			var after []S
			for from := at; ways[from].from >= 0; from = ways[from].from {
				actions, after = append(actions, ways[from].by), append(after, states[from])
			}
			slices.Reverse(actions)
			slices.Reverse(after)
			f(append(actions, a), append(after, *t))
		})
	}
}

func stepOf(a action) Step {
	return Step{
		int(a.who),
		opNames[a.op],
		int(a.what),
		[...]string{"done", "exists", "unsure", "in the air", "dropped", "absent", "changed", "conflict", "refused",
			"partly"}[a.outcome],
	}
}

func viewOf(s *state) View {
	v := View{Manifests: map[int]int{}, Ready: map[int]int{}}
	for start, n := range s.manifest[0] {
		if n > 0 {
			v.Manifests[start] = int(s.attempts[n-1].end)
		}
	}
	for n := range s.attempts {
		a := &s.attempts[n]
		for i, f := range a.file {
			r := Range{int(a.start), int(a.end), i == 1}
			if f&published != 0 {
				v.Published = append(v.Published, r)
			}
			if f&staged != 0 {
				v.Staged = append(v.Staged, r)
			}
		}
	}
	for i := range s.writers {
		if s.writers[i].at == ready {
			v.Ready[i] = int(s.writers[i].next)
		}
	}
	return v
}
