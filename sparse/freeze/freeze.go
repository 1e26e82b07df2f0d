// Package freeze chooses the masks of block-sparse attention for a checkpoint, and
// measures the loss of quality that they cause.
//
// It does not train the model and does not serve the masks (packages train and plan
// do).
//
// Words: an input is a token sequence or an image; a selector is a method to choose
// blocks; the budget b of a row is the number of key blocks that its block of queries
// reads; an anchor is the centre of a cluster of keys.
//
// A run has three steps over the caller's inputs:
//
//   - Calibration: dense passes, in which the attention of every head is averaged by
//     blocks.
//   - Choice: every block of queries gets the same number of key blocks from every
//     selector, so that selectors can be compared.
//   - Judgement, on inputs that the calibration did not see: certificates of every
//     head, and the quality of the model with the mask, with dense attention, and with
//     a window of the same budget.
//
// The selectors:
//
//	mass      the blocks with the largest mean softmax mass
//	window    the blocks nearest to the queries' own
//	bigbird   half of the blocks near the queries' own, half drawn at random (Zaheer
//	          et al. 2020; the global keys are the first block's, and no query reads
//	          more than b blocks)
//	affinity  blocks whose keys are assigned to the same anchors as the positions of
//	          the queries: clusters that ignore the queries, as masks by H_diff do
//	entropy   blocks by the mass that queries give to clusters; of several sets of
//	          anchors it uses the one with balanced clusters, few of which a query needs
//	imported  blocks from another program
//
// Every row reads its own block, and, if b is 2 or more, the first block, which
// attracts attention in most models. Among equal scores the lower block wins.
//
// Choices depend on float32 attention, whose last bits differ between CPU levels
// and programs. The consequences are small: random numbers are hashes, coordinates
// of anchors are rounded, and soft assignments and means change as little as the
// bits. Another level, or models/freeze.py, therefore chooses the same blocks, except
// where two scores are equal within about a millionth.
//
// Sources: fixed masks of trained models: Raganato et al. 2020, SparseBERT (Shi et
// al. 2021); clusters of keys: Routing Transformer (Roy et al. 2021), SMYRF (Daras et
// al. 2020), Reformer (Kitaev et al. 2020).
package freeze

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"entropipe/models/mat"
	"entropipe/sparse/hf"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

// Selectors.
const (
	Mass     = "mass"
	Window   = "window"
	BigBird  = "bigbird"
	Affinity = "affinity"
	Entropy  = "entropy"
	Imported = "imported"
)

// Inputs holds the inputs of a model: token sequences, or, for a ViT, images
// [n][channels][height][width]. Freeze does not change them.
type Inputs struct {
	Sequences [][]int32
	Images    []float32
}

// Options holds the settings of Freeze. Select, Sparsity, Block and Buckets are
// required.
type Options struct {
	Select   string
	Sparsity float64 // share of the blocks that are not read: at least 0, below 1
	Block    int     // 16, 32, 64 or 128
	Buckets  []int   // lengths, ascending; one for a causal model, none for a ViT
	Seed     uint64
	Mode     string // support.Static, the default, or support.Anchor
	// Permute lets affinity and entropy sort the keys by cluster. It requires an
	// encoder with one bucket, and inputs that are at least as long as the bucket, as
	// those of a ViT are.
	Permute bool
	HeldOut int // number of inputs, the last ones, that only judge; 0 means a quarter, at least 2
	Workers int
	Import  *Mask          // mask of the selector imported; nil for the others
	Beyond  *support.Shift // pattern for longer sequences; nil if they are dense

	// Progress, if it is not nil, is called several times in each step, with the
	// step's name and the numbers of inputs done and in all.
	Progress func(step string, done, of int)
}

