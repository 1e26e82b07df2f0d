package pipeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"entropipe/models/safetensors"
	"entropipe/ops/metrics"
	"entropipe/schemas"
	"entropipe/sparse/hf"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/token"
)

// tiny is a GPT-2 of random weights, two layers and 48 positions, that knows
// every byte. big is what the weights are multiplied with.
func tiny(t testing.TB, big float32) *model.Model {
	t.Helper()
	c := &hf.Config{Arch: hf.GPT2, Model: "gpt2", Layers: 2, Hidden: 32, Inner: 64, Heads: 2, KVHeads: 2, Dim: 16,
		Vocab: 256, MaxPositions: 48,
		Causal: true, Act: hf.GELUTanh, Eps: 1e-5, Scale: .25, QKVBias: true, OutBias: true, MLPBias: true, Tied: true,
		Head: true, BOS: -1}
	return save(t, c, big)
}

func save(t testing.TB, c *hf.Config, big float32) *model.Model {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 0))
	tensors := map[string][]float32{}
	for _, tensor := range c.Tensors() {
		n := 1
		for _, d := range tensor.Shape {
			n *= d
		}
		v := make([]float32, n)
		for i := range v {
			v[i] = big * float32(rng.NormFloat64()) / 8
		}
		tensors[tensor.Name] = v
	}
	dir := t.TempDir()
	if err := hf.Save(dir, c, tensors, safetensors.F32); err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// letters is a tokenizer of bytes: every one is a token.
func letters(t testing.TB) *token.Tokenizer {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "bytes.json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := token.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func tokenConfig(m *model.Model, task Task) TokenConfig {
	c := TokenConfig{Model: m, Name: "tiny", Task: task, TopK: 3, MaxNew: 4, Budget: 100, Threads: 1,
		Metrics: metrics.New(prometheus.NewRegistry(), "1"), Totals: new(BatchTotals)}
	if m != nil {
		c.Pooling = m.Pooling()
	}
	return c
}

// idMessage is a record of sequences.
func idMessage(t testing.TB, offset int64, ids ...[]int32) schemas.Message {
	t.Helper()
	var rows []schemas.Sequence
	for i, v := range ids {
		rows = append(rows, schemas.Sequence{ID: fmt.Sprintf("%d/%d", offset, i), IDs: v})
	}
	value, err := new(schemas.Encoder).AppendTokens(nil, rows, schemas.Vocabulary{})
	if err != nil {
		t.Fatal(err)
	}
	return schemas.Message{Topic: "t", Offset: offset, Time: time.Unix(1, 0), Value: value,
		Headers: header(schemas.SchemaTokens)}
}

// messageBy is a record of sequences whose metadata say which tokenizer made them.
func messageBy(t testing.TB, v schemas.Vocabulary, ids ...[]int32) schemas.Message {
	t.Helper()
	m := idMessage(t, 0, ids...)
	var rows []schemas.Sequence
	for i, v := range ids {
		rows = append(rows, schemas.Sequence{ID: fmt.Sprint(i), IDs: v})
	}
	var err error
	if m.Value, err = new(schemas.Encoder).AppendTokens(nil, rows, v); err != nil {
		t.Fatal(err)
	}
	return m
}

