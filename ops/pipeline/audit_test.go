package pipeline

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"entropipe/ops/metrics"
	"entropipe/schemas"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/plan"
	"entropipe/sparse/support"
)

// windowed returns plans of a window of one block for every head of m.
func windowed(t testing.TB, m *model.Model) *plan.Planner {
	t.Helper()
	c := m.Config()
	facts := support.Facts{Arch: c.Arch, Weights: m.SHA256(), Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads,
		Dim: c.Dim, Causal: c.Causal}
	set := &support.Set{Facts: facts, Block: 16, Mode: support.Static, Serve: support.Sparse, Reason: "a test",
		Select: support.Selector{Name: "window"},
		Buckets: []support.Bucket{{Length: 48, Layouts: []*support.Layout{support.New(48, 16, c.Causal,
			func(r int) []int32 {
				return []int32{int32(r)}
			})}, Of: make([]int32, c.Layers*c.KVHeads)}}}
	p, err := plan.New(set, plan.Facts{Facts: facts, Always: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Of so many sequences one is compared with dense attention, always the same
// one; what it dropped is in its row, and within its bound. Rows do not depend
// on what is compared.
func TestAudits(t *testing.T) {
	m := tiny(t, 1)
	rng := rand.New(rand.NewPCG(2, 0))
	var ids [][]int32
	for range 40 {
		ids = append(ids, randomIDs(rng, 20+rng.IntN(24)))
	}
	msg := idMessage(t, 0, ids...)
	for _, task := range []Task{Embed, Logits, Generate} {
		reg := prometheus.NewRegistry()
		cfg := tokenConfig(m, task)
		cfg.Plan, cfg.Audit, cfg.Metrics = windowed(t, m).For, 4, metrics.New(reg, "1")
		out := process(t, cfg, msg)
		n := 0
		for i := range out.Results {
			r := out.Results[i].Tokens
			if audited(r.ID, 4) != (len(r.Stats) > 0) || r.MaskSHA == "" {
				t.Errorf("%s: %s has %d statistics", task, r.ID, len(r.Stats))
			}
			if len(r.Stats) == 0 {
				continue
			}
			n++
			if len(r.Stats) != 4 || r.Stats[3].Layer != 1 || r.Stats[3].Head != 1 {
				t.Fatalf("%s: %+v", task, r.Stats)
			}
			for _, s := range r.Stats {
				if s.KeptMass <= 0 || s.KeptMass >= 1 || s.Delta <= 0 || s.Delta > 1 || s.Error <= 0 ||
					s.Error > s.Bound*(1+1e-6) {
					t.Errorf("%s: %s: %+v", task, r.ID, s)
				}
			}
			r.Stats = nil
		}
		if n == 0 || n == 40 {
			t.Errorf("%s: %d of 40 sequences were compared", task, n)
		}
		if err := testutil.GatherAndCompare(reg, strings.NewReader(fmt.Sprintf(`
# HELP entropipe_attention_audits_total Sequences that were compared with dense attention, by result: ok, failed.
# TYPE entropipe_attention_audits_total counter
entropipe_attention_audits_total{result="ok"} %d
# HELP entropipe_attention_plans_total Sequences by their attention: sparse (by frozen masks), dense (the model has masks, but not for this sequence), none (no masks).
# TYPE entropipe_attention_plans_total counter
entropipe_attention_plans_total{plan="sparse",source="t"} 40
`, n)), "entropipe_attention_audits_total", "entropipe_attention_plans_total"); err != nil {
			t.Error(err)
		}
		cfg.Audit = 0
		if d := cmp.Diff(process(t, cfg, msg), out); d != "" {
			t.Errorf("%s: audits change rows: %s", task, d)
		}
		cfg.Plan = nil
		dense := process(t, cfg, msg)
		if cmp.Equal(dense, out) || dense.Results[0].Tokens.MaskSHA != "" {
			t.Errorf("%s: masks change nothing", task)
		}
	}
}

// tokenLog is a topic of messages of sequences, among them some of other kinds.
type tokenLog struct {
	topicLog
	value func(offset int64) schemas.Message
	read  chan struct{} // closed when all of it is
}

func (l *tokenLog) Fetch(ctx context.Context, from int64, n int32) (schemas.Fetched, error) {
	f, err := l.topicLog.Fetch(ctx, from, n)
	if err == io.EOF {
		close(l.read)
	}
	for i := range f.Messages {
		f.Messages[i] = l.value(f.Messages[i].Offset)
	}
	return f, err
}

// Small messages that wait are read together, whatever stands between them, and
// their rows come in the order of their offsets.
func TestWaitingMessagesShareBatches(t *testing.T) {
	const messages = 300
	m := tiny(t, 1)
	cfg := tokenConfig(m, Embed)
	log := &tokenLog{read: make(chan struct{}),
		topicLog: topicLog{data: map[int64]int{}, end: messages, perFetch: 100, rng: rand.New(rand.NewPCG(4, 0))}}
	// The model begins when all are waiting, whoever is quicker.
	cfg.Route = func(int, int, *kern.Job) { <-log.read }
	for o := range int64(messages) {
		log.data[o] = 10
	}
	rng := rand.New(rand.NewPCG(8, 0))
	ids := make([][]int32, messages)
	for i := range ids {
		ids[i] = randomIDs(rng, 1+rng.IntN(8))
	}
	log.value = func(o int64) schemas.Message {
		if o%50 == 49 {
			return schemas.Message{Topic: "t", Offset: o, Time: time.Unix(1, 0), Value: []byte("a cloud"),
				Headers: header(schemas.SchemaPoints)}
		}
		return idMessage(t, o, ids[o])
	}
	out := &memoryOutput{}
	p := newPipeline(out, echo(0), func(c *Config) {
		c.Workers, c.Queue = 2, messages
		c.NewTokens = func() *Tokens { return NewTokens(cfg) }
	})
	err := p.Partition(t.Context(), "t", 0, log)
	p.Close()
	if err != nil {
		t.Fatal(err)
	}
	next, tokens := int64(0), 0
	for _, b := range out.batches {
		for i := range b.Results {
			r := &b.Results[i]
			for next%7 == 3 && next%50 == 49 {
				next++ // refused by echo
			}
			if r.Offset != next || (r.Tokens == nil) != (next%50 == 49) {
				t.Fatalf("row of offset %d, %+v, want that of %d", r.Offset, r.Tokens, next)
			}
			if r.Tokens != nil {
				tokens += int(r.Tokens.NTokens)
				if want := process(t, tokenConfig(m, Embed), idMessage(t, next, ids[next])).Results[0]; i%17 == 0 &&
					!cmp.Equal(want, *r) {
					t.Errorf("offset %d: another row than by itself", next)
				}
			}
			next++
		}
	}
	st := p.Stats()
	if b := cfg.Totals.Batches.Load(); b >= 294/3 || st.Sequences != 294 || st.Tokens != int64(tokens) ||
		st.Frames+st.Rejects != 6 {
		t.Errorf("294 messages in %d batches; %+v", b, st)
	}
}
