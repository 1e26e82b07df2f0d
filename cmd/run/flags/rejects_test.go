package flags

import (
	"strings"
	"testing"

	"entropipe/ops/pipeline"
)

func TestRejectLimitTexts(t *testing.T) {
	for _, text := range []string{"auto", "none", "0", "100", "9223372036854775807", "0%", "5%", "0.25%", "100%"} {
		var l rejectLimit
		if err := l.UnmarshalText([]byte(text)); err != nil || l.String() != text {
			t.Errorf("%q is read as %q; %v", text, l, err)
		}
	}
	for _, text := range []string{"", "all", "-1", "1.5", "%", "-1%", "101%", "nan%", "5 %%", "1e3",
		"9223372036854775808"} {
		var l rejectLimit
		if err := l.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "auto, none") {
			t.Errorf("%q is read as %q; %v", text, l, err)
		}
	}
}

// A share counts from a hundred on, or at the end; a number counts at once.
func TestRejectLimits(t *testing.T) {
	for _, c := range []struct {
		limit          string
		frames, tokens int64
		rejects        int64
		now, atEnd     bool // exceeded
	}{
		{"auto", 0, 0, 0, false, false},
		{"auto", 0, 0, 1000, false, true},
		{"auto", 1, 0, 1000, false, false},
		{"auto", 0, 1, 1000, false, false},
		{"none", 0, 0, 1000, false, false},
		{"0", 1000, 0, 0, false, false},
		{"0", 1000, 0, 1, true, true},
		{"3", 0, 0, 3, false, false},
		{"3", 1000, 1000, 4, true, true},
		{"10%", 0, 0, 0, false, false},
		{"10%", 9, 0, 1, false, false},
		{"10%", 8, 0, 1, false, true},
		{"10%", 0, 0, 99, false, true},
		{"10%", 0, 89, 11, true, true},
		{"10%", 45, 45, 10, false, false},
		{"0%", 98, 0, 1, false, true},
		{"100%", 0, 0, 200, false, false},
	} {
		var l rejectLimit
		if err := l.UnmarshalText([]byte(c.limit)); err != nil {
			t.Fatal(err)
		}
		st := pipeline.Stats{Frames: c.frames, Sequences: c.tokens, Rejects: c.rejects}
		now, atEnd := l.Exceeded(&st, false), l.Exceeded(&st, true)
		if (now != nil) != c.now || (atEnd != nil) != c.atEnd {
			t.Errorf("%s of %d frames, %d sequences, %d rejects: %v, at the end %v", c.limit, c.frames, c.tokens,
				c.rejects, now, atEnd)
		}
	}
}
