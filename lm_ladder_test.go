package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"entropipe/sparse/hf"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

// With a ladder some rows read all keys, and the last line, the log and table
// attention_stats count them; one that asks for everything gives dense rows. It
// is part of what the output is: another ladder is another configuration.
func TestLadderOfTheCommandLine(t *testing.T) {
	t.Parallel()
	dir, brokers := t.TempDir(), startBroker(t)
	lm := writeLM(t, dir, hf.BERT)
	m, err := model.Load(lm)
	if err != nil {
		t.Fatal(err)
	}
	mask := writeMask(t, filepath.Join(dir, "mask"), hf.BERT, m.SHA256(), 32)
	sendSequences(t, brokers, "tokens", 20)
	run := func(out string, more ...string) []string {
		args := []string{"run", "--brokers", brokers, "--topic", "tokens", "--until-end", "--lm", lm, "--truncate", "--audit-every", "1", "--out", out}
		p := launch(t, dir, append(args, more...)...)
		p.exits(0, patience)
		if slices.Contains(more, "--ladder") {
			p.says(`attention is sparse, by frozen masks.* ladder=[01]`)
			p.says(`msg=done .* ladder_rows=[1-9][0-9]* ladder_extended=[0-9]+ ladder_dense=[1-9]`)
		}
		verified(t, filepath.Join(dir, out))
		return rowsOf(t, filepath.Join(dir, out), "tokens", "mask_sha256")
	}
	masked := []string{"--mask", mask, "--mask-use", "always"}
	plain, some := run("plain", masked...), run("some", append(masked, "--ladder", "0.4")...)
	all, dense := run("all", append(masked, "--ladder", "1e-7")...), run("dense")
	if slices.Equal(plain, some) || slices.Equal(some, dense) || !slices.Equal(all, dense) {
		t.Errorf("rows by masks and by the ladder are equal: %v, by the ladder and dense: %v, dense and by a ladder without tolerance: %v",
			slices.Equal(plain, some), slices.Equal(some, dense), slices.Equal(all, dense))
	}
}

// What a ladder cannot go with is one clear error, and leaves no trace.
func TestLadderMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	decoder, encoder := writeLM(t, dir, hf.GPT2), writeLM(t, dir, hf.BERT)
	shaOf := func(lm string) string {
		m, err := model.Load(lm)
		if err != nil {
			t.Fatal(err)
		}
		return m.SHA256()
	}
	causal := writeMask(t, filepath.Join(dir, "causal"), hf.GPT2, shaOf(decoder), 32)
	fixed := writeMask(t, filepath.Join(dir, "fixed"), hf.BERT, shaOf(encoder), 32)
	anchored := &support.Set{Facts: support.Facts{Arch: hf.BERT, Weights: shaOf(encoder), Layers: 1, Heads: 2, KVHeads: 2, Dim: 16},
		Block: 16, Mode: support.Anchor, Serve: support.Dense, Reason: "a test", Select: support.Selector{Name: "affinity", Sparsity: .5}, Source: support.Source{SHA256: strings.Repeat("0", 64)},
		Buckets: []support.Bucket{{Length: 32, Of: []int32{-1, -1}}}, Anchors: &support.Anchors{K: 2, Data: make([]float32, 2*2*16)}}
	if err := anchored.Write(filepath.Join(dir, "anchored")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--lm", decoder, "--mask", causal, "--ladder", "0.1"}, 78, `^ladder: .*is a decoder`},
		{[]string{"--lm", encoder, "--mask", filepath.Join(dir, "anchored"), "--ladder", "0.1"}, 78, `^ladder: the masks of .*anchored follow each input`},
		{[]string{"--lm", encoder, "--ladder", "0.1"}, 2, `--ladder 0\.1: want --mask`},
		{[]string{"--lm", encoder, "--mask", fixed, "--ladder", "0.1", "--device", "cuda"}, 2, `--ladder 0\.1: .*--device is cuda`},
		{[]string{"--lm", decoder, "--task", "generate", "--device", "cuda"}, 2, `--device cuda: --task generate .* would never use the GPU`},
		{[]string{"--lm", encoder, "--mask", fixed, "--ladder", "1"}, 2, `--ladder 1: want a share of the softmax, at least 0 and below 1`},
		{[]string{"--lm", encoder, "--mask", fixed, "--ladder=-0.1"}, 2, `--ladder -0\.1: want a share`},
		{[]string{"--lm", encoder, "--mask", fixed, "--ladder", "NaN"}, 2, `--ladder NaN: want a share`},
		{[]string{"--lm", encoder, "--mask", fixed, "--ladder-blocks", "2"}, 2, `--ladder-blocks 2: want --ladder`},
		{[]string{"--lm", encoder, "--mask", fixed, "--ladder", "0.1", "--ladder-blocks=-1"}, 2, `--ladder-blocks -1: want 0 to`},
	} {
		p := launch(t, dir, append([]string{"run", "--out", "out"}, c.args...)...)
		p.exits(c.status, patience)
		p.says(c.says)
	}
}
