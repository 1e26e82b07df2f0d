package live_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"entropipe/algos/geom"
	"entropipe/ops/live"
	"entropipe/schemas"
)

var lidar = live.Stream{Topic: "points", Sequence: "drive"}

func key(offset int64) *schemas.FrameKey {
	return &schemas.FrameKey{Topic: lidar.Topic, Sequence: lidar.Sequence, Offset: offset}
}

// Frames that nobody views are not wanted; a viewed stream gets ten a second, and goes on for
// a minute after its last view.
func TestWantsFollowsViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none *live.Tap
		if none.Wants(key(0)) {
			t.Error("a nil tap wants a frame")
		}
		none.Committed("points", 0, 1)
		tap := &live.Tap{}
		if tap.Wants(key(0)) {
			t.Error("nobody watches, but a frame is wanted")
		}
		w := tap.Watch()
		if tap.Wants(key(0)) {
			t.Error("nobody views the stream, but a frame is wanted")
		}
		if got := tap.Streams(); len(got) != 1 || got[0] != lidar {
			t.Errorf("streams %v, want %v", got, lidar)
		}
		view := w.View(lidar)
		wanted := func(span, every time.Duration) (n int) {
			for passed := time.Duration(0); passed < span; passed += every {
				if tap.Wants(key(0)) {
					n++
				}
				time.Sleep(every)
			}
			return n
		}
		if n := wanted(10*time.Second, time.Millisecond); n < 100 || n > 101 {
			t.Errorf("%d frames of 10,000 in ten seconds, want 100", n)
		}
		if n := wanted(10*time.Second, 100*time.Millisecond); n != 100 {
			t.Errorf("%d frames of 100 that come at 10 Hz", n)
		}
		view.Rest(true)
		if n := wanted(time.Second, 10*time.Millisecond); n != 0 {
			t.Errorf("%d frames while the view rests", n)
		}
		view.Rest(false)
		if !tap.Wants(key(0)) {
			t.Error("no frame is wanted after the rest")
		}
		view.End()
		view.End() // counts once
		if n := wanted(59*time.Second, 100*time.Millisecond); n < 589 {
			t.Errorf("%d frames in the minute after the last view", n)
		}
		time.Sleep(2 * time.Second)
		if tap.Wants(key(0)) {
			t.Error("wanted a minute after the last view")
		}
		w.Close()
		w.Close()
		tap.Always()
		tap.Always()
		if tap.Wants(key(0)) {
			t.Error("a stream that was known before Always is wanted")
		}
		other := &schemas.FrameKey{Topic: "tokens"}
		if !tap.Wants(other) {
			t.Error("after Always a new stream is not wanted")
		}
	})
}

// A process copies ten large scenes a second, shared by the streams that are viewed; small
// scenes cost next to nothing.
func TestLargeScenesShareTheRate(t *testing.T) {
	for _, c := range []struct {
		name   string
		points []int // each stream's scenes
		want   []int // scenes of each in ten seconds
	}{{"one", []int{120_000}, []int{100}}, {"two", []int{120_000, 120_000}, []int{50, 50}},
		{"one beside small ones", []int{120_000, 100, 0}, []int{100, 100, 100}},
		{"four", []int{40_000, 40_000, 40_000, 20_000}, []int{25, 25, 25, 25}}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tap, got := &live.Tap{}, make([]int, len(c.points))
				w := tap.Watch()
				defer w.Close()
				for i := range c.points {
					defer w.View(live.Stream{Topic: "points", Sequence: fmt.Sprint(i)}).End()
				}
				for ms := range 10_500 {
					for i, n := range c.points {
						k := schemas.FrameKey{Topic: "points", Sequence: fmt.Sprint(i), Offset: int64(ms)}
						if tap.Wants(&k) {
							tap.Offer(&live.Scene{FrameKey: k, X: make([]float32, n)})
							if ms >= 500 {
								got[i]++
							}
						}
					}
					time.Sleep(time.Millisecond)
				}
				for i, n := range got {
					if n < c.want[i]-c.want[i]/20-1 || n > c.want[i]+1 {
						t.Errorf("stream %d: %d scenes in ten seconds, want %d", i, n, c.want[i])
					}
				}
			})
		})
	}
}

// Of frames that workers end in any order the newest one stays.
func TestNewestFrameStays(t *testing.T) {
	tap := &live.Tap{}
	w := tap.Watch()
	defer w.Close()
	defer w.View(lidar).End()
	var workers sync.WaitGroup
	for worker := range int64(8) {
		workers.Go(func() {
			for i := range int64(100) {
				tap.Offer(&live.Scene{FrameKey: *key(i*8 + worker)})
			}
		})
	}
	workers.Wait()
	if got := tap.Newest(lidar); got == nil || got.Offset != 799 {
		t.Errorf("newest %v, want offset 799", got)
	}
	select {
	case <-w.Wake:
	default:
		t.Error("the watcher was not woken")
	}
}

