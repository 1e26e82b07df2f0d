package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/models"
	"entropipe/preprocess/net"
	"entropipe/preprocess/train"
)

// lesson is the training of an EntropyNet by the paper's protocol: AdamW at 1e-3 with a
// decay of 1e-4, clipped at 1, batches of 32 clouds, 200 epochs, H_diff from epoch 20 on
// with alpha from 10 to 5, the model of the least held-out loss kept. The protocol does not
// say how many clouds an epoch has, and a plateau ends it: three evaluations in a row,
// every ten epochs, of which none lowers the held-out loss by more than plateauShare.
type lesson struct {
	family      string
	frames      func(count int, first uint64) ([]geom.Cloud[float32], error)
	dims        int
	op          entropy.Problem
	regulariser train.Regulariser
	sigma       float64 // bound of a displacement, in the frames' units
	lambda      float64
	anchors     int     // 0: 16
	alpha       float64 // 0: from 10 to 5
	seed        uint64
	fresh       bool // neither reads nor leaves a checkpoint
	size        lessonSize
}

// lessonSize is how large a lesson is.
type lessonSize struct {
	frames int     // frames to learn from and, one in five, to evaluate by
	kept   int     // points of a frame that a training sees
	points int     // points of a cloud of a batch
	epochs int     // at most
	share  float64 // improvement of the held-out loss that counts; 0: no plateau ends it
}

const (
	lessonBatch  = 32
	plateauShare = .01
	plateauWait  = 3
	evaluations  = 20 // of 200 epochs
)

var (
	wholeLesson = lessonSize{frames: 320, kept: 1024, points: 64, epochs: 200, share: plateauShare}
	shortLesson = lessonSize{frames: 10, kept: 64, points: 24, epochs: 10, share: plateauShare}
)

// lessonOf is a lesson's size for an effort.
func lessonOf(how effort) lessonSize {
	if how == quick {
		return shortLesson
	}
	return wholeLesson
}

// key is the part of a cell's key that tells sizes apart.
func (s lessonSize) key() string {
	return fmt.Sprintf("frames=%d of %d, clouds of %d, epochs=%d, plateau=%g", s.frames, s.kept, s.points, s.epochs,
		s.share)
}

// steps returns the steps of an epoch.
func (s lessonSize) steps() int { return max(1, 4*s.frames/5/lessonBatch) }

// asPrinted returns the lesson with the printed settings on a family of the plane in the
// unit box: H_diff, sigma 0.1, lambda 0.1.
func asPrinted(f planar, points int, seed uint64, size lessonSize) lesson {
	return lesson{family: f.name, dims: 2, op: entropy.Hull2D, regulariser: train.HDiff, sigma: .1, lambda: .1,
		seed: seed, size: size, frames: f.lessonFrames(points)}
}

// lessonFrames returns how frames of a family to learn from are made.
func (p planar) lessonFrames(points int) func(count int, first uint64) ([]geom.Cloud[float32], error) {
	return func(count int, first uint64) ([]geom.Cloud[float32], error) {
		return boxed(p.frames(count, points, first)), nil
	}
}

// learnedFrom trains a network with the printed settings on frames that are there. It takes them
// axis by axis into the unit box; the caller's frames stay as they are.
func learnedFrom(ctx context.Context, family string, op entropy.Problem, frames []geom.Cloud[float32],
	size lessonSize) (*net.Net, error) {
	l := asPrinted(planar{name: family}, 0, seeds[0], size)
	l.op = op
	if op == entropy.Maxima3D || op == entropy.Hull3D {
		l.dims = 3
	}
	l.frames = func(int, uint64) ([]geom.Cloud[float32], error) { return boxed(cloned(frames)), nil }
	n, _, err := l.run(ctx)
	return n, err
}

// cloned copies clouds.
func cloned(clouds []geom.Cloud[float32]) (out []geom.Cloud[float32]) {
	for _, c := range clouds {
		out = append(out, geom.Cloud[float32]{X: slices.Clone(c.X), Y: slices.Clone(c.Y), Z: slices.Clone(c.Z)})
	}
	return out
}

// config returns the settings of the training.
func (l *lesson) config() train.Config {
	steps := l.size.steps()
	c := train.Config{Mode: models.Perturb, Ops: []entropy.Problem{l.op}, Regulariser: l.regulariser,
		Steps: steps * l.size.epochs, Seed: l.seed, Batch: lessonBatch, Points: l.size.points, Sigma: l.sigma,
		Lambda: l.lambda, Anchors: l.anchors, Alpha: l.alpha, Tolerance: 1,
		Every: max(1, steps*l.size.epochs/evaluations), Patience: plateauWait, Plateau: l.size.share, Workers: 2}
	if c.Plateau == 0 {
		c.Plateau, c.Patience = plateauShare, 1<<30 // the loss chooses the model all the same
	}
	return c
}

