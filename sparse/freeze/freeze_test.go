package freeze

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/models/mat"
	"entropipe/sparse/hf/hftest"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

// bigViT has 101 tokens: 7 blocks of 16.
const bigViT = `{"model_type":"vit","architectures":["ViTForImageClassification"],"hidden_size":48,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":80,"image_size":[40,40],"patch_size":4,"num_channels":2,"id2label":{"0":"a","1":"b","2":"c"}}`

func load(t testing.TB, config string) *model.Model {
	t.Helper()
	m, err := model.Load(hftest.Dir(t, hftest.Config(t, config)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sequences draws count sequences of n ids below 61.
func sequences(count, n int) Inputs {
	r := rand.New(rand.NewPCG(4, uint64(n)))
	var in Inputs
	for range count {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(r.IntN(61))
		}
		in.Sequences = append(in.Sequences, ids)
	}
	return in
}

// images draws count images for bigViT.
func images(count int) Inputs {
	r := rand.New(rand.NewPCG(4, 0))
	pixels := make([]float32, count*2*40*40)
	for i := range pixels {
		pixels[i] = float32(r.NormFloat64())
	}
	return Inputs{Images: pixels}
}

// cases are a model, its inputs and options for each way to freeze.
func cases() map[string]struct {
	config string
	in     Inputs
	o      Options
} {
	type run = struct {
		config string
		in     Inputs
		o      Options
	}
	all := map[string]run{}
	for name, config := range map[string]string{"bert": hftest.BERT, "gpt2": hftest.GPT2, "llama": hftest.LLaMA} {
		for _, selector := range []string{Mass, Window, BigBird, Affinity, Entropy} {
			if name == "llama" && selector != Mass && selector != Entropy {
				continue // shared keys are the same to the others
			}
			all[name+" "+selector] = run{config, sequences(5, 96),
				Options{Select: selector, Sparsity: 0.5, Block: 16, Buckets: []int{96}, Seed: 1}}
		}
	}
	all["bert anchor"] = run{hftest.BERT, sequences(5, 96),
		Options{Select: Entropy, Mode: support.Anchor, Sparsity: 0.5, Block: 16, Buckets: []int{96}}}
	all["vit entropy"] = run{bigViT, images(5), Options{Select: Entropy, Permute: true, Sparsity: 0.5, Block: 16}}
	all["vit affinity"] = run{bigViT, images(5), Options{Select: Affinity, Permute: true, Sparsity: 0.5, Block: 16}}
	all["vit mass"] = run{bigViT, images(5), Options{Select: Mass, Sparsity: 0.7, Block: 16}}
	return all
}

// Every selector gives a valid set whose rows have the same budget, whose
// certificates hold, and which does not depend on the number of goroutines.
func TestSelectorsKeepTheirBudgetAndTheirWord(t *testing.T) {
	models := map[string]*model.Model{}
	for name, c := range cases() {
		if models[c.config] == nil {
			models[c.config] = load(t, c.config)
		}
		m := models[c.config]
		t.Run(name, func(t *testing.T) {
			s, err := Freeze(t.Context(), m, c.in, c.o)
			if err != nil {
				t.Fatal(err)
			}
			checkBudgets(t, s, c.o)
			for i, cert := range s.Certs {
				if cert.Error > cert.Bound+1e-5 || cert.MassMin > cert.MassP01+1e-4 ||
					cert.MassP01 > cert.MassMean+1e-4 || cert.MassMean > 1 || cert.Run < 1 {
					t.Errorf("head %d: %+v", i, cert)
				}
			}
			if !slices.ContainsFunc(s.Certs, func(c support.Cert) bool {
				return c.MassMin < 0.999 && c.Error > 1e-3
			}) || s.Quality.Dense == s.Quality.Sparse {
				t.Errorf("certificates and quality are those of dense attention: %+v, %+v", s.Certs, s.Quality)
			}
			if s.Quality.Window == s.Quality.Dense || (s.Quality.Window == s.Quality.Sparse) != (c.o.Select == Window) {
				t.Errorf("the window's quality: %+v", s.Quality)
			}
			if s.Quality.Sequences != 2 || s.Source.Sequences != 3 || s.Reason == "" {
				t.Errorf("%+v, %+v, %q", s.Quality, s.Source, s.Reason)
			}
			c.o.Workers = 3
			again, err := Freeze(t.Context(), m, c.in, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s, again); diff != "" {
				t.Errorf("with 3 workers: %s", diff)
			}
		})
	}
}

// Clusters are chosen alike on every CPU level: their last bits do not show.
func TestLevelsChooseTheSame(t *testing.T) {
	for name, c := range cases() {
		if c.o.Select != Entropy && c.o.Select != Affinity {
			continue
		}
		t.Run(name, func(t *testing.T) {
			m := load(t, c.config)
			best, err := Freeze(t.Context(), m, c.in, c.o)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := best.SHA256()
			for _, level := range []mat.Level{mat.AVX2, mat.Portable} {
				if level >= mat.Best() {
					continue
				}
				restore := mat.Limit(level)
				s, err := Freeze(t.Context(), m, c.in, c.o)
				restore()
				if err != nil {
					t.Fatal(err)
				}
				if got, _ := s.SHA256(); got != want {
					t.Errorf("%v freezes %s, %v %s", level, got, mat.Best(), want)
				}
			}
		})
	}
}

func checkBudgets(t *testing.T, s *support.Set, o Options) {
	t.Helper()
	if s.Mode == support.Anchor {
		return // made for each input; package plan counts them
	}
	for head, of := range s.Buckets[0].Of {
		l := s.Buckets[0].Layouts[of]
		for r := range l.Rows {
			cols, _ := l.Row(r)
			want := support.Budget(o.Sparsity, r, l.Cols, s.Causal)
			if len(cols) != want {
				t.Errorf("head %d, row %d reads %v: want %d blocks", head, r, cols, want)
			}
			if l.Order == nil && (!slices.Contains(cols, int32(r)) || want > 1 && cols[0] != 0) {
				t.Errorf("head %d, row %d reads %v: without its own or the first block", head, r, cols)
			}
		}
	}
}

// The first and the own block, then what lies near: rows 0, 5 and 9 of 10.
func TestWindowsAreTheNearestBlocks(t *testing.T) {
	f := &run{o: Options{Block: 16, Sparsity: 0.6}, c: hftest.Config(t, hftest.BERT)}
	l := f.natural(160, func(r int) []float64 { return nearness(r, 10) })
	causal := &run{o: f.o, c: hftest.Config(t, hftest.GPT2)}
	past := causal.natural(160, func(r int) []float64 { return nearness(r, 10) })
	for _, c := range []struct {
		l    *support.Layout
		row  int
		want []int32
	}{
		{l, 0, []int32{0, 1, 2, 3}}, {l, 5, []int32{0, 4, 5, 6}}, {l, 9, []int32{0, 7, 8, 9}},
		{past, 0, []int32{0}}, {past, 5, []int32{0, 4, 5}}, {past, 9, []int32{0, 7, 8, 9}},
	} {
		if got, _ := c.l.Row(c.row); !slices.Equal(got, c.want) {
			t.Errorf("row %d: %v, want %v", c.row, got, c.want)
		}
	}
}

// Lots are part of the format's meaning: another program draws the same.
func TestLotsAreGolden(t *testing.T) {
	if got := fmt.Sprintf("%x %x %x", lot(1, 2, 3), lot(0), lot(1, 0, 5, 3)); got != goldenLots {
		t.Errorf("got %s", got)
	}
	f := &run{o: Options{Block: 16, Sparsity: 0.5, Seed: 1}, c: hftest.Config(t, hftest.BERT)}
	l := f.natural(192, func(r int) []float64 { return f.lots(3, r, 12) })
	for r := range l.Rows {
		cols, _ := l.Row(r)
		for _, near := range []int{0, r} {
			if !slices.Contains(cols, int32(near)) {
				t.Errorf("row %d reads %v, without %d", r, cols, near)
			}
		}
	}
	g := &run{o: f.o, c: f.c}
	g.o.Seed = 2
	if g.natural(192, func(r int) []float64 { return g.lots(3, r, 12) }).Equal(l) {
		t.Error("another seed draws the same")
	}
}

const goldenLots = "6ae515c1c0ac7e37 e220a8397b1dcdaf 901417a412abd7d9"

// No selector of a head's budget keeps more mass on the calibration than mass.
func TestMassKeepsTheMost(t *testing.T) {
	m := load(t, hftest.GPT2)
	o := Options{Select: Mass, Sparsity: 0.5, Block: 16, Buckets: []int{96}}
	f, err := newRun(t.Context(), m, sequences(6, 96), o)
	if err != nil {
		t.Fatal(err)
	}
	masses, err := f.captureMass()
	if err != nil {
		t.Fatal(err)
	}
	mass, err := f.choose()
	if err != nil {
		t.Fatal(err)
	}
	kept := func(s *support.Set, head int) (sum float64) {
		l := s.Buckets[0].Layouts[s.Buckets[0].Of[head]]
		for r := range l.Rows {
			cols, _ := l.Row(r)
			for _, c := range cols {
				sum += masses[0].sums[head][r*6+int(c)]
			}
		}
		return sum
	}
	for head := range mass.Buckets[0].Of {
		total := 0.0
		for _, x := range masses[0].sums[head] {
			total += x
		}
		if math.Abs(total-6) > 1e-4 {
			t.Errorf("head %d: 6 rows of mass sum to %v", head, total)
		}
		if a, b := kept(mass, head), kept(f.window(), head); a < b-1e-9 {
			t.Errorf("head %d: mass keeps %v, a window %v", head, a, b)
		}
	}
}

// An account agrees with what the kernel, in float32, makes of the definitions. The
// kernel's logits are off by u·scale·|q|·|k| times some two (Higham and Mary, 2019,
// four deviations), an output by as much of the largest value, and by some u of it;
// two outputs of 8 numbers are compared.
func TestAccountsAreTheDefinitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, causal := rapid.IntRange(1, 60).Draw(t, "n"), rapid.Bool().Draw(t, "causal")
		r := rand.New(rand.NewPCG(5, rapid.Uint64Range(0, 99).Draw(t, "seed")))
		matrix := func(cols int) mat.Matrix {
			x := mat.Of(n, cols, make([]float32, n*cols))
			for i := range x.Data {
				x.Data[i] = float32(2 * r.NormFloat64())
			}
			return x
		}
		j := &kern.Job{Q: matrix(16), Out: matrix(16), K: matrix(8), V: matrix(8), Heads: 2, KVHeads: 1, Dim: 8,
			Scale: 0.5, Causal: causal}
		l := support.New(n, 16, causal, func(r int) []int32 {
			if r == 0 {
				return []int32{0}
			}
			return []int32{int32(r - 1), int32(r)}
		})
		a := account{histogram: make([]int64, bins+1), least: 1}
		a.add(j, 1, l)
		dense := *j
		new(kern.Scratch).Attend([]kern.Job{dense}, 1)
		want := slices.Clone(j.Out.Data)
		j.Layouts = []*support.Layout{l}
		new(kern.Scratch).Attend([]kern.Job{*j}, 1)
		worst := 0.0
		for q := range n {
			d := 0.0
			for c := 8; c < 16; c++ {
				e := float64(j.Out.Data[q*16+c] - want[q*16+c])
				d += e * e
			}
			worst = max(worst, math.Sqrt(d))
		}
		longest := func(m mat.Matrix, head int) (most float64) {
			for row := range slices.Chunk(floats(m, head, 8), 8) {
				most = max(most, norm(row))
			}
			return most
		}
		logit := float64(j.Scale) * longest(j.Q, 1) * longest(j.K, 0)
		if off := (4*logit + 8) * 0x1p-24 * longest(j.V, 0); math.Abs(worst-a.worst) > 2*math.Sqrt(8)*off {
			t.Fatalf("error %v, the kernel's %v", a.worst, worst)
		}
		if c := a.cert(); c.Error > c.Bound*(1+1e-6)+1e-6 {
			t.Fatalf("%+v", c)
		}
	})
}

