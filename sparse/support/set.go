package support

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Modes of a set.
const (
	Static = "static" // the files hold the layouts
	Anchor = "anchor" // layouts are made for each input from its keys and anchors; for encoders only
)

// Recommendations of a set: to serve it, or to serve dense attention.
const (
	Sparse = "sparse"
	Dense  = "dense"
)

// Facts identify the model of a set.
type Facts struct {
	Arch                        string `json:"arch"`           // hf.BERT, hf.ViT, hf.GPT2 or hf.LLaMA
	Weights                     string `json:"weights_sha256"` // SHA-256 of the bytes of the weights, in hexadecimal
	Layers, Heads, KVHeads, Dim int    // Dim is the numbers of one head
	Causal                      bool
}

// Set holds all layouts of a model and the measurements of them. After Read or
// Validate a set must not change; several goroutines may then read it at once.
type Set struct {
	Facts
	Block   int
	Mode    string // Static or Anchor
	Buckets []Bucket
	Beyond  *Shift // pattern for sequences longer than the largest bucket; nil if they are dense
	Select  Selector
	Source  Source
	Quality *Quality // nil if it was not measured
	Serve   string   // Sparse or Dense
	Reason  string   // reason of Serve

	// Certs [layer*Heads+head] holds a certificate of every head, or is nil. They are
	// measured on the sequences that judged, each with the layouts for its length.
	Certs []Cert
	// Anchors is set in mode Anchor, and nil in mode Static.
	Anchors *Anchors
}

// Bucket holds the layouts for sequences of at most Length tokens. An encoder
// uses the shortest bucket that is long enough. A causal set has a single bucket,
// because the first rows of its layouts serve shorter sequences.
type Bucket struct {
	Length  int
	Layouts []*Layout // each may serve several heads; all of them have an Order, or none
	Of      []int32   // [layer*KVHeads+head] index in Layouts, or -1 for a dense head
}

// Shift is a pattern for any length that is the same at every position: a query
// block reads the first Sink blocks, the Local blocks nearest to its own (in a causal
// model, its own and those before it), and, if Stride is not 0, every block whose
// distance to its own is a multiple of Stride.
type Shift struct {
	Sink   int `json:"sink"`
	Local  int `json:"local"`
	Stride int `json:"stride"`
}

// Selector records how the layouts were chosen.
type Selector struct {
	Name     string  `json:"name"`     // mass, window, bigbird, affinity, entropy or imported
	Sparsity float64 `json:"sparsity"` // requested share of blocks that are not read
	Seed     uint64  `json:"seed"`
}

// Source identifies the calibration. SHA256 is the hash of the token ids as
// little-endian int32, each sequence preceded by its length.
type Source struct {
	SHA256    string `json:"sha256"`
	Sequences int    `json:"sequences"`
	Tokens    int    `json:"tokens"`
}

// Quality compares the model with the mask, with dense attention, and with a window
// of the same budget, on sequences that the calibration did not see. Lost and Gained
// are in Unit: percent of perplexity, or points of cosine (hundredths). Low and High
// are the ends of 95 % intervals over sequences.
type Quality struct {
	Metric     string  `json:"metric"` // perplexity or cosine
	Unit       string  `json:"unit"`   // "%" or "points"
	Sequences  int     `json:"sequences"`
	Dense      float64 `json:"dense"`
	Sparse     float64 `json:"sparse"`
	Window     float64 `json:"window"` // metric with a window of the same budget
	Lost       float64 `json:"lost"`
	LostLow    float64 `json:"lost_low"`
	LostHigh   float64 `json:"lost_high"`
	Gained     float64 `json:"gained_on_window"`
	GainedLow  float64 `json:"gained_on_window_low"`
	GainedHigh float64 `json:"gained_on_window_high"`
}

// Better reports whether the model is certainly better with the mask than with
// dense attention: whether LostHigh is below 0. This holds for models that were
// trained with the mask. Better returns false if q is nil.
func (q *Quality) Better() bool { return q != nil && q.LostHigh < 0 }

// Cert is the certificate of a head, measured on sequences that the calibration did
// not see. Mass is the share of a query's softmax weights on keys that it reads;
// the mean, the first percentile and the minimum are over queries.
type Cert struct {
	MassMean, MassP01, MassMin float32
	Error                      float32 // largest ‖y-ỹ‖ of a query
	Bound                      float32 // 2·B·δ with δ = 1-MassMin
	Radius                     float32 // B, the largest ‖v‖
	Run                        float32 // mean length, in keys, of the runs of consecutive keys that a query reads
}

