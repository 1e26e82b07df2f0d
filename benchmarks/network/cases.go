package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/hull"
	"entropipe/models"
	"entropipe/preprocess/net"
	"entropipe/preprocess/train"
)

// A step has clouds of this many points.
const (
	stepClouds = 8
	stepPoints = 2048
	witnesses  = 32
	tau        = 2e-3
	lambda     = 1e-2
	reach      = 0.01
)

// prepared is what both sides work on.
type prepared struct {
	folder string
	model  *models.EntropyNet
	data   *train.Data
	points []float32 // points of the largest pass
	f      []float64 // F of the clouds of the step's case
}

// prepare makes weights, points and a step, and writes them for peer.py.
func (c *cli) prepare(folder string) (*prepared, error) {
	r := rand.New(rand.NewPCG(c.Seed, 1))
	collector := train.Collector{Dims: 2, Points: 4 * stepPoints}
	for range 10 {
		if err := collector.Add(disc(r, 4*stepPoints)); err != nil {
			return nil, err
		}
	}
	data, err := collector.Data()
	if err != nil {
		return nil, err
	}
	t, err := train.New(settings(c.Seed, 1), data)
	if err != nil {
		return nil, err
	}
	p := &prepared{folder: folder, model: t.Model(), data: data}
	most := 0
	for _, n := range c.Sizes {
		most = max(most, n)
	}
	for range 2 * most {
		p.points = append(p.points, r.Float32())
	}
	if err := p.writeModel(); err != nil {
		return nil, err
	}
	return p, p.writeStep(r)
}

// settings are those of our training step; the network and the loss are those
// of peer.py's. Every tenth step would be recorded, none is judged.
func settings(seed uint64, workers int) train.Config {
	return train.Config{Mode: models.Perturb, Ops: []entropy.Problem{entropy.Hull2D}, Regulariser: train.F, Steps: 400,
		Seed: seed, Batch: stepClouds, Points: stepPoints,
		Witnesses: witnesses, Lambda: lambda, Every: 1 << 20, Workers: workers}
}

// disc is a round cloud in the unit square: many points are near its hull.
func disc(r *rand.Rand, n int) (c geom.Cloud[float32]) {
	for range n {
		radius, angle := 0.5*math.Sqrt(r.Float64()), 2*math.Pi*r.Float64()
		c.X, c.Y = append(c.X, float32(0.5+radius*math.Cos(angle))), append(c.Y, float32(0.5+radius*math.Sin(angle)))
	}
	return c
}

// writeModel writes the layers with their normalisation folded in.
func (p *prepared) writeModel() error {
	in := 2
	for k, out := range []int{net.Local[0], net.Local[1], net.Local[2], net.Head} {
		name := fmt.Sprintf("local.%d", k)
		if k == 3 {
			name, in = "head.0", 2*net.Global
		}
		of := func(part string) []float32 { return p.model.Tensors[name+part].Data }
		w, b := make([]float32, out*in), make([]float32, out)
		for j := range out {
			s := of(".bn.gamma")[j] / float32(math.Sqrt(float64(of(".bn.var")[j])+models.BatchNormEpsilon))
			for i := range in {
				w[j*in+i] = s * of(".weight")[j*in+i]
			}
			b[j] = s*(of(".bias")[j]-of(".bn.mean")[j]) + of(".bn.beta")[j]
		}
		if err := p.save(fmt.Sprintf("w%d", k), w, fmt.Sprintf("b%d", k), b); err != nil {
			return err
		}
		in = out
	}
	return p.save("w4", p.model.Tensors["head.1.weight"].Data, "b4", p.model.Tensors["head.1.bias"].Data)
}

