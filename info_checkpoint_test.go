package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/cmd/command"
	"entropipe/sparse/hf/hftest"
)

// A folder of a model says what it can do, one of a mask what it is for.
func TestInfoOfCheckpoints(t *testing.T) {
	lm := hftest.Dir(t, hftest.Config(t, hftest.GPT2))
	mask := t.TempDir()
	if code, _, log := runCommand(t, "freeze", "--lm", lm, "--calibrate", idLines(t, 4, 96), "--out", mask, "--block", "16"); code != 0 {
		t.Fatal(log)
	}
	for dir, want := range map[string][]string{
		lm:   {": gpt2 ", "2 layers of 48, 4 heads", "96 positions, 61 tokens", "tasks: embed, logits, generate", "tokenizer: none"},
		mask: {": mask mass, blocks of 16, static, lengths to [96]", "for the weights ", "dense: "},
		hftest.Dir(t, hftest.Config(t, hftest.ViT)): {": vit ", "tasks: none", `labels: ["a" "b" "c"]`},
	} {
		code, out, log := runCommand(t, "info", dir)
		if code != 0 {
			t.Fatal(log)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("no %q in\n%s", w, out)
			}
		}
	}
	code, out, log := runCommand(t, "info", mask, "--json")
	var found struct {
		Model any
		Mask  *struct{ Block int }
	}
	if err := json.Unmarshal([]byte(out), &found); code != 0 || err != nil || found.Model != nil || found.Mask == nil || found.Mask.Block != 16 {
		t.Errorf("status %d, %v:\n%s%s", code, err, out, log)
	}
	broken := filepath.Dir(writeText(t, "config.json", `{"model_type":"roberta"}`))
	if code, _, log := runCommand(t, "info", broken); code != command.ExitRuntime || !strings.Contains(log, `model_type: "roberta" is not understood`) {
		t.Errorf("status %d: %s", code, log)
	}
}
