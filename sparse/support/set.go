package support

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Modes of a set.
const (
	Static = "static" // the layouts are those of the files
	Anchor = "anchor" // layouts are made of each input's keys, by anchors: encoders only
)

// What a set says about serving it.
const (
	Sparse = "sparse"
	Dense  = "dense"
)

// Facts say which model a set is for.
type Facts struct {
	Arch                        string `json:"arch"`           // hf.BERT and so on
	Weights                     string `json:"weights_sha256"` // of the bytes of the weights, in hexadecimal
	Layers, Heads, KVHeads, Dim int    // Dim: numbers of one head
	Causal                      bool
}

// Set is all layouts of a model and what is known of them. A set that Read or
// Validate has passed is not changed any more, and may be read by several
// goroutines.
type Set struct {
	Facts
	Block   int
	Mode    string // Static or Anchor
	Buckets []Bucket
	Beyond  *Shift // longer sequences than the largest bucket; nil: dense
	Select  Selector
	Source  Source
	Quality *Quality // nil: not measured
	Serve   string   // Sparse or Dense
	Reason  string   // why

	// Certs are of every head, [layer*Heads+head], or nil: over all sequences that
	// judged, each by the layouts for its own length.
	Certs []Cert
	// Anchors are there in mode Anchor.
	Anchors *Anchors
}

// Bucket is the layouts for sequences of at most Length tokens. An encoder
// takes the shortest bucket that is long enough; a causal set has one alone,
// since the first rows of its layouts serve the shorter sequences.
type Bucket struct {
	Length  int
	Layouts []*Layout // shared by heads; all have an Order or none
	Of      []int32   // [layer*KVHeads+head]: index of Layouts, -1 dense
}

// Shift is a pattern for any length that is the same at every position: the
// first Sink blocks, the Local blocks nearest to the queries' own (up to it
// when causal), and every Stride-th block counted from it, if Stride is not 0.
type Shift struct {
	Sink   int `json:"sink"`
	Local  int `json:"local"`
	Stride int `json:"stride"`
}

// Selector says how the layouts were chosen.
type Selector struct {
	Name     string  `json:"name"`     // mass, window, bigbird, affinity, entropy or imported
	Sparsity float64 `json:"sparsity"` // as asked: the share of blocks that are not read
	Seed     uint64  `json:"seed"`
}

// Source is the calibration: SHA256 is of the token ids as little-endian int32,
// each sequence after its length.
type Source struct {
	SHA256    string `json:"sha256"`
	Sequences int    `json:"sequences"`
	Tokens    int    `json:"tokens"`
}

// Quality compares serving with the mask and without, on sequences that the
// calibration did not see. Lost is by Unit: percent of perplexity, or points of
// cosine (hundredths); an interval of 95 % over sequences.
type Quality struct {
	Metric     string  `json:"metric"` // perplexity or cosine
	Unit       string  `json:"unit"`   // "%" or "points"
	Sequences  int     `json:"sequences"`
	Dense      float64 `json:"dense"`
	Sparse     float64 `json:"sparse"`
	Window     float64 `json:"window"` // a window of the same budget
	Lost       float64 `json:"lost"`
	LostLow    float64 `json:"lost_low"`
	LostHigh   float64 `json:"lost_high"`
	Gained     float64 `json:"gained_on_window"`
	GainedLow  float64 `json:"gained_on_window_low"`
	GainedHigh float64 `json:"gained_on_window_high"`
}

// Better says that the model is beyond doubt better with the mask than without,
// as one is that learned with it: then dense attention is what would cost. Of
// what was not measured it says no.
func (q *Quality) Better() bool { return q != nil && q.LostHigh < 0 }

// Cert is what a head keeps and can lose, measured on sequences that the
// calibration did not see: mass is the share of softmax weights on blocks that
// are read, over queries.
type Cert struct {
	MassMean, MassP01, MassMin float32
	Error                      float32 // largest ‖y-ỹ‖ of a query
	Bound                      float32 // 2·B·δ, δ = 1-MassMin
	Radius                     float32 // B, the largest ‖v‖
	Run                        float32 // mean length in keys of the runs that a query reads
}

// Anchors are centres of keys: content routing chooses blocks by them.
type Anchors struct {
	K    int       // anchors of a head
	Data []float32 // [layer][kv head][K][Dim]
}

// Of returns the anchors of a head, [K][Dim]: a view.
func (a *Anchors) Of(f *Facts, layer, kvHead int) []float32 {
	size := a.K * f.Dim
	return a.Data[(layer*f.KVHeads+kvHead)*size:][:size:size]
}

// Largest sizes that a set may have, so that a file cannot ask for more memory
// than a model could need.
const (
	maxLayers  = 1 << 10
	maxHeads   = 1 << 10
	maxDim     = 1 << 12
	maxBuckets = 64
	maxAnchors = 1 << 12
	maxLength  = 1 << 20
)

var selectors = []string{"mass", "window", "bigbird", "affinity", "entropy", "imported"}

