package rig

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Sequences are the same in every run, as long as the trace says, and of ids
// that a model of bytes knows.
func TestSequencesRepeat(t *testing.T) {
	s := Sequences{Lengths: []int{3, 1, 512}, Seed: 1, Pack: 2}
	for i := range int64(9) {
		ids := s.IDs(nil, i)
		if !slices.Equal(ids, s.IDs(nil, i)) || len(ids) != s.Lengths[i%3] {
			t.Errorf("sequence %d: %d ids, want %d, the same every time", i, len(ids), s.Lengths[i%3])
		}
		if slices.Min(ids) < 0 || slices.Max(ids) > 255 {
			t.Errorf("sequence %d holds ids beyond a byte: %v", i, ids)
		}
	}
	if slices.Equal(s.IDs(nil, 0), s.IDs(nil, 3)) {
		t.Error("sequences 0 and 3 are equal")
	}
	if got := s.Tokens(7); got != 3*2+1*2+512*2+3 {
		t.Errorf("%d tokens in 7 sequences", got)
	}
}

func TestRequestsOfATrace(t *testing.T) {
	got, err := appendRequests(nil,
		json.NewDecoder(strings.NewReader(`{"timestamp": 0, "input_length": 7} {"input_length": 900}`)))
	if err != nil || !slices.Equal(got, []int{7, 900}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := appendRequests(nil, json.NewDecoder(strings.NewReader(`{`))); err == nil {
		t.Error("half a line is no error")
	}
}

func TestTraceLengthsAreClipped(t *testing.T) {
	lengths, err := TraceLengths(512)
	if err != nil {
		t.Skip(err)
	}
	if slices.Min(lengths) < 1 || slices.Max(lengths) != 512 || len(lengths) < 1000 {
		t.Errorf("%d lengths from %d to %d", len(lengths), slices.Min(lengths), slices.Max(lengths))
	}
}
