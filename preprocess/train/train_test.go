package train

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/models"
	"entropipe/preprocess/net"
)

// someData are frames on and in a shell: round enough to have many vertices.
func someData(t testing.TB, dims, frames, points int) *Data {
	t.Helper()
	c := Collector{Dims: dims}
	for k := range frames {
		cloud := geomtest.Gauss[float32](points, uint64(k+1))
		if dims == 3 {
			cloud = geomtest.Ball[float32](points, uint64(k+1))
		}
		if err := c.Add(cloud); err != nil {
			t.Fatal(err)
		}
	}
	d, err := c.Data()
	if err != nil {
		t.Fatal(err)
	}
	d.Dataset, d.Sensor = "test", "none"
	return d
}

func small(mode string, dims int, r Regulariser) Config {
	c := Config{Mode: mode, Ops: []entropy.Problem{entropy.Hull2D, entropy.Maxima2D}, Regulariser: r, Steps: 20,
		Seed: 5, Batch: 3, Points: 120, Every: 7, Workers: 2}
	if dims == 3 {
		c.Ops = []entropy.Problem{entropy.Maxima3D, entropy.Hull3D}
	}
	if mode == models.Denoise {
		c.Ops = []entropy.Problem{entropy.Maxima2D}
	}
	return c
}

func trainer(t testing.TB, c Config, d *Data, steps int) *Trainer {
	t.Helper()
	tr, err := New(c, d)
	if err != nil {
		t.Fatal(err)
	}
	run(t, tr, steps)
	return tr
}

func run(t testing.TB, tr *Trainer, steps int) {
	t.Helper()
	for tr.Steps() < steps && !tr.Done() {
		if err := tr.Step(); err != nil {
			t.Fatal(err)
		}
	}
}

// loss64 is the loss of the batch that t holds, in float64, from outputs of the
// reference network.
func loss64(t *Trainer, p plan, out [][]float64) float64 {
	sum, dims := 0.0, t.data.Dims
	for b := range t.net.ends {
		o, first := &t.objectives[b], t.net.begin(b)
		wide := func(c geom.Cloud[float32]) (w geom.Cloud[float64]) {
			for d := range dims {
				a := make([]float64, c.Len())
				for i, v := range axis(c, d) {
					a[i] = float64(v)
				}
				*[]*[]float64{&w.X, &w.Y, &w.Z}[d] = a
			}
			return w
		}
		moved, clean, still := wide(o.original), wide(o.clean), wide(o.original)
		if t.cfg.Mode == models.Denoise {
			still = clean
		}
		n := float64(moved.Len())
		loss := 0.0
		for d := range dims {
			a := [][]float64{moved.X, moved.Y, moved.Z}[d]
			s := [][]float64{still.X, still.Y, still.Z}[d]
			for i := range a {
				a[i] += o.reach[d] * math.Tanh(out[first+i][d])
				e := (a[i] - s[i]) * (a[i] - s[i]) / n
				if t.cfg.Mode == models.Denoise {
					e /= o.spread
				}
				loss += e
			}
		}
		for _, u := range t.directions {
			far := [2]float64{math.Inf(-1), math.Inf(-1)}
			for k, c := range []geom.Cloud[float64]{moved, clean} {
				for i := range c.X {
					s := u[0]*c.X[i] + u[1]*c.Y[i]
					if dims == 3 {
						s += u[2] * c.Z[i]
					}
					far[k] = max(far[k], s)
				}
			}
			loss += 100 * (far[0] - far[1]) * (far[0] - far[1]) / float64(len(t.directions))
		}
		loss += p.lambda * regulariser64(t, o, p, moved, clean)
		sum += loss / float64(len(t.net.ends))
	}
	return sum
}

func regulariser64(t *Trainer, o *objective, p plan, moved, clean geom.Cloud[float64]) (r float64) {
	switch t.cfg.Regulariser {
	case HDiff:
		return (&entropy.BallEntropy[float64]{Alpha: p.alpha}).Value(moved, t.anchors)
	case HSoft:
		return (&entropy.CellEntropy[float64]{Tau: p.tau}).Value(moved, t.halves, o.cells)
	case F:
		for k, op := range t.cfg.Ops {
			pinned := geom.Cloud[float64]{X: slices.Clone(moved.X), Y: slices.Clone(moved.Y), Z: slices.Clone(moved.Z)}
			for _, w := range o.witnesses[k] {
				pinned.X[w], pinned.Y[w] = clean.X[w], clean.Y[w]
				if pinned.Z != nil {
					pinned.Z[w] = clean.Z[w]
				}
			}
			f := entropy.Surrogate[float64]{Problem: op, Tau: p.tau, Box: entropy.UnitBox, Steps: manySteps}
			r += f.Value(pinned, o.witnesses[k]) / float64(len(t.cfg.Ops))
		}
	}
	return r
}

