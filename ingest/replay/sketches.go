package replay

import (
	"fmt"
	"io"
	"math"
)

// Sketches is a synthetic crowd that draws a thousand sketches a second:
// circles, houses, stars, zigzags, spirals and scribbles, in whole pixels from
// 0 to 255. One in fifty is degenerate, as in real collections: a dot, a dot
// drawn again and again, a straight line. A message holds drawings of one
// kind, which is also their sequence. The same seed gives the same bytes on
// every CPU.
type Sketches struct {
	Frames int64 // number of drawings; 0: endless
	// Points is about how many points a drawing has; 0: 40.
	Points int
	// Pack is how many drawings a message holds; 0: 100, a tenth of a second.
	Pack int
	Seed uint64
}

const (
	sketchNs       = int64(1e6) // between two drawings
	maxSketchDots  = 100_000
	degenerateRate = 0.02
)

// sketchKinds are the labels; draw knows how each looks.
var sketchKinds = [...]string{"circle", "house", "star", "zigzag", "spiral", "scribble"}

type sketches struct {
	Sketches
	next     int64 // drawing
	drawings []Drawing
	numbers  [len(sketchKinds)]int64
}

// Open makes the source.
func (k Sketches) Open() (Source, error) {
	if k.Points == 0 {
		k.Points = 40
	}
	if k.Pack == 0 {
		k.Pack = 100
	}
	if k.Frames < 0 || k.Points < 1 || k.Points > maxSketchDots || k.Pack < 1 || k.Pack > 10_000 {
		return nil, fmt.Errorf("synthetic: %d drawings of %d points, %d a message: want at least 0, 1 to %d, 1 to "+
			"10000", k.Frames, k.Points, k.Pack, maxSketchDots)
	}
	return &sketches{Sketches: k, drawings: make([]Drawing, k.Pack)}, nil
}

// Next implements Source.
func (s *sketches) Next(it *Item) error {
	n := int64(s.Pack)
	if s.Frames > 0 {
		n = min(n, s.Frames-s.next)
	}
	if n == 0 {
		return io.EOF
	}
	kind := int(s.next / int64(s.Pack) % int64(len(sketchKinds)))
	*it = Item{
		Dataset: "synthetic", Sequence: sketchKinds[kind], Sensor: "pen",
		Number: s.numbers[kind], Position: s.next / int64(s.Pack), TimeNs: s.next * sketchNs, Clock: SinceEpoch,
		Drawings: s.drawings[:n],
	}
	for i := range it.Drawings {
		s.draw(&it.Drawings[i], kind, s.next+int64(i))
	}
	s.next += n
	s.numbers[kind] += n
	return nil
}

// draw makes drawing number i, of that kind.
func (s *sketches) draw(d *Drawing, kind int, i int64) {
	r := newRandom(s.Seed, 5, i)
	*d = Drawing{ID: int64(r.next() >> 1), Label: sketchKinds[kind], X: d.X[:0], Y: d.Y[:0], Ends: d.Ends[:0]}
	p := pen{Drawing: d, random: &r, dots: s.Points}
	if r.chance(degenerateRate) {
		p.degenerate()
		return
	}
	switch kind {
	case 0:
		p.circle()
	case 1:
		p.house()
	case 2:
		p.star()
	case 3:
		p.zigzag()
	case 4:
		p.spiral()
	default:
		p.scribble()
	}
}

// pen draws into a Drawing, with a shaking hand.
type pen struct {
	*Drawing
	*random
	dots int // about how many points to spend
}

func (p *pen) dot(x, y float64) {
	p.X = append(p.X, pixel(x))
	p.Y = append(p.Y, pixel(y))
}

func pixel(v float64) float64 { return math.RoundToEven(min(255, max(0, v))) }

// lift ends the stroke.
func (p *pen) lift() { p.Ends = append(p.Ends, int32(len(p.X))) }

func (p *pen) shake() float64 { return p.between(-3, 3) }