// A mask that keeps everything loses nothing; the verdict goes by the rule.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		q        support.Quality
		selector string
		want     string
	}{
		{support.Quality{Metric: "cosine", LostHigh: 0.4, GainedLow: 0.1}, Mass, support.Sparse},
		{support.Quality{Metric: "cosine", LostHigh: 0.6, GainedLow: 0.1}, Mass, support.Dense},
		{support.Quality{Metric: "cosine", LostHigh: 0.4, GainedLow: 0}, Mass, support.Dense},
		{support.Quality{Metric: "cosine", LostHigh: 0.4}, Window, support.Sparse},
		{support.Quality{Metric: "perplexity", LostHigh: 1.9, GainedLow: 0.1}, Mass, support.Sparse},
		{support.Quality{Metric: "perplexity", LostHigh: 2.1, GainedLow: 0.1}, Mass, support.Dense},
		{support.Quality{Metric: "perplexity", LostHigh: math.NaN(), GainedLow: 0.1}, Mass, support.Dense},
		// A model that learned with the mask: dense attention is what costs.
		{support.Quality{Metric: "perplexity", LostLow: -40, LostHigh: -30, GainedLow: -2}, Mass, support.Sparse},
		{support.Quality{Metric: "perplexity", LostLow: -2, LostHigh: 0.8, GainedLow: -2}, Mass, support.Dense},
	} {
		if got, why := verdict(&c.q, c.selector); got != c.want || why == "" {
			t.Errorf("%+v, selector %s: %s (%s)", c.q, c.selector, got, why)
		}
	}
}

