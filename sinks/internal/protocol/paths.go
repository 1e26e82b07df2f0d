package protocol

// Step is an action as code that follows a path sees it.
type Step struct {
	Writer  int
	Op      string // resume, adopt, clean, begin, create, ask, publish, lose, crash
	What    int    // the end of a batch, or the number of a file or an attempt
	Outcome string // done, exists, unsure, dropped
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
	var ways []came
	var states []state
	seen := map[print]int32{}
	add := func(s *state, from int32, by action) (is bool) {
		p := printOf(s)
		if _, is = seen[p]; !is {
			seen[p] = int32(len(ways))
			ways, states = append(ways, came{from, by}), append(states, *s)
		}
		return is
	}
	add(&state{}, -1, action{})
	edges := 0
	for at := int32(0); int(at) < len(states); at++ {
		s := states[at]
		w.next(&s, func(a action, t *state) {
			known := add(t, at, a)
			if edges++; known && edges%stride == 0 { // the others lie on the way to some of these
				f(steps(ways, at, a, states, t))
			}
		})
	}
}

// steps returns the way to a state and one action more.
func steps(ways []came, at int32, last action, states []state, end *state) (path []Step, views []View) {
	for from := at; ways[from].from >= 0; from = ways[from].from {
		path, views = append(path, stepOf(ways[from].by)), append(views, viewOf(&states[from]))
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j], views[i], views[j] = path[j], path[i], views[j], views[i]
	}
	return append(path, stepOf(last)), append(views, viewOf(end))
}

func stepOf(a action) Step {
	return Step{
		int(a.who),
		opNames[a.op],
		int(a.what),
		[...]string{"done", "exists", "unsure", "", "dropped"}[a.outcome],
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
