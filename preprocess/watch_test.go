package preprocess

import (
	"testing"

	"pgregory.net/rapid"
)

// stream notes count frames from offset on and returns how often hints turned.
func stream(w *Watch, offset *int64, count int, with, without float64) (turns int) {
	for range count {
		hinted := w.Hinted(*offset)
		survived := without
		if hinted {
			survived = with
		}
		if w.Note(hinted, true, survived) {
			turns++
		}
		*offset++
	}
	return turns
}

// Hints go off after a hundred bad frames, not before, and come back after four
// good trials.
func TestWatchTurnsHintsOffAndOn(t *testing.T) {
	w, offset := NewWatch(0.01), int64(1)
	if n := stream(&w, &offset, 1000, 0.019, 0.025); n != 0 || !w.On() {
		t.Fatalf("%d turns though no frame was above twice the calibration's", n)
	}
	// Of 100 frames one or two are controls.
	before := stream(&w, &offset, 100, 0.021, 0.025)
	after := stream(&w, &offset, 2, 0.021, 0.025)
	if before != 0 || after != 1 || w.On() {
		t.Fatalf("%d turns in 100 bad frames, %d in the next two; on %v", before, after, w.On())
	}
	if n := stream(&w, &offset, 64*10, 0.018, 0.025); n != 0 {
		t.Fatalf("%d turns though trials were not clearly good", n)
	}
	if n := stream(&w, &offset, 64*3, 0.015, 0.025) + stream(&w, &offset, 64, 0.015, 0.025); n != 1 || !w.On() {
		t.Fatalf("%d turns in four good trials; on %v", n, w.On())
	}
}

// One good frame among a hundred, or one bad trial among four, begins the count
// again.
func TestWatchCountsFramesInARow(t *testing.T) {
	w := NewWatch(0.01)
	w.Note(false, false, 0.05)
	for range 10 {
		for range badMost - 1 {
			w.Note(true, true, 0.5)
		}
		w.Note(true, true, 0.005)
	}
	if !w.On() {
		t.Fatal("hints are off though bad frames were never a hundred in a row")
	}
	for range badMost {
		w.Note(true, false, 0)
	}
	if w.On() {
		t.Fatal("hints are on though the operator refused them a hundred times")
	}
	for range 10 {
		for range goodLeast - 1 {
			w.Note(true, true, 0.005)
		}
		w.Note(true, true, 0.5)
	}
	if w.On() {
		t.Fatal("hints are on though good trials were never four in a row")
	}
}

// Hints that leave more than none would are bad, whatever the calibration says.
func TestWatchComparesWithFramesWithoutHints(t *testing.T) {
	w, offset := NewWatch(0.4), int64(0)
	if n := stream(&w, &offset, 200, 0.3, 0.2); n != 1 || w.On() {
		t.Fatalf("%d turns, on %v, with hints worse than none", n, w.On())
	}
}

// Hints that still save much stay, though the stream is not what the model was
// calibrated on.
func TestWatchKeepsHintsThatHelp(t *testing.T) {
	w, offset := NewWatch(0.005), int64(0)
	if n := stream(&w, &offset, 1000, 0.04, 0.08); n != 0 || !w.On() {
		t.Fatalf("%d turns, on %v, with hints that leave half", n, w.On())
	}
}

// Whatever is noted, controls are one frame in 64, and which one does not
// depend on the past.
func TestWatchControlsByOffset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := NewWatch(rapid.Float64Range(0, 1).Draw(t, "calibrated"))
		for range rapid.IntRange(0, 300).Draw(t, "frames") {
			w.Note(rapid.Bool().Draw(t, "hinted"), true, rapid.Float64Range(0, 1).Draw(t, "survived"))
		}
		from := rapid.Int64Range(0, 1<<40).Draw(t, "offset")
		hinted := 0
		for k := range int64(64) {
			if w.Hinted(from + k) {
				hinted++
			}
		}
		if want := map[bool]int{true: 63, false: 1}[w.On()]; hinted != want {
			t.Fatalf("%d of 64 frames get hints, on %v", hinted, w.On())
		}
	})
}
