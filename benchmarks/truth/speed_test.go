package main

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"entropipe/algos/geom"
)

func TestMain(m *testing.M) {
	status := m.Run()
	if err := removeProgram(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

// Equal pairs have the ratio 1 for certain; noise around a ratio leaves it
// inside the interval.
func TestPairedRatio(t *testing.T) {
	var r record
	r.putRatio("ratio", []float64{1, 1, 1})
	if v := r.Values; v["ratio"] != 1 || v["ratio_lo"] != 1 || v["ratio_hi"] != 1 {
		t.Errorf("equal pairs: %v", v)
	}
	r.putRatio("ratio", []float64{1.2, 1.4, 1.3, 1.25, 1.35, 1.1, 1.5})
	if v := r.Values; v["ratio"] != 1.3 || v["ratio_lo"] >= 1.3 || v["ratio_hi"] <= 1.3 || v["ratio_lo"] < 1.1 ||
		v["ratio_hi"] > 1.5 {
		t.Errorf("noisy pairs: %v", v)
	}
}

// A stream drifts from its first frame on, which stays as it was.
func TestDrift(t *testing.T) {
	c := geom.Cloud[float32]{X: []float32{1, 2}, Y: []float32{3, 4}}
	s := drift(c, 3, 1)
	if len(s) != 3 || !slices.Equal(s[0].X, []float32{1, 2}) {
		t.Fatalf("stream %v", s)
	}
	for k := range 2 {
		if d := s[2].X[k] - c.X[k]; d == 0 || d > 0.1 || d < -0.1 {
			t.Errorf("point %d moved by %v", k, d)
		}
	}
}

// The formula, on the paper's own figures; a slower way never pays.
func TestBreakEven(t *testing.T) {
	var r record
	r.even(180, 8.7, 2.1)
	if n := r.Values["even"]; n != 27273 {
		t.Errorf("180 s for 8.7 to 2.1 ms pay after %v frames, want 27273", n)
	}
	var slow record
	slow.even(1, 1, 2)
	if paysAfter(&slow) != "never" || slow.Values["at4"] != 21 || slow.Values["plain4"] != 10 {
		t.Errorf("twice as slow: %s, %v", paysAfter(&slow), slow.Values)
	}
}
