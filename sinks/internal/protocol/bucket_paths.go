package protocol

// Requests that nobody waits for, as What of the step late; of files the number comes on top.
const (
	LatePut    uint8 = 1
	LateDelete uint8 = 2
	LateStage  uint8 = 8
	LateCopy   uint8 = 16
)

// BucketPath is a way through the model of a bucket, and what the bucket holds after each
// step.
type BucketPath struct {
	Steps []Step
	Views []BucketView
}

// BucketView is what can be seen of an output in a bucket after a step.
type BucketView struct {
	Attempt   int            // attempt of the writer that steps, by the order of begins; -1: none
	Manifests map[int]int    // attempt by start
	Published []BucketObject // objects that readers see
	Staged    []BucketObject // complete staged objects
	Ready     map[int]int    // where writers that are ready go on
	Stuck     map[int]bool   // writers that refuse to go on
}

// BucketObject is an object of a batch.
type BucketObject struct {
	Start, End int
	File       int // the last one is that of table frames
	Attempt    int // whose bytes it has; -1: another program's
}

// BucketPaths calls f for ways with two writers and two files a commit: of those to every
// transition between states each stride-th, and the first one to each kind of transition.
// They are of a log of so many records, with that many requests that end badly. meddling:
// another program replaces an object.
func BucketPaths(records, attempts, faults, stride int, meddling bool, f func(BucketPath)) {
	w := &bucketWorld{clients: 2, attempts: attempts, records: uint8(records), files: 2, faults: uint8(faults),
		meddling: meddling}
	kinds := map[action]bool{}
	walk(w.step, func(a action, known bool, edges int) bool {
		kind := action{op: a.op, outcome: a.outcome}
		if a.op == opLate {
			kind.what = a.what
		}
		first := !kinds[kind]
		kinds[kind] = true
		return first || known && edges%stride == 0
	}, func(actions []action, states []bucket) {
		var p BucketPath
		for i, a := range actions {
			p.Steps, p.Views = append(p.Steps, stepOf(a)), append(p.Views, bucketView(&states[i], int(a.who), w.files))
		}
		f(p)
	})
}

func bucketView(s *bucket, who, files int) BucketView {
	v := BucketView{Attempt: -1, Manifests: map[int]int{}, Ready: map[int]int{}, Stuck: map[int]bool{}}
	if who < len(s.clients) {
		v.Attempt = int(s.clients[who].own) - 1
	}
	for start, n := range s.manifest {
		if n != 0 {
			v.Manifests[start] = int(n) - 1
		}
	}
	for start := range uint8(bucketLog) {
		for end := start + 1; end <= bucketLog; end++ {
			for k, found := range s.final[rangeOf(start, end)] {
				o := BucketObject{int(start), int(end), k, int(found) - 1}
				if found == strange || found == forged {
					o.Attempt = -1
				}
				if found != 0 {
					v.Published = append(v.Published, o)
				}
			}
		}
	}
	for n := range s.uploads {
		a := &s.uploads[n]
		for k := range files {
			o := BucketObject{int(a.start), int(a.end), k, n}
			if a.staged[k] == meddled {
				o.Attempt = -1
			}
			if a.staged[k] != noTag {
				v.Staged = append(v.Staged, o)
			}
		}
	}
	for i := range s.clients {
		switch s.clients[i].at {
		case ready:
			v.Ready[i] = int(s.clients[i].next)
		case stuck:
			v.Stuck[i] = true
		}
	}
	return v
}
