package value

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSizeTexts(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "1": 1, "1KiB": 1024, "1kib": 1024, "1 KiB": 1024,
		"256MiB": 256 << 20, "1GiB": 1 << 30, "2TiB": 2 << 40,
		"900KB": 900_000, "1MB": 1e6, "1GB": 1e9, "1TB": 1e12, "12B": 12, "0.5KiB": 512, "1.5GiB": 3 << 29,
		"9223372036854775807": math.MaxInt64, "007": 7} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q: got %d, %v; want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", " ", "B", "KiB", "-1", "-1KiB", "+1", "1K", "1M", "1 ", " 1", "1..2", ".5KiB",
		"1.KiB", "1e3", "1/2", "0x10", "1_000", "١", "0.1B", "9223372036854775808", "8388608TiB", "NaN", "Inf",
		strings.Repeat("9", 1000), "1KiBKiB"} {
		s := Size(42)
		if err := s.UnmarshalText([]byte(text)); err == nil || s != 42 || !strings.Contains(err.Error(), "expected") {
			t.Errorf("%.50q: got %d, %v; want an error that says what was expected", text, s, err)
		}
	}
}

func TestSizeStringReadsBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := Size(rapid.Int64Range(0, 1<<23).Draw(rt, "n") << rapid.IntRange(0, 39).Draw(rt, "shift"))
		var again Size
		if err := again.UnmarshalText([]byte(s.String())); err != nil || again != s {
			rt.Fatalf("%d is %s, read as %d, %v", s, s, again, err)
		}
	})
}

func TestDurationTexts(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "60": time.Minute, "0.25": 250 * time.Millisecond,
		"1h2m": 62 * time.Minute, "1e2": 100 * time.Second, "0s": 0} {
		if d, err := parseDuration(text); err != nil || d != want {
			t.Errorf("%q: got %v, %v; want %v", text, d, err, want)
		}
	}
	for _, text := range []string{"", "-1", "-1s", "1d", "1 s", "NaN", "inf", "-Inf", "1e300", "1e400", "99999999999",
		"3000000h", "0x10", "1_0"} {
		if d, err := parseDuration(text); err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("%q: got %v, %v; want an error", text, d, err)
		}
	}
}

func TestClosest(t *testing.T) {
	flags := []string{"brokers", "from", "on-gap", "out", "roll-age", "roll-bytes", "top-k", "topic"}
	for text, want := range map[string]string{"roll-aeg": "roll-age", "rollage": "roll-age", "ou": "out",
		"topics": "topic", "topik": "topic", "broker": "brokers", "form": "from",
		"x": "", "": "", "everything": "", "roll-byte": "roll-bytes", "roll-": "roll-age", "ro": "",
		strings.Repeat("topic", 100): ""} {
		if got := Closest(text, flags); got != want {
			t.Errorf("%.20q: got %q, want %q", text, got, want)
		}
	}
}