// Ids of another tokenizer are refused, whole messages of them: they would make
// rows like any others. Ids that nobody answers for are read, and counted.
func TestIDsOfAnotherTokenizer(t *testing.T) {
	own, other := letters(t).SHA256(), strings.Repeat("ab", 32)
	text := textMessage(t, 0, "text")
	text.Headers = append(text.Headers, schemas.Header{Key: "tokenizer-sha256", Value: []byte(other)})
	for _, c := range []struct {
		name       string
		tokenizer  bool // the model has one
		msg        schemas.Message
		reject     string // stage and reason; empty: rows
		says       []string
		unverified int64
	}{
		{"its own", true, messageBy(t, schemas.Vocabulary{Tokenizer: "x", Size: 256, SHA256: own}, []int32{1},
			[]int32{2}), "", nil, 0},
		{"another", true, messageBy(t, schemas.Vocabulary{Size: 256, SHA256: other}, []int32{1}, []int32{2}),
			"model other_tokenizer", []string{own, other}, 0},
		{"a text for another", true, text, "model other_tokenizer", []string{own, other}, 0},
		{"a text", true, textMessage(t, 0, "text"), "", nil, 0},
		{"no hash", true, messageBy(t, schemas.Vocabulary{Size: 256}, []int32{1}, []int32{2}), "", nil, 2},
		{"nothing", true, idMessage(t, 0, []int32{1}, []int32{2}, []int32{3}), "", nil, 3},
		{"too many ids", true, messageBy(t, schemas.Vocabulary{Size: 257}, []int32{1}), "model other_vocabulary",
			[]string{"257", "256"}, 0},
		{"too few", true, messageBy(t, schemas.Vocabulary{Size: 255}, []int32{1}), "model other_vocabulary",
			[]string{"255", "256"}, 0},
		{"no tokenizer to compare with", false, messageBy(t, schemas.Vocabulary{Size: 200, SHA256: other}, []int32{1},
			[]int32{2}), "", nil, 2},
		{"no tokenizer, too many ids", false, messageBy(t, schemas.Vocabulary{Size: 257, SHA256: other}, []int32{1}),
			"model other_vocabulary", []string{"257"}, 0},
	} {
		cfg := tokenConfig(tiny(t, 1), Embed)
		if c.tokenizer {
			cfg.Tokenizer = letters(t)
		}
		got := process(t, cfg, c.msg)
		if n := cfg.Totals.Unverified.Load(); n != c.unverified {
			t.Errorf("%s: %d sequences unverified, want %d", c.name, n, c.unverified)
		}
		if c.reject == "" {
			if len(got.Rejects) > 0 || len(got.Results) == 0 {
				t.Errorf("%s: %d rows, %v", c.name, len(got.Results), got.Rejects)
			}
			continue
		}
		if len(got.Results) != 0 || len(got.Rejects) != 1 || got.Rejects[0].Index != -1 ||
			got.Rejects[0].Stage+" "+got.Rejects[0].Reason != c.reject {
			t.Errorf("%s: %d rows, %v, want %s", c.name, len(got.Results), got.Rejects, c.reject)
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(got.Rejects[0].Message, part) {
				t.Errorf("%s: %q does not name %s", c.name, got.Rejects[0].Message, part)
			}
		}
	}
}

func textMessage(t testing.TB, offset int64, lines ...string) schemas.Message {
	t.Helper()
	var rows []schemas.Sequence
	for i, v := range lines {
		rows = append(rows, schemas.Sequence{ID: fmt.Sprintf("%d/%d", offset, i), Text: v})
	}
	value, err := new(schemas.Encoder).AppendText(nil, rows)
	if err != nil {
		t.Fatal(err)
	}
	return schemas.Message{Topic: "t", Offset: offset, Time: time.Unix(1, 0), Value: value,
		Headers: header(schemas.SchemaText)}
}

func header(schema string) []schemas.Header {
	return []schemas.Header{{Key: schemas.HeaderSchema, Value: []byte(schema)}}
}

func randomIDs(rng *rand.Rand, n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(rng.IntN(256))
	}
	return v
}

// process returns what came of a message that is processed by itself.
func process(t testing.TB, cfg TokenConfig, m schemas.Message) Outcome {
	t.Helper()
	return NewTokens(cfg).Process([]schemas.Message{m})[0]
}