// Freeze chooses a mask for the model and judges it. The result depends on the
// arguments and on the CPU's level (see the package comment), not on Workers. Inputs
// longer than the longest bucket are cut. It is an error if an option is out of
// range, if the model cannot compute an input, if there are too few inputs or none
// reaches the last block of a bucket, if a result is not finite, or if ctx ends.
// Cost: up to three dense passes over the calibration inputs, by selector, and four
// passes over the others. Memory: a matrix of blocks for each head and bucket, and a
// session.
func Freeze(ctx context.Context, m *model.Model, in Inputs, o Options) (*support.Set, error) {
	f, err := newRun(ctx, m, in, o)
	if err != nil {
		return nil, err
	}
	set, err := f.choose()
	if err != nil {
		return nil, err
	}
	if err := f.certify(set); err != nil {
		return nil, err
	}
	if err := f.judge(set); err != nil {
		return nil, err
	}
	return set, set.Validate()
}

// run is one Freeze.
type run struct {
	ctx       context.Context
	m         *model.Model
	c         *hf.Config
	s         *model.Session
	o         Options
	in        Inputs
	calibrate int // inputs 0 to calibrate-1 choose, the others judge
	buckets   []int
}

func newRun(ctx context.Context, m *model.Model, in Inputs, o Options) (*run, error) {
	f := &run{ctx: ctx, m: m, c: m.Config(), o: o, in: in, buckets: slices.Clone(o.Buckets)}
	f.o.Workers = max(o.Workers, 1)
	if f.o.Mode == "" {
		f.o.Mode = support.Static
	}
	if f.c.Arch == hf.ViT {
		rows, cols := f.c.Patches()
		f.buckets = []int{rows*cols + 1}
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	f.s = m.NewSession(f.o.Workers)
	n := f.inputs()
	held := o.HeldOut
	if held == 0 {
		held = max(n/4, 2)
	}
	if f.calibrate = n - held; f.calibrate < 1 || held < 2 {
		return nil, fmt.Errorf("freeze: there are %d inputs, of which %d judge: at least one must calibrate and "+
			"two judge",
			n, held)
	}
	return f, f.cut()
}

// Facts returns the identity of a model for a set of masks.
func Facts(m *model.Model) support.Facts {
	c := m.Config()
	return support.Facts{
		Arch: c.Arch, Weights: m.SHA256(), Layers: c.Layers,
		Heads: c.Heads, KVHeads: c.KVHeads, Dim: c.Dim, Causal: c.Causal,
	}
}

func (f *run) check() error {
	o := &f.o
	longest := f.c.MaxPositions
	switch {
	case !slices.Contains([]string{Mass, Window, BigBird, Affinity, Entropy, Imported}, o.Select):
		return fmt.Errorf("freeze: no selector is called %q", o.Select)
	case !(o.Sparsity >= 0 && o.Sparsity < 1):
		return fmt.Errorf("freeze: the sparsity is %v but must be at least 0 and below 1", o.Sparsity)
	case !slices.Contains([]int{16, 32, 64, 128}, o.Block):
		return fmt.Errorf("freeze: the block is %d but must be 16, 32, 64 or 128", o.Block)
	case len(f.buckets) == 0 || !slices.IsSorted(f.buckets) || f.buckets[0] < 2:
		return fmt.Errorf("freeze: buckets are %v but must be ascending lengths of at least 2", f.buckets)
	case f.c.Causal && len(f.buckets) > 1:
		return errors.New("freeze: a causal model has one bucket, which serves shorter sequences too")
	case f.c.Arch != hf.ViT && f.buckets[len(f.buckets)-1] > longest:
		return fmt.Errorf("freeze: a bucket has %d tokens, but the model has %d positions",
			f.buckets[len(f.buckets)-1], longest)
	case o.Mode != support.Static && o.Mode != support.Anchor:
		return fmt.Errorf("freeze: the mode is %q but must be static or anchor", o.Mode)
	case o.Mode == support.Anchor && (f.c.Causal || o.Select != Entropy && o.Select != Affinity):
		return errors.New("freeze: anchors route the blocks of encoders, and are chosen by the selectors entropy " +
			"and affinity")
	case o.Permute && (f.c.Causal || o.Select != Entropy && o.Select != Affinity):
		return errors.New("freeze: keys are sorted by cluster for encoders, and by the selectors entropy and affinity")
	case o.Permute && len(f.buckets) > 1:
		return errors.New("freeze: keys are sorted by cluster for one length, and therefore for one bucket")
	case (o.Select == Imported) != (o.Import != nil):
		return errors.New("freeze: the selector imported needs a mask, and no other accepts one")
	}
	matrices := 0
	for _, n := range f.buckets {
		matrices += support.Blocks(n, o.Block) * support.Blocks(n, o.Block)
	}
	if size := matrices * f.c.Layers * f.c.KVHeads; size > maxMatrices {
		return fmt.Errorf("freeze: the averages need %d numbers, more than %d: use larger blocks or shorter buckets",
			size, maxMatrices)
	}
	return nil
}

// maxMatrices bounds the numbers of the averages, 1 GiB.
const maxMatrices = 1 << 27

func (f *run) inputs() int {
	if f.c.Arch != hf.ViT {
		return len(f.in.Sequences)
	}
	return len(f.in.Images) / f.pixels()
}

func (f *run) pixels() int { return f.c.Colors * f.c.Image[0] * f.c.Image[1] }

// cut shortens sequences to the longest bucket. It returns an error for images of
// another size, and for sequences that are too short for Permute.
func (f *run) cut() error {
	if f.c.Arch == hf.ViT {
		if len(f.in.Images)%f.pixels() != 0 {
			return fmt.Errorf("freeze: %d numbers do not form images of %d numbers", len(f.in.Images), f.pixels())
		}
		return nil
	}
	longest := f.buckets[len(f.buckets)-1]
	f.in.Sequences = slices.Clone(f.in.Sequences)
	for i, s := range f.in.Sequences {
		if f.o.Permute && len(s) < longest {
			return fmt.Errorf("freeze: sequence %d has %d tokens, and where keys are sorted by cluster all need "+
				"the bucket's %d",
				i, len(s), longest)
		}
		f.in.Sequences[i] = s[:min(len(s), longest)]
	}
	return nil
}

// bucket returns the index of the bucket that serves n tokens.
func (f *run) bucket(n int) int {
	i, _ := slices.BinarySearch(f.buckets, n)
	return i
}

// forward runs the model on input i. A result that is not finite is an error,
// because choices and measurements from it would be meaningless.
func (f *run) forward(i int, o model.Options) (hidden mat.Matrix, err error) {
	if err := f.ctx.Err(); err != nil {
		return hidden, err
	}
	if f.c.Arch == hf.ViT {
		hidden, err = f.s.Images(f.in.Images[i*f.pixels():][:f.pixels()], 1, o)
	} else {
		ids := f.in.Sequences[i]
		hidden, err = f.s.Hidden(model.Batch{IDs: ids, Starts: []int32{0, int32(len(ids))}}, o)
	}
	var bad *model.InputError
	if errors.As(err, &bad) {
		bad.Sequence = i // the model has counted within a batch of one
	}
	notFinite := func(x float32) bool { return !(math.Abs(float64(x)) <= math.MaxFloat32) }
	for row := 0; err == nil && row < hidden.Rows; row++ {
		if slices.ContainsFunc(hidden.Row(row), notFinite) {
			err = &model.InputError{Reason: model.NotFinite, Sequence: i, Position: row}
		}
	}
	return hidden, err
}

func (f *run) progress(step string, done, of int) {
	if f.o.Progress != nil {
		f.o.Progress(step, done, of)
	}
}

// source returns the identity of the calibration inputs.
func (f *run) source() support.Source {
	h := sha256.New()
	src := support.Source{Sequences: f.calibrate}
	if f.c.Arch == hf.ViT {
		for _, x := range f.in.Images[:f.calibrate*f.pixels()] {
			h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
		}
		src.Tokens = f.calibrate * f.buckets[0]
	} else {
		for _, ids := range f.in.Sequences[:f.calibrate] {
			data := binary.LittleEndian.AppendUint32(nil, uint32(len(ids)))
			for _, id := range ids {
				data = binary.LittleEndian.AppendUint32(data, uint32(id))
			}
			h.Write(data)
			src.Tokens += len(ids)
		}
	}
	src.SHA256 = hex.EncodeToString(h.Sum(nil))
	return src
}
