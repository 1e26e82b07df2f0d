package live

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"entropipe/schemas"
)

// Bounds of what a Tap copies.
const (
	// MaxWhole bounds the bytes of points and triangles that a scene holds whole.
	MaxWhole = 8 << 20
	// SamplePoints is the number of points of a sampled scene, without corners and maxima.
	SamplePoints = 20_000
	// MaxStreams bounds the streams that a Tap knows. Further ones are not offered.
	MaxStreams = 1000

	period = time.Second / 10 // least mean time between two scenes of a stream
	linger = time.Minute      // how long a stream is copied after its last watcher left
	recent = 2 * time.Second  // how long a stream counts as one that is copied, after a scene

	fullLoad = 1000 // load of a scene of SamplePoints points or more

	// manyViews is how many views a stream has before its scenes become rarer: sending a scene
	// to ten clients costs more than copying it.
	manyViews = 10
)

// Tap copies frames for watchers. Its zero value is ready: nobody watches. Any goroutine may
// call its methods; all of them accept a nil Tap, which nobody can watch.
type Tap struct {
	watchers atomic.Int32 // watchers and Always; 0: Wants returns at once
	began    atomic.Pointer[time.Time]

	mu      sync.RWMutex
	streams map[Stream]*stream
	list    []Stream            // the same, in the order of their first frames
	wakes   []chan struct{}     // one for each watcher
	ends    map[partition]int64 // committed end of each partition
	commits int64               // calls of Committed
	always  bool

	// load is the load of the newest scene of each stream that is copied now: a process
	// copies ten large scenes a second, whatever the number of its streams.
	load atomic.Int64
}

// ticks returns the nanoseconds since its first call. A wall clock that is set back by an hour
// does not stop the scenes for an hour.
func (t *Tap) ticks() int64 {
	began := t.began.Load()
	if began == nil {
		now := time.Now().Add(-time.Second) // 0 is the past
		t.began.CompareAndSwap(nil, &now)
		began = t.began.Load()
	}
	return int64(time.Since(*began))
}

type partition struct {
	topic string
	id    int32
}

// stream is what a Tap knows of one stream.
type stream struct {
	wanted atomic.Int32 // views of it that do not rest
	until  atomic.Int64 // ticks until which it is copied although nobody views it
	due    atomic.Int64 // ticks at which its next scene is due, by the mean rate
	load   atomic.Int64 // load of its newest scene
	at     atomic.Int64 // ticks of its newest scene's offer
	newest atomic.Pointer[Scene]
}

// Always makes the tap copy streams although nobody watches, up to four of them: a demo
// shows its first picture at once.
func (t *Tap) Always() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.always {
		t.always = true
		t.watchers.Add(1)
	}
}

// alwaysStreams bounds the streams that are copied for nobody.
const alwaysStreams = 4

// Watcher receives the scenes of a Tap. Close ends it.
type Watcher struct {
	// Wake receives, without queueing, when a stream has a new scene, a new stream is known,
	// or a commit made frames durable.
	Wake <-chan struct{}
	tap  *Tap
	wake chan struct{}
	once sync.Once
}

// Watch returns a new Watcher. Streams are listed from then on, but copied only while the
// watcher views them.
func (t *Tap) Watch() *Watcher {
	wake := make(chan struct{}, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakes = append(t.wakes, wake)
	t.watchers.Add(1)
	return &Watcher{Wake: wake, tap: t, wake: wake}
}

// Close ends the watcher. Views that it opened are closed by their own functions.
func (w *Watcher) Close() {
	w.once.Do(func() {
		t := w.tap
		t.mu.Lock()
		defer t.mu.Unlock()
		for i, c := range t.wakes {
			if c == w.wake {
				t.wakes = append(t.wakes[:i:i], t.wakes[i+1:]...)
				break
			}
		}
		t.watchers.Add(-1)
	})
}

// View is one watcher's wish for the scenes of a stream. One goroutine at a time may use it.
type View struct {
	tap     *Tap
	s       *stream // nil: the stream is beyond MaxStreams
	count   int32   // number of views that it stands for
	resting bool
	ended   bool
}

// View makes the tap copy the scenes of a stream until End is called, and for a minute after
// that.
func (w *Watcher) View(of Stream) *View {
	v := &View{tap: w.tap, s: w.tap.stream(of), count: 1}
	if v.s != nil {
		v.s.wanted.Add(1)
	}
	return v
}

// StandFor makes the view count as n views, which share its scenes; at least as one.
func (v *View) StandFor(n int) {
	if v.s == nil || v.ended {
		return
	}
	before := v.weight()
	v.count = int32(max(n, 1))
	v.s.wanted.Add(v.weight() - before)
}

// Rest makes the view want no scene while rest is true.
func (v *View) Rest(rest bool) {
	if v.s == nil || v.ended {
		return
	}
	before := v.weight()
	v.resting = rest
	v.s.wanted.Add(v.weight() - before)
}

// weight is the part of the view in the stream's number of views.
func (v *View) weight() int32 {
	if v.resting {
		return 0
	}
	return v.count
}

// End ends the view. Later calls do nothing. No scene is copied for a view that rested.
func (v *View) End() {
	if v.s == nil || v.ended {
		return
	}
	v.ended = true
	if !v.resting {
		v.s.until.Store(v.tap.ticks() + int64(linger))
		v.s.wanted.Add(-v.count)
	}
}

// Streams returns the streams that are known, in the order of their first frames.
func (t *Tap) Streams() []Stream {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.list[:len(t.list):len(t.list)]
}

// Newest returns the newest scene of a stream; nil if there is none.
func (t *Tap) Newest(of Stream) *Scene {
	t.mu.RLock()
	s := t.streams[of]
	t.mu.RUnlock()
	if s == nil {
		return nil
	}
	return s.newest.Load()
}

// Durable returns the end of the committed records of a partition: records before it are
// durable. It returns 0 before the first commit of this process.
func (t *Tap) Durable(topic string, id int32) int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.ends[partition{topic, id}]
}

