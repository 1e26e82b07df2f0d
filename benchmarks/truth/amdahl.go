package main

import (
	"math"

	"entropipe/benchmarks/truth/estimate"
)

// shape is a transformer block, and the input that the paper prints a speed-up for.
type shape struct {
	name    string
	tokens  float64
	dim     float64
	keys    float64 // width of keys and values together over 2: dim, or less with grouped heads
	hidden  float64
	matrix  float64 // matrices of the block's second half: 2, or 3 with a gate
	causal  bool
	printed float64 // speed-up that the paper prints, 0 for none
	lines   string
}

// shapes are the models of the paper's tables.
var shapes = []shape{
	{"ViT-S/16, 224 pixels", 197, 384, 384, 1536, 2, false, 1.47, "312"},
	{"ViT-B/16, 224 pixels", 197, 768, 768, 3072, 2, false, 1.60, "246"},
	{"BERT-base, 512 tokens", 512, 768, 768, 3072, 2, false, 0, ""},
	{"Mistral-7B, 1,024 tokens", 1024, 4096, 1024, 14336, 3, true, 1.55, "267"},
	{"Phi-2, 2,048 tokens", 2048, 2560, 2560, 10240, 2, true, 1.48, "272"},
	{"GPT-J 6B, 2,048 tokens", 2048, 4096, 4096, 16384, 2, true, 1.40, "453"},
	{"LLaMA-2 7B, 8,192 tokens", 8192, 4096, 4096, 11008, 3, true, 1.60, "356"},
}

// attention is attention's share of a block's multiplications: scores and sums against
// projections and the second half.
func (s shape) attention() float64 {
	scores := 2 * s.tokens * s.dim
	if s.causal {
		scores /= 2
	}
	return scores / (scores + 2*s.dim*s.dim + 2*s.dim*s.keys + s.matrix*s.dim*s.hidden)
}

// most is the speed-up that no mask can exceed at that sparsity, by Amdahl's law: masks
// cost nothing and all else takes the time of its multiplications.
func (s shape) most(sparsity float64) float64 { return 1 / (1 - sparsity*s.attention()) }

// mostOf returns the bound of the shape of that name at 75 % sparsity.
func mostOf(name string) estimate.Estimate {
	for _, s := range shapes {
		if s.name == name {
			return estimate.OfExact(math.Round(1000*s.most(.75)) / 1000)
		}
	}
	return estimate.Estimate{}
}
