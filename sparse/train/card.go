package train

import (
	"fmt"
	"strings"
)

// Card returns the model's card in Markdown: purpose, shape, data and their hash,
// the command that makes the model, the quality on held-out sequences, and limits.
func (t *Trainer) Card(command string) string {
	var b strings.Builder
	f, c := &t.net.form, &t.cfg
	last := Quality{}
	for _, r := range t.records {
		if r.Held != nil {
			last = *r.Held
		}
	}
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	name, hash, learn, held := "", t.dataSHA256(), 0, t.data.heldOut()
	switch d := t.data.(type) {
	case windows:
		name, learn = d.text.Name, len(d.text.Learn)
		line("# Language model of %d layers, %d wide\n", f.layers, f.dim)
		what := "predict the next token"
		if f.answers > 0 {
			what = fmt.Sprintf("answer what is asked %d times in a sequence", f.answers)
		}
		line("A causal transformer of the GPT-2 class, trained from nothing to %s. It is small: for tests, "+
			"demonstrations and tables about attention, not for its prose.\n", what)
	case *gallery:
		name, learn = d.images.Name, len(d.learn)
		line("# Classifier of images, %d layers, %d wide\n", f.layers, f.dim)
		line("A transformer of the ViT class over patches of %d × %d pixels of grey images of %d × %d, trained from "+
			"nothing. It is for tables about attention.\n", f.patch, f.patch, f.side, f.side)
	}
	line("| | |\n|---|---|")
	line("| layers, width, heads | %d, %d, %d |", f.layers, f.dim, f.heads)
	line("| tokens of a sequence | %d |", f.n)
	line("| parameters | %d |", t.Parameters())
	line("| data | %s |", name)
	line("| SHA-256 of the data | %s |", hash)
	line("| learned from | %d %s |", learn, t.unit())
	line("| regulariser | %s |", t.regulariserText())
	line("| steps, sequences a step, seed | %d, %d, %d |", t.step, c.Batch, c.Seed)
	if c.Smoothing > 0 {
		line("| label smoothing | %v |", c.Smoothing)
	}
	if c.Adversarial > 0 {
		line("| images moved against the network before it learned from them | by up to %v a pixel, from 0 to 1 |",
			c.Adversarial)
	}
	if c.Pruned > 0 {
		line("| weights of the blocks' matrices pruned for good | %.3g |", c.Pruned)
	}
	if t.gates != nil && t.gates.hard {
		line("| blocks closed for good | %.3g of those that a row of blocks sees, but for the one on the diagonal; "+
			"%d tokens a side (gates.safetensors) |", c.Sparsity, c.Block)
	}
	line("\nMade by\n\n    %s\n", command)
	line("## Held out\n\nMeasured with the weights before they were rounded to the type of the file.\n")
	line("| metric | value |\n|---|---:|")
	line("| loss | %.4f nats a target |", last.Loss)
	if f.causal() {
		line("| perplexity | %.3f |", last.Perplexity())
	}
	line("| accuracy of the largest logit | %.2f %% |", 100*last.Accuracy)
	line("| targets looked at | %d of %d |", last.Targets, held*f.targets())
	line("\n## Limits\n")
	line("* Made for sequences of at most %d tokens of data like those it learned from.", f.n)
	if t.gates != nil {
		line("* It learned with gates on its attention, which are no part of the directory's model: dense attention " +
			"is not what it was trained with.")
	}
	return b.String()
}

func (t *Trainer) unit() string {
	if t.net.form.causal() {
		return "tokens"
	}
	return "images"
}

func (t *Trainer) regulariserText() string {
	c := &t.cfg
	switch c.Regulariser {
	case Entropy:
		return fmt.Sprintf("entropy of each query's clusters, λ %v, and of the clusters' sizes, μ %v", c.Lambda, c.Mu)
	case Paper:
		return fmt.Sprintf("the paper's entropy of clusters of keys, λ %v", c.Lambda)
	case L1:
		return fmt.Sprintf("gates of blocks, λ %v", c.Lambda)
	case Window:
		return fmt.Sprintf("none; a window of blocks, %v of them closed", c.Sparsity)
	}
	return "none"
}
