package replay

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// listed is a source of given items.
type listed struct {
	items []Item
	next  int
}

func (l *listed) Next(it *Item) error {
	if l.next == len(l.items) {
		return io.EOF
	}
	*it = clone(l.items[l.next])
	it.Position = int64(l.next)
	l.next++
	return nil
}
func (l *listed) Rewind() error { l.next = 0; return nil }
func (l *listed) Close() error  { return nil }

func (t *timeline) rest() (out []Item, err error) {
	var it Item
	for len(out) < 1e5 {
		if err := t.next(&it); err == io.EOF {
			return out, nil
		} else if err != nil {
			return out, err
		}
		out = append(out, clone(it))
	}
	return out, nil
}

func frames(items []Item) (out []string) {
	for _, it := range items {
		out = append(out, fmt.Sprintf("%s/%d@%d", it.Sequence, it.Number, it.TimeNs))
	}
	return out
}

// loop k numbers its frames on: number + k·(last + 1), and adds k·(span +
// median gap) to the times.
func TestLoopsNumberAndDateOn(t *testing.T) {
	src := &listed{items: []Item{
		{Sequence: "a", Number: 3, TimeNs: 1000, Clock: UTC},
		{Sequence: "a", Number: 4, TimeNs: 1100, Clock: UTC},
		{Sequence: "a", Number: 9, TimeNs: 1210, Clock: UTC},
		{Sequence: "a", Number: 10, TimeNs: 1300, Clock: UTC},
	}}
	tl := &timeline{source: src, loops: 3}
	got, err := tl.rest()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{ // last + 1 = 11; span 300, median gap 100
		"a/3@1000", "a/4@1100", "a/9@1210", "a/10@1300",
		"a/14@1400", "a/15@1500", "a/20@1610", "a/21@1700",
		"a/25@1800", "a/26@1900", "a/31@2010", "a/32@2100",
	}
	if d := cmp.Diff(want, frames(got)); d != "" {
		t.Error(d)
	}
}

func TestFramesWithoutAClockAreTenHertzFromTheEpoch(t *testing.T) {
	src := &listed{items: []Item{{Number: 7}, {Number: 9}, {Number: 10, TimeNs: 5e9, Clock: SinceEpoch}}}
	got, err := (&timeline{source: src, loops: 1, epoch: 1e18}).rest()
	if d := cmp.Diff([]string{"/7@1000000000000000000", "/9@1000000000100000000", "/10@1000000005000000000"},
		frames(got)); d != "" || err != nil {
		t.Error(d, err)
	}
	single := &listed{items: []Item{{}}}
	got, err = (&timeline{source: single, loops: 3}).rest()
	if d := cmp.Diff([]string{"/0@0", "/1@100000000", "/2@200000000"}, frames(got)); d != "" || err != nil {
		t.Error(d, err)
	}
}

func TestDrawingsCountWithinTheirSequence(t *testing.T) {
	three := []Drawing{{TimeNs: 50}, {}, {TimeNs: 10}}
	src := &listed{items: []Item{
		{Sequence: "cat", Number: 0, TimeNs: 50, Clock: Unordered, Drawings: three},
		{Sequence: "dog", Number: 0, TimeNs: 30, Clock: Unordered, Drawings: three[:1]},
		{Sequence: "cat", Number: 3, TimeNs: 90, Clock: Unordered, Drawings: three},
	}}
	got, err := (&timeline{source: src, loops: 2}).rest()
	if err != nil {
		t.Fatal(err)
	}
	// span 60, one gap forwards, of 60
	if d := cmp.Diff([]string{"cat/0@50", "dog/0@30", "cat/3@90", "cat/6@170", "dog/1@150", "cat/9@210"},
		frames(got)); d != "" {
		t.Error(d)
	}
	if d := got[3].Drawings; d[0].TimeNs != 170 || d[1].TimeNs != 170 || d[2].TimeNs != 130 {
		t.Errorf("drawings of the second pass at %d, %d, %d", d[0].TimeNs, d[1].TimeNs, d[2].TimeNs)
	}

	// One name for all: they are numbered through, so that no number is twice.
	src.next = 0
	got, err = (&timeline{source: src, loops: 2, names: Names{Sequence: "all", Dataset: "d", Sensor: "s"}}).rest()
	if d := cmp.Diff([]string{"all/0@50", "all/3@30", "all/4@90", "all/7@170", "all/10@150", "all/11@210"},
		frames(got)); d != "" || err != nil {
		t.Error(d, err)
	}
	if got[0].Dataset != "d" || got[0].Sensor != "s" {
		t.Errorf("named %s, %s", got[0].Dataset, got[0].Sensor)
	}
}

func TestLimitCutsAPack(t *testing.T) {
	src := &listed{items: []Item{{Drawings: make([]Drawing, 4)}, {Number: 4, Drawings: make([]Drawing, 4)}}}
	got, err := (&timeline{source: src, loops: 9, limit: 14}).rest()
	var n []int
	for _, it := range got {
		n = append(n, len(it.Drawings))
	}
	if d := cmp.Diff([]int{4, 4, 4, 2}, n); d != "" || err != nil {
		t.Error(d, err)
	}
}

func TestEmptySourceEndsAtOnce(t *testing.T) {
	if got, err := (&timeline{source: &listed{}, loops: 1 << 60}).rest(); len(got) != 0 || err != nil {
		t.Errorf("%d items, %v", len(got), err)
	}
}

func TestLoopsThatLeaveTheNumbersAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		items []Item
		word  string
	}{
		"number":      {[]Item{{Number: math.MaxInt64 / 3}}, "--loop"},
		"last number": {[]Item{{Number: math.MaxInt64}}, "--loop"},
		"time":        {[]Item{{TimeNs: 1, Clock: UTC}, {Number: 1, TimeNs: math.MaxInt64 / 3, Clock: UTC}}, "2262"},
		"span":        {[]Item{{TimeNs: 0, Clock: UTC}, {Number: 1, TimeNs: math.MaxInt64, Clock: UTC}}, "2262"},
	} {
		got, err := (&timeline{source: &listed{items: c.items}, loops: 10}).rest()
		if err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: %v after %v", name, err, frames(got))
		}
		for _, it := range got {
			if it.Number < 0 || it.TimeNs < 0 {
				t.Errorf("%s: overflow in %v", name, frames(got))
			}
		}
	}
}

// Whatever the source: over all passes no frame number is there twice, and
// times of ordered frames go on growing.
func TestNumbersAreUniqueOverPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var src listed
		number, ns := int64(0), rapid.Int64Range(0, 1e15).Draw(t, "start")
		for range rapid.IntRange(1, 20).Draw(t, "items") {
			it := Item{Sequence: "s", Number: number, TimeNs: ns, Clock: UTC}
			if n := rapid.IntRange(0, 3).Draw(t, "drawings"); n > 0 {
				it.Drawings = make([]Drawing, n)
			}
			src.items = append(src.items, it)
			number += it.Frames() + rapid.Int64Range(0, 5).Draw(t, "gap")
			ns += rapid.Int64Range(1, 1e10).Draw(t, "ns")
		}
		got, err := (&timeline{source: &src, loops: rapid.Int64Range(1, 5).Draw(t, "loops")}).rest()
		if err != nil {
			t.Fatal(err)
		}
		end, before := int64(-1), int64(-1)
		for i, it := range got {
			if it.Number <= end || it.TimeNs <= before {
				t.Fatalf("item %d is frame %d at %d, after frame %d at %d", i, it.Number, it.TimeNs, end, before)
			}
			end, before = it.Number+it.Frames()-1, it.TimeNs
		}
	})
}
