package kern

import "math"

// A Method says how a certificate learns about the keys that were not read.
type Method int

// Methods, from the cheapest to the tightest.
const (
	// Cheap looks at summaries of blocks: the mean key, how far keys lie from
	// it, and the largest variance of a direction. What a block has in total is
	// at least what its mean says (Jensen) and at most that times cosh of the
	// radius (Hoeffding) or a form with the variance (Bennett).
	Cheap Method = iota
	// Sampled looks at Samples of the keys, drawn from blocks by their upper
	// bounds, and adds an empirical Bernstein margin (Maurer and Pontil 2009).
	// It is probabilistic: wrong with a probability of at most Risk.
	Sampled
	// Exact computes every score: δ is exact but for rounding.
	Exact
)

// Certificate bounds what the keys that a query did not read would have
// changed. y is the dense result and ỹ the one by the layout.
type Certificate struct {
	Kept         float64 // ln of the sum of exp(Scale·q·k) over the keys that were read
	Lower, Upper float64 // of δ, the share of the dense softmax that was not read
	Bound        float64 // |y-ỹ| is at most this, and this at most 2·B·Upper
	Radius       float64 // B, the longest value vector that the query may see
	// Probabilistic says that the numbers hold with probability 1-Risk only.
	Probabilistic bool
}

// Certifier computes certificates of one query head of a job. It is not changed
// by that and may serve several goroutines.
type Certifier struct {
	Method  Method
	Samples int     // of Sampled, for each query; at least 2
	Risk    float64 // of Sampled, for each query; between 0 and 1
	Seed    uint64  // of Sampled; with it and the query's position, draws repeat

	job    *Job
	head   int
	size   int // places of a block
	blocks []summary
	radius []float64 // by key, the longest value up to it
}

// NewCertifier summarises the keys of a head, by the blocks of its layout, or of
// size keys where it has none. Cost: keys·Dim², and Dim³ for each block.
func NewCertifier(j *Job, head, size int) *Certifier {
	j.checkRows()
	if head < 0 || head >= j.Heads || size <= 0 {
		panic(badMass)
	}
	c := &Certifier{Samples: 64, Risk: 1e-3, job: j, head: head, size: size, radius: j.radii(head)}
	places := j.K.Rows
	l := j.layout(head)
	if l != nil {
		c.size = l.Block
		if l.Order != nil {
			places = len(l.Order)
		}
	}
	for at := 0; at < places; at += c.size {
		var keys []int32
		for place := at; place < min(at+c.size, places); place++ {
			key := place
			if l != nil {
				key = keyOf(l, place)
			}
			if key < j.K.Rows {
				keys = append(keys, int32(key))
			}
		}
		s := j.summarise(head, keys)
		s.column = at / c.size
		c.blocks = append(c.blocks, s)
	}
	return c
}

// Certify returns the certificate of query i. A query that reads all it may see
// has δ = 0, and one that reads nothing δ = 1. Cost: as the scores of what was
// read, and for each block that was not read Dim (Cheap), a share of the
// samples, or the block's scores.
func (c *Certifier) Certify(i int) Certificate {
	j := c.job
	t := tail{c: c, query: j.query(i, c.head), i: i}
	t.split()
	kept, y := t.kept()
	r := Certificate{Kept: kept, Probabilistic: c.Method == Sampled && len(t.blocks) > 0}
	if end := j.horizon(i); end > 0 {
		r.Radius = c.radius[end-1]
	}
	if len(t.blocks) == 0 && len(t.keys) == 0 {
		return r
	}
	lo, up := t.bounds()
	r.Lower, r.Upper = shareOf(lo, kept), shareOf(up, kept)
	reach := 0.0 // of dropped values from ỹ
	for _, b := range t.blocks {
		reach = max(reach, offset(b.value, y)+b.vRadius)
	}
	for _, k := range t.keys {
		v := make([]float64, j.Dim)
		for e, x := range j.value(int(k), c.head) {
			v[e] = float64(x)
		}
		reach = max(reach, offset(v, y))
	}
	r.Bound = min(reach, 2*r.Radius) * r.Upper
	return r
}

// shareOf is e^part/(e^part+e^rest).
func shareOf(part, rest float64) float64 {
	if math.IsInf(part, -1) {
		return 0
	}
	return 1 / (1 + math.Exp(rest-part))
}

func offset(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(s)
}
