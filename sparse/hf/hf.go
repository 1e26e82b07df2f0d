// Package hf reads and writes directories of transformer models in the layout of
// Hugging Face: config.json, and weights in model.safetensors or in shards with an
// index.
//
// It computes nothing; package model does. It is strict, because a model that is
// read in part gives plausible nonsense. Each of these is an error that names the
// key or tensor: a key of config.json that may change the arithmetic and is not
// understood; a tensor that is missing, left over, of another shape, of a type
// other than F32, F16 and BF16, or with a number that is not finite.
//
// Words: the architecture is one of four shapes of a network; the class is the
// Python type in the library transformers, which decides about heads and about
// prefixes of tensor names; a canonical name is a tensor's name without the prefix.
package hf

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/models/plainfile"
	"entropipe/models/safetensors"
)

// Names of files.
const (
	configFile  = "config.json"
	weightsFile = "model.safetensors"
	indexFile   = "model.safetensors.index.json"
)

// Checkpoint is an open directory whose configuration and headers are checked.
// Several goroutines may read its tensors at once. The owner must call Close.
type Checkpoint struct {
	name    string
	config  *Config
	pooling Pooling
	tensors map[string]safetensors.Tensor // by canonical name
	files   []io.Closer
	sha     string
}

// Open opens a directory. It reads all bytes of the weights once, for SHA256.
// Errors name the directory and the file, key or tensor. The caller must call Close
// after it has read the tensors.
func Open(dir string) (*Checkpoint, error) {
	if err := checkFiles(dir); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return open(dir, plainfile.FS(dir), dir)
}

// checkFiles returns an error for a dangling link, which would pass for an absent
// file (copies of snapshots from the cache of Hugging Face's programs contain such
// links), and for a pipe or device, which would never end.
func checkFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // the opening of config.json reports it
	}
	for _, e := range entries {
		if name := e.Name(); e.Type().IsRegular() ||
			!strings.HasSuffix(name, ".json") && !strings.HasSuffix(name, ".safetensors") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		switch target, _ := os.Readlink(path); {
		case errors.Is(err, fs.ErrNotExist) && target != "":
			return fmt.Errorf("%s is a link to %s, which does not exist", e.Name(), target)
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file", e.Name())
		}
	}
	return nil
}

// OpenFS is Open for any file system whose files implement io.ReaderAt. It does not
// read shards: only Open does. Errors begin with name.
func OpenFS(fsys fs.FS, name string) (*Checkpoint, error) {
	return open(name, fsys, "")
}

// source is a file of tensors or a set of shards.
type source interface{ Tensors() []safetensors.Tensor }

func open(name string, fsys fs.FS, dir string) (*Checkpoint, error) {
	c := &Checkpoint{name: name}
	if err := c.open(fsys, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), c.Close())
	}
	return c, nil
}

func (c *Checkpoint) open(fsys fs.FS, dir string) (err error) {
	if err := checkLayout(fsys); err != nil {
		return err
	}
	if c.config, err = readConfig(fsys); err != nil {
		return err
	}
	if c.pooling, err = readPooling(fsys, c.config); err != nil {
		return err
	}
	weights, err := c.openWeights(fsys, dir)
	if err != nil {
		return err
	}
	return c.match(weights.Tensors())
}

func readConfig(fsys fs.FS) (*Config, error) {
	data, err := readFile(fsys, configFile)
	if err != nil {
		return nil, err
	}
	c, err := ParseConfig(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configFile, err)
	}
	return c, readGeneration(fsys, c)
}