// run trains, or takes the checkpoint that an earlier run left of the same training: its
// bits do not depend on which. Quick lessons keep none.
func (l *lesson) run(ctx context.Context) (*net.Net, *train.Trainer, error) {
	frames, err := l.frames(l.size.frames, learnSeedsOf(l.seed))
	if err != nil {
		return nil, nil, err
	}
	c := train.Collector{Dims: l.dims, Points: l.size.kept}
	for _, f := range frames {
		if err := c.Add(f); err != nil {
			return nil, nil, err
		}
	}
	data, err := c.Data()
	if err != nil {
		return nil, nil, err
	}
	t, path, err := l.begin(data)
	if err != nil {
		return nil, nil, err
	}
	fresh := !t.Done()
	for !t.Done() {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err := t.Step(); err != nil {
			return nil, nil, err
		}
	}
	if fresh && path != "" {
		if err := t.Save(path); err != nil {
			return nil, nil, err
		}
	}
	n, err := net.New(t.Model())
	return n, t, err
}

// begin returns a trainer, at the end if there is a checkpoint of the training, and the
// file of the checkpoint, none for quick lessons.
func (l *lesson) begin(data *train.Data) (*train.Trainer, string, error) {
	cfg := l.config()
	if l.size.kept < wholeLesson.kept || l.fresh {
		t, err := train.New(cfg, data)
		return t, "", err
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%+v %s", cfg, data.SHA256)
	caches, err := os.UserCacheDir()
	if err != nil {
		return nil, "", err
	}
	folder := filepath.Join(caches, "entropipe", "tables")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, "", err
	}
	path := filepath.Join(folder, fmt.Sprintf("entropynet-%s-%016x.safetensors",
		strings.ReplaceAll(l.family, " ", "-"), h.Sum64()))
	switch t, err := train.Resume(path, cfg, data); {
	case err == nil && t.Done():
		return t, path, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, "", err
	}
	t, err := train.New(cfg, data)
	return t, path, err
}

// put says what the training took and adds its curve: for every evaluation the epoch, the
// held-out loss, its regulariser, and the entropy G of the held-out frames once moved.
func (l *lesson) put(r *record, t *train.Trainer) {
	steps := float64(l.size.steps())
	r.put("epochs", float64(t.Steps())/steps)
	r.put("steps", float64(t.Steps()))
	r.put("kept_epoch", float64(t.Model().Meta.Steps)/steps)
	plateau := 0.0
	if t.Steps() < t.Config().Steps {
		plateau = 1
	}
	r.put("plateau", plateau)
	r.put("loss", t.Best().Loss)
	last := t.Records()[len(t.Records())-1].Judged
	for _, step := range t.Records() {
		if j := step.Judged; j != nil && last != nil && step.Step == t.Steps()-plateauWait*t.Config().Every {
			r.put("gain30", 1-last.Loss/j.Loss)
		}
	}
	var curve []string
	var regulariser, g []float64
	for _, step := range t.Records() {
		j := step.Judged
		if j == nil {
			continue
		}
		curve = append(curve, fmt.Sprintf("%g %.5g %.5g %.5g", float64(step.Step)/steps, j.Loss, j.Regulariser,
			j.After))
		if step.Lambda > 0 {
			regulariser, g = append(regulariser, j.Regulariser), append(g, j.After)
		}
	}
	r.Text["curve"] = strings.Join(curve, "; ")
	if r2 := squaredCorrelation(regulariser, g); len(g) > 2 && r2 == r2 {
		r.put("r2", r2)
	}
}

// curveOf reads a curve of a record: epochs, losses, regularisers and entropies.
func curveOf(text string) (curve [4][]float64) {
	for part := range strings.SplitSeq(text, "; ") {
		var v [4]float64
		if _, err := fmt.Sscan(part, &v[0], &v[1], &v[2], &v[3]); err != nil {
			continue
		}
		for k := range v {
			curve[k] = append(curve[k], v[k])
		}
	}
	return curve
}

// boxed returns the clouds in the unit box, axis by axis, as the paper prepares them. It
// changes them.
func boxed(clouds []geom.Cloud[float32]) []geom.Cloud[float32] {
	for _, c := range clouds {
		for _, axis := range [][]float32{c.X, c.Y, c.Z} {
			lo, hi := net.Extent(axis)
			for i, v := range axis {
				axis[i] = float32((float64(v) - lo) / max(hi-lo, 1e-30))
			}
		}
	}
	return clouds
}