// writeStep writes a batch of clouds with what F needs of them: the chords of
// witnesses on both sides, which every form of PyTorch is given for nothing.
func (p *prepared) writeStep(r *rand.Rand) error {
	var x, moved []float32
	var mask []byte
	var sides [2]chordSet
	for range stepClouds {
		c := disc(r, stepPoints)
		f := entropy.Surrogate[float32]{Problem: entropy.Hull2D, Tau: tau, Box: entropy.UnitBox}
		chosen := f.Witnesses(nil, c, witnesses)
		pinned := make([]byte, stepPoints)
		for _, i := range chosen {
			pinned[i] = 1
		}
		m := geom.Cloud[float32]{X: append([]float32(nil), c.X...), Y: append([]float32(nil), c.Y...)}
		for i := range m.X {
			if x = append(x, c.X[i], c.Y[i]); pinned[i] == 0 {
				m.X[i] += reach * (2*r.Float32() - 1)
				m.Y[i] += reach * (2*r.Float32() - 1)
			}
			moved = append(moved, m.X[i], m.Y[i])
		}
		mask = append(mask, pinned...)
		p.f = append(p.f, f.Value(m, chosen))
		for k, sign := range []float32{1, -1} {
			sides[k].add(c, chosen, sign)
		}
	}
	var u []float32
	for k := range 32 {
		angle := 2 * math.Pi * (float64(k) + 0.5) / 32
		u = append(u, float32(math.Cos(angle)), float32(math.Sin(angle)))
	}
	for k, name := range []string{"upper", "lower"} {
		ends, valid := sides[k].padded()
		if err := p.save(name+".x", ends[0], name+".y", ends[1], name+".valid", valid); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(p.folder, "mask"), mask, 0o666); err != nil {
		return err
	}
	return p.save("x", x, "moved", moved, "u", u, "points", p.points)
}

// chordSet holds the chords of one side of each cloud: the abscissas of both
// ends, then the ordinates.
type chordSet struct{ clouds [][2][]float32 }

// add appends the chords that F takes: all pairs of up to 12 vertices, else
// those 1, 2, 4, … apart and the longest.
func (s *chordSet) add(c geom.Cloud[float32], chosen []int32, sign float32) {
	var part geom.Cloud[float32]
	for _, i := range chosen {
		part.X, part.Y = append(part.X, c.X[i]), append(part.Y, -sign*c.Y[i])
	}
	chain := (&hull.Hull2D[float32]{}).Append(nil, part) // the lower chain of the mirrored points comes first
	for k := range chain {
		if part.X[chain[k]] == maxOf(part.X) {
			chain = chain[:k+1]
			break
		}
	}
	var ends [2][]float32
	add := func(i, j int) {
		for _, k := range []int{i, j} {
			ends[0], ends[1] = append(ends[0], part.X[chain[k]]), append(ends[1], -sign*part.Y[chain[k]])
		}
	}
	h, whole := len(chain), len(chain) <= 12
	for step := 1; step < h; step++ {
		if !whole && step&(step-1) != 0 && step != h-1 {
			continue
		}
		for i := 0; i+step < h; i++ {
			add(i, i+step)
		}
	}
	s.clouds = append(s.clouds, ends)
}

func maxOf(v []float32) float32 {
	most := v[0]
	for _, w := range v {
		most = max(most, w)
	}
	return most
}

// padded gives all clouds as many chords; those added are not valid.
func (s *chordSet) padded() (ends [2][]float32, valid []float32) {
	most := 0
	for _, e := range s.clouds {
		most = max(most, len(e[0]))
	}
	for _, e := range s.clouds {
		for k := range ends {
			ends[k] = append(append(ends[k], e[k]...), make([]float32, most-len(e[k]))...)
		}
		for i := range most / 2 {
			v := float32(0)
			if 2*i < len(e[0]) {
				v = 1
			}
			valid = append(valid, v)
		}
	}
	return ends, valid
}

// save writes pairs of names and numbers.
func (p *prepared) save(pairs ...any) error {
	for k := 0; k < len(pairs); k += 2 {
		f, err := os.Create(filepath.Join(p.folder, pairs[k].(string)))
		if err != nil {
			return err
		}
		if err := binary.Write(f, binary.LittleEndian, pairs[k+1]); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
