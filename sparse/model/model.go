// Package model computes the transformers of package hf: hidden states,
// embeddings, logits and generated tokens of sequences, with dense or block-sparse
// attention.
//
// It is not a server and holds no queue: package sched makes batches, and callers
// share a Model and own their Sessions. It does not train.
//
// Words: a Model holds the weights, packed once; a Session is the memory of one
// caller; a batch is ragged: the tokens of its sequences lie one after the other
// without padding; a tile is a run of rows that one core takes through all layers'
// operations between two attentions, so that the rows stay in its cache.
//
// The bits of a row depend on the tokens that attention lets it see, on the
// weights, the plan and the CPU's level (mat.Best). They do not depend on the other
// sequences of a batch, their order, or the number of workers.
package model

import (
	"strings"

	"entropipe/models"
	"entropipe/models/mat"
	"entropipe/sparse/hf"
)

// Model is a loaded transformer. It is immutable and safe for concurrent use.
type Model struct {
	config  *hf.Config
	weights Weights
	pooling hf.Pooling
	sha     string

	words, positions mat.Matrix // embedding tables; positions include the first token type of BERT
	ones             []float32  // [hidden]
	embedded         norm       // norm of BERT's embeddings
	patch            linear     // layer of ViT's patches
	class            []float32  // ViT's first row
	layers           []layer
	last             norm // norm before the head
	head             linear
	inverse          []float32 // rotary frequencies
}

// linear is a linear layer; bias is nil if it has none.
type linear struct {
	w    mat.Weights
	bias []float32
}

// norm is a LayerNorm, or an RMSNorm if beta is nil. The zero value is no norm.
type norm struct{ gamma, beta []float32 }

// layer holds the weights of one layer. One product computes queries, keys and
// values. The MLP applies its function to the outputs of up, which LLaMA calls the
// gate, and multiplies the results by the outputs of times.
type layer struct {
	qkv, out, up, times, down linear
	first, second             norm
}

// Weights is the number format of the matrices of products in memory.
type Weights string

const (
	// F32 keeps matrices in float32.
	F32 Weights = "f32"
	// BF16 rounds matrices to bf16, and rounds rows as they enter a product
	// (mat.Weights.Round states the bound of each product's error). Embedding tables,
	// norms, biases, attention and all sums stay float32. Matrices of a checkpoint in
	// bf16 are exact; rows are rounded.
	//
	// BF16 is an approximation: each product has a bound, but there is no bound for
	// all layers together, so no row has a certificate. Measured on MiniLM, whose
	// last hidden states have a mean size of 0.26: numbers differ from F32 by at most
	// 0.04 on its reference sentences and 0.06 on pieces of WikiText-2, the states of
	// a token have a cosine of at least 0.9997 with F32, and embeddings of 0.9999.
	// Tests of this package check these limits.
	BF16 Weights = "bf16"
)

// Open loads a directory, or the shipped model builtin:bytes, with matrices in
// F32. See Load for the cost.
func Open(name string) (*Model, error) { return OpenAs(name, F32) }

// OpenAs is Open with matrices in format w. It panics if w is neither F32 nor
// BF16.
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

// Load loads a directory with matrices in F32. While it loads, the largest matrix
// is in memory three times. Afterwards a weight takes four bytes; with BF16 (see
// OpenAs) a weight of a product takes two. Embeddings that are also the output
// matrix are stored once; with BF16 the embeddings are stored in float32, too.
func Load(dir string) (*Model, error) {
	c, err := hf.Open(dir)
	if err != nil {
		return nil, err
	}
	return load(c, F32)
}

// Config returns the configuration. It belongs to the Model: do not change it.
func (m *Model) Config() *hf.Config { return m.config }

// Weights returns the number format of the matrices in memory.
func (m *Model) Weights() Weights { return m.weights }

// Pooling returns the directory's way to make an embedding of a sequence's rows.
func (m *Model) Pooling() hf.Pooling { return m.pooling }

// SHA256 returns the SHA-256 of the bytes of the weights in hexadecimal: see
// hf.Checkpoint.SHA256.
func (m *Model) SHA256() string { return m.sha }
