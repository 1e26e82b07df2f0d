package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// realData returns a folder or file of published data, and skips the test
// where there is none.
func realData(t *testing.T, path ...string) string {
	t.Helper()
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "shared", "data")
	}
	found, err := filepath.Abs(filepath.Join(append([]string{root}, path...)...))
	if err == nil {
		_, err = os.Stat(found)
	}
	if err != nil {
		t.Skipf("no real data: %v (ENTROPIPE_TESTDATA names their folder)", err)
	}
	return found
}

// A drive goes through whole: every point of every scan is in the tables, and
// what info says of the files is what comes out.
func TestRealDrive(t *testing.T) {
	t.Parallel()
	drive := realData(t, "kitti", "raw_2011_09_26_drive_0005")
	scans, err := filepath.Glob(filepath.Join(drive, "*.bin"))
	if err != nil || len(scans) == 0 {
		t.Skipf("no scans in %s; %v", drive, err)
	}
	const most = 4 // scans that are sent
	brokers, dir := startBroker(t), t.TempDir()
	if said := must(t, dir, "produce", "kitti", drive, "--rate", "max", "--brokers", brokers, "--limit", fmt.Sprint(most)); frames(t, said) != int64(min(most, len(scans))) {
		t.Fatalf("produce says: %s", said)
	}
	must(t, dir, "run", "--until-end", "--brokers", brokers, "--out", "out", "--tables", "hulls,maxima,triangles,points")
	out := filepath.Join(dir, "out")
	holds(t, out, int64(min(most, len(scans))))
	counts, err := countValues(filepath.Join(out, "frames"), "n_points")
	if err != nil {
		t.Fatal(err)
	}
	var points int64
	for _, scan := range scans[:min(most, len(scans))] {
		info, err := os.Stat(scan)
		if err != nil {
			t.Fatal(err)
		}
		points += info.Size() / 16
		if n := fmt.Sprint(info.Size() / 16); counts[n] == 0 {
			t.Errorf("%s has %s points, but no frame has: %v", scan, n, counts)
		}
	}
	if rows, err := countRows(filepath.Join(out, "points")); err != nil || rows != points {
		t.Errorf("%d rows of points, the scans have %d; %v", rows, points, err)
	}
	if bad, err := countValues(filepath.Join(out, "frames"), "status_delaunay2d"); err != nil || bad["ok"] != min(most, len(scans)) {
		t.Errorf("triangulations: %v; %v", bad, err)
	}
}

func TestRealDrawings(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	text, err := os.ReadFile(realData(t, "sketch", "quickdraw_raw", "The Eiffel Tower.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	// A name with blanks is a name.
	if err := os.WriteFile(filepath.Join(dir, "The Eiffel Tower.ndjson"), text, 0o666); err != nil {
		t.Fatal(err)
	}
	n := int64(strings.Count(string(text), "\n"))
	if !strings.HasSuffix(string(text), "\n") {
		n++
	}
	said := must(t, dir, "produce", "quickdraw", "The Eiffel Tower.ndjson", "--rate", "max", "--brokers", brokers, "--topic", "pens")
	if frames(t, said) != n {
		t.Fatalf("%d lines, but: %s", n, said)
	}
	must(t, dir, "run", "--until-end", "--brokers", brokers, "--topic", "pens", "--out", "out")
	must(t, dir, "verify", "out")
	for _, table := range []string{"frames", "hulls", "maxima"} {
		if rows, err := countRows(filepath.Join(dir, "out", table)); err != nil || rows != n {
			t.Errorf("%d rows of %s, want %d; %v", rows, table, n, err)
		}
	}
	labels, err := countValues(filepath.Join(dir, "out", "frames"), "label")
	if err != nil || labels["The Eiffel Tower"] != int(n) {
		t.Errorf("labels: %v; %v", labels, err)
	}
}