// Anchors holds centres of keys, by which mode Anchor chooses blocks.
type Anchors struct {
	K    int       // number of anchors of a head
	Data []float32 // [layer][kv head][K][Dim]
}

// Of returns the anchors of a head [K][Dim], a view.
func (a *Anchors) Of(f *Facts, layer, kvHead int) []float32 {
	size := a.K * f.Dim
	return a.Data[(layer*f.KVHeads+kvHead)*size:][:size:size]
}

// Limits of the sizes of a set, so that a file cannot make a program allocate more
// memory than a model could need.
const (
	maxLayers  = 1 << 10
	maxHeads   = 1 << 10
	maxDim     = 1 << 12
	maxBuckets = 64
	maxAnchors = 1 << 12
	maxLength  = 1 << 20
)

var selectors = []string{"mass", "window", "bigbird", "affinity", "entropy", "imported"}

// Validate returns an error if a set has a fault: a size or word out of range, a
// layout with a fault (Layout.Validate), buckets that are missing or out of order,
// or certificates that are not finite.
func (s *Set) Validate() error {
	if err := s.Facts.validate(); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]string{Static, Anchor}, s.Mode):
		return fmt.Errorf("mode is %q but must be static or anchor", s.Mode)
	case s.Serve != Sparse && s.Serve != Dense:
		return fmt.Errorf("serve is %q but must be sparse or dense", s.Serve)
	case !slices.Contains(selectors, s.Select.Name):
		return fmt.Errorf("selector is %q but must be one of %v", s.Select.Name, selectors)
	case !(s.Select.Sparsity >= 0 && s.Select.Sparsity < 1):
		return fmt.Errorf("sparsity is %v but must be at least 0 and below 1", s.Select.Sparsity)
	case !slices.Contains([]int{16, 32, 64, 128}, s.Block):
		return fmt.Errorf("block is %d but must be 16, 32, 64 or 128", s.Block)
	case s.Source.Sequences < 0 || s.Source.Tokens < 0:
		return errors.New("the calibration has a negative number of sequences or tokens")
	case s.Mode == Anchor && s.Causal:
		return errors.New("a causal model cannot use anchors: they route whole blocks of queries, so that early " +
			"queries would depend on later ones")
	case (s.Mode == Anchor) != (s.Anchors != nil):
		return fmt.Errorf("mode %s and anchors do not fit", s.Mode)
	}
	return errors.Join(s.validateBuckets(), s.validateBeyond(), s.validateNumbers())
}

func (f *Facts) validate() error {
	switch {
	case f.Layers <= 0 || f.Layers > maxLayers || f.Heads <= 0 || f.Heads > maxHeads || f.Dim <= 0 || f.Dim > maxDim:
		return fmt.Errorf("a model of %d layers of %d heads of %d numbers is out of range", f.Layers, f.Heads, f.Dim)
	case f.KVHeads <= 0 || f.Heads%f.KVHeads != 0:
		return fmt.Errorf("%d heads cannot share %d key heads", f.Heads, f.KVHeads)
	}
	return nil
}

func (s *Set) validateBuckets() error {
	if len(s.Buckets) == 0 || len(s.Buckets) > maxBuckets {
		return fmt.Errorf("the set has %d buckets but must have 1 to %d", len(s.Buckets), maxBuckets)
	}
	if s.Causal && len(s.Buckets) > 1 {
		return fmt.Errorf("a causal set has %d buckets but must have one, which serves all lengths", len(s.Buckets))
	}
	last := 0
	for i := range s.Buckets {
		b := &s.Buckets[i]
		if b.Length <= last || b.Length > maxLength {
			return fmt.Errorf("bucket %d: the length is %d but must be above %d and at most %d",
				i, b.Length, last, maxLength)
		}
		last = b.Length
		if err := s.validateBucket(b); err != nil {
			return fmt.Errorf("bucket of %d: %w", b.Length, err)
		}
	}
	return nil
}