// A row is the same bits whatever batch, budget, number of cores and company of
// other messages it was read in.
func TestRowsDoNotDependOnCompany(t *testing.T) {
	m := tiny(t, 1)
	for _, task := range []Task{Embed, Logits, Generate} {
		alone := tokenConfig(m, task)
		alone.Budget = 1
		rapid.Check(t, func(rt *rapid.T) {
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
			var msgs []schemas.Message
			var want []Outcome
			for o := range rapid.IntRange(1, 4).Draw(rt, "messages") {
				var ids [][]int32
				for range 1 + rng.IntN(3) {
					ids = append(ids, randomIDs(rng, 1+min(rng.IntN(44), rng.IntN(44))))
				}
				msgs = append(msgs, idMessage(t, int64(o), ids...))
				want = append(want, process(t, alone, msgs[o]))
			}
			cfg := tokenConfig(m, task)
			cfg.Budget = rapid.IntRange(1, 300).Draw(rt, "budget")
			cfg.Threads = rapid.IntRange(1, 2).Draw(rt, "threads")
			if d := differ(want, NewTokens(cfg).Process(msgs)); d != "" {
				rt.Fatal(d)
			}
		})
	}
}

// Each task fills its columns and leaves the others null.
func TestTasks(t *testing.T) {
	m := tiny(t, 1)
	msg := idMessage(t, 3, []int32{1, 2, 3}, []int32{9})
	s := m.NewSession(1)
	hidden, err := s.Hidden(model.Batch{IDs: []int32{1, 2, 3}, Starts: []int32{0, 3}}, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	embedding := make([]float32, hidden.Cols)
	s.Pool(embedding, hidden, m.Pooling())

	out := process(t, tokenConfig(m, Embed), msg)
	if len(out.Results) != 2 || len(out.Rejects) != 0 {
		t.Fatalf("%+v", out)
	}
	r := out.Results[0]
	want := &schemas.TokenResult{ID: "3/0", Model: "tiny", ModelSHA: m.SHA256(), Weights: "f32", Task: "embed",
		Pooling: "mean", NTokens: 3, Embedding: embedding}
	if d := cmp.Diff(want, r.Tokens); d != "" || r.Offset != 3 || r.Index != 0 || r.NPoints != 0 {
		t.Errorf("embed: %s", d)
	}
	r = process(t, tokenConfig(m, Logits), msg).Results[1]
	if n := r.Tokens; len(n.TopIDs) != 3 || len(n.TopLogprobs) != 3 || n.Embedding != nil || n.NextIDs != nil ||
		n.Pooling != "none" || r.Index != 1 {
		t.Errorf("logits: %+v", n)
	}
	r = process(t, tokenConfig(m, Generate), msg).Results[0]
	if n := r.Tokens; len(n.NextIDs) != 4 || n.TopIDs != nil || n.Embedding != nil {
		t.Errorf("generate: %+v", n)
	}
	top := process(t, tokenConfig(m, Logits), msg).Results[0].Tokens
	if top.TopIDs[0] != r.Tokens.NextIDs[0] {
		t.Errorf("the likeliest next token is %d, and %d was generated", top.TopIDs[0], r.Tokens.NextIDs[0])
	}
}

// The likeliest tokens are those of a full sort, equal ones by their number,
// and all probabilities together are 1.
func TestRanks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		logits := rapid.SliceOfN(rapid.Float32Range(-3, 3), 1, 40).Draw(rt, "logits")
		for i := range logits {
			logits[i] = float32(math.Round(float64(logits[i]))) // ties
		}
		k := rapid.IntRange(1, 50).Draw(rt, "k")
		tok := &Tokens{cfg: TokenConfig{TopK: k}}
		it := &item{result: new(schemas.TokenResult)}
		tok.rank(it, logits)
		order := make([]int32, len(logits))
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortStableFunc(order, func(a, b int32) int { return int(logits[b]) - int(logits[a]) })
		if want := order[:min(k, len(order))]; !slices.Equal(it.result.TopIDs, want) {
			rt.Fatalf("%v of %v, want %v", it.result.TopIDs, logits, want)
		}
		sum := 0.
		for _, v := range it.result.TopLogprobs {
			sum += math.Exp(float64(v))
		}
		if sum > 1+1e-5 || k >= len(logits) && sum < 1-1e-5 {
			rt.Fatalf("probabilities add up to %v: %v", sum, it.result.TopLogprobs)
		}
	})
}

