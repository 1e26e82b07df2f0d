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
	"io/fs"
	"strings"

	"entropipe/models"
	"entropipe/models/mat"
	"entropipe/sparse/hf"
)

// Model is a transformer, ready to compute. It does not change and may be used
// by several goroutines at once.
type Model struct {
	config  *hf.Config
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

// Open loads a directory, or a model that is shipped: builtin:bytes.
func Open(name string) (*Model, error) {
	if !strings.HasPrefix(name, "builtin:") {
		return Load(name)
	}
	fsys, err := models.Transformer(name)
	if err != nil {
		return nil, err
	}
	return LoadFS(fsys, name)
}

// Load reads a directory. While it loads, the largest matrix is in memory three
// times; then the weights take four bytes each, and embeddings that are also the
// output matrix eight.
func Load(dir string) (*Model, error) {
	c, err := hf.Open(dir)
	if err != nil {
		return nil, err
	}
	return load(c)
}

// LoadFS is Load from any file system; errors begin with name.
func LoadFS(fsys fs.FS, name string) (*Model, error) {
	c, err := hf.OpenFS(fsys, name)
	if err != nil {
		return nil, err
	}
	return load(c)
}

// Config returns the configuration; not to be changed.
func (m *Model) Config() *hf.Config { return m.config }

// Pooling returns what the directory says about embeddings.
func (m *Model) Pooling() hf.Pooling { return m.pooling }

// SHA256 returns the checksum of the weights' bytes in hexadecimal.
func (m *Model) SHA256() string { return m.sha }