func (s *Set) validateBucket(b *Bucket) error {
	if len(b.Of) != s.Layers*s.KVHeads {
		return fmt.Errorf("layouts are given for %d heads but must be for %d", len(b.Of), s.Layers*s.KVHeads)
	}
	for i, l := range b.Of {
		if l < -1 || int(l) >= len(b.Layouts) {
			return fmt.Errorf("layer %d, head %d: layout %d does not exist: there are %d",
				i/s.KVHeads, i%s.KVHeads, l, len(b.Layouts))
		}
	}
	if len(b.Layouts) > len(b.Of) {
		return fmt.Errorf("there are %d layouts for %d heads", len(b.Layouts), len(b.Of))
	}
	blocks := (b.Length + s.Block - 1) / s.Block
	for i, l := range b.Layouts {
		if l == nil || l.Block != s.Block || l.Rows != blocks || l.Cols != blocks {
			return fmt.Errorf("layout %d does not have %d x %d blocks of %d", i, blocks, blocks, s.Block)
		}
		if l.Order != nil && len(l.Order) != b.Length || (l.Order == nil) != (b.Layouts[0].Order == nil) {
			return fmt.Errorf("layout %d has an order of %d keys, or not all layouts have one", i, len(l.Order))
		}
		if err := l.Validate(s.Causal); err != nil {
			return fmt.Errorf("layout %d: %w", i, err)
		}
	}
	return nil
}

func (s *Set) validateBeyond() error {
	b := s.Beyond
	if b == nil {
		return nil
	}
	if b.Local < 1 || b.Sink < 0 || b.Stride < 0 || b.Local > MaxBlocks || b.Sink > MaxBlocks || b.Stride > MaxBlocks {
		return fmt.Errorf("beyond the largest bucket: sink %d, local %d or stride %d is out of range; local must "+
			"be at least 1",
			b.Sink, b.Local, b.Stride)
	}
	return nil
}

func (s *Set) validateNumbers() error {
	if s.Certs != nil && len(s.Certs) != s.Layers*s.Heads {
		return fmt.Errorf("there are %d certificates for %d heads", len(s.Certs), s.Layers*s.Heads)
	}
	for i := range s.Certs {
		for _, x := range s.Certs[i].numbers() {
			if x < 0 || !finite(float64(x)) {
				return fmt.Errorf("certificate of layer %d, head %d: %v is negative or not finite",
					i/s.Heads, i%s.Heads, x)
			}
		}
	}
	if s.Anchors != nil {
		if k := s.Anchors.K; k <= 0 || k > maxAnchors || len(s.Anchors.Data) != s.Layers*s.KVHeads*k*s.Dim {
			return fmt.Errorf("%d anchors a head do not fit %d numbers in all", k, len(s.Anchors.Data))
		}
		if i := slices.IndexFunc(s.Anchors.Data, func(x float32) bool { return !finite(float64(x)) }); i >= 0 {
			return fmt.Errorf("anchors: number %d is %v", i, s.Anchors.Data[i])
		}
	}
	return nil
}

func (c *Cert) numbers() [7]float32 {
	return [7]float32{c.MassMean, c.MassP01, c.MassMin, c.Error, c.Bound, c.Radius, c.Run}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Row returns the columns that query block r reads in a sequence of blocks blocks,
// in ascending order.
func (p *Shift) Row(r, blocks int, causal bool) []int32 {
	lo := max(r-p.Local+1, 0)
	hi := r
	if !causal { // Local blocks lie around r, or at the end of the sequence if r is near it
		lo = max(min(r-p.Local/2, blocks-p.Local), 0)
		hi = min(lo+p.Local, blocks) - 1
	}
	var cols []int32
	for c := range blocks {
		switch {
		case causal && c > r:
		case c < p.Sink, lo <= c && c <= hi, p.Stride > 0 && (r-c)%p.Stride == 0:
			cols = append(cols, int32(c))
		}
	}
	return cols
}

// Sparsity returns the sparsity of the longest bucket, averaged over its heads. In mode
// Anchor it is the sparsity that the selection asked for.
func (s *Set) Sparsity() float64 {
	longest, sum := &s.Buckets[len(s.Buckets)-1], 0.0
	if s.Mode == Anchor {
		return s.Select.Sparsity
	}
	for _, of := range longest.Of {
		if of >= 0 {
			sum += longest.Layouts[of].Sparsity(s.Causal)
		}
	}
	return sum / float64(len(longest.Of))
}
