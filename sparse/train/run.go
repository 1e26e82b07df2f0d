package train

import (
	"context"

	"entropipe/models/safetensors"
)

// Result summarises a whole training.
type Result struct {
	Held    Quality   // quality over all held-out sequences
	Losses  []float64 // mean loss of each held-out sequence, in nats a target
	Right   []int     // targets of each held-out sequence that have the largest logit
	Steps   int
	Seconds float64 // time of the steps, without judgements
	Tokens  int64   // tokens of all steps
	Trainer *Trainer
}

// LM trains a language model and, unless dir is empty, writes its directory
// with weights of type F32: see Trainer.Write. When the context ends, LM returns
// the context's error and writes nothing.
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

// Result judges all held-out sequences and summarises the training. It stores
// their quality in the last record, from which the card takes it.
func (t *Trainer) Result() *Result {
	r := &Result{Steps: t.step, Seconds: t.elapsed.Seconds(), Tokens: int64(t.step) * int64(t.Tokens()), Trainer: t}
	r.Losses, r.Right = t.Each(0)
	r.Held = t.quality(r.Losses, r.Right)
	if len(t.records) > 0 {
		t.records[len(t.records)-1].Held = &r.Held
	}
	return r
}
