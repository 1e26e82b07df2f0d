// Package hf reads and writes directories of transformer models as Hugging Face
// lays them out: config.json, and weights in model.safetensors or in shards with
// an index.
//
// It is strict, because a model that is read in part gives plausible nonsense: a
// key of config.json that may change the arithmetic and is not understood, a
// tensor that is missing, left over, of another shape, of a type other than F32,
// F16 and BF16, or with a number that is not finite is an error that names it.
// It computes nothing: package model does.
//
// Words: the architecture is one of four shapes of a network; the class
// is what transformers calls the Python type, which decides about heads and
// prefixes of names.
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

// Checkpoint is an open directory whose configuration and headers have been
// checked. Its tensors may be read by several goroutines at once.
type Checkpoint struct {
	name    string
	config  *Config
	pooling Pooling
	tensors map[string]safetensors.Tensor // by canonical name
	files   []io.Closer
	sha     string
}

// Open opens a directory. Close it when no tensor is read any more.
func Open(dir string) (*Checkpoint, error) {
	if err := checkFiles(dir); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return open(dir, plainfile.FS(dir), dir)
}

// checkFiles refuses what would pass for an absent file, a link to nothing as
// copies of a snapshot in the cache of Hugging Face's programs are full of, and
// what would never end, such as a pipe.
func checkFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // who opens config.json says so
	}
	for _, e := range entries {
		if name := e.Name(); e.Type().IsRegular() || !strings.HasSuffix(name, ".json") && !strings.HasSuffix(name, ".safetensors") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		switch target, _ := os.Readlink(path); {
		case errors.Is(err, fs.ErrNotExist) && target != "":
			return fmt.Errorf("%s is a link to %s, which is not there", e.Name(), target)
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file", e.Name())
		}
	}
	return nil
}

// OpenFS opens a directory of any file system whose files can be read at any
// offset; shards are read from real directories only. Errors begin with name.
func OpenFS(fsys fs.FS, name string) (*Checkpoint, error) {
	return open(name, fsys, "")
}

// source is what a file or a set of shards offers.
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

// readGeneration takes the ends of a text from generation_config.json, which
// outranks config.json; how others sample from the model is not ours.
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

// openWeights opens the file, or the shards, and sums their bytes.
func (c *Checkpoint) openWeights(fsys fs.FS, dir string) (source, error) {
	f, err := fsys.Open(weightsFile)
	if errors.Is(err, fs.ErrNotExist) && dir != "" {
		if _, e := fs.Stat(fsys, indexFile); e == nil {
			return c.openShards(dir)
		}
		return nil, fmt.Errorf("%w, and no %s: weights in other forms are not read", err, indexFile)
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

// match gives every tensor that the configuration wants its place in the files,
// and complains of the first that is missing, does not fit, or is left over.
func (c *Checkpoint) match(stored []safetensors.Tensor) error {
	c.tensors = map[string]safetensors.Tensor{}
	for _, t := range stored {
		name := c.config.canonical(t.Name)
		if other, ok := c.tensors[name]; ok {
			return fmt.Errorf("tensors %q and %q are the same one", other.Name, t.Name)
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
			return fmt.Errorf("tensor %q has the shape %v, want %v", t.Name, t.Shape, w.Shape)
		case t.DType != safetensors.F32 && t.DType != safetensors.F16 && t.DType != safetensors.BF16:
			return fmt.Errorf("tensor %q is of type %s, want F32, F16 or BF16", t.Name, t.DType)
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
		return fmt.Errorf("tensor %q is left over: nothing in a %s model of this configuration reads it", c.tensors[name].Name, c.config.Model)
	}
	return nil
}

// tied makes sure that an output matrix beside a tied embedding is that
// embedding, as some programs write it.
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
		return fmt.Errorf("tensor %q differs from %q, although tie_word_embeddings says that they are one", a.Name, b.Name)
	}
	return nil
}

// Config returns the configuration; not to be changed.
func (c *Checkpoint) Config() *Config { return c.config }

// Pooling returns how the rows of a sequence become one embedding.
func (c *Checkpoint) Pooling() Pooling { return c.pooling }

// SHA256 returns the checksum of the weights' bytes in hexadecimal: of the file,
// or of the shards one after the other, by name.
func (c *Checkpoint) SHA256() string { return c.sha }

// Float32s reads a tensor of Config.Tensors. A number that is not finite is an
// error.
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

// Close closes the files.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	c.files = nil
	return errors.Join(errs...)
}
