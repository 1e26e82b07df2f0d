package main

import (
	"bytes"
	"strings"
	"testing"

	"entropipe/algos/vector"
	"entropipe/cmd"
	"entropipe/cmd/command"
)

func TestBenchRefusesWhatItCannotTime(t *testing.T) {
	defer vector.Limit(vector.Portable)()
	for _, c := range []struct{ args, want string }{
		{"--level avx512", "--level avx512: this processor has portable"},
		{"--ops maxima3d --dist square", "these distributions are flat"},
		{"--workers=-1", "--workers -1: want 0 to 4096"},
		{"--sizes 0", `"0" is not a number of points; expected 1 to 1e8`},
		{"--sizes 1.5", `"1.5" is not a number of points`},
		{"--sizes 1e9", `"1e9" is not a number of points`},
		{"--sizes NaN", `"NaN" is not a number of points`},
		{"--dist squares", `--dist must be one of`},
		{"--kitti /nowhere", `/nowhere`},
	} {
		var stdout, stderr bytes.Buffer
		status := cmd.Main(append([]string{"bench"}, strings.Fields(c.args)...), &stdout, &stderr)
		if status != command.ExitUsage || !strings.Contains(stderr.String(), c.want) || stdout.Len() > 0 {
			t.Errorf("%s: status %d, %q, want %d and %q", c.args, status, stderr.String(), command.ExitUsage, c.want)
		}
	}
}

func TestBenchHelpShowsExamplesAndDefaults(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status := cmd.Main([]string{"bench", "--help"}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	for _, want := range []string{"Examples:", "(50,1e3,1e4,1e5,1e6)", "(150ms)", "hull3d", "--level"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout.String())
		}
	}
}