// What the model cannot read is a reject of its own, with a reason, and its
// neighbours are rows.
func TestRejectsOfSequences(t *testing.T) {
	m := tiny(t, 1)
	long := make([]int32, 60)
	for _, c := range []struct {
		name   string
		change func(*TokenConfig)
		msg    schemas.Message
		want   string // stage reason index, of each reject
		rows   int
	}{
		{"no model", func(c *TokenConfig) { c.Model = nil }, idMessage(t, 0, []int32{1}, []int32{2}),
			"model no_model -1", 0},
		{"beyond the vocabulary", nil, idMessage(t, 0, []int32{1}, []int32{2, 256}, []int32{3}),
			"model id_out_of_range 1", 2},
		{"too long", nil, idMessage(t, 0, long, []int32{2}), "model too_long 0", 1},
		{"no room to generate", func(c *TokenConfig) { c.Task = Generate }, idMessage(t, 0, long[:45], long[:44]),
			"model too_long 0", 1},
		{"no tokenizer", nil, textMessage(t, 0, "a", "b"), "model no_tokenizer 0, model no_tokenizer 1", 0},
		{"empty text", func(c *TokenConfig) { c.Tokenizer = letters(t) }, textMessage(t, 0, "a", "", "b"),
			"model empty_sequence 1", 2},
		{"broken message", nil, schemas.Message{Topic: "t", Value: []byte("no arrow"),
			Headers: header(schemas.SchemaTokens)}, "decode not_arrow -1", 0},
	} {
		cfg := tokenConfig(m, Embed)
		if c.change != nil {
			c.change(&cfg)
		}
		out := process(t, cfg, c.msg)
		var got []string
		for _, r := range out.Rejects {
			got = append(got, fmt.Sprintf("%s %s %d", r.Stage, r.Reason, r.Index))
		}
		if strings.Join(got, ", ") != c.want || len(out.Results) != c.rows {
			t.Errorf("%s: rejects %q, %d rows; want %q and %d", c.name, got, len(out.Results), c.want, c.rows)
		}
	}
}

// With Truncate the first tokens are read, as if no others had been sent.
func TestTruncation(t *testing.T) {
	m := tiny(t, 1)
	rng := rand.New(rand.NewPCG(1, 0))
	long := randomIDs(rng, 60)
	for task, keep := range map[Task]int{Embed: 48, Generate: 44} {
		cfg := tokenConfig(m, task)
		cfg.Truncate = true
		out := process(t, cfg, idMessage(t, 0, long, long[:keep]))
		if len(out.Results) != 2 {
			t.Fatalf("%s: %+v", task, out)
		}
		a, b := *out.Results[0].Tokens, *out.Results[1].Tokens
		if !a.Truncated || b.Truncated || a.NTokens != int32(keep) {
			t.Errorf("%s: truncated %v and %v, %d tokens", task, a.Truncated, b.Truncated, a.NTokens)
		}
		a.ID, a.Truncated = b.ID, false
		if d := differ(b, a); d != "" {
			t.Errorf("%s: %s", task, d)
		}
	}
}

// framed is the tokenizer of bytes with a token before every text and one behind,
// as BERT's has.
func framed(t testing.TB) *token.Tokenizer {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "bytes.json"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), `"post_processor": null`,
		`"post_processor": {"type": "BertProcessing", "cls": ["Ā", 0], "sep": ["ā", 1]}`, 1)
	tok, err := token.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// Within the model's positions a sequence is cut at the length that the model's
