package model

import (
	"fmt"

	"entropipe/sparse/hf"
)

// Reasons of an InputError.
const (
	IDOutOfRange  = "id_out_of_range"
	EmptySequence = "empty_sequence"
	TooLong       = "too_long"
	NotFinite     = "not_finite"
)

// InputError reports a sequence of a batch that the model cannot compute. Reason is
// one of the constants above. Position is the place of the token in the sequence;
// for TooLong it is the number of tokens.
type InputError struct {
	Reason             string
	Sequence, Position int
}

func (e *InputError) Error() string {
	switch e.Reason {
	case IDOutOfRange:
		return fmt.Sprintf("sequence %d: the id at position %d is not in the vocabulary", e.Sequence, e.Position)
	case EmptySequence:
		return fmt.Sprintf("sequence %d has no tokens", e.Sequence)
	case TooLong:
		return fmt.Sprintf("sequence %d: %d tokens are more than the model has positions", e.Sequence, e.Position)
	}
	return fmt.Sprintf("sequence %d: a result at position %d is not finite", e.Sequence, e.Position)
}

// Batch holds the ids of several sequences: sequence i is
// IDs[Starts[i]:Starts[i+1]]. Starts begins with 0 and has one more number than
// there are sequences. The zero value has no sequences.
type Batch struct {
	IDs, Starts []int32
}

// Len returns the number of sequences.
func (b Batch) Len() int { return max(len(b.Starts)-1, 0) }

// Sequence returns the ids of sequence i, a view.
func (b Batch) Sequence(i int) []int32 { return b.IDs[b.Starts[i]:b.Starts[i+1]] }

// Panics of a caller's mistakes.
const (
	badStarts  = "model: the starts of a batch do not ascend from 0 to its end"
	badImages  = "model: pixels do not fit the number of images"
	badClass   = "model: this model does not accept such inputs"
	badHead    = "model: this model has no such head, or a matrix does not fit it"
	badPooling = "model: the mode of pooling is unknown, or the destination has another length"
	badWeights = "model: weights must be f32 or bf16"
	badLadder  = "model: a ladder was given with a causal model or with another attention"
	badWorkers = "model: a session needs a worker"
)

// check returns an *InputError for the first sequence that the model cannot
// compute, if more tokens are to follow each sequence.
func (b Batch) check(c *hf.Config, more int) error {
	if len(b.Starts) == 0 && len(b.IDs) == 0 {
		return nil
	}
	if len(b.Starts) == 0 || b.Starts[0] != 0 || int(b.Starts[b.Len()]) != len(b.IDs) {
		panic(badStarts)
	}
	for i := range b.Len() {
		lo, hi := b.Starts[i], b.Starts[i+1]
		switch {
		case lo > hi:
			panic(badStarts)
		case lo == hi:
			return &InputError{EmptySequence, i, 0}
		case int(hi-lo)+more > c.MaxPositions:
			return &InputError{TooLong, i, int(hi-lo) + more}
		}
		for p, id := range b.Sequence(i) {
			if id < 0 || int(id) >= c.Vocab {
				return &InputError{IDOutOfRange, i, p}
			}
		}
	}
	return nil
}
