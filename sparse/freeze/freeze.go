// Package freeze chooses the masks of block-sparse attention for a checkpoint,
// and measures what they cost.
//
// A run has three steps over sequences that the user gives. Calibration: dense
// passes, in which every head's attention is averaged by blocks. Choice: every
// block of queries gets the same number of key blocks from every selector, so
// that selectors can be compared. Judgement, on sequences that the calibration
// did not see: certificates of every head, and the quality of the model with the
// mask, without, and with a window of the same budget.
//
// The selectors, for budgets of b blocks a row:
//
//	mass      the blocks with the largest mean softmax mass
//	window    the blocks nearest to the queries' own
//	bigbird   half of them near, half drawn by lot (Zaheer et al. 2020; global
//	          keys are the first block's, and no query reads more than b)
//	affinity  blocks whose keys are assigned to the same anchors as the queries'
//	          positions: clusters without regard to queries, as masks by H_diff
//	entropy   blocks by the mass of anchors' clusters, where of several sets of
//	          anchors that one is taken whose clusters are balanced and whose
//	          queries need few of them
//	imported  of another program
//
// Every row keeps its own block, and the first where b is 2 or more: what comes
// first draws attention in most models. Ties go to the lower block.
//
// Choices rest on float32 attention, whose last bits differ between CPU levels
// and programs. What follows from them is steady: lots are hashes, anchors have
// rounded coordinates, soft assignments and means move as little as the bits do.
// So another level, or models/freeze.py, chooses the same but for two blocks
// whose scores are equal within about a millionth.
//
// Fixed masks of trained models: Raganato et al. 2020, SparseBERT (Shi et al.
// 2021); clusters of keys: Routing Transformer (Roy et al. 2021), SMYRF
// (Daras et al. 2020), Reformer (Kitaev et al. 2020).
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

// Inputs are what a model is run on: token sequences, or for a ViT images
// [n][channels][height][width]. They are not changed.
type Inputs struct {
	Sequences [][]int32
	Images    []float32
}

// Options say how to freeze. Select, Sparsity, Block and Buckets are needed.
type Options struct {
	Select   string
	Sparsity float64 // share of the blocks that are not read: at least 0, below 1
	Block    int     // 16, 32, 64 or 128
	Buckets  []int   // lengths, ascending; of a causal model one; of a ViT none
	Seed     uint64
	Mode     string // support.Static, the default, or support.Anchor
	// Permute lets affinity and entropy sort the keys by cluster, for an encoder
	// with one bucket whose inputs all have its length, or more: a ViT.
	Permute bool
	HeldOut int // inputs at the end that only judge; 0: a quarter of them, at least 2
	Workers int
	Import  *Mask          // of the selector imported
	Beyond  *support.Shift // for longer sequences; nil: dense

	// Progress is called now and then with a step's name and its inputs done;
	// nil: never.
	Progress func(step string, done, of int)
}

// Freeze chooses a mask for the model and judges it. The result depends on the
// arguments and the CPU's level (see above), not on Workers. Inputs longer than
// the longest bucket are cut. Memory: for every bucket a matrix of blocks a head,
// and the session's. Errors: options out of range, inputs that the model cannot
// take, too few of them, or none that reach the end of a bucket; numbers that are
// not finite on the way; and ctx's.
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
		return nil, fmt.Errorf("freeze: %d inputs, of which %d judge: at least one must calibrate and two judge", n, held)
	}
	return f, f.cut()
}

// Facts are what a set must say of a model.
func Facts(m *model.Model) support.Facts {
	c := m.Config()
	return support.Facts{Arch: c.Arch, Weights: m.SHA256(), Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads, Dim: c.Dim, Causal: c.Causal}
}