// folder names, and beyond them only with Truncate. Special tokens around a text
// stay, also around its ids, so that both make the same row.
func TestLongSequencesAreCut(t *testing.T) {
	tok := framed(t)
	text := "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	ids := func(text string) []int32 { return tok.Encode(nil, text) }
	for _, c := range []struct {
		name     string
		n        int // letters that are sent
		longest  int
		left     bool
		truncate bool
		want     []int32 // nil: a reject
	}{
		{"within", 6, 8, false, false, ids("abcdef")},
		{"beyond what is kept", 20, 8, false, false, ids("abcdef")},
		{"the beginning is dropped", 20, 8, true, false, ids("opqrst")},
		{"beyond the positions", 60, 8, false, false, nil},
		{"beyond the positions, to be cut", 60, 8, false, true, ids("abcdef")},
		{"nothing is named", 60, 0, false, true, ids(text[:46])},
		{"nothing is named, the beginning", 60, 0, true, true, ids(text[60-46 : 60])},
		{"more than the positions", 60, 100, false, true, ids(text[:46])},
		{"no room for a letter", 20, 2, false, false, ids("")},
		{"no room", 20, 1, true, false, []int32{0}},
	} {
		cfg := tokenConfig(tiny(t, 1), Embed)
		cfg.Tokenizer, cfg.Longest, cfg.CutLeft, cfg.Truncate = tok, c.longest, c.left, c.truncate
		text := text[:c.n]
		for kind, m := range map[string]schemas.Message{"text": textMessage(t, 0, text),
			"ids": idMessage(t, 0, ids(text))} {
			got := process(t, cfg, m)
			if c.want == nil {
				if len(got.Rejects) != 1 || got.Rejects[0].Reason != schemas.ReasonTooLong {
					t.Errorf("%s, %s: %+v", c.name, kind, got)
				}
				continue
			}
			plain := cfg
			plain.Longest, plain.Truncate = 0, false
			want := process(t, plain, idMessage(t, 0, c.want))
			if len(got.Results) != 1 || len(want.Results) != 1 {
				t.Fatalf("%s, %s: %+v, %+v", c.name, kind, got.Rejects, want.Rejects)
			}
			a, b := got.Results[0].Tokens, want.Results[0].Tokens
			if a.NTokens != b.NTokens || !slices.Equal(a.Embedding, b.Embedding) ||
				a.Truncated != (len(c.want) < len(ids(text))) {
				t.Errorf("%s, %s: %d tokens, truncated %v, want %d; or another embedding", c.name, kind, a.NTokens,
					a.Truncated, b.NTokens)
			}
		}
	}
}

// What is generated comes as text, too: what the tokenizer makes of the new ids,
// always UTF-8. Without a tokenizer there is none, nor of other tasks.
func TestGeneratedText(t *testing.T) {
	m := tiny(t, 1)
	for task, some := range map[Task]bool{Generate: true, Embed: false, Logits: false} {
		cfg := tokenConfig(m, task)
		for _, cfg.Tokenizer = range []*token.Tokenizer{letters(t), nil} {
			for i := range 20 {
				out := process(t, cfg, idMessage(t, 0, []int32{int32(13 * i)}))
				if len(out.Results) != 1 {
					t.Fatalf("%s: %+v", task, out)
				}
				r := out.Results[0].Tokens
				if (r.Text != nil) != (some && cfg.Tokenizer != nil) {
					t.Fatalf("%s: text %v", task, r.Text)
				}
				if r.Text != nil && (*r.Text != cfg.Tokenizer.Decode(r.NextIDs) || !utf8.ValidString(*r.Text)) {
					t.Errorf("%v becomes %q", r.NextIDs, *r.Text)
				}
			}
		}
	}
}

// A row names the tokenizer that made its ids: the model's of a text, the
// message's of ids, and none where nobody says it.
func TestRowsNameTheirTokenizer(t *testing.T) {
	own, other := letters(t).SHA256(), strings.Repeat("ab", 32)
	for _, c := range []struct {
		msg       schemas.Message
		tokenizer *token.Tokenizer
		want      string
	}{
		{textMessage(t, 0, "x"), letters(t), own},
		{messageBy(t, schemas.Vocabulary{SHA256: strings.ToUpper(own)}, []int32{1}), letters(t), own},
		{messageBy(t, schemas.Vocabulary{SHA256: other}, []int32{1}), nil, other},
		{idMessage(t, 0, []int32{1}), letters(t), ""},
	} {
		cfg := tokenConfig(tiny(t, 1), Embed)
		cfg.Tokenizer = c.tokenizer
		if out := process(t, cfg, c.msg); len(out.Results) != 1 || out.Results[0].Tokens.TokenizerSHA != c.want {
			t.Errorf("got %+v, want %q", out, c.want)
		}
	}
}

