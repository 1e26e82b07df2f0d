package support

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"entropipe/models/atomicfile"
	"entropipe/models/plainfile"
	"entropipe/models/safetensors"
)

// The files of a set, beside the model's or in a folder of their own.
const (
	Format     = "fsm/1"
	ConfigFile = "sparse_config.json"
	TensorFile = "sparse_support.safetensors"
)

// maxTensors bounds the file of a mask's tensors, which is read into memory.
const maxTensors = 8 << 30

// maxConfig is more than any sparse_config.json needs.
const maxConfig = 1 << 20

// config is sparse_config.json.
type config struct {
	Format  string   `json:"format"`
	Arch    string   `json:"arch"`
	Weights string   `json:"weights_sha256"`
	Layers  int      `json:"layers"`
	Heads   int      `json:"heads"`
	KVHeads int      `json:"kv_heads"`
	Dim     int      `json:"head_dim"`
	Causal  bool     `json:"causal"`
	Mode    string   `json:"mode"`
	Block   int      `json:"block"`
	Buckets []int    `json:"buckets"`
	Beyond  *Shift   `json:"beyond"`
	Select  Selector `json:"selector"`
	Source  Source   `json:"calibration"`
	Quality *Quality `json:"quality"`
	Serve   string   `json:"serve"`
	Reason  string   `json:"reason"`
	Tensors string   `json:"support_sha256"` // of the bytes of the other file
}

// Write writes the set's two files into dir, which is made if need be, each
// whole or not at all. The configuration is last and names the other's hash, so
// that after a crash between them Read finds the old set, the new one, or says
// that they do not fit. A set that is not valid is an error. The bytes are the
// same for the same set.
func (s *Set) Write(dir string) error {
	if err := s.Validate(); err != nil {
		return err
	}
	var tensors bytes.Buffer
	if err := safetensors.Write(&tensors, map[string]string{"format": Format}, s.arrays()); err != nil {
		return err
	}
	sum := sha256.Sum256(tensors.Bytes())
	c := config{Format, s.Arch, s.Weights, s.Layers, s.Heads, s.KVHeads, s.Dim, s.Causal, s.Mode, s.Block, nil, s.Beyond, s.Select, s.Source,
		s.Quality, s.Serve, s.Reason, hex.EncodeToString(sum[:])}
	for _, b := range s.Buckets {
		c.Buckets = append(c.Buckets, b.Length)
	}
	text, err := json.MarshalIndent(&c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, TensorFile), tensors.Bytes()); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, ConfigFile), append(text, '\n'))
}

func writeFile(path string, data []byte) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Read reads the set of a folder. It is strict: an unknown or absent key, a
// tensor missing, left over or of another shape or type, a hash that does not
// fit and whatever Validate faults is an error that names the file. Memory is
// bounded by the sizes of the files.
func Read(dir string) (*Set, error) {
	text, err := plainfile.Read(filepath.Join(dir, ConfigFile), maxConfig)
	if err != nil {
		return nil, err
	}
	tensors, err := plainfile.Read(filepath.Join(dir, TensorFile), maxTensors)
	if err != nil {
		return nil, err
	}
	s, err := Parse(text, tensors)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return s, nil
}

// Parse reads the bytes of a set's two files, as Read does.
func Parse(text, tensors []byte) (*Set, error) {
	c, err := parseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ConfigFile, err)
	}
	if sum := sha256.Sum256(tensors); hex.EncodeToString(sum[:]) != c.Tensors {
		return nil, fmt.Errorf("%s is not the file that %s was written with: its SHA-256 differs", TensorFile, ConfigFile)
	}
	s := &Set{Facts: Facts{c.Arch, c.Weights, c.Layers, c.Heads, c.KVHeads, c.Dim, c.Causal}, Block: c.Block, Mode: c.Mode, Beyond: c.Beyond,
		Select: c.Select, Source: c.Source, Quality: c.Quality, Serve: c.Serve, Reason: c.Reason}
	if err := s.Facts.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", ConfigFile, err)
	}
	if len(c.Buckets) > maxBuckets || !slices.Contains([]int{16, 32, 64, 128}, c.Block) {
		return nil, fmt.Errorf("%s: %d buckets, blocks of %d", ConfigFile, len(c.Buckets), c.Block)
	}
	file, err := safetensors.New(TensorFile, bytes.NewReader(tensors), int64(len(tensors)))
	if err != nil {
		return nil, err
	}
	r := &reader{file: file, set: s, seen: map[string]bool{}}
	if err := r.read(c.Buckets); err != nil {
		return nil, fmt.Errorf("%s: %w", TensorFile, err)
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s, nil
}

func parseConfig(text []byte) (*config, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return nil, err
	}
	var format string
	if json.Unmarshal(keys["format"], &format) != nil || format != Format {
		return nil, fmt.Errorf("its format is %s, want %q", cut(keys["format"]), Format)
	}
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	again, err := json.Marshal(&c)
	if err == nil {
		err = sameKeys("", text, again)
	}
	if err != nil {
		return nil, err
	}
	if c.Buckets == nil {
		return nil, errors.New("no buckets")
	}
	return &c, nil
}

// sameKeys compares the keys of an object, and of the objects in it, with those
// that it is written with: the decoder takes "Format" for "format", and an absent
// number for zero.
func sameKeys(path string, text, written json.RawMessage) error {
	var has, want map[string]json.RawMessage
	if json.Unmarshal(written, &want) != nil || want == nil {
		return nil // no object
	}
	if err := json.Unmarshal(text, &has); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		part, ok := has[key]
		if !ok {
			return fmt.Errorf("no key %q", path+key)
		}
		if err := sameKeys(path+key+".", part, want[key]); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(has)) {
		if _, ok := want[key]; !ok {
			return fmt.Errorf("unknown key %q", path+key)
		}
	}
	return nil
}

func cut(text []byte) []byte { return text[:min(len(text), 40)] }