// manySteps takes F so near to its least value that its gradient is that of
// the least value.
const manySteps = 150

// End to end, from the parameters through network, task and regulariser, the
// gradient is the finite difference of a reference in float64.
func TestGradientOfTheWholeLoss(t *testing.T) {
	for _, c := range []struct {
		name string
		mode string
		dims int
		r    Regulariser
	}{
		{"F in the plane", models.Perturb, 2, F},
		{"F in space", models.Perturb, 3, F},
		{"hdiff", models.Perturb, 2, HDiff},
		{"hsoft", models.Perturb, 2, HSoft},
		{"none", models.Perturb, 3, None},
		{"denoise", models.Denoise, 2, F},
	} {
		if testing.Short() && c.name != "F in the plane" && c.name != "denoise" {
			continue
		}
		cfg := small(c.mode, c.dims, c.r)
		cfg.Lambda, cfg.Sigma, cfg.Points = 1, 0.2, 50
		tr := trainer(t, cfg, someData(t, c.dims, 4, 200), 2)
		tr.step = 10 // the regulariser has its weight here
		p := planOf(&tr.cfg, tr.step)
		tr.batch()
		tr.net.forward()
		for b := range tr.net.ends {
			o, lo, hi := &tr.objectives[b], tr.net.begin(b)*c.dims, tr.net.ends[b]*c.dims
			o.f.Steps = manySteps
			o.gradient(tr, p, tr.net.out[lo:hi], tr.net.dOut[lo:hi], 1/float64(len(tr.net.ends)))
		}
		tr.net.backward()
		ref := newReference(tr.net)
		size := lengthOf(tr.net.grads)
		was := slices.Clone(ref.params)
		at := func(h float64) float64 {
			for i, g := range tr.net.grads {
				ref.params[i] = was[i] + h*float64(g)/size
			}
			return loss64(tr, p, ref.outputs(tr.net.x, tr.net.ends))
		}
		const h = 1e-6
		if slope := (at(h) - at(-h)) / (2 * h); math.Abs(slope-size) > 5e-3*size {
			t.Errorf("%s: along the gradient the loss rises by %v, want %v", c.name, slope, size)
		}
		if got := tr.record(p).Loss; math.Abs(got-at(0)) > 1e-3*(1+math.Abs(got)) {
			t.Errorf("%s: loss %v, want %v", c.name, got, at(0))
		}
	}
}

// What HDiff and HSoft learn beside the network has the right gradient too.
func TestGradientOfAnchorsAndHalfSpaces(t *testing.T) {
	for _, r := range []Regulariser{HDiff, HSoft} {
		cfg := small(models.Perturb, 2, r)
		cfg.Lambda = 1
		tr := trainer(t, cfg, someData(t, 2, 4, 200), 1)
		tr.step = 10
		p := planOf(&tr.cfg, tr.step)
		tr.batch()
		tr.net.forward()
		for b := range tr.net.ends {
			lo, hi := tr.net.begin(b)*2, tr.net.ends[b]*2
			tr.objectives[b].gradient(tr, p, tr.net.out[lo:hi], tr.net.dOut[lo:hi], 1)
		}
		tr.extraGradient(1)
		value := func() (sum float64) {
			tr.extraViews()
			for b := range tr.net.ends {
				o := &tr.objectives[b]
				if r == HDiff {
					sum += o.ball.Value(o.moved, tr.anchors)
				} else {
					sum += o.cell.Value(o.moved, tr.halves, o.cells)
				}
			}
			return sum
		}
		for i := range tr.extra {
			if r == HDiff && i%3 == 2 || r == HSoft && i%4 == 2 {
				continue // z, which the plane does not have
			}
			was := tr.extra[i]
			const h = 1e-4
			tr.extra[i] = was + h
			up, hi := value(), tr.extra[i]
			tr.extra[i] = was - h
			down, lo := value(), tr.extra[i]
			tr.extra[i] = was
			if slope := (up - down) / float64(hi-lo); math.Abs(slope-float64(tr.gExtra[i])) > 2e-2*(0.1+
				math.Abs(slope)) {
				t.Errorf("%s: number %d: slope %v, finite difference %v", r, i, tr.gExtra[i], slope)
			}
		}
	}
}

