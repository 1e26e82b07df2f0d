package kern

import "math"

// A Method is the way in which a certificate bounds the mass of unread keys.
type Method int

// Methods, from the cheapest to the tightest.
const (
	// Cheap uses summaries of blocks: the mean key, the distances of keys from
	// it, and the largest variance of a direction. The sum of a block is at least
	// its number of keys times exp of the mean score (Jensen), and at most that
	// times cosh of the radius (Hoeffding) or a term with the variance (Bennett).
	Cheap Method = iota
	// Sampled computes the scores of Samples keys, drawn from blocks in proportion
	// to their upper bounds, and adds an empirical Bernstein margin (Maurer and
	// Pontil 2009). Its bounds fail with a probability of at most Risk.
	Sampled
	// Exact computes every score: δ is exact except for rounding.
	Exact
)

// Certificate bounds the change that the unread keys of a query would make. y is
// the dense result and ỹ the result by the layout.
type Certificate struct {
	Kept         float64 // ln Σ exp(Scale·q·k) over the keys that were read
	Lower, Upper float64 // bounds of δ, the share of the dense softmax that was not read
	Bound        float64 // |y-ỹ| <= Bound <= 2·B·Upper
	Radius       float64 // B, the length of the longest value that the query may see
	// Probabilistic means that the bounds hold with probability 1-Risk only.
	Probabilistic bool
}

// Certifier computes certificates of one query head of a job. The exported fields
// may be set before the first Certify; afterwards several goroutines may call
// Certify at once. The job must stay unchanged.
type Certifier struct {
	Method  Method
	Samples int     // draws a query, if Method is Sampled; at least 2
	Risk    float64 // probability of a wrong bound of a query, if Method is Sampled; between 0 and 1
	Seed    uint64  // seed of Sampled; the same seed and query position give the same draws

	job    *Job
	head   int
	size   int // places of a block
	blocks []summary
	radius []float64 // [keys] length of the longest value up to each key
}

// NewCertifier summarises the keys of a query head, by the blocks of its layout,
// or by blocks of size keys where the head is dense. Method is Cheap, Samples 64,
// Risk 1e-3. It panics if head or size are out of range or the job is paged.
// Cost: O(keys·Dim² + blocks·Dim³).
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

// Certify returns the certificate of query i. A query that reads every key it may
// see has δ = 0; a query that reads no key has δ = 1. Cost: the scores of the keys
// that were read, and in addition Dim for each unread block (Cheap), that and
// Samples scores (Sampled), or the scores of all keys (Exact).
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
	reach := 0.0 // largest distance of an unread value from ỹ
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

// shareOf returns e^part/(e^part+e^rest).
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
