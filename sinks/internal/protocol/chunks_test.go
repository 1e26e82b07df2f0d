package protocol

import "testing"

// chain follows every way to cut a log into batches, and reports the first whose rows are
// not those of a reader without a break.
type chain struct {
	log    log
	rule   rule
	forget bool // chunks ahead are forgotten
	beyond bool
	seen   map[at]struct{}
	bad    []cut
}

// at is where a writer goes on.
type at struct {
	from          uint8
	ahead         bits
	closed        recent
	rows, rejects bits
}

func (c *chain) follow(s at, way []cut) bool {
	if _, is := c.seen[s]; is || len(c.bad) > 0 {
		return len(c.bad) == 0
	}
	c.seen[s] = struct{}{}
	rows, rejects := c.log.truth(0, c.rule)
	if s.rows != rows&below(s.from) || s.rejects != rejects&below(s.from) {
		c.bad = append(c.bad, way...)
		return false
	}
	for to := int(s.from) + 1; to <= len(c.log); to++ {
		for _, clock := range []bool{false, true} {
			if clock && to < len(c.log) {
				continue
			}
			for _, b := range c.log[:to].cuts(s.from, s.ahead, s.closed, c.rule, clock, c.beyond && !clock) {
				t := at{b.end, b.ahead, b.closed, s.rows | b.rows, s.rejects | b.rejects}
				if c.forget {
					t.ahead = 0
				}
				if s.rows&b.rows != 0 || !c.follow(t, append(way, b)) {
					return false
				}
			}
		}
	}
	return true
}

// everyLog calls f for all logs of n records of whole messages and of chunks of frames of two.
func everyLog(n int, f func(log) bool) {
	alphabet := []record{message(), chunk(1, 0, 2), chunk(1, 1, 2), chunk(2, 0, 2), chunk(2, 1, 2)}
	l := make(log, n)
	var fill func(i int) bool
	fill = func(i int) bool {
		if i == n {
			return f(l)
		}
		for _, r := range alphabet {
			l[i] = r
			if !fill(i + 1) {
				return false
			}
		}
		return true
	}
	fill(0)
}

// Law: however a log is cut into batches, and wherever a process that goes on has found its
// end, the rows and rejects are the same.
func TestRowsDoNotDependOnTheCuts(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	logs, ways := 0, 0
	for n := range maxLog + 1 {
		everyLog(n, func(l log) bool {
			c := chain{log: l, seen: map[at]struct{}{}}
			logs++
			if !c.follow(at{}, nil) {
				t.Errorf("%v\n cut as %+v", l, c.bad)
				return false
			}
			ways += len(c.seen)
			return true
		})
	}
	t.Logf("%d logs, %d positions", logs, ways)
}

// Each of these rules gives other rows for some log.
func TestOtherRulesDependOnTheCuts(t *testing.T) {
	for name, rules := range map[string]chain{
		"frames remembered by their ends": {rule: byEnd},
		"chunks ahead forgotten":          {forget: true},
		"an end beyond an open frame":     {beyond: true},
	} {
		found := false
		for n := 1; n <= maxLog && !found; n++ {
			everyLog(n, func(l log) bool {
				c := rules
				c.log, c.seen = l, map[at]struct{}{}
				if !c.follow(at{}, nil) {
					found = true
					t.Logf("%s: %v cut as %+v", name, l, c.bad)
				}
				return !found
			})
		}
		if !found {
			t.Errorf("%s: every log has the same rows", name)
		}
	}
}
