package schemas

import (
	"math"
	"testing"
	"time"
)

// lastSecond is the last second that begins within an int64 of nanoseconds.
const lastSecond = math.MaxInt64 / int64(time.Second)

func TestSentAt(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want int64
	}{
		{time.Time{}, 0},
		{time.UnixMilli(-1), 0}, // nobody knows
		{time.UnixMilli(-1).In(time.FixedZone("", 3600)), 0},
		{time.UnixMilli(0), 0},
		{time.UnixMilli(1), 1e6},
		{time.Unix(1700000000, 42), 1700000000*int64(time.Second) + 42},
		{time.Unix(lastSecond-1, 999999999), lastSecond*int64(time.Second) - 1},
		{time.Unix(lastSecond, 0), 0},
		{time.UnixMilli(math.MaxInt64), 0},
		{time.UnixMilli(math.MinInt64), 0},
	} {
		if got := (&Message{Time: c.at}).SentAt(); got != c.want {
			t.Errorf("%v: %d, want %d", c.at, got, c.want)
		}
	}
}
