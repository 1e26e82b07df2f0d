package main

import (
	"context"
	"math"
	"math/rand/v2"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/benchmarks/truth/pointnet"
	"entropipe/benchmarks/truth/solids"
	"entropipe/models"
	"entropipe/preprocess/net"
	"entropipe/preprocess/train"
)

// What the experiments on made shapes share: the shapes of a seed, networks that move
// their points, and the loop that trains a PointNet.

// shapeSize is how large an experiment on shapes is.
type shapeSize struct {
	points int // points of a shape
	learn  int // shapes of each class to learn from
	test   int // shapes of each class to judge by
	steps  int // steps of a training
	moves  int // steps of a training of EntropyNet
}

// shapeNoise is the deviation of a point from its surface, of the longest side.
const shapeNoise = 0.02

// shapeSet is shapes with their points as the network gets them, x y z each.
type shapeSet struct {
	class  []int
	truth  [][]float32 // the points as they were drawn
	inputs [][]float32 // the points as they are given to the network
	again  [][]float32 // other points of the same solids
}

// drawShapes draws shapes, classes in turn.
func drawShapes(each, points int, r *rand.Rand) (s shapeSet) {
	for range each {
		for class := range solids.Classes {
			s.class = append(s.class, class)
			solid := solids.New(class, r)
			s.truth = append(s.truth, solid.Append(nil, points, shapeNoise, r))
			s.again = append(s.again, solid.Append(nil, points, shapeNoise, r))
		}
	}
	s.inputs = s.truth
	return s
}

// shapesOf returns the shapes of a seed to learn from and to judge by. They share no solid.
func shapesOf(size shapeSize, seed uint64) (learn, test shapeSet) {
	return drawShapes(size.learn, size.points, rand.New(rand.NewPCG(seed, 18))),
		drawShapes(size.test, size.points, rand.New(rand.NewPCG(seed, 19)))
}

// given returns the shapes with inputs that change makes of their points.
func (s shapeSet) given(change func(points []float32) []float32) shapeSet {
	s.inputs = make([][]float32, len(s.truth))
	for k, points := range s.truth {
		s.inputs[k] = change(points)
	}
	return s
}

// batch copies the inputs of some shapes after each other.
func (s *shapeSet) batch(dst []float32, which []int) []float32 {
	dst = dst[:0]
	for _, k := range which {
		dst = append(dst, s.inputs[k]...)
	}
	return dst
}

// cloudOf returns points as a cloud.
func cloudOf(points []float32) (c geom.Cloud[float32]) {
	for ; len(points) > 0; points = points[3:] {
		c.X, c.Y, c.Z = append(c.X, points[0]), append(c.Y, points[1]), append(c.Z, points[2])
	}
	return c
}

// pointsOf returns a cloud as points.
func pointsOf(c geom.Cloud[float32]) []float32 {
	points := make([]float32, 0, 3*c.Len())
	for i := range c.X {
		points = append(points, c.X[i], c.Y[i], c.Z[i])
	}
	return points
}

// shapeMover trains EntropyNet on the shapes to learn from, by a regulariser as the paper
// has it for geometry (λ 0.1, displacements up to a tenth of the box), or by F with its
// own defaults, and returns the change of a shape.
func shapeMover(ctx context.Context, r train.Regulariser, size shapeSize, learn shapeSet, seed uint64) (
	func([]float32) []float32, error) {
	cfg := train.Config{Mode: models.Perturb, Ops: []entropy.Problem{entropy.Hull3D}, Regulariser: r,
		Steps: size.moves, Seed: seed, Batch: 4, Points: size.points, Every: max(size.moves/5, 1),
		Patience: size.moves, Workers: 2}
	if r == train.HDiff {
		cfg.Sigma, cfg.Lambda = .1, .1
	}
	frames := make([]geom.Cloud[float32], min(100, len(learn.truth)))
	for k := range frames {
		frames[k] = cloudOf(learn.truth[k])
	}
	n, _, err := trainOn(ctx, cfg, 3, frames)
	if err != nil {
		return nil, err
	}
	m := net.Mover[float32]{Net: n}
	return func(points []float32) []float32 { return pointsOf(m.Move(cloudOf(points))) }, nil
}

// displacement is the root of the mean squared displacement of a coordinate.
func displacement(s shapeSet) float64 {
	sum, count := 0.0, 0.0
	for k, points := range s.truth {
		for i, v := range points {
			d := float64(s.inputs[k][i] - v)
			sum += d * d
			count++
		}
	}
	return math.Sqrt(sum / count)
}

// jittered returns a change that moves every coordinate at random, by a deviation.
func jittered(deviation float64, r *rand.Rand) func([]float32) []float32 {
	return func(points []float32) []float32 {
		out := make([]float32, len(points))
		for i, v := range points {
			out[i] = v + float32(deviation*r.NormFloat64())
		}
		return out
	}
}

// thinned returns a change that keeps every so manyth point; points come in random order.
func thinned(every int) func([]float32) []float32 {
	return func(points []float32) []float32 {
		return points[:3*(len(points)/3/every)]
	}
}

// shapeTask is what a PointNet learns.
type shapeTask struct {
	local, head []int
	// loss sets d to the gradient by the outputs of the shapes.
	loss func(d, out []float32, which []int)
	// balls is H_diff of the features, with its weight; nil without.
	balls  *pointnet.Balls
	lambda float64
}

const (
	shapeBatch = 16
	shapeRate  = 2e-3
)

// learnTask trains a network of the task on shapes. Everything but the inputs and the
// regulariser is the same for one seed: first weights, batches and their order. The rate
// falls by a cosine.
func learnTask(ctx context.Context, t shapeTask, s shapeSet, steps int, seed uint64) (*pointnet.Net, error) {
	n := pointnet.New(t.local, t.head, rand.New(rand.NewPCG(seed, 20)))
	n.Workers = 2
	r, anchors := rand.New(rand.NewPCG(seed, 21)), rand.New(rand.NewPCG(seed, 22))
	var x []float32
	d := make([]float32, shapeBatch*n.Outputs())
	var dFeatures []float32
	var order []int
	for step := range steps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for len(order) < shapeBatch {
			order = append(order, r.Perm(len(s.class))...)
		}
		which := order[:shapeBatch]
		x = s.batch(x, which)
		points := len(x) / 3 / shapeBatch
		t.loss(d, n.Forward(x, points), which)
		if t.balls != nil {
			dFeatures = append(dFeatures[:0], n.Features()...)
			t.balls.Alpha = 7.5 + 2.5*math.Cos(math.Pi*float64(step)/float64(steps)) // from 10 to 5
			t.balls.Gradient(dFeatures, n.Features(), n.Width(), points, t.lambda, anchors)
		}
		n.Backward(d, dFeatures)
		rate := shapeRate / 2 * (1 + math.Cos(math.Pi*float64(step)/float64(steps)))
		n.Update(rate)
		if t.balls != nil {
			t.balls.Update(rate)
		}
		order = order[shapeBatch:]
	}
	return n, nil
}
