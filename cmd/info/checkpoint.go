package info

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"entropipe/cmd/command"
	"entropipe/sparse/hf"
	"entropipe/sparse/support"
)

// checkpointInfo is what a folder of a transformer holds, of a mask, or of both.
type checkpointInfo struct {
	Path  string     `json:"path"`
	Model *modelInfo `json:"model,omitempty"`
	Mask  *maskInfo  `json:"mask,omitempty"`
}

// modelInfo is a checkpoint; Tasks are those that run --task takes for it.
type modelInfo struct {
	Name       string   `json:"name"`
	Type       string   `json:"model_type"`
	Parameters int64    `json:"parameters"`
	Layers     int      `json:"layers"`
	Hidden     int      `json:"hidden"`
	Heads      int      `json:"heads"`
	KeyHeads   int      `json:"key_heads"`
	Positions  int      `json:"positions"`
	Vocabulary int      `json:"vocabulary,omitempty"`
	Labels     []string `json:"labels,omitempty"`
	Pooling    string   `json:"pooling"`
	MaxTokens  int      `json:"max_seq_length,omitempty"` // bound for embeddings; 0: the positions
	Tasks      []string `json:"tasks"`
	Tokenizer  string   `json:"tokenizer_sha256,omitempty"` // empty: there is none
	SHA256     string   `json:"sha256"`
}

// maskInfo is a mask, without its layouts.
type maskInfo struct {
	Selector support.Selector `json:"selector"`
	Block    int              `json:"block"`
	Mode     string           `json:"mode"`
	Lengths  []int            `json:"lengths"`
	Sparsity float64          `json:"sparsity"` // share of blocks not read, at the longest length
	Weights  string           `json:"weights_sha256"`
	Serve    string           `json:"serve"`
	Reason   string           `json:"reason"`
	Quality  *support.Quality `json:"quality"`
	SHA256   string           `json:"mask_sha256"`
}

// describeCheckpoint reads a folder with a config.json, with a mask, or both; it
// returns nil where there is neither.
func describeCheckpoint(dir string) (*checkpointInfo, error) {
	found := &checkpointInfo{Path: dir}
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	var err error
	if has("config.json") {
		if found.Model, err = describeModel(dir); err != nil {
			return nil, err
		}
	}
	if has(support.ConfigFile) {
		if found.Mask, err = describeMask(dir); err != nil {
			return nil, err
		}
	}
	if found.Model == nil && found.Mask == nil {
		return nil, nil
	}
	return found, nil
}

func describeModel(dir string) (*modelInfo, error) {
	k, err := hf.Open(dir)
	if err != nil {
		return nil, err
	}
	c, pooling := k.Config(), k.Pooling()
	m := &modelInfo{Name: command.NameOfModel(dir), Type: c.Model, Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads,
		KeyHeads:  c.KVHeads,
		Positions: c.MaxPositions, Vocabulary: c.Vocab, Labels: c.LabelNames, Pooling: pooling.Mode,
		MaxTokens: pooling.MaxTokens, Tasks: []string{}, SHA256: k.SHA256()}
	if err := k.Close(); err != nil {
		return nil, err
	}
	for _, t := range c.Tensors() {
		n := int64(1)
		for _, d := range t.Shape {
			n *= int64(d)
		}
		m.Parameters += n
	}
	if c.Arch == hf.ViT {
		m.Pooling = hf.None
	} else if pooling.Mode != hf.None {
		m.Tasks = append(m.Tasks, "embed")
	}
	if c.Causal && c.Head {
		m.Tasks = append(m.Tasks, "logits", "generate")
	}
	t, err := command.OpenTokenizer(dir, c.Vocab)
	if t != nil {
		m.Tokenizer = t.SHA256()
	}
	return m, err
}

func describeMask(dir string) (*maskInfo, error) {
	s, err := support.Read(dir)
	if err != nil {
		return nil, err
	}
	m := &maskInfo{Selector: s.Select, Block: s.Block, Mode: s.Mode, Sparsity: s.Sparsity(), Weights: s.Weights,
		Serve: s.Serve, Reason: s.Reason, Quality: s.Quality}
	for _, b := range s.Buckets {
		m.Lengths = append(m.Lengths, b.Length)
	}
	m.SHA256, err = s.SHA256()
	return m, err
}

// String is the summary for people.
func (c *checkpointInfo) String() string {
	var b strings.Builder
	if m := c.Model; m != nil {
		fmt.Fprintf(&b, "%s: %s %s, %s parameters, sha256 %s\n", c.Path, m.Type, m.Name,
			command.Count(m.Parameters), m.SHA256)
		fmt.Fprintf(&b, "  %d layers of %d, %d heads, %d of keys, %s positions", m.Layers, m.Hidden, m.Heads,
			m.KeyHeads, command.Count(int64(m.Positions)))
		if m.Vocabulary > 0 {
			fmt.Fprintf(&b, ", %s tokens", command.Count(int64(m.Vocabulary)))
		}
		if m.MaxTokens > 0 {
			fmt.Fprintf(&b, ", embeddings of the first %s", command.Count(int64(m.MaxTokens)))
		}
		fmt.Fprintf(&b, "\n  tasks: %s; pooling: %s; tokenizer: %s\n", orNone(strings.Join(m.Tasks, ", ")), m.Pooling,
			orNone(m.Tokenizer))
		if m.Labels != nil {
			fmt.Fprintf(&b, "  labels: %.200q\n", m.Labels)
		}
	}
	if m := c.Mask; m != nil {
		fmt.Fprintf(&b, "%s: mask %s, blocks of %d, %s, lengths to %v, %.1f %% not read, sha256 %s\n",
			filepath.Join(c.Path, support.ConfigFile),
			m.Selector.Name, m.Block, m.Mode, m.Lengths, 100*m.Sparsity, m.SHA256)
		fmt.Fprintf(&b, "  for the weights %s\n  %s: %s\n", m.Weights, m.Serve, m.Reason)
	}
	return b.String()
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