func TestIntervalsAreStudents(t *testing.T) {
	for freedom, want := range map[int]float64{1: 12.7062, 4: 2.7764, 9: 2.2622, 10: 2.2281, 15: 2.1314,
		30: 2.0423, 1000: 1.9623} {
		if got := student(freedom); math.Abs(got-want) > 6e-4 {
			t.Errorf("%d degrees: %v, want %v", freedom, got, want)
		}
	}
	at, low, high := interval([]float64{1, 2, 3}, func(x float64) float64 { return x })
	if math.Abs(at-2) > 1e-12 || math.Abs(high-2-4.3027/math.Sqrt(3)) > 1e-9 || math.Abs(at-low-(high-at)) > 1e-9 {
		t.Errorf("%v from %v to %v", at, low, high)
	}
}

// spelled encodes bytes between two marks.
type spelled struct{}

func (spelled) Encode(dst []int32, text string) []int32 {
	dst = append(dst, 1000)
	for _, c := range []byte(text) {
		dst = append(dst, int32(c))
	}
	return append(dst, 1001)
}

func TestPiecesHaveTheLengthAndTheMarks(t *testing.T) {
	got := Pieces(spelled{}, slices.Values([]string{"abc", "", "defgh", "i"}), 5, 9)
	want := [][]int32{{1000, 'a', 'b', 'c', 1001}, {1000, 'd', 'e', 'f', 1001}, {1000, 'g', 'h', 'i', 1001}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := Pieces(spelled{}, slices.Values([]string{"abcdef"}), 5, 1); len(got) != 1 {
		t.Errorf("%d pieces, want 1", len(got))
	}
	if got := Pieces(spelled{}, slices.Values([]string{"abc"}), 2, 9); got != nil {
		t.Errorf("pieces without room: %v", got)
	}
}

// Anchors that are fitted to well separated clouds stand in them, whatever the
// keys' offset, and other last bits of the keys change nothing.
func TestAnchorsFindClouds(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	for seed := range uint64(20) {
		keys := mat.Of(300, 4, make([]float32, 1200))
		for i := range keys.Rows {
			for c := range 4 {
				keys.Row(i)[c] = float32(100+20*(i%3)*(1-2*(c%2))) + float32(r.NormFloat64())
			}
		}
		anchors, alpha := kMeans(keys, 3, lot(seed))
		var m measure
		m.set(anchors)
		p := mat.Of(keys.Rows, 3, make([]float32, 900))
		m.near(p, keys)
		mat.Softmax(p, float32(alpha))
		for i := range keys.Rows {
			near := slices.Index(p.Row(i), slices.Max(p.Row(i)))
			if d := distance(keys.Row(i), anchors.Row(near)); d > 40 {
				t.Fatalf("seed %d, key %d, %v: nearest %v, assigned %v", seed, i, keys.Row(i),
					anchors.Row(near), p.Row(i))
			}
		}
		for i, x := range keys.Data {
			keys.Data[i] = x * (1 + float32(i%3-1)/(1<<23))
		}
		if again, _ := kMeans(keys, 3, lot(seed)); !slices.Equal(anchors.Data, again.Data) {
			t.Errorf("seed %d: anchors %v, and of keys with other last bits %v", seed, anchors.Data, again.Data)
		}
	}
}
