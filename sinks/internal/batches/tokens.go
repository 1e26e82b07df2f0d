package batches

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"entropipe/schemas"
)

// Tokens makes a batch of sequences: four a message, of which every
// fifth is refused, by itself or with its whole message, and every seventh
// offset is a hole. Embeddings have dim numbers and length 1.
func Tokens(topic string, start int64, records, dim int) *schemas.Batch {
	rng := rand.New(rand.NewPCG(uint64(start), uint64(dim)))
	b := &schemas.Batch{Topic: topic, Start: start, End: start + int64(records)}
	for o := b.Start; o < b.End; o++ {
		if o%7 == 3 {
			b.Holes++
			continue
		}
		b.Messages++
		b.Last = &schemas.RecordID{Offset: o, Timestamp: 1700000000000 + o, CRC32C: uint32(o)}
		if o%5 == 2 {
			b.Rejects = append(b.Rejects, SyntheticReject(b, o))
			continue
		}
		for i := range int32(4) {
			if (o+int64(i))%5 == 0 {
				reject := SyntheticReject(b, o)
				reject.Index, reject.Stage, reject.Reason = i, schemas.StageModel, schemas.ReasonTooLong
				b.Rejects = append(b.Rejects, reject)
				continue
			}
			b.Results = append(b.Results, schemas.Result{FrameKey: schemas.FrameKey{Dataset: "corpus", Sequence: "wiki",
				FrameID: o*4 + int64(i), TimeNs: 1700000000123456789 + o,
				Topic: topic, Offset: o, Index: i}, Tokens: syntheticSequence(rng,
				fmt.Sprintf("doc-%d-%d", o, i), dim)})
		}
	}
	return b
}

func syntheticSequence(rng *rand.Rand, id string, dim int) *schemas.TokenResult {
	r := &schemas.TokenResult{ID: id, Model: "minilm", ModelSHA: strings.Repeat("0a", 32), Weights: "bf16",
		Task: "embed", Pooling: "mean", Normalized: true, NTokens: 1 + rng.Int32N(512), Embedding: make([]float32, dim)}
	norm := 0.0
	for i := range r.Embedding {
		r.Embedding[i] = float32(rng.NormFloat64())
		norm += float64(r.Embedding[i]) * float64(r.Embedding[i])
	}
	for i := range r.Embedding {
		r.Embedding[i] /= float32(math.Sqrt(norm))
	}
	if rng.IntN(4) == 0 {
		r.MaskSHA, r.Truncated = strings.Repeat("0b", 32), true
		for h := range int16(6) {
			r.Stats = append(r.Stats, schemas.AttentionStat{Layer: h / 2, Head: h, KeptMass: rng.Float32(),
				Delta: rng.Float32(), Bound: 2, Error: rng.Float32()})
		}
	}
	return r
}