// A training that was cut off and resumed makes the same file, for any number
// of workers.
func TestResumedTrainingIsTheSame(t *testing.T) {
	for _, c := range []struct {
		mode string
		dims int
		r    Regulariser
	}{{models.Perturb, 2, F}, {models.Perturb, 3, F}, {models.Perturb, 2, HDiff}, {models.Perturb, 2, HSoft},
		{models.Denoise, 2, F}} {
		cfg, d := small(c.mode, c.dims, c.r), someData(t, c.dims, 6, 200)
		whole := trainer(t, cfg, d, 20)
		want, wantLog := modelBytes(t, whole), recordBytes(t, whole)
		path := filepath.Join(t.TempDir(), "c.checkpoint")
		cfg.Workers = 3
		part := trainer(t, cfg, d, 9)
		if err := part.Save(path); err != nil {
			t.Fatal(err)
		}
		run(t, part, 12) // lost
		cfg.Workers = 1
		again, err := Resume(path, cfg, d)
		if err != nil {
			t.Fatal(err)
		}
		run(t, again, 20)
		if !bytes.Equal(modelBytes(t, again), want) || recordBytes(t, again) != wantLog {
			t.Errorf("%s %s in %d dimensions: the resumed training differs", c.mode, c.r, c.dims)
		}
	}
}

func modelBytes(t *testing.T, tr *Trainer) []byte {
	t.Helper()
	var b bytes.Buffer
	k := tr.current()
	for _, m := range []*models.EntropyNet{tr.Model(), tr.export(&k)} {
		if err := m.Write(filepath.Join(t.TempDir(), "m.safetensors")); err != nil {
			t.Fatal(err)
		}
		b.WriteString(m.SHA256)
	}
	return b.Bytes()
}