// readGeneration reads the end tokens from generation_config.json, which overrides
// config.json. It ignores the settings of sampling.
func readGeneration(fsys fs.FS, c *Config) error {
	const name = "generation_config.json"
	data, err := readFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var k *keys
	if err == nil {
		k, err = readKeys(data)
	}
	if err == nil {
		if ids := k.ids("eos_token_id"); ids != nil {
			c.EOS = ids
		}
		err = k.err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readFile reads a small file, up to maxConfig bytes.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(data) > maxConfig {
		err = fmt.Errorf("%s is longer than %d bytes", name, maxConfig)
	}
	return data, err
}

// openWeights opens the file or the shards, and computes the SHA-256 of their bytes.
func (c *Checkpoint) openWeights(fsys fs.FS, dir string) (source, error) {
	f, err := fsys.Open(weightsFile)
	if errors.Is(err, fs.ErrNotExist) && dir != "" {
		if _, e := fs.Stat(fsys, indexFile); e == nil {
			return c.openShards(dir)
		}
		return nil, fmt.Errorf("%w, and %s is missing, too: weights in other forms are not read", err, indexFile)
	}
	if err != nil {
		return nil, err
	}
	c.files = append(c.files, f)
	r, ok := f.(io.ReaderAt)
	if !ok {
		return nil, fmt.Errorf("%s cannot be read at any offset", weightsFile)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(r, 0, info.Size())); err != nil {
		return nil, err
	}
	c.sha = hex.EncodeToString(sum.Sum(nil))
	return safetensors.New(weightsFile, r, info.Size())
}

func (c *Checkpoint) openShards(dir string) (source, error) {
	set, err := safetensors.OpenSet(filepath.Join(dir, indexFile))
	if err != nil {
		return nil, err
	}
	c.files = append(c.files, set)
	sum := sha256.New()
	if _, err := set.WriteTo(sum); err != nil {
		return nil, err
	}
	c.sha = hex.EncodeToString(sum.Sum(nil))
	return set, nil
}

// match fills c.tensors. It returns an error for the first tensor that is missing,
// does not fit the configuration, or is left over.
func (c *Checkpoint) match(stored []safetensors.Tensor) error {
	c.tensors = map[string]safetensors.Tensor{}
	for _, t := range stored {
		name := c.config.canonical(t.Name)
		if other, ok := c.tensors[name]; ok {
			return fmt.Errorf("tensors %q and %q have the same meaning", other.Name, t.Name)
		}
		c.tensors[name] = t
	}
	wanted := c.config.Tensors()
	known := map[string]bool{}
	for _, w := range wanted {
		known[w.Name] = true
		t, ok := c.tensors[w.Name]
		switch {
		case !ok:
			return fmt.Errorf("tensor %q is missing", w.Name)
		case !slices.Equal(t.Shape, w.Shape):
			return fmt.Errorf("tensor %q has the shape %v but must have %v", t.Name, t.Shape, w.Shape)
		case t.DType != safetensors.F32 && t.DType != safetensors.F16 && t.DType != safetensors.BF16:
			return fmt.Errorf("tensor %q is of type %s but must be F32, F16 or BF16", t.Name, t.DType)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.tensors)) {
		if known[name] || c.config.leftOver(name) {
			continue
		}
		if name == "lm_head.weight" && c.config.Tied {
			if err := c.tied(); err != nil {
				return err
			}
			continue
		}
		return fmt.Errorf("tensor %q is left over: nothing in a %s model of this configuration reads it",
			c.tensors[name].Name, c.config.Model)
	}
	return nil
}

// tied returns an error if the file has an output matrix beside a tied embedding,
// as some programs write it, and the two differ.
func (c *Checkpoint) tied() error {
	table := "wte.weight"
	if c.config.Arch == LLaMA {
		table = "embed_tokens.weight"
	}
	a, b := c.tensors["lm_head.weight"], c.tensors[table]
	x, err := a.Float32s(nil)
	if err != nil {
		return err
	}
	y, err := b.Float32s(nil)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(x, y, func(p, q float32) bool { return math.Float32bits(p) == math.Float32bits(q) }) {
		return fmt.Errorf("tensor %q differs from %q, although tie_word_embeddings says that they are one", a.Name,
			b.Name)
	}
	return nil
}

// Config returns the configuration. It belongs to the Checkpoint: do not change it.
func (c *Checkpoint) Config() *Config { return c.config }

// Pooling returns the way to make one embedding of a sequence's rows.
func (c *Checkpoint) Pooling() Pooling { return c.pooling }

// SHA256 returns the SHA-256 of the bytes of the weights in hexadecimal: the bytes
// of the file, or of the shards one after the other in the order of their names.
func (c *Checkpoint) SHA256() string { return c.sha }

// Float32s reads a tensor of Config.Tensors as float32, into new memory. A number
// that is not finite is an error. It panics for any other name.
func (c *Checkpoint) Float32s(name string) ([]float32, error) {
	t, ok := c.tensors[name]
	if !ok {
		panic("hf: a tensor that this configuration does not have")
	}
	values, err := t.Float32s(make([]float32, 0, t.Len()))
	if err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", c.name, t.Name, err)
	}
	for i, x := range values {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil, fmt.Errorf("%s: tensor %q: number %d is %v", c.name, t.Name, i, x)
		}
	}
	return values, nil
}

// Close closes the files. No tensor can be read afterwards.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	c.files = nil
	return errors.Join(errs...)
}
