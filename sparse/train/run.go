package train

import (
	"context"

	"entropipe/models/safetensors"
)

// Result is what a whole training came to.
type Result struct {
	Held    Quality   // of all held-out sequences
	Losses  []float64 // of each of them, nats a target
	Right   []int     // targets of each that the largest logit names
	Steps   int
	Seconds float64 // of the steps, without looks at held-out sequences
	Tokens  int64   // that steps took through the network
	Trainer *Trainer
}

// LM trains a language model and, unless dir is empty, writes its directory
// with weights of type F32. It ends early, with the context's error, when the
// context does.
func LM(ctx context.Context, cfg Config, text *Text, dir, command string) (*Result, error) {
	t, err := NewLM(cfg, text)
	if err != nil {
		return nil, err
	}
	return t.finish(ctx, dir, command)
}

// ViT trains an image classifier as LM trains a language model.
func ViT(ctx context.Context, cfg Config, images *Images, dir, command string) (*Result, error) {
	t, err := NewViT(cfg, images)
	if err != nil {
		return nil, err
	}
	return t.finish(ctx, dir, command)
}

func (t *Trainer) finish(ctx context.Context, dir, command string) (*Result, error) {
	for !t.Done() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := t.Step(); err != nil {
			return nil, err
		}
	}
	r := t.Result()
	if dir != "" {
		if err := t.Write(dir, safetensors.F32, command); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Result looks at all held-out sequences, and sums up. The last record, and so
// the card, takes what they say.
func (t *Trainer) Result() *Result {
	r := &Result{Steps: t.step, Seconds: t.elapsed.Seconds(), Tokens: int64(t.step) * int64(t.Tokens()), Trainer: t}
	r.Losses, r.Right = t.Each(0)
	r.Held = t.quality(r.Losses, r.Right)
	if len(t.records) > 0 {
		t.records[len(t.records)-1].Held = &r.Held
	}
	return r
}
