package train

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// someAnswers is a text of sequences that ask three times each for twice the
// first token, and the targets that it was made with.
func someAnswers(t testing.TB, sequences, length int, seed uint64) *Text {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 6))
	var ids, targets []int32
	for range sequences {
		first := int32(r.IntN(11))
		asked := r.Perm(length)[:3]
		for i := range length {
			id, target := int32(r.IntN(11)), int32(NoTarget)
			if i == 0 {
				id = first
			}
			if slices.Contains(asked, i) {
				target = first * 2 % 11
			}
			ids, targets = append(ids, id), append(targets, target)
		}
	}
	text, err := AnswerText("made", ids, targets, length, 11, nil)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Tokens without a target do not change loss and gradient: both equal those of the
// reference, which omits such tokens.
func TestGradientsOfAnswersAreFiniteDifferences(t *testing.T) {
	c := Config{Dim: 24, Heads: 3, Context: 67, Steps: 100, Batch: 2, Regulariser: Entropy, Lambda: 0.7, Seed: 3}
	tr, err := NewLM(c, someAnswers(t, 40, 67, 1))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 7))
	for i := range tr.net.params {
		tr.net.params[i] += 0.1 * float32(random.NormFloat64())
	}
	tr.step = 40
	pl := tr.plan()
	tr.prepareRegulariser(pl)
	tr.net.pack(1)
	tr.gradients(pl)
	rec, ref := tr.sum(pl), referenceOf(tr, pl)
	if got, want := rec.Loss+pl.lambda*rec.Regulariser, ref.total(tr, pl); math.Abs(got-want) > 1e-4*math.Abs(want) {
		t.Errorf("loss and regulariser %v, the reference has %v", got, want)
	}
	check := slopes{t: t, tries: 2, value: func() float64 { return ref.total(tr, pl) }, r: rand.New(rand.NewPCG(3, 3))}
	for _, name := range []string{"tokens", "positions", "0qkv", "1down", "gamma"} {
		at := tensorsOf(&ref.f)[name]
		end := at.at + at.rows*at.cols
		check.compare(name, ref.params[at.at:end], tr.parts[0].grads[at.at:end])
	}
}

// Answers are learned, and held-out ones are counted by what is asked alone.
func TestAnswersAreLearned(t *testing.T) {
	text := someAnswers(t, 400, 12, 2)
	tr, err := NewLM(Config{Layers: 1, Dim: 16, Heads: 2, Context: 12, Steps: 150, Batch: 16, Rate: 0.01, Seed: 1},
		text)
	if err != nil {
		t.Fatal(err)
	}
	before := tr.Judge(0)
	for !tr.Done() {
		if err := tr.Step(); err != nil {
			t.Fatal(err)
		}
	}
	after := tr.Judge(0)
	if before.Targets != 40*3 || after.Targets != 40*3 {
		t.Errorf("%d and %d targets, want 3 of each of 40 sequences", before.Targets, after.Targets)
	}
	if !(before.Accuracy < 0.5 && after.Accuracy > 0.9) {
		t.Errorf("accuracy %v before, %v after", before.Accuracy, after.Accuracy)
	}
	if card := tr.Card(""); !strings.Contains(card, "answer what is asked 3 times in a sequence") ||
		!strings.Contains(card, "targets looked at | 120 of 120") {
		t.Errorf("card:\n%s", card)
	}
	losses, right := tr.Each(0)
	ids, targets := text.Windows(12)
	if len(ids) != 40 || len(losses) != 40 {
		t.Fatalf("%d sequences and %d losses, want 40", len(ids), len(losses))
	}
	for i, row := range targets {
		asked := 0
		for _, target := range row {
			if target != NoTarget {
				asked++
			}
		}
		if asked != 3 || right[i] > 3 || !(losses[i] >= 0) {
			t.Errorf("sequence %d: asks %d times, %d right, loss %v", i, asked, right[i], losses[i])
		}
	}
}

// Sequences that the text was made of stay whole, in batches and held out.
func TestSequencesOfAnswersStayWhole(t *testing.T) {
	text := someAnswers(t, 30, 8, 3)
	tr, err := NewLM(Config{Layers: 1, Dim: 8, Heads: 1, Context: 8, Steps: 1, Batch: 5}, text)
	if err != nil {
		t.Fatal(err)
	}
	p := newPass(tr.net, 5)
	p.begin(5)
	whole := func(ids, targets, of, asked []int32) bool {
		for at := 0; at < len(of); at += 8 {
			if slices.Equal(ids, of[at:at+8]) && slices.Equal(targets, asked[at:at+8]) {
				return true
			}
		}
		return false
	}
	for step := range 20 {
		tr.data.batch(p, 9, step, 0)
		for s := range 5 {
			if ids, targets := p.ids[8*s:8*s+8], p.next[8*s:8*s+8]; !whole(ids, targets, text.Learn, text.learnt) {
				t.Errorf("step %d, sequence %d: %v, %v is none that was given", step, s, ids, targets)
			}
		}
	}
	for i := range tr.data.heldOut() {
		tr.data.held(p, 0, i)
		if !whole(p.ids[:8], p.next[:8], text.Held, text.asked) {
			t.Errorf("held-out sequence %d: %v, %v is none that was given", i, p.ids[:8], p.next[:8])
		}
	}
	if ids, _ := text.Windows(7); ids != nil {
		t.Errorf("windows of another length: %v", ids)
	}
}

func TestAnswerTextErrors(t *testing.T) {
	ids := slices.Repeat([]int32{1, 2, 3, 4, 5}, 8)
	targets := slices.Repeat([]int32{NoTarget, 2, NoTarget, 1, NoTarget}, 8)
	if _, err := AnswerText("made", ids, targets, 5, 6, nil); err != nil {
		t.Fatal(err)
	}
	with := func(v []int32, at int, to int32) []int32 {
		v = slices.Clone(v)
		v[at] = to
		return v
	}
	for _, c := range []struct {
		ids, targets []int32
		length       int
		want         string
	}{
		{ids, targets, 7, "sequences of 7"},
		{ids, targets, 0, "sequences of 0"},
		{ids, targets, 40, "two or more sequences"},
		{ids, targets[1:], 5, "with 39 targets"},
		{ids[:10], targets[:10], 5, "too few"},
		{with(ids, 3, 6), targets, 5, "token 3 is 6"},
		{ids, with(targets, 8, -2), 5, "target 8 is -2"},
		{ids, with(targets, 8, 6), 5, "target 8 is 6"},
		{ids, with(targets, 8, NoTarget), 5, "sequence 1 asks 1 times"},
		{ids, with(targets, 39, 0), 5, "sequence 7 asks 3 times"},
		{ids, slices.Repeat([]int32{NoTarget}, 40), 5, "at least once"},
	} {
		_, err := AnswerText("made", c.ids, c.targets, c.length, 6, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("sequences of %d: error %v, want %q", c.length, err, c.want)
		}
	}
	text := someAnswers(t, 30, 8, 3)
	if _, err := NewLM(Config{Context: 16, Steps: 1}, text); err == nil ||
		!strings.Contains(err.Error(), "context is 16 but must be 8") {
		t.Errorf("another context: error %v", err)
	}
}
