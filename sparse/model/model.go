// Package model computes the transformers of package hf: embeddings, logits and
// generated tokens of sequences, on a dense or a block-sparse attention.
//
// A Model is the weights, packed once, and is shared; a Session is the memory of
// one caller. Batches are ragged: the sequences' tokens stand one after the other
// and nothing is padded. All products run over the rows of the whole batch; rows
// are cut into tiles that go through everything between two attentions on one
// core, so that they stay in its cache.
//
// A row's bits depend on the tokens of its sequence up to what attention lets it
// see, on the weights, the plan and the CPU's level (mat.Best): not on the other
// sequences of a batch, their order, or the number of workers.
package model

import (
	"strings"

	"entropipe/models"
	"entropipe/models/mat"
	"entropipe/sparse/hf"
)

// Model is a transformer, ready to compute. It does not change and may be used
// by several goroutines at once.
type Model struct {
	config  *hf.Config
	weights Weights
	pooling hf.Pooling
	sha     string

	words, positions mat.Matrix // tables; BERT's first type is part of the positions
	ones             []float32  // hidden size
	embedded         norm       // of BERT's embeddings
	patch            linear     // of ViT
	class            []float32  // ViT's first row
	layers           []layer
	last             norm // before the head
	head             linear
	inverse          []float32 // rotary frequencies
}

// linear is a layer with its bias, nil if it has none.
type linear struct {
	w    mat.Weights
	bias []float32
}

// norm is a LayerNorm, or without beta an RMSNorm; the zero value is none.
type norm struct{ gamma, beta []float32 }

// layer holds the weights of one layer. Queries, keys and values come from one
// product. What goes through the MLP's function is up, which LLaMA calls the
// gate, and times what it is multiplied with.
type layer struct {
	qkv, out, up, times, down linear
	first, second             norm
}

// Weights says in which numbers a model keeps the matrices of its products.
type Weights string

const (
	F32 Weights = "f32"
	// BF16 are matrices rounded to bf16, and rows that are rounded as they enter
	// a product (mat.Weights.Round, which has the bound of each product's error).
	// Tables of embeddings, norms, biases, attention and all sums stay float32.
	// Matrices of a checkpoint in bf16 lose nothing; rows do.
	//
	// It is an approximation: each product has its bound, but none is stated of
	// what all layers together make of it, so no row has a certificate. Measured
	// on MiniLM, whose last hidden states have a mean size of 0.26: numbers are at
	// most 0.04 from those of F32 on its reference sentences and 0.06 on pieces of
	// WikiText-2, a token's states have a cosine of at least 0.9997 with them, and
	// embeddings of 0.9999. The tests of this package hold it to that.
	BF16 Weights = "bf16"
)

// Open loads a directory, or a model that is shipped: builtin:bytes.
func Open(name string) (*Model, error) { return OpenAs(name, F32) }

// OpenAs is Open with the matrices kept as w says.
func OpenAs(name string, w Weights) (*Model, error) {
	if w != F32 && w != BF16 {
		panic(badWeights)
	}
	if !strings.HasPrefix(name, "builtin:") {
		c, err := hf.Open(name)
		if err != nil {
			return nil, err
		}
		return load(c, w)
	}
	fsys, err := models.Transformer(name)
	if err != nil {
		return nil, err
	}
	c, err := hf.OpenFS(fsys, name)
	if err != nil {
		return nil, err
	}
	return load(c, w)
}

// Load reads a directory. While it loads, the largest matrix is in memory three
// times; then the weights take four bytes each, or in bf16 those of products
// two. Embeddings that are also the output matrix are one copy, but in bf16, where
// they stay in float32 beside it.
func Load(dir string) (*Model, error) {
	c, err := hf.Open(dir)
	if err != nil {
		return nil, err
	}
	return load(c, F32)
}

// Config returns the configuration; not to be changed.
func (m *Model) Config() *hf.Config { return m.config }

// Weights returns what the matrices are kept in.
func (m *Model) Weights() Weights { return m.weights }

// Pooling returns what the directory says about embeddings.
func (m *Model) Pooling() hf.Pooling { return m.pooling }

// SHA256 returns the checksum of the weights' bytes in hexadecimal.
func (m *Model) SHA256() string { return m.sha }
