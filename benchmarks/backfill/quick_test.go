//go:build chaos

package main

import (
	"cmp"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Every command ends well on small inputs and keeps no result.
func TestQuickCommands(t *testing.T) {
	path, err := exec.LookPath(cmp.Or(os.Getenv("ENTROPIPE_BIN"), "entropipe"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ENTROPIPE_BIN", path)
	t.Setenv("ENTROPIPE_TESTDATA", t.TempDir())
	for _, args := range []string{"speed --drives 1 --rounds 1 --scans 2", "parquet --scans 2", "model --frames 6",
		"memory --only files,drawings,texts"} {
		t.Run(args, func(t *testing.T) {
			if strings.HasPrefix(args, "model") {
				if err := exec.Command("strace", "-o", os.DevNull, "true").Run(); err != nil {
					t.Skipf("strace: %v", err)
				}
			}
			if err := command(t.Context(), append(strings.Fields(args), "--quick")); err != nil {
				t.Error(err)
			}
		})
	}
}
