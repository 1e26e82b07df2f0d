//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"entropipe/cmd"
)

// A pipe, a device or a socket in a file's place is named at once by every
// command. Nobody writes to the pipe, so a reader that waits for it would wait
// until the guard ends the test.
func TestPipesAreNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	pipe := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip("this file system has no pipes: ", err)
		}
		return path
	}
	text := writeText(t, "text.txt", "some text\n")
	for _, name := range []string{"x.parquet", "x.bin", "x.ndjson", "x.ndjson.gz", "x.txt", "x.jsonl", "x.safetensors",
		"x.safetensors.index.json", "lm/config.json",
		"mask/sparse_config.json", "scans/0000000000.bin", "x.npy", "x.yaml", "lengths.csv", "ca.pem",
		"out/_commits/store.json", "x.json"} {
		pipe(name)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	var commands [][]string
	for _, name := range []string{"x.parquet", "x.bin", "x.ndjson", "x.ndjson.gz", "x.txt", "x.jsonl", "x.safetensors",
		"x.safetensors.index.json", "lm", "mask", "scans", "out"} {
		commands = append(commands, []string{"info", in(name)})
	}
	commands = append(commands,
		[]string{"export", in("x.safetensors"), "-o", in("x.onnx")},
		[]string{"export", in("mask"), "--as", "flex", "-o", in("y.safetensors")},
		[]string{"export", in("out"), "-o", in("x.svg")},
		[]string{"verify", in("out")},
		[]string{"freeze", "--lm", in("lm"), "--calibrate", text, "--out", in("new")},
		[]string{"freeze", "--lm", "builtin:bytes", "--calibrate", in("x.txt"), "--out", in("new")},
		[]string{"freeze", "--lm", "builtin:bytes", "--calibrate", in("x.jsonl"), "--out", in("new")},
		[]string{"freeze", "--lm", "builtin:bytes", "--calibrate", in("x.parquet"), "--out", in("new")},
		[]string{"freeze", "--lm", "builtin:bytes", "--calibrate", text, "--select", "imported", "--import",
			in("x.npy"), "--out", in("new")},
		[]string{"freeze", "--lm", "builtin:bytes", "--calibrate", text, "--select", "imported", "--import",
			in("x.safetensors"), "--out", in("new")},
		[]string{"train-lm", in("x.txt"), "--out", in("new")},
		[]string{"train-lm", text, "--tokenizer", in("x.json"), "--out", in("new")},
		[]string{"train-vit", in("x.npy"), "--out", in("new")},
		[]string{"produce", "tokens", in("x.txt")}, []string{"produce", "tokens", in("x.jsonl")},
		[]string{"produce", "tokens", in("x.parquet")},
		[]string{"produce", "tokens", text, "--tokenizer", in("lm")},
		[]string{"produce", "tokens", text, "--tokenizer", "builtin:bytes", "--lengths", in("lengths.csv")},
		[]string{"produce", "quickdraw", in("x.ndjson")}, []string{"produce", "kitti", in("scans")},
		[]string{"run", in("x.yaml")}, []string{"validate", in("x.yaml")},
		[]string{"validate", writeText(t, "a.yaml", "lm: "+in("lm")+"\n")},
		[]string{"validate", writeText(t, "b.yaml", "lm: builtin:bytes\nmask: "+in("mask")+"\n")},
		[]string{"validate", writeText(t, "c.yaml", "stage: seed\nmodel: "+in("x.safetensors")+"\n")},
		[]string{"validate", writeText(t, "d.yaml", "tls-ca: "+in("ca.pem")+"\n")})
	for _, args := range commands {
		var out, err bytes.Buffer
		done := make(chan int, 1)
		go func() { done <- cmd.Main(args, &out, &err) }()
		select {
		case status := <-done:
			if said := err.String() + out.String(); status == 0 && args[0] != "info" ||
				!strings.Contains(said, "pipe") && !strings.Contains(said, "regular file") &&
					!strings.Contains(said, "could not be read") {
				t.Errorf("%q: status %d, %s", args, status, said)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%q waits for a pipe", args)
		}
	}
}
