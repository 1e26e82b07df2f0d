package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// scene are the flags of a demo that takes no time.
func scene(more ...string) []string {
	return append([]string{"demo", "--frames", "3", "--points", "2000", "--rate", "max", "--listen", "off",
		"--out", "out"}, more...)
}

func TestDemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	first := launch(t, dir, scene()...)
	first.exits(0, patience)
	for _, want := range []string{
		`^ +LiDAR +sketches +tokens$`, `^ +frames, notes +3 +300 +30$`,
		`^ +points, tokens +[56] \d{3} +\d+ \d{3} +\d \d{3}$`, `^ +rejects +0 +0 +0$`,
		`^ +latency p50 +\d+ ms +\d+ ms +\d+ ms$`, `^ +first row after +\d+ ms`,
		`^  Picture +entropipe export out --topic points -o frame\.png$`,
		`duckdb -c "SELECT .* read_parquet\('out/hulls/.*\.parquet'`,
		`duckdb -c "SELECT .* read_parquet\('out/tokens/.*\.parquet'`, `geopandas\.read_parquet\('out/hulls'\)`,
		`polars\.scan_parquet\('out/triangles/`,
	} {
		if !regexp.MustCompile("(?m)" + want).MatchString(first.out()) {
			t.Errorf("stdout has no line that matches %s", want)
		}
	}
	checkDemo(t, out, 3)

	// A second one in the same folder goes on where the first one ended.
	second := launch(t, dir, scene()...)
	second.exits(0, patience)
	second.says(`^continuing: 3 LiDAR frames were sent before$`)
	checkDemo(t, out, 6)
	notes, err := countValues(filepath.Join(out, "tokens"), "id")
	if err != nil || len(notes) != 60 || notes["note-0"] != 1 || notes["note-59"] != 1 {
		t.Errorf("ids of notes: %v, want note-0 to note-59 once each; %v", notes, err)
	}
	ids, err := countValues(filepath.Join(out, "hulls", "dataset=synthetic", "topic=points"), "frame_id")
	if err != nil || len(ids) != 6 || ids["0"] != 1 || ids["5"] != 1 {
		t.Errorf("frame_id of LiDAR frames: %v, want 0 to 5 once each; %v", ids, err)
	}
	if _, err := os.Stat(filepath.Join(out, "_broker")); err != nil {
		t.Error(err)
	}
	must(t, dir, "verify", "out")
	must(t, dir, "info", "out")

	// The line that it prints draws the cloud, not only its hull.
	must(t, dir, "export", "out", "--topic", "points", "-o", "frame.svg")
	picture, err := os.ReadFile(filepath.Join(dir, "frame.svg"))
	if err != nil {
		t.Fatal(err)
	}
	points, err := countRows(filepath.Join(out, "points", "dataset=synthetic", "topic=points"))
	if n := int64(strings.Count(string(picture), "h0")); err != nil || points < 6*1500 || n < points/6/2 {
		t.Errorf("%d points are drawn, %d are in the table for 6 frames; %v", n, points, err)
	}
}

// checkDemo checks that an output holds so many sweeps, a hundred times as many
// sketches, and ten times as many notes.
func checkDemo(t *testing.T, out string, sweeps int64) {
	t.Helper()
	verified(t, out)
	if rows, err := countRows(filepath.Join(out, "tokens", "dataset=synthetic", "topic=tokens")); err != nil ||
		rows != 10*sweeps {
		t.Errorf("%d rows of tokens, want %d; %v", rows, 10*sweeps, err)
	}
	for topic, want := range map[string]int64{"points": sweeps, "sketches": 100 * sweeps} {
		for _, table := range []string{"frames", "hulls", "maxima"} {
			rows, err := countRows(filepath.Join(out, table, "dataset=synthetic", "topic="+topic))
			if err != nil || rows != want {
				t.Errorf("%d rows of %s in %s, want %d; %v", rows, topic, table, want, err)
			}
		}
	}
}

// A signal ends the demo in order, whatever it is at; the next one takes over.
func TestStoppedDemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := launch(t, dir, scene("--frames", "0", "--rate", "1hz", "--listen", "127.0.0.1:0")...)
	base := d.until(`^(http://127\.0\.0\.1:\d+)/$`)[1]
	waitFor(t, "frames", func() bool {
		return metric(t, base+"/metrics", "entropipe_frames_total", `direction="out"`) > 20
	})
	becomesReady(t, base)
	d.signal(os.Interrupt)
	d.exits(0, patience)
	d.until(`^ +frames, notes +\d+ +\d+ +\d+`)
	verified(t, filepath.Join(dir, "out"))

	// What was sent but not committed is processed by the next run.
	must(t, dir, scene()...)
	ids, err := countValues(filepath.Join(dir, "out", "frames", "dataset=synthetic", "topic=points"), "frame_id")
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(ids) {
		if ids[strconv.Itoa(i)] != 1 {
			t.Fatalf("frame %d is there %d times among %d", i, ids[strconv.Itoa(i)], len(ids))
		}
	}
}

func TestKeptDemoStaysUntilSignalled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := launch(t, dir, scene("--keep", "--listen", "127.0.0.1:0")...)
	base := d.until(`^(http://127\.0\.0\.1:\d+)/$`)[1]
	waitFor(t, "all frames and notes", func() bool {
		return metric(t, base+"/metrics", "entropipe_frames_total", `direction="out"`) == 303 &&
			metric(t, base+"/metrics", "entropipe_sequences_total", `direction="out"`) == 30
	})
	select {
	case <-d.done:
		t.Fatal("it has ended by itself")
	case <-time.After(300 * time.Millisecond):
	}
	d.signal(syscall.SIGTERM)
	d.exits(0, patience)
	checkDemo(t, filepath.Join(dir, "out"), 3)
}

// A frequency is the LiDAR's; the sketches keep up with it.
func TestDemoAtAFrequency(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin := time.Now()
	must(t, dir, scene("--frames", "20", "--rate", "20hz")...)
	if took := time.Since(begin); took < 19*time.Second/20 {
		t.Errorf("20 frames at 20 Hz took %v", took)
	}
	checkDemo(t, filepath.Join(dir, "out"), 20)
}

// Two demos in one folder: the second one says why not.
func TestSecondDemoInAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := launch(t, dir, scene("--keep")...)
	first.until(`^broker on `)
	second := launch(t, dir, scene()...)
	second.exits(1, patience)
	second.says(`^entropipe: broker: .*_broker`)
	first.signal(syscall.SIGTERM)
	first.exits(0, patience)
	verified(t, filepath.Join(dir, "out"))
}

// The first row does not wait for the end of the stream, which has none here: what
// is a second old is committed.
func TestFirstRowComesSoon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := launch(t, dir, "demo", "--out", "out", "--listen", "off", "--frames", "0", "--points", "2000", "--rate", "1hz")
	waitFor(t, "a row", func() bool {
		rows, err := countRows(filepath.Join(dir, "out", "hulls"))
		return err == nil && rows > 0
	})
	d.signal(os.Interrupt)
	d.exits(0, patience)
	d.until(`^ +first row after +\d+ ms`)
	if strings.Contains(d.log(), "level=WARN") || strings.Contains(d.log(), "level=ERROR") {
		t.Error("the demo has something to complain about")
	}
}
