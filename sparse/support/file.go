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

// Names of a set's format and files. The files lie beside the model's files or in a
// folder of their own.
const (
	Format     = "fsm/1"
	ConfigFile = "sparse_config.json"
	TensorFile = "sparse_support.safetensors"
)

// maxTensors bounds the bytes of the file of tensors, which is read into memory.
const maxTensors = 8 << 30

// maxConfig bounds the bytes of sparse_config.json.
const maxConfig = 1 << 20

// config holds the fields of sparse_config.json.
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
	Tensors string   `json:"support_sha256"` // SHA-256 of the bytes of the tensor file
}

// Write writes the set's two files into dir, which it makes if it does not exist.
// It replaces each file as a whole, the configuration last. The configuration holds
// the hash of the tensor file, so that after a crash Read finds the old set, the new
// set, or an error. A set with a fault is an error. Equal sets give equal bytes.
func (s *Set) Write(dir string) error {
	if err := s.Validate(); err != nil {
		return err
	}
	var tensors bytes.Buffer
	if err := safetensors.Write(&tensors, map[string]string{"format": Format}, s.arrays()); err != nil {
		return err
	}
	sum := sha256.Sum256(tensors.Bytes())
	c := config{Format, s.Arch, s.Weights, s.Layers, s.Heads, s.KVHeads, s.Dim, s.Causal, s.Mode, s.Block, nil,
		s.Beyond, s.Select, s.Source, s.Quality, s.Serve, s.Reason, hex.EncodeToString(sum[:])}
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

// Read reads the set of a folder. Each of these is an error that names the file: an
// unknown or missing key; a tensor that is missing, left over, or of another shape
// or type; a hash that does not fit; and every fault of Validate. Memory is bounded
// by the sizes of the files.
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

// Parse reads a set from the contents of its two files, as Read does. It keeps no
// reference to them.
func Parse(text, tensors []byte) (*Set, error) {
	c, err := parseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ConfigFile, err)
	}
	if sum := sha256.Sum256(tensors); hex.EncodeToString(sum[:]) != c.Tensors {
		return nil, fmt.Errorf("%s is not the file that %s was written with: its SHA-256 differs",
			TensorFile, ConfigFile)
	}
	s := &Set{
		Facts: Facts{c.Arch, c.Weights, c.Layers, c.Heads, c.KVHeads, c.Dim, c.Causal},
		Block: c.Block, Mode: c.Mode, Beyond: c.Beyond, Select: c.Select, Source: c.Source,
		Quality: c.Quality, Serve: c.Serve, Reason: c.Reason,
	}
	if err := s.Facts.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", ConfigFile, err)
	}
	if len(c.Buckets) > maxBuckets || !slices.Contains([]int{16, 32, 64, 128}, c.Block) {
		return nil, fmt.Errorf("%s: %d buckets or blocks of %d are out of range", ConfigFile, len(c.Buckets), c.Block)
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
		return nil, fmt.Errorf("its format is %s but must be %q", cut(keys["format"]), Format)
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
		return nil, errors.New("it has no buckets")
	}
	return &c, nil
}

// sameKeys compares the keys of an object, and of the objects in it, with the keys
// that Write gives. Without it the decoder would accept "Format" for "format", and a
// missing number as zero.
func sameKeys(path string, text, written json.RawMessage) error {
	var has, want map[string]json.RawMessage
	if json.Unmarshal(written, &want) != nil || want == nil {
		return nil // the value is no object
	}
	if err := json.Unmarshal(text, &has); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		part, ok := has[key]
		if !ok {
			return fmt.Errorf("key %q is missing", path+key)
		}
		if err := sameKeys(path+key+".", part, want[key]); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(has)) {
		if _, ok := want[key]; !ok {
			return fmt.Errorf("key %q is unknown", path+key)
		}
	}
	return nil
}

func cut(text []byte) []byte { return text[:min(len(text), 40)] }
