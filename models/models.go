// Package models reads and writes the models of the stage before the operators
// (package preprocess), their cards, and their export to ONNX. It imports neither
// clouds nor training. README.md describes the layout of the file.
//
// A model is one safetensors file of format entropynet/1 and has one of three modes.
// A seed model is a list of directions: the point that is farthest along one of them
// is likely to be a vertex of the hull, or maximal. A perturb or denoise model is a
// PointNet (Qi et al. 2017) after "Differentiable Entropy Regularization": three
// layers a point, the maximum over all points, two layers on both, and a bounded
// displacement.
//
// Files are not trusted. Reading checks names, shapes and values, so callers may
// index the tensors of an *EntropyNet without further checks.
package models

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"entropipe/models/atomicfile"
	"entropipe/models/plainfile"
	"entropipe/models/safetensors"
)

// Format is the file format that this package reads and writes.
const Format = "entropynet/1"

// Modes of a model. A seed model serves the stage's mode prune, too.
const (
	Seed    = "seed"    // directions; results are exact
	Perturb = "perturb" // a network that moves points; each row has its error
	Denoise = "denoise" // a network that removes noise; results are approximate
)

// NormaliseBox is the normalisation of a model's coordinates: it maps a frame's
// bounding box to the unit cube, each axis by itself.
const NormaliseBox = "box"

// BatchNormEpsilon is the ε of batch normalisation, (v − mean)/√(variance + ε).
const BatchNormEpsilon = 1e-5

// maxFile is the largest size of a model's file, in bytes; the file is read whole.
const maxFile = 64 << 20

// Tensor is an array in row-major order.
type Tensor struct {
	Shape []int
	Data  []float32
}

// EntropyNet is a model. A model that was read is valid (see Validate). Goroutines
// may share a model that none of them changes.
type EntropyNet struct {
	Meta    Meta
	Tensors map[string]Tensor
	SHA256  string // hash of the model's file, in hexadecimal
}

// Meta is a model's metadata: its use and its origin.
type Meta struct {
	Mode        string             // Seed, Perturb or Denoise
	Dims        int                // dimensions of the points: 2 or 3
	Ops         []string           // the operators that it serves: hull2d, hull3d, maxima2d, maxima3d
	Normalise   string             // NormaliseBox
	Sigma       float64            // metres: no coordinate is moved by more (Perturb, Denoise)
	Regulariser string             // the training's: F, hdiff, hsoft, none, or empty
	Tau         float64            // temperature of the regulariser, in normalised coordinates
	Survivors   map[string]float64 // by operator: the fraction of points that survived at calibration

	// The stream of the training data; empty: any stream.
	Dataset, Sensor string

	DataSHA256 string // hash of the training data, in hexadecimal; may be empty
	Command    string // command line that made the model; may be empty
	Seed       uint64
	Steps      int // steps of training
}

// ReadEntropyNet reads the model in a regular file of at most 64 MiB and validates
// it. Tensors of F16 and BF16 are widened to float32. Errors name the path.
func ReadEntropyNet(path string) (*EntropyNet, error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is no regular file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s: the file has %d bytes, more than the %d that a model may have", path,
			info.Size(), maxFile)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, err
	}
	return ParseEntropyNet(path, data)
}

// ParseEntropyNet returns the model in a file's bytes, like ReadEntropyNet. Errors
// begin with name.
func ParseEntropyNet(name string, data []byte) (*EntropyNet, error) {
	f, err := safetensors.New(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	m := &EntropyNet{Tensors: map[string]Tensor{}, SHA256: hex.EncodeToString(sum[:])}
	if m.Meta, err = parseMeta(f.Metadata()); err == nil {
		err = m.Meta.validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, t := range f.Tensors() {
		values, err := t.Float32s(nil)
		if err != nil {
			return nil, err
		}
		m.Tensors[t.Name] = Tensor{t.Shape, values}
	}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// Write validates the model, writes it to path, whole or not at all, and sets
// m.SHA256. Equal models have equal files.
func (m *EntropyNet) Write(path string) error {
	if err := m.Validate(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var arrays []safetensors.Array
	for name, t := range m.Tensors {
		arrays = append(arrays, safetensors.Array{Name: name, Shape: t.Shape, Data: t.Data})
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, m.Meta.strings(), arrays); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if b.Len() > maxFile {
		return fmt.Errorf("%s: the file would have %d bytes, more than the %d that a model may have",
			path, b.Len(), maxFile)
	}
	sum := sha256.Sum256(b.Bytes())
	err := atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(b.Bytes())
		return err
	})
	if err != nil {
		return err
	}
	m.SHA256 = hex.EncodeToString(sum[:])
	return nil
}

// Parameters returns the number of values in all tensors.
func (m *EntropyNet) Parameters() int {
	n := 0
	for _, t := range m.Tensors {
		n += len(t.Data)
	}
	return n
}

// Matches returns nil if the model is for points of dims dimensions of the stream
// (dataset, sensor), or an error that names the difference. A model without data set
// or sensor matches any.
func (m *EntropyNet) Matches(dataset, sensor string, dims int) error {
	switch meta := &m.Meta; {
	case meta.Dims != dims:
		return fmt.Errorf("the model is for points of %d dimensions, and these have %d", meta.Dims, dims)
	case meta.Dataset != "" && meta.Dataset != dataset:
		return fmt.Errorf("the model is for data set %q, and this is %q", meta.Dataset, dataset)
	case meta.Sensor != "" && meta.Sensor != sensor:
		return fmt.Errorf("the model is for sensor %q, and this is %q", meta.Sensor, sensor)
	}
	return nil
}
