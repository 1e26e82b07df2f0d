package main

import (
	"context"
	"fmt"
	"strings"

	"entropipe/sparse/freeze"
	"entropipe/sparse/train"
)

const (
	wordsSeen = 5 // times that the part to learn from holds a word of the vocabulary
	unknown   = "<unk>"
	lineEnd   = "<eos>"
)

var wordModel = &experiment{
	name:  "words",
	title: "Regularised attention in a model of words",
	claim: "The paper prints for GPT-2 Medium that perplexity rises from 22.1 to 23.2 at 80 % sparsity with its " +
		"regulariser, to 24.8 with magnitude pruning. Here: 2 layers of 64 numbers, 4 heads, context 256, the file " +
		"valid.txt of WikiText-2 (its train.txt is not at hand): words as they stand between spaces, with a sign " +
		"for the end of a line. Words that occur at least five times in the first nine tenths are the vocabulary, " +
		"all others are one unknown word. The last tenth judges. 1,000 steps of two sequences are 2.6 times the " +
		"text. Trained without a regulariser, with the paper's, with the corrected one, with L1 on gates, and as a " +
		"control to that with a window; gates and window close 80 % of the blocks of 16 after seven tenths of the " +
		"training. All methods read as many blocks a row. Losses are in perplexity of words, against the plain " +
		"dense model of the same seed; intervals are Student's over seeds.",
	cells:   wordCells,
	rows:    func(records []record) []record { return trainedRows(records, perplexities) },
	columns: languageColumns("word"),
	verdict: wordVerdict,
}

func wordCells(how effort) (cells []cell) {
	cfg, of, judged := train.Config{Dim: 64, Context: 256, Steps: 1000, Batch: 2}, seeds, 80
	if how == quick {
		cfg, of, judged = train.Config{Layers: 1, Dim: 16, Heads: 2, Context: 64, Steps: 4, Batch: 2, Judged: 2},
			fewSeeds(), 2
	}
	for _, r := range trainingsOfAttention {
		for _, seed := range of {
			cfg := cfg
			cfg.Seed, cfg.Regulariser = seed, r
			if closing(r) {
				cfg.Sparsity = longClosed
			}
			key := fmt.Sprintf("%s context=%d dim=%d seed=%d", trainingKey(cfg), cfg.Context, cfg.Dim, seed)
			cells = append(cells, cell{key, func(ctx context.Context) ([]record, error) {
				t, err := newWordModel(ctx, cfg, judged, how)
				if err != nil {
					return nil, err
				}
				return t.judge(ctx, []float64{longClosed})
			}})
		}
	}
	return cells
}

// newWordModel trains a model of the words of WikiText-2, or for quick ones of brackets.
func newWordModel(ctx context.Context, cfg train.Config, judged int, how effort) (*trained, error) {
	var raw string
	if how == quick {
		raw = strings.Join(strings.Split(invented(1<<12), ""), " ")
	} else {
		wiki, err := testText("wikitext-2", "valid.txt")
		if err != nil {
			return nil, err
		}
		raw = string(wiki)
	}
	ids, vocab := wordIDs(raw)
	text, err := train.TokenText("words", ids, vocab, nil)
	if err != nil {
		return nil, err
	}
	return languageModelOf(ctx, cfg, text, "words", judged, how)
}

// wordIDs returns the words of a text as ids below vocab. Lines that hold words end with a word
// of their own. Words that are rare in the nine tenths that are learned from are all one.
func wordIDs(raw string) (ids []int32, vocab int) {
	var words []string
	for line := range strings.Lines(raw) {
		if of := strings.Fields(line); len(of) > 0 {
			words = append(append(words, of...), lineEnd)
		}
	}
	seen := map[string]int{}
	for _, w := range words[:len(words)-len(words)/10] {
		seen[w]++
	}
	known := map[string]int32{unknown: 0}
	for _, w := range words {
		if _, ok := known[w]; !ok && seen[w] >= wordsSeen {
			known[w] = int32(len(known))
		}
		ids = append(ids, known[w])
	}
	return ids, len(known)
}

func wordVerdict(records []record) string {
	rows := trainedRows(records, perplexities)
	at := percent(longClosed)
	line := func(r train.Regulariser, method string) string { return lineOf(rows, r, at, method) }
	return fmt.Sprintf("%s\n\nAt 80 %%, in percent of the plain dense model's perplexity: plain training with a "+
		"window %s, mass %s, affinity (the paper's clusters) %s, BigBird %s, half of the weights pruned and masks by "+
		"mass at 75 %% %s; the paper's regulariser with its affinity masks %s; the corrected one with masks by "+
		"entropy %s; trained to the end with what is served, L1's own gates %s, a window %s. The paper's rise is "+
		"4.98 %%.",
		servedOf(rows), line(train.None, freeze.Window), line(train.None, freeze.Mass),
		line(train.None, freeze.Affinity), line(train.None, freeze.BigBird),
		lineOf(rows, train.None, percent(closedByL1), "mass, half of the weights pruned"),
		line(train.Paper, freeze.Affinity), line(train.Entropy, freeze.Entropy), line(train.L1, methodGates),
		line(train.Window, methodLearnedW))
}