func recordBytes(t *testing.T, tr *Trainer) string {
	t.Helper()
	var b strings.Builder
	if err := tr.WriteRecords(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A checkpoint of something else is refused with a reason.
func TestCheckpointOfSomethingElse(t *testing.T) {
	cfg, d := small(models.Perturb, 2, F), someData(t, 2, 4, 200)
	path := filepath.Join(t.TempDir(), "c")
	if err := trainer(t, cfg, d, 3).Save(path); err != nil {
		t.Fatal(err)
	}
	other := cfg
	other.Seed++
	if _, err := Resume(path, other, d); err == nil || !strings.Contains(err.Error(), "other settings") {
		t.Errorf("another seed: %v", err)
	}
	if _, err := Resume(path, cfg, someData(t, 2, 5, 200)); err == nil || !strings.Contains(err.Error(), "other data") {
		t.Errorf("other data: %v", err)
	}
	if err := trainer(t, cfg, d, 7).Model().Write(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(path, cfg, d); err == nil || !strings.Contains(err.Error(), "no checkpoint of this program") {
		t.Errorf("a model: %v", err)
	}
	if _, err := Resume(path+".none", cfg, d); err == nil {
		t.Error("a file that is not there was resumed")
	}
}

// Training to perturb lowers the certified entropy of held-out frames of a
// stream while every error stays tolerable, and the model kept is the one that
// was judged best.
func TestTrainingLowersEntropyWithinTolerance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	c := Collector{Dims: 2}
	for k := range 10 {
		if err := c.Add(geomtest.Circle[float32](600, uint64(k+1))); err != nil {
			t.Fatal(err)
		}
	}
	d, err := c.Data()
	if err != nil {
		t.Fatal(err)
	}
	tr := trainer(t, Config{Mode: models.Perturb, Ops: []entropy.Problem{entropy.Hull2D}, Steps: 200, Seed: 1, Batch: 3,
		Points: 200, Every: 40, Workers: 2, Lambda: 0.03}, d, 1000)
	j := tr.best.judgement
	if j.After >= j.Before || j.Error > tr.cfg.Tolerance {
		t.Errorf("G from %v to %v nats at error %v", j.Before, j.After, j.Error)
	}
	for _, r := range tr.Records() {
		if r.Judged != nil && r.Judged.Error <= tr.cfg.Tolerance && r.Judged.After < j.After {
			t.Errorf("step %d had G %v at a tolerable error, kept was %v", r.Step, r.Judged.After, j.After)
		}
	}
	n, err := net.New(tr.Model())
	if err != nil {
		t.Fatal(err)
	}
	if got := tr.judgeFrame(n, &d.Judge[0], rand.New(rand.NewPCG(1, 1))); got.Error > 2*tr.cfg.Tolerance {
		t.Errorf("the model kept errs by %v", got.Error)
	}
}

// Training ends when judgements no longer improve, and not before.
func TestPatienceEndsTraining(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	cfg := small(models.Perturb, 2, F)
	cfg.Steps, cfg.Every, cfg.Patience, cfg.Tolerance = 400, 1, 2, 1e9
	tr := trainer(t, cfg, someData(t, 2, 4, 60), 400)
	if tr.Steps() >= 400 || tr.Steps() < 160 {
		t.Fatalf("ended after %d steps", tr.Steps())
	}
	log := tr.Records()
	for _, r := range log[len(log)-2:] {
		if r.Judged == nil || r.Judged.Best {
			t.Errorf("ended with %+v", r)
		}
	}
}

// Bad settings are named.
func TestSettingsThatCannotBe(t *testing.T) {
	flat, solid := someData(t, 2, 3, 50), someData(t, 3, 3, 50)
	hulls := []entropy.Problem{entropy.Hull2D}
	for _, c := range []struct {
		cfg  Config
		data *Data
		want string
	}{
		{Config{Mode: "seed", Ops: hulls}, flat, `mode "seed"`},
		{Config{Mode: models.Perturb}, flat, "no operator"},
		{Config{Mode: models.Perturb, Ops: []entropy.Problem{entropy.Hull3D}}, flat, "hull3d needs points of 3"},
		{Config{Mode: models.Perturb, Ops: []entropy.Problem{entropy.UpperHull}}, flat, "upperhull"},
		{Config{Mode: models.Perturb, Ops: append(hulls, hulls...)}, solid, "is named twice"},
		{Config{Mode: models.Denoise, Ops: hulls}, flat, "serves maxima alone"},
		{Config{Mode: models.Perturb, Ops: hulls, Regulariser: "G"}, flat, `"G"`},
		{Config{Mode: models.Perturb, Ops: hulls, Batch: -1}, flat, "batch -1"},
		{Config{Mode: models.Perturb, Ops: hulls, Sigma: math.NaN()}, flat, "sigma NaN"},
		{Config{Mode: models.Denoise, Ops: []entropy.Problem{entropy.Maxima2D}, Sigma: 1, Noise: Noise{Sigma: -1}},
			flat, "noise"},
	} {
		if _, err := New(c.cfg, c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
}

// The collector keeps finite points, spread over the frame, and a box of all.
func TestCollector(t *testing.T) {
	c := Collector{Dims: 2, Points: 10}
	nan := float32(math.NaN())
	var cloud geom.Cloud[float32]
	for i := range 100 {
		cloud.X, cloud.Y = append(cloud.X, float32(i), nan), append(cloud.Y, float32(-i), 1)
	}
	for _, f := range []geom.Cloud[float32]{cloud, {X: []float32{1, 2, nan, 4}, Y: []float32{1, 2, 3, 4}}, {}} {
		if err := c.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	d, err := c.Data()
	if err != nil || len(d.Learn) != 1 || c.Skipped() != 2 || len(c.frames) != 1 {
		t.Fatalf("%d frames, %d skipped: %v", len(d.Learn), c.Skipped(), err)
	}
	f := d.Learn[0]
	if want := []float32{0, 10, 20, 30, 40, 50, 60, 70, 80, 90}; !slices.Equal(f.Cloud.X, want) ||
		f.Hi[0] != 99 || f.Lo[1] != -99 {
		t.Errorf("kept %v, box %v %v", f.Cloud.X, f.Lo, f.Hi)
	}
	if _, err := (&Collector{Dims: 2}).Data(); err == nil {
		t.Error("no frame made data")
	}
	if err := (&Collector{Dims: 3}).Add(cloud); err == nil {
		t.Error("a cloud without z was taken for 3 dimensions")
	}
}

func TestF1(t *testing.T) {
	for _, c := range []struct {
		truth, found []int32
		want         float64
	}{{nil, nil, 1}, {[]int32{1}, nil, 0}, {[]int32{1, 3}, []int32{1, 2, 3, 4}, 2. / 3}, {[]int32{5}, []int32{5}, 1}} {
		if got := F1(c.truth, c.found); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("F1(%v, %v) = %v, want %v", c.truth, c.found, got, c.want)
		}
	}
	c := geomtest.Points([2]float32{0, 0}, [2]float32{0.5, 0}, [2]float32{9, 9})
	if got := TolerantF1(c, []int32{0}, []int32{1}, 2, 0.5); got != 1 {
		t.Errorf("a point within the tolerance counts %v", got)
	}
	if got := TolerantF1(c, []int32{0}, []int32{2}, 2, 0.5); got != 0 {
		t.Errorf("a point far off counts %v", got)
	}
}

// The history is JSON lines, the curves are XML with a line for every series.
func TestHistoryAndCurves(t *testing.T) {
	for _, mode := range []string{models.Perturb, models.Denoise} {
		tr := trainer(t, small(mode, 2, F), someData(t, 2, 5, 100), 20)
		lines := strings.Split(strings.TrimSpace(recordBytes(t, tr)), "\n")
		var last Record
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Step != 20 ||
			last.Judged == nil {
			t.Errorf("last line %q: %v", lines[len(lines)-1], err)
		}
		var b bytes.Buffer
		if err := tr.WriteCurves(&b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(b.String(), "stroke-width"); got != 7 {
			t.Errorf("%d lines, want 7", got)
		}
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
}