func (f *run) check() error {
	o := &f.o
	longest := f.c.MaxPositions
	switch {
	case !slices.Contains([]string{Mass, Window, BigBird, Affinity, Entropy, Imported}, o.Select):
		return fmt.Errorf("freeze: no selector is called %q", o.Select)
	case !(o.Sparsity >= 0 && o.Sparsity < 1):
		return fmt.Errorf("freeze: a sparsity of %v: want at least 0 and below 1", o.Sparsity)
	case !slices.Contains([]int{16, 32, 64, 128}, o.Block):
		return fmt.Errorf("freeze: blocks of %d: want 16, 32, 64 or 128", o.Block)
	case len(f.buckets) == 0 || !slices.IsSorted(f.buckets) || f.buckets[0] < 2:
		return fmt.Errorf("freeze: buckets %v: want lengths, ascending", f.buckets)
	case f.c.Causal && len(f.buckets) > 1:
		return errors.New("freeze: a causal model has one bucket, which serves shorter sequences too")
	case f.c.Arch != hf.ViT && f.buckets[len(f.buckets)-1] > longest:
		return fmt.Errorf("freeze: a bucket of %d tokens, and the model has %d positions", f.buckets[len(f.buckets)-1], longest)
	case o.Mode != support.Static && o.Mode != support.Anchor:
		return fmt.Errorf("freeze: mode %q: want static or anchor", o.Mode)
	case o.Mode == support.Anchor && (f.c.Causal || o.Select != Entropy && o.Select != Affinity):
		return errors.New("freeze: anchors route the blocks of encoders, and are chosen by the selectors entropy and affinity")
	case o.Permute && (f.c.Causal || o.Select != Entropy && o.Select != Affinity):
		return errors.New("freeze: keys are sorted by cluster for encoders, and by the selectors entropy and affinity")
	case o.Permute && len(f.buckets) > 1:
		return errors.New("freeze: keys are sorted by cluster for one length, so for one bucket")
	case (o.Select == Imported) != (o.Import != nil):
		return errors.New("freeze: the selector imported needs a mask, and no other takes one")
	}
	matrices := 0
	for _, n := range f.buckets {
		matrices += support.Blocks(n, o.Block) * support.Blocks(n, o.Block)
	}
	if size := matrices * f.c.Layers * f.c.KVHeads; size > maxMatrices {
		return fmt.Errorf("freeze: %d numbers of block mass: take larger blocks or shorter buckets", size)
	}
	return nil
}

// maxMatrices bounds the memory of averages: 1 GiB.
const maxMatrices = 1 << 27

func (f *run) inputs() int {
	if f.c.Arch != hf.ViT {
		return len(f.in.Sequences)
	}
	return len(f.in.Images) / f.pixels()
}

func (f *run) pixels() int { return f.c.Colors * f.c.Image[0] * f.c.Image[1] }

// cut shortens sequences to the longest bucket, and compares images, and
// sequences whose keys are to be sorted, with their size.
func (f *run) cut() error {
	if f.c.Arch == hf.ViT {
		if len(f.in.Images)%f.pixels() != 0 {
			return fmt.Errorf("freeze: %d numbers are no images of %d", len(f.in.Images), f.pixels())
		}
		return nil
	}
	longest := f.buckets[len(f.buckets)-1]
	f.in.Sequences = slices.Clone(f.in.Sequences)
	for i, s := range f.in.Sequences {
		if f.o.Permute && len(s) < longest {
			return fmt.Errorf("freeze: sequence %d has %d tokens, and where keys are sorted by cluster all need the bucket's %d", i, len(s), longest)
		}
		f.in.Sequences[i] = s[:min(len(s), longest)]
	}
	return nil
}

// bucket is the index of the bucket that serves n tokens.
func (f *run) bucket(n int) int {
	i, _ := slices.BinarySearch(f.buckets, n)
	return i
}

// forward runs the model on input i. A result that is not finite is an error:
// what would be chosen and said by it has no meaning.
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
		bad.Sequence = i // it counts within a batch of one
	}
	for row := 0; err == nil && row < hidden.Rows; row++ {
		if slices.ContainsFunc(hidden.Row(row), func(x float32) bool { return !(math.Abs(float64(x)) <= math.MaxFloat32) }) {
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

// source describes the inputs that calibrated.
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
