package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/cmd"
	"entropipe/cmd/command"
)

// A topic must take the frames that are sent, and run too; that the topic would
// take larger ones is worth a word, but no mistake.
func TestSizesOfFramesAndTopics(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir() // its topics take 16 MiB
	must(t, dir, "produce", "synthetic", "--frames", "3", "--points", "100", "--rate", "max", "--brokers", brokers)
	config := filepath.Join(dir, "run.yaml")
	if err := os.WriteFile(config, []byte("brokers: "+brokers+"\nout: "+filepath.Join(dir, "out")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		max, frames string
		status      int
		want        string
	}{
		{"16MiB", "16MiB", 0, "3 records, messages of up to 16 MiB\n"},
		{"4MiB", "2MiB", 0, "messages of up to 16 MiB, of which those above --max-frame-bytes 4MiB become rejects\n"},
		{"4MiB", "5MiB", command.ExitRuntime, "frames of 5MiB would become rejects: --max-frame-bytes is 4MiB"},
		{"64MiB", "17MiB", command.ExitRuntime, "max.message.bytes"},
	} {
		var stdout, stderr bytes.Buffer
		status := cmd.Main([]string{"validate", config, "--connect", "--max-frame-bytes", c.max, "--frame-bytes", c.frames}, &stdout, &stderr)
		if all := stdout.String() + stderr.String(); status != c.status || !strings.Contains(all, c.want) {
			t.Errorf("row %d: exit status %d, want %d and %q:\n%s", i, status, c.status, c.want, all)
		}
	}
}
