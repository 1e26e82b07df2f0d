package token

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var speedTable = flag.String("speed", "", "measure beside the reference, and write the table to this file")

// A speedRow is one tokenizer on one text.
type speedRow struct {
	tokenizer, text string
	bytes, tokens   int
	ours            float64 // least seconds
	single, batch   float64 // the reference's
}

// TestSpeedBesideTheReference measures only when -speed names a file:
//
//	ENTROPIPE_TORCH_PYTHON=… ENTROPIPE_MINILM=… go test ./sparse/token -run SpeedBeside \
//	  -speed ../../benchmarks/results/tokenizers.md
//
// It takes two minutes. Both run on one thread, in turns, and the least time of
// each counts.
func TestSpeedBesideTheReference(t *testing.T) {
	if *speedTable == "" {
		t.Skip("-speed does not name a file for the table")
	}
	dir, version := t.TempDir(), ""
	var rows []speedRow
	files := benchFiles(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(dir, name+".json")
		if err := os.WriteFile(file, files[name], 0o644); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"wikitext-2/valid.txt", "tinyshakespeare/input.txt"} {
			row := speedRow{tokenizer: name, text: text}
			version = row.measure(t, file, testData(t, "text", filepath.FromSlash(text)))
			rows = append(rows, row)
		}
	}
	if err := os.WriteFile(*speedTable, speedMarkdown(rows, version), 0o644); err != nil {
		t.Fatal(err)
	}
}

// measure fills the row, and returns the reference's version.
func (r *speedRow) measure(t *testing.T, file, text string) string {
	data, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	tok, lines := load(t, file), strings.Split(string(data), "\n")
	r.bytes = len(data)
	var ids []int32
	version := ""
	for range 3 {
		for range 4 {
			start := time.Now()
			r.tokens = 0
			for _, line := range lines {
				ids = tok.Encode(ids[:0], line)
				r.tokens += len(ids)
			}
			r.ours = least(r.ours, time.Since(start).Seconds())
		}
		out, err := exec.Command(python(t), filepath.Join("testdata", "reference.py"), "speed", file,
			text, "2").Output()
		if err != nil {
			t.Fatal(err)
		}
		var theirs struct {
			Single, Batch float64
			Tokens        int
			Version       string
		}
		if err := json.Unmarshal(out, &theirs); err != nil {
			t.Fatal(err)
		}
		if theirs.Tokens != r.tokens {
			t.Fatalf("%s: %s: %d tokens, the reference has %d", file, text, r.tokens, theirs.Tokens)
		}
		r.single, r.batch, version = least(r.single, theirs.Single), least(r.batch, theirs.Batch), theirs.Version
	}
	return version
}

// least returns the lesser of a time and the least so far, 0 when there is none.
func least(sofar, x float64) float64 {
	if sofar == 0 {
		return x
	}
	return min(sofar, x)
}

func speedMarkdown(rows []speedRow, version string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Tokenizers\n\nText to ids, line by line, on one thread, in turns; the least time of each. "+
		"Python: `tokenizers` %s, single calls and one batch without offsets. "+
		"The file `llama3` is GPT-2's vocabulary behind LLaMA-3's pre-tokenizer.\n\n", version)
	fmt.Fprintf(&b, "%s, %s, %s\n\n", cpuName(), runtime.Version(), time.Now().UTC().Format(time.DateOnly))
	b.WriteString("| tokenizer | text | bytes | tokens | Go MB/s | Python single MB/s | Python batch MB/s | ratio " +
		"to the faster |\n|---|---|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range rows {
		mb := float64(r.bytes) / 1e6
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %.1f | %.1f | %.1f | %.1f |\n", r.tokenizer, r.text, r.bytes, r.tokens,
			mb/r.ours, mb/r.single, mb/r.batch, min(r.single, r.batch)/r.ours)
	}
	b.WriteString("\nMade by `go test ./sparse/token -run SpeedBeside -speed " +
		"../../benchmarks/results/tokenizers.md`, with the Python named by ENTROPIPE_TORCH_PYTHON and MiniLM's " +
		"directory by ENTROPIPE_MINILM.\n")
	return []byte(b.String())
}

// cpuName is what Linux calls the processor.
func cpuName() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(strings.TrimSpace(name), ": \t")
		}
	}
	return runtime.GOARCH
}