// path draws one stroke through the corners (x, y, x, y, …) with that many
// points on the way, at least the corners.
func (p *pen) path(dots int, corners ...float64) {
	edges := len(corners)/2 - 1
	each := max(1, dots/edges)
	for e := range edges {
		c := corners[2*e:]
		for k := range each {
			f := float64(k) / float64(each)
			p.dot(c[0]+float64(f*(c[2]-c[0]))+p.shake(), c[1]+float64(f*(c[3]-c[1]))+p.shake())
		}
	}
	p.dot(corners[2*edges]+p.shake(), corners[2*edges+1]+p.shake())
	p.lift()
}

// polar draws one stroke around the middle, by radius and turns.
func (p *pen) polar(dots int, at func(f float64) (radius, turns float64)) {
	for k := range dots {
		radius, turns := at(float64(k) / float64(max(1, dots-1)))
		sin, cos := sincos(float64(turns * (2 * math.Pi)))
		p.dot(128+float64(radius*cos)+p.shake(), 128+float64(radius*sin)+p.shake())
	}
	p.lift()
}

func (p *pen) circle() {
	radius, start := p.between(60, 120), p.float()
	p.polar(p.dots, func(f float64) (float64, float64) { return radius, start + f })
}

func (p *pen) spiral() {
	turns, start := p.between(2, 5), p.float()
	p.polar(p.dots, func(f float64) (float64, float64) { return 10 + float64(110*f), start + float64(turns*f) })
}

func (p *pen) star() {
	outer, inner, start := p.between(80, 120), p.between(30, 50), p.float()
	var corners []float64
	for k := range 11 {
		radius := outer
		if k%2 == 1 {
			radius = inner
		}
		sin, cos := sincos(float64((start + float64(k)/10) * (2 * math.Pi)))
		corners = append(corners, 128+float64(radius*cos), 128+float64(radius*sin))
	}
	p.path(p.dots, corners...)
}

func (p *pen) house() {
	left, right := p.between(10, 60), p.between(190, 245)
	eaves, ground := p.between(90, 130), p.between(220, 250)
	middle := (left + right) / 2
	p.path(p.dots/2, left, eaves, left, ground, right, ground, right, eaves, left, eaves)
	p.path(p.dots/4, left, eaves, middle, p.between(5, 40), right, eaves)
	p.path(p.dots/4, middle-15, ground, middle-15, ground-60, middle+15, ground-60, middle+15, ground)
}

func (p *pen) zigzag() {
	corners := make([]float64, 0, 24)
	for k := range 12 {
		y := p.between(40, 90)
		if k%2 == 1 {
			y = p.between(160, 220)
		}
		corners = append(corners, float64(k)*23, y)
	}
	p.path(p.dots, corners...)
}

// scribble draws a few strokes that wander.
func (p *pen) scribble() {
	strokes := 1 + p.below(5)
	for range strokes {
		x, y := p.between(40, 215), p.between(40, 215)
		for range max(1, p.dots/strokes) {
			p.dot(x, y)
			x, y = x+p.between(-25, 25), y+p.between(-25, 25)
		}
		p.lift()
	}
}

// degenerate draws what has no area.
func (p *pen) degenerate() {
	x, y := float64(p.below(200)), float64(p.below(200))
	kind, n := p.below(4), 2+p.below(8)
	switch kind {
	case 0:
		n = 1
		fallthrough
	case 1: // the pen rests: a dot, or the same one several times
		for range n {
			p.dot(x, y)
		}
	case 2:
		for k := range n {
			p.dot(float64(k)*20, y)
		}
	default:
		for k := range n {
			p.dot(float64(k)*20, float64(k)*20)
		}
	}
	p.lift()
}

// Len returns the number of drawings, 0 for an endless source.
func (s *sketches) Len() int64 { return s.Frames }

// Rewind implements Source.
func (s *sketches) Rewind() error {
	s.next = 0
	s.numbers = [len(sketchKinds)]int64{}
	return nil
}

// Close implements Source.
func (s *sketches) Close() error { return nil }
