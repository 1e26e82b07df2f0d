package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type turn struct {
	Round int
	Way   string
	Value int
}

func (t turn) key() string { return fmt.Sprint(t.Round, t.Way) }

// A turn that the newest run has already begins another run; the journal keeps all of them.
func TestTurnsOfTheNewestRun(t *testing.T) {
	dir := t.TempDir()
	turns, err := ReadTurns("speed", dir, turn.key)
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := turns.WritePage(&page, "nothing"); err != nil || page.String() != "nothing" {
		t.Errorf("page %q, %v", page.String(), err)
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) > 0 {
		t.Errorf("a run without turns leaves %v, %v", there, err)
	}
	for value, next := range []turn{{0, "b", 0}, {0, "a", 1}, {1, "a", 2}, {0, "a", 3}, {0, "b", 4}} {
		next.Value = value
		if err := turns.Add(next); err != nil {
			t.Fatal(err)
		}
	}
	again, err := ReadTurns("speed", dir, turn.key)
	if err != nil {
		t.Fatal(err)
	}
	for about, read := range map[string]*Turns[turn]{"as added": turns, "as read": again} {
		var values []int
		for _, r := range read.Newest {
			values = append(values, r.Figures.Value)
			if r.Bench != "speed" || r.Time == "" {
				t.Errorf("%s: stamp %+v", about, r.Stamp)
			}
		}
		if fmt.Sprint(values) != "[3 4]" || len(read.journal.Records) != 5 {
			t.Errorf("%s: newest run %v of %d turns, want [3 4] of 5", about, values, len(read.journal.Records))
		}
	}
	if err := again.WritePage(t.Output(), "a page"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "speed.md")); err != nil || string(text) != "a page" {
		t.Errorf("speed.md has %q, %v", text, err)
	}
}

// Without a folder a run shows its page, and keeps nothing.
func TestTurnsWithoutAFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	turns, err := ReadTurns("speed", "", turn.key)
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := turns.Add(turn{}); err != nil {
		t.Fatal(err)
	}
	if err := turns.WritePage(&page, "a page"); err != nil || page.String() != "a page" || len(turns.Newest) != 1 {
		t.Errorf("page %q, %d turns, %v", page.String(), len(turns.Newest), err)
	}
	if there, err := os.ReadDir("."); err != nil || len(there) > 0 {
		t.Errorf("it leaves %v, %v", there, err)
	}
}
