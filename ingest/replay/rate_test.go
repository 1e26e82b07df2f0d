package replay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestRatesAreReadAndWritten(t *testing.T) {
	for in, want := range map[string]string{
		"": "realtime", "realtime": "realtime", "REALTIME": "realtime", "max": "max", "10hz": "10hz", "10Hz": "10hz",
		"2x": "2x", "0.5x": "0.5x", "2.5hz": "2.5hz",
	} {
		r, err := ParseRate(in)
		if err != nil || r.String() != want {
			t.Errorf("%q is read as %s, %v; want %s", in, r, err, want)
		}
	}
	for _, in := range []string{"fast", "10", "hz", "x", "-1x", "0hz", "nanx", "infhz", "1e99x", "10 hz", "1hzx"} {
		var r Rate
		if err := r.UnmarshalText([]byte(in)); err == nil {
			t.Errorf("%q is read as %s", in, r)
		}
	}
}

func TestRatesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(1e-6, 1e9).Draw(t, "v")
		for _, r := range []Rate{{hz: v}, {speed: v}} {
			if got, err := ParseRate(r.String()); err != nil || got != r {
				t.Fatalf("%+v is written as %s and read as %+v, %v", r, r, got, err)
			}
		}
	})
}

func TestNoDrawingWaitsLongForItsPack(t *testing.T) {
	for s, want := range map[string]int{"max": 256, "realtime": 256, "2x": 256, "1000hz": 100, "10hz": 1,
		"0.1hz": 1, "1e6hz": 256} {
		r, err := ParseRate(s)
		if err != nil || r.Pack(256) != want {
			t.Errorf("%s: %d, %v; want %d", s, r.Pack(256), err, want)
		}
		if r.Pack(0) != want {
			t.Errorf("%s: %d by default, want %d", s, r.Pack(0), want)
		}
	}
}

// schedule sends frames with these event times, in milliseconds, and returns
// when each left, in milliseconds from the first.
func schedule(t *testing.T, rate string, clock Clock, frames int64, events ...int64) (sent []int64) {
	r, err := ParseRate(rate)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := pacer{rate: r}
		for _, ms := range events {
			if err := p.wait(t.Context(), 1e18+ms*1e6, clock, frames); err != nil {
				t.Fatal(err)
			}
			sent = append(sent, time.Since(start).Milliseconds())
		}
	})
	return sent
}

func TestPace(t *testing.T) {
	for _, c := range []struct {
		rate   string
		clock  Clock
		frames int64
		events []int64
		want   []int64
	}{
		{"realtime", UTC, 1, []int64{5, 105, 505, 605}, []int64{0, 100, 500, 600}}, // gaps are kept
		{"2x", UTC, 1, []int64{0, 100, 500}, []int64{0, 50, 250}},
		{"0.5x", UTC, 1, []int64{0, 100, 500}, []int64{0, 200, 1000}},
		{"10hz", UTC, 1, []int64{0, 7, 9000}, []int64{0, 100, 200}},
		{"1000hz", Unordered, 250, []int64{9, 5, 7}, []int64{0, 250, 500}},       // drawings are counted, not messages
		{"max", UTC, 1, []int64{0, 1000, 2000}, []int64{0, 0, 0}},                //
		{"realtime", UTC, 1, []int64{1000, 0, 500, 1100}, []int64{0, 0, 0, 100}}, // back in time: no wait
		{"realtime", UTC, 1, []int64{9e6, 9e6 + 100, 0, 100, 200}, []int64{0, 100, 100, 200, 300}},
		{"realtime", UTC, 1, []int64{0, 100, 9e9, 9e9 + 100}, []int64{0, 100, 60100, 60200}},
		{"realtime", UTC, 1, []int64{0, 50, 10, 100, 60, 150}, []int64{0, 50, 50, 100, 100, 150}},
		{"realtime", Unordered, 1, []int64{0, 86400e3, 5}, []int64{0, 0, 0}}, // no order, no rate
		{"realtime", UTC, 1, []int64{0, 100}, []int64{0, 100}},
	} {
		got := schedule(t, c.rate, c.clock, c.frames, c.events...)
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s %v: sent at %v ms, want %v", c.rate, c.events, got, c.want)
				break
			}
		}
	}
}

func TestLateFramesAreCaughtUpWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer{}
		start := time.Now()
		for i := range int64(10) {
			if i == 2 {
				time.Sleep(550 * time.Millisecond) // the brokers were away
			}
			if err := p.wait(t.Context(), i*1e8, UTC, 1); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 900*time.Millisecond {
			t.Errorf("10 frames at 10 Hz took %s", took)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p := pacer{}
		if err := p.wait(ctx, -1<<62, UTC, 1); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := p.wait(ctx, 1<<62, UTC, 1); err != context.DeadlineExceeded || time.Since(start) != time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// Two sources that are played side by side keep together at every rate.
func TestTimesScalesFrequenciesOnly(t *testing.T) {
	for text, want := range map[string]string{"20hz": "2000hz", "2x": "2x", "max": "max", "realtime": "realtime"} {
		r, err := ParseRate(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Times(100).String(); got != want {
			t.Errorf("100 times %s is %s, want %s", text, got, want)
		}
	}
}