// A Tap remembers MaxStreams streams, whatever producers send.
func TestStreamsAreBounded(t *testing.T) {
	tap := &live.Tap{}
	w := tap.Watch()
	defer w.Close()
	for i := range 3 * live.MaxStreams {
		tap.Wants(&schemas.FrameKey{Topic: "points", Sequence: fmt.Sprint(i)})
	}
	if n := len(tap.Streams()); n != live.MaxStreams {
		t.Errorf("%d streams, want %d", n, live.MaxStreams)
	}
	w.View(live.Stream{Topic: "beyond"}).End() // views nothing
}

// Watching costs a worker nothing when nobody does.
func TestUnwatchedFrameAllocatesNothing(t *testing.T) {
	tap, k := &live.Tap{}, key(0)
	if n := testing.AllocsPerRun(100, func() { tap.Wants(k) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func cloud(n int, from float64) *schemas.Frame {
	fr := &schemas.Frame{FrameKey: *key(1)}
	fr.Double = from != 0
	c32, c64 := geom.Cloud[float32]{}, geom.Cloud[float64]{}
	for i := range n {
		x, y, z := float64(i%1000), float64(i/1000), float64(i%7)
		c32.X, c32.Y, c32.Z = append(c32.X, float32(x)), append(c32.Y, float32(y)), append(c32.Z, float32(z))
		c64.X, c64.Y, c64.Z = append(c64.X, x+from), append(c64.Y, y+from), append(c64.Z, z+from)
	}
	if fr.Double {
		fr.Cloud64 = c64
	} else {
		fr.Cloud32 = c32
	}
	return fr
}

// A scene holds the frame's points, or a sample with every corner, and shares no memory with
// the frame.
func TestCapture(t *testing.T) {
	for _, c := range []struct {
		n       int
		from    float64
		sampled bool
	}{{0, 0, false}, {1, 0, false}, {120_000, 0, false}, {120_000, 1e7, false}, {1_000_000, 0, true},
		{1_000_000, 4e6, true}} {
		fr := cloud(c.n, c.from)
		r := &schemas.Result{FrameKey: fr.FrameKey, NPoints: int32(c.n)}
		if c.n > 999_999 {
			r.Hull = &schemas.Hull{Idx: []int32{0, 999, 999_999, 999_000}}
			r.Maxima = []schemas.Maxima{{Idx: []int32{5, 7, 999_998}}}
			r.Triangles = make([]int32, 3*1_900_000)
		}
		s := live.Capture(&schemas.Message{}, fr, r)
		if s.Sampled != c.sampled || !c.sampled && s.Len() != c.n ||
			c.sampled && s.Len() > live.SamplePoints+7 {
			t.Errorf("%d points from %g: %d points, sampled %v", c.n, c.from, s.Len(), s.Sampled)
		}
		if s.Bytes() > live.MaxWhole+1<<20 {
			t.Errorf("%d points from %g: %d bytes", c.n, c.from, s.Bytes())
		}
		for _, corners := range s.Corners() {
			for _, number := range corners {
				k, found := s.Position(number)
				if !found {
					t.Fatalf("%d points from %g: corner %d is missing", c.n, c.from, number)
				}
				if x, want := s.Origin[0]+float64(s.X[k]), c.from+float64(number%1000); x != want {
					t.Errorf("%d points from %g: corner %d has x %v, want %v", c.n, c.from, number, x, want)
				}
			}
		}
		for i := range min(c.n, 10) { // the decoder writes the next frame over this one
			if fr.Double {
				fr.Cloud64.X[i] = math.NaN()
			} else {
				fr.Cloud32.X[i] = float32(math.NaN())
			}
		}
		for i, x := range s.X {
			if x != x {
				t.Fatalf("%d points from %g: point %d is the frame's memory", c.n, c.from, i)
			}
		}
	}
}

// Strata are ascending positions, one of each part.
func TestStrata(t *testing.T) {
	for _, c := range [][2]int{{0, 5}, {4, 5}, {5, 5}, {6, 5}, {1_000_003, 20_000}, {math.MaxInt32, 100}} {
		n, k := c[0], c[1]
		at := live.Strata(n, k)
		if len(at) != min(n, k) {
			t.Errorf("Strata(%d, %d): %d positions", n, k, len(at))
		}
		for i, p := range at {
			if int(p) >= n || i > 0 && p <= at[i-1] {
				t.Fatalf("Strata(%d, %d): position %d after %v", n, k, p, at[max(i-1, 0)])
			}
		}
	}
}

// Law: scenes of a stream that twenty views want are half as many as those that ten want.
func TestManyViewsGetFewerScenes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scenes := func(views int) (n int) {
			tap := new(live.Tap)
			w := tap.Watch()
			defer w.Close()
			for range views {
				w.View(live.Stream{Topic: "t", Sequence: "s"})
			}
			for range 10_000 {
				if tap.Wants(&schemas.FrameKey{Topic: "t", Sequence: "s"}) {
					n++
				}
				time.Sleep(time.Millisecond)
			}
			return n
		}
		one, ten, twenty := scenes(1), scenes(10), scenes(20)
		if one < 99 || one != ten || twenty < ten/2-1 || twenty > ten/2+1 {
			t.Errorf("in ten seconds one view gets %d scenes, ten get %d, twenty %d", one, ten, twenty)
		}
	})
}
