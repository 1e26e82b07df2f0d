package demo

import (
	"strings"
	"testing"
	"time"
)

// A stream that is late says by how much, one in time says nothing.
func TestDemoSaysHowLateItIs(t *testing.T) {
	realtime, free := pace{hz: 10, total: 200}, pace{total: 200}
	for _, c := range []struct {
		of        pace
		done      int64
		after     time.Duration
		bar, says string
	}{
		{realtime, 0, time.Second, "", ""},
		{realtime, 90, 10 * time.Second, "", ""},
		{realtime, 50, 17 * time.Second, ", 12s behind real time", "Behind real time by 12s: 50 frames took 17s."},
		{realtime, -5, 7 * time.Second, ", 7s behind real time", "Behind real time by 7s"}, // the backlog first
		{realtime, 200, 21 * time.Second, "", ""},
		{realtime, 200, 30 * time.Second, "", "Behind real time by 10s: 200 frames took 30s."},
		{realtime, 150, 9 * time.Second, "", ""}, // faster than real time
		{free, 1, time.Hour, "", ""},
	} {
		if got := c.of.text(c.done, c.after); got != c.bar {
			t.Errorf("%+v: the bar says %q", c, got)
		}
		if got := c.of.verdict(c.done, c.after); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%+v: the report says %q", c, got)
		}
	}
}

// Law: rows of the demo are committed within a second, so that the first table comes soon.
func TestRowsDoNotWait(t *testing.T) {
	if age := (&demo{Command: &Command{}}).flags().RollAge; age > time.Second {
		t.Errorf("rows wait for %v", age)
	}
}