// Validate returns what is wrong with a set, nil if nothing is: sizes and words
// out of their ranges, a layout that is not sound (Layout.Validate), buckets
// that are empty or out of order, certificates that are no numbers.
func (s *Set) Validate() error {
	if err := s.Facts.validate(); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]string{Static, Anchor}, s.Mode):
		return fmt.Errorf("mode %q: want static or anchor", s.Mode)
	case s.Serve != Sparse && s.Serve != Dense:
		return fmt.Errorf("serve %q: want sparse or dense", s.Serve)
	case !slices.Contains(selectors, s.Select.Name):
		return fmt.Errorf("selector %q: want one of %v", s.Select.Name, selectors)
	case !(s.Select.Sparsity >= 0 && s.Select.Sparsity < 1):
		return fmt.Errorf("sparsity %v: want at least 0 and below 1", s.Select.Sparsity)
	case !slices.Contains([]int{16, 32, 64, 128}, s.Block):
		return fmt.Errorf("blocks of %d: want 16, 32, 64 or 128", s.Block)
	case s.Source.Sequences < 0 || s.Source.Tokens < 0:
		return errors.New("a calibration of a negative number of sequences or tokens")
	case s.Mode == Anchor && s.Causal:
		return errors.New("anchors route whole blocks of queries, so that early queries would depend on later ones: a causal model cannot use them")
	case (s.Mode == Anchor) != (s.Anchors != nil):
		return fmt.Errorf("mode %s and anchors do not fit", s.Mode)
	}
	return errors.Join(s.validateBuckets(), s.validateBeyond(), s.validateNumbers())
}

func (f *Facts) validate() error {
	switch {
	case f.Layers <= 0 || f.Layers > maxLayers || f.Heads <= 0 || f.Heads > maxHeads || f.Dim <= 0 || f.Dim > maxDim:
		return fmt.Errorf("%d layers of %d heads of %d numbers", f.Layers, f.Heads, f.Dim)
	case f.KVHeads <= 0 || f.Heads%f.KVHeads != 0:
		return fmt.Errorf("%d key heads for %d heads", f.KVHeads, f.Heads)
	}
	return nil
}

func (s *Set) validateBuckets() error {
	if len(s.Buckets) == 0 || len(s.Buckets) > maxBuckets {
		return fmt.Errorf("%d buckets: want 1 to %d", len(s.Buckets), maxBuckets)
	}
	if s.Causal && len(s.Buckets) > 1 {
		return fmt.Errorf("%d buckets in a causal set, whose longest serves all lengths", len(s.Buckets))
	}
	last := 0
	for i := range s.Buckets {
		b := &s.Buckets[i]
		if b.Length <= last || b.Length > maxLength {
			return fmt.Errorf("bucket %d: length %d after %d, and at most %d", i, b.Length, last, maxLength)
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
		return fmt.Errorf("layouts of %d heads: want %d", len(b.Of), s.Layers*s.KVHeads)
	}
	for i, l := range b.Of {
		if l < -1 || int(l) >= len(b.Layouts) {
			return fmt.Errorf("layer %d, head %d: layout %d of %d", i/s.KVHeads, i%s.KVHeads, l, len(b.Layouts))
		}
	}
	if len(b.Layouts) > len(b.Of) {
		return fmt.Errorf("%d layouts for %d heads", len(b.Layouts), len(b.Of))
	}
	blocks := (b.Length + s.Block - 1) / s.Block
	for i, l := range b.Layouts {
		if l == nil || l.Block != s.Block || l.Rows != blocks || l.Cols != blocks {
			return fmt.Errorf("layout %d does not have %d x %d blocks of %d", i, blocks, blocks, s.Block)
		}
		if l.Order != nil && len(l.Order) != b.Length || (l.Order == nil) != (b.Layouts[0].Order == nil) {
			return fmt.Errorf("layout %d: an order of %d keys, or not all layouts have one", i, len(l.Order))
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
		return fmt.Errorf("beyond the largest bucket: sink %d, local %d, stride %d: want local at least 1", b.Sink, b.Local, b.Stride)
	}
	return nil
}

func (s *Set) validateNumbers() error {
	if s.Certs != nil && len(s.Certs) != s.Layers*s.Heads {
		return fmt.Errorf("%d certificates for %d heads", len(s.Certs), s.Layers*s.Heads)
	}
	for i := range s.Certs {
		for _, x := range s.Certs[i].numbers() {
			if x < 0 || !finite(float64(x)) {
				return fmt.Errorf("certificate of layer %d, head %d: %v", i/s.Heads, i%s.Heads, x)
			}
		}
	}
	if s.Anchors != nil {
		if k := s.Anchors.K; k <= 0 || k > maxAnchors || len(s.Anchors.Data) != s.Layers*s.KVHeads*k*s.Dim {
			return fmt.Errorf("%d anchors a head, of %d numbers in all", k, len(s.Anchors.Data))
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

// Row returns the columns that query block r of a sequence of blocks blocks
// reads by the pattern.
func (p *Shift) Row(r, blocks int, causal bool) []int32 {
	lo := max(r-p.Local+1, 0)
	hi := r
	if !causal { // Local blocks around r, moved inside at the ends
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