// Committed tells the tap that all records of a partition before end are durable.
func (t *Tap) Committed(topic string, id int32, end int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	if t.ends == nil {
		t.ends = map[partition]int64{}
	}
	t.ends[partition{topic, id}] = end
	t.commits++
	t.mu.Unlock()
	t.wake()
}

// Watched reports whether somebody watches, whatever it is.
func (t *Tap) Watched() bool { return t != nil && t.watchers.Load() > 0 }

// Wants reports whether the next scene of the stream of k is to be offered. A true answer
// counts as that scene: the stream's next one is due a tenth of a second later, or n tenths
// if n streams with large scenes are copied, and n times as late if n tens of views want the
// stream. Two scenes may come closer together, if the one before came late.
func (t *Tap) Wants(k *schemas.FrameKey) bool {
	if t == nil || t.watchers.Load() == 0 {
		return false
	}
	s := t.stream(Stream{k.Topic, k.Sequence})
	if s == nil {
		return false
	}
	now := t.ticks()
	if s.wanted.Load() == 0 && now >= s.until.Load() {
		return false
	}
	due, every := s.due.Load(), int64(period)*max(t.load.Load(), fullLoad)/fullLoad
	every = every * max(int64(s.wanted.Load()), manyViews) / manyViews
	return now >= due-every && s.due.CompareAndSwap(due, max(due, now)+every)
}

// Offer makes scene the newest of its stream, unless a later frame of the same partition is.
func (t *Tap) Offer(scene *Scene) {
	s := t.stream(scene.Stream())
	if s == nil {
		return
	}
	for {
		old := s.newest.Load()
		if old != nil && old.Partition == scene.Partition && (old.Offset > scene.Offset ||
			old.Offset == scene.Offset && old.Index > scene.Index) {
			return
		}
		if s.newest.CompareAndSwap(old, scene) {
			break
		}
	}
	t.weigh(s, scene)
	t.wake()
}

// weigh notes the load of the newest scene of s, and sums up those of all streams.
func (t *Tap) weigh(s *stream, scene *Scene) {
	now := t.ticks()
	s.load.Store(int64(fullLoad * min(scene.Len(), SamplePoints) / SamplePoints))
	s.at.Store(now)
	t.mu.RLock()
	defer t.mu.RUnlock()
	sum := int64(0)
	for _, other := range t.streams {
		if now-other.at.Load() < int64(recent) {
			sum += other.load.Load()
		}
	}
	t.load.Store(sum)
}

// wake tells every watcher that something is new.
func (t *Tap) wake() {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, c := range t.wakes {
		select {
		case c <- struct{}{}:
		default: // told already
		}
	}
}

// stream returns what t knows of a stream, and makes it known. It returns nil for a new
// stream beyond MaxStreams.
func (t *Tap) stream(of Stream) *stream {
	t.mu.RLock()
	s := t.streams[of]
	t.mu.RUnlock()
	if s != nil {
		return s
	}
	t.mu.Lock()
	if s = t.streams[of]; s == nil && len(t.list) < MaxStreams {
		if t.streams == nil {
			t.streams = map[Stream]*stream{}
		}
		of = Stream{strings.Clone(of.Topic), strings.Clone(of.Sequence)}
		s = &stream{}
		if t.always && len(t.list) < alwaysStreams {
			s.wanted.Add(1)
		}
		t.streams[of], t.list = s, append(t.list, of)
	}
	t.mu.Unlock()
	if s != nil {
		t.wake()
	}
	return s
}

// Ends calls visit with the end of the committed records of each partition that this process
// has committed to. visit must not call the tap.
func (t *Tap) Ends(visit func(topic string, id int32, end int64)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for p, end := range t.ends {
		visit(p.topic, p.id, end)
	}
}

// Commits returns how often Committed was called: who saw the same number before has seen
// all ends.
func (t *Tap) Commits() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.commits
}
