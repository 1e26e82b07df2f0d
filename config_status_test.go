package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"entropipe/cmd"
	"entropipe/cmd/command"
)

func TestConfigErrorEndsWithStatus78(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("roll-aeg: 5s\nworkers: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"run", "validate"} {
		var out, errs bytes.Buffer
		status := cmd.Main([]string{verb, file}, &out, &errs)
		want := file + ":1:1: roll-aeg: unknown key; expected a flag of entropipe run; did you mean \"roll-age\"?\n" +
			file + ":2:10: workers: \"x\" does not fit; expected a whole number\n"
		if status != command.ExitConfig || errs.String() != want || out.Len() > 0 {
			t.Errorf("%s: status %d, %q, %q; want %q", verb, status, &out, &errs, want)
		}
	}
}

// The real grammar: what run prints is a file of run, and validate takes it.
func TestPrintedConfigIsAFile(t *testing.T) {
	var printed, again, errs bytes.Buffer
	args := []string{"run", "--print-config", "--topic", "lidar,drone", "--roll-age", "0", "--memory", "900MB", "--out", "a b/${X}"}
	if status := cmd.Main(args, &printed, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, printed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if status := cmd.Main([]string{"run", file, "--print-config"}, &again, &errs); status != 0 || again.String() != printed.String() {
		t.Errorf("status %d: %s\nprinted\n%sthen\n%s", status, &errs, &printed, &again)
	}
	if status := cmd.Main([]string{"validate", file}, io.Discard, &errs); status != 0 {
		t.Errorf("validate: status %d: %s\n%s", status, &errs, &printed)
	}
}
