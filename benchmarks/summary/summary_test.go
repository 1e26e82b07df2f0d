package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// summary.md is what the command makes of the committed records, and README.md's
// table, if it has one, is the same.
func TestSummaryIsOfTheNewestRecords(t *testing.T) {
	const results, readme = "../results", "../../README.md"
	lines, err := summary(results)
	if err != nil {
		t.Fatal(err)
	}
	table := columns.Markdown(lines)
	text, err := os.ReadFile(filepath.Join(results, "summary.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != page(lines) {
		t.Errorf("summary.md differs: run `go run ./benchmarks/summary`\n%s", table)
	}
	text, err = os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	if has, want := strings.Contains(string(text), beginMarker),
		strings.Contains(string(text), endMarker); has != want {
		t.Errorf("%s has one of the markers %s and %s alone", readme, beginMarker, endMarker)
	}
	if inside, ok := block(string(text)); ok && inside != table {
		t.Errorf("%s has another table than summary.md: run `go run ./benchmarks/summary`\n%s", readme, inside)
	}
}

// The command replaces the table between the markers and nothing else, in any
// folder of records.
func TestSummaryIsCopied(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var peers strings.Builder
	for _, op := range []string{"hull2d", "maxima3d", "hull3d", "delaunay2d"} {
		line := func(time, peer, median string) {
			peers.WriteString(`{"time":"` + time + `","cpu":"Abacus","commit":"0123456789ab","op":"` + op +
				`","dist":"kitti a","peer":"` + peer + `","median_ns_per_point":` + median + "}\n")
		}
		line("2026-01-01T00:00:00Z", "entropipe", "1")
		line("2026-01-01T00:00:00Z", "X", "9")
		line("2026-01-02T00:00:00Z", "entropipe", "2")
		line("2026-01-02T00:00:00Z", "X", "30")
		line("2026-01-02T00:00:00Z", "Y", "5")
	}
	write("peers.jsonl", peers.String())
	write("throughput.jsonl",
		`{"time":"2026-01-02T00:00:00Z","what":"share","broker":"kafka","round":1,"frames":100,"seconds":9,"fetch_seconds":1}
{"time":"2026-01-03T00:00:00Z","what":"share","broker":"kafka","round":1,"frames":100,"seconds":2,"fetch_seconds":1}
{"time":"2026-01-03T00:00:00Z","what":"delaunay","broker":"kafka","round":1,"frames":100,"seconds":2}
{"time":"2026-01-03T00:00:00Z","what":"share","broker":"embedded","round":1,"frames":100,"seconds":1,"fetch_seconds":1}
`)
	write("streams.jsonl",
		`{"what":"time","run":"a","work":"points","engine":"entropipe","case":"start","frames":1,"cpu_s":1}
{"what":"time","run":"a","work":"points","engine":"entropipe","frames":11,"cpu_s":2}
{"what":"time","run":"b","work":"points","engine":"entropipe","case":"start","frames":1,"cpu_s":1}
{"what":"time","run":"b","work":"points","engine":"entropipe","frames":11,"cpu_s":3}
{"what":"time","run":"b","work":"points","engine":"spark","case":"start","frames":1,"cpu_s":10}
{"what":"time","run":"b","work":"points","engine":"spark","frames":11,"cpu_s":16}
{"what":"time","run":"b","work":"points","engine":"flink","case":"start","frames":1,"cpu_s":10}
{"what":"time","run":"b","work":"points","engine":"flink","frames":11,"cpu_s":20}
`)
	write("attention-dense.jsonl", `{"ns":{"entropipe":[2,1],"ONNX Runtime":[4,4]}}
{"ns":{"entropipe":[2],"ONNX Runtime":[1]}}
`)
	write("attention-sparse.jsonl", `{"queries":9,"ns":{"sparse":[2],"FlexAttention":[1]}}
{"queries":1,"ns":{"sparse":[1],"FlexAttention":[9]}}
`)
	write("README.md", "before\n"+beginMarker+"\nold\n"+endMarker+"\nafter\n")
	c := cli{Results: dir, Readme: filepath.Join(dir, "README.md")}
	if err := c.run(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.Readme)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if !strings.HasPrefix(got, "before\n"+beginMarker+"\n| measured |") ||
		!strings.HasSuffix(got, "|\n"+endMarker+"\nafter\n") {
		t.Errorf("around the table:\n%s", got)
	}
	for _, want := range []string{
		"| Delaunay triangulations of KITTI scans | 2.50 (2.50–2.50) | strongest peer: Y | `go run " +
			"./benchmarks/peers` |\n",
		"Kafka to Parquet, 50 frames/s | 0.50 (0.50–0.50) |",
		"| 3.00 (3.00–3.00) | strongest peer: Spark | `go run ./benchmarks/streams --works points` |\n",
		"| 1.41 (0.50–4.00) | ONNX Runtime |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "summary.md"))
	if inside, _ := block(got); err != nil || !strings.Contains(string(page), beginMarker+"\n"+inside+endMarker) {
		t.Errorf("summary.md (%v):\n%s", err, page)
	}
	for _, want := range []string{
		"| Delaunay triangulations of KITTI scans | faster on all 1 scans | 0123456789ab | 2026-01-02 | Abacus |\n",
		"| dense encoders, 32 to 4096 tokens | faster on 1 of 2 shapes | not recorded |",
		"| slower on all 1 shapes |",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("summary.md lacks %q:\n%s", want, page)
		}
	}
}

// A folder without the records is an error that names the command.
func TestSummaryNeedsRecords(t *testing.T) {
	_, err := summary(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "go run ./benchmarks/peers") {
		t.Errorf("error is %v", err)
	}
}
