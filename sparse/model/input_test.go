package model

import (
	"errors"
	"slices"
	"testing"

	"entropipe/sparse/hf/hftest"
)

func TestInputErrorsNameSequenceAndPosition(t *testing.T) {
	m := loadText(t, hftest.GPT2)
	s := m.NewSession(1)
	long := make([]int32, 97)
	for _, c := range []struct {
		name      string
		sequences [][]int32
		want      InputError
	}{
		{"beyond the vocabulary", [][]int32{{1}, {2, 3, 61}}, InputError{IDOutOfRange, 1, 2}},
		{"negative", [][]int32{{1, -1}}, InputError{IDOutOfRange, 0, 1}},
		{"empty", [][]int32{{1}, {}, {2}}, InputError{EmptySequence, 1, 0}},
		{"too long", [][]int32{{1}, long}, InputError{TooLong, 1, 97}},
	} {
		for what, f := range map[string]func() error{
			"Hidden":   func() error { _, err := s.Hidden(join(c.sequences), Options{}); return err },
			"Generate": func() error { _, err := s.Generate(join(c.sequences), 0, Options{}); return err },
		} {
			var bad *InputError
			if err := f(); !errors.As(err, &bad) || *bad != c.want {
				t.Errorf("%s: %s: %v, want %v", what, c.name, err, &c.want)
			}
		}
	}
	var bad *InputError
	if _, err := s.Generate(one(long[:90]), 7, Options{}); !errors.As(err, &bad) ||
		*bad != (InputError{TooLong, 0, 97}) {
		t.Errorf("90 tokens and 7 more: %v", err)
	}
	if h, err := s.Hidden(Batch{}, Options{}); err != nil || h.Rows != 0 {
		t.Errorf("an empty batch: %v rows, %v", h.Rows, err)
	}
	if out, err := s.Generate(Batch{}, 3, Options{}); err != nil || len(out) != 0 {
		t.Errorf("an empty batch generates %v, %v", out, err)
	}
}

func TestGenerateStopsAtTheEnd(t *testing.T) {
	g := readGolden(t)
	want := g.Cases["gpt2"].Generated
	m := loadText(t, g.Cases["gpt2"].Config)
	m.config.EOS = []int32{want[5]}
	first := slices.Index(want, want[5])
	got, err := m.NewSession(1).Generate(join([][]int32{g.IDs, g.IDs[:3]}), len(want), Options{})
	if err != nil || !slices.Equal(got[0], want[:first+1]) {
		t.Errorf("got %v, %v, want %v", got, err, want[:first+1])
	}
}

// A model whose sums overflow says so, and names the sequence.
func TestGenerateRefusesWhatIsNotFinite(t *testing.T) {
	c := hftest.Config(t, hftest.GPT2)
	tensors := hftest.Tensors(c)
	for i := range 48 {
		tensors["ln_f.weight"][i] = 3e38
	}
	m := loadTensors(t, c, tensors)
	out, err := m.NewSession(1).Generate(join([][]int32{{1, 2}, {3}}), 4, Options{})
	var bad *InputError
	if !errors.As(err, &bad) || bad.Reason != NotFinite || bad.Sequence != 0 || out != nil {
		t.Errorf("got %v, %v", out, err)
	}
}