// A text is the tokens that its tokenizer makes of it.
func TestTextsAreTokenised(t *testing.T) {
	cfg := tokenConfig(tiny(t, 1), Embed)
	cfg.Tokenizer = letters(t)
	got := process(t, cfg, textMessage(t, 0, "hello"))
	want := process(t, cfg, messageBy(t, schemas.Vocabulary{SHA256: cfg.Tokenizer.SHA256()},
		cfg.Tokenizer.Encode(nil, "hello")))
	want.Results[0].Tokens.ID = got.Results[0].Tokens.ID
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Results that are no numbers are refused, for every task.
func TestResultsAreFinite(t *testing.T) {
	m := tiny(t, 1e30)
	for _, task := range []Task{Embed, Logits, Generate} {
		out := process(t, tokenConfig(m, task), idMessage(t, 0, []int32{1, 2}, []int32{3}))
		if len(out.Results) != 0 || len(out.Rejects) != 2 || out.Rejects[0].Reason != schemas.ReasonNotFinite ||
			out.Rejects[1].Index != 1 {
			t.Errorf("%s: %+v", task, out)
		}
	}
}

// A panic of the model costs the sequence that it is about, not its batch.
func TestPanicCostsOneSequence(t *testing.T) {
	cfg := tokenConfig(tiny(t, 1), Embed)
	var told []int32
	cfg.OnPanic = func(k schemas.FrameKey, _ any, stack []byte) { told = append(told, k.Index) }
	cfg.Route = func(_, i int, j *kern.Job) {
		if j.Q.Rows == 5 {
			panic("five")
		}
	}
	tok := NewTokens(cfg)
	msg := idMessage(t, 0, make([]int32, 4), make([]int32, 5), make([]int32, 6))
	out := tok.Process([]schemas.Message{msg})[0]
	want := process(t, tokenConfig(cfg.Model, Embed), idMessage(t, 0, make([]int32, 4)))
	if len(out.Results) != 2 || len(out.Rejects) != 1 || out.Rejects[0].Stage != schemas.StageOperate ||
		out.Rejects[0].Reason != schemas.ReasonPanic ||
		out.Rejects[0].Index != 1 || !slices.Equal(told, []int32{1}) {
		t.Fatalf("%+v, told %v", out, told)
	}
	if d := cmp.Diff(want.Results[0], out.Results[0]); d != "" {
		t.Error(d)
	}
}

// Batches fill the budget, and nothing is padded.
func TestBatchesAreCounted(t *testing.T) {
	cfg := tokenConfig(tiny(t, 1), Embed)
	reg := prometheus.NewRegistry()
	cfg.Metrics = metrics.New(reg, "1")
	process(t, cfg, idMessage(t, 0, make([]int32, 40), make([]int32, 30), make([]int32, 30), make([]int32, 20)))
	b := cfg.Totals
	if b.Batches.Load() != 2 || b.Tokens.Load() != 120 || b.Room.Load() != 200 ||
		b.Padding.Load() != 0 || b.Fill() != .6 {
		t.Errorf("%d batches, %d tokens of %d, %d padding, fill %v", b.Batches.Load(), b.Tokens.Load(), b.Room.Load(),
			b.Padding.Load(), b.Fill())
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP entropipe_batch_padding_tokens_total Padding tokens that models computed beside the sequences' tokens.
# TYPE entropipe_batch_padding_tokens_total counter
entropipe_batch_padding_tokens_total 0
# HELP entropipe_attention_plans_total Sequences by their attention: sparse (by frozen masks), dense (the model has masks, but not for this sequence), none (no masks).
# TYPE entropipe_attention_plans_total counter
entropipe_attention_plans_total{plan="none",source="t"} 4
`), "entropipe_batch_padding_tokens_total", "entropipe_attention_plans_total"); err != nil {
		t.Error(err)
	}
}
