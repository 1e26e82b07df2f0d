package pipeline

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"entropipe/ops/metrics"
	"entropipe/schemas"
	"entropipe/sparse/hf"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
)

// tinyEncoder is a BERT of random weights that reads 48 tokens.
func tinyEncoder(t testing.TB) *model.Model {
	t.Helper()
	return save(t, &hf.Config{Arch: hf.BERT, Model: "bert", Layers: 2, Hidden: 32, Inner: 64, Heads: 2, KVHeads: 2,
		Dim: 16, Vocab: 256, MaxPositions: 48, Types: 2,
		Act: hf.GELU, Eps: 1e-12, Scale: .25, QKVBias: true, OutBias: true, MLPBias: true, BOS: -1}, 4)
}

// A ladder changes rows, and neither they nor what is counted depends on batch,
// budget, cores and company. Without tolerance rows are those of dense attention.
func TestLadderRowsDoNotDependOnCompany(t *testing.T) {
	m := tinyEncoder(t)
	masked := tokenConfig(m, Embed)
	masked.Plan = windowed(t, m).For
	climbed, changed := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		alone := masked
		alone.Ladder = &kern.Ladder{Delta: rapid.Float64Range(.05, .6).Draw(rt, "delta"),
			Most: rapid.IntRange(0, 2).Draw(rt, "most")}
		alone.Budget, alone.Totals = 1, new(BatchTotals)
		dense, all := tokenConfig(m, Embed), alone
		all.Ladder, all.Totals = &kern.Ladder{Delta: 1e-9}, new(BatchTotals)
		var msgs []schemas.Message
		var want []Outcome
		for o := range rapid.IntRange(1, 3).Draw(rt, "messages") {
			var ids [][]int32
			for range 1 + rng.IntN(3) {
				ids = append(ids, randomIDs(rng, 1+rng.IntN(44)))
			}
			msgs = append(msgs, idMessage(t, int64(o), ids...))
			want = append(want, process(t, alone, msgs[o]))
			changed = changed || !cmp.Equal(want[o], process(t, masked, msgs[o]))
			full, whole := process(t, all, msgs[o]), process(t, dense, msgs[o])
			for i := range full.Results {
				if d := cmp.Diff(whole.Results[i].Tokens.Embedding, full.Results[i].Tokens.Embedding); d != "" {
					rt.Fatalf("without tolerance, not dense: %s", d)
				}
			}
		}
		cfg := alone
		cfg.Totals = new(BatchTotals)
		cfg.Budget = rapid.IntRange(1, 300).Draw(rt, "budget")
		cfg.Threads = rapid.IntRange(1, 2).Draw(rt, "threads")
		if d := cmp.Diff(want, NewTokens(cfg).Process(msgs)); d != "" {
			rt.Fatal(d)
		}
		if a, b := cfg.Totals, alone.Totals; a.Extended.Load() != b.Extended.Load() ||
			a.Dense.Load() != b.Dense.Load() || a.Rows.Load() != b.Rows.Load() || a.Rows.Load() == 0 {
			rt.Fatalf("together %d rows, %d extended, %d dense; alone %d, %d, %d", a.Rows.Load(), a.Extended.Load(),
				a.Dense.Load(), b.Rows.Load(), b.Extended.Load(), b.Dense.Load())
		}
		climbed += int(cfg.Totals.Extended.Load())
	})
	if climbed == 0 || !changed {
		t.Errorf("%d rows climbed; rows changed: %v", climbed, changed)
	}
}

// Audits are of rows as they were served: δ within the ladder's limit, errors
// within their bounds, and the rungs are those that the metrics count.
func TestAuditsOfALadder(t *testing.T) {
	m := tinyEncoder(t)
	rng := rand.New(rand.NewPCG(3, 0))
	var ids [][]int32
	tokens := 0
	for range 12 {
		ids = append(ids, randomIDs(rng, 20+rng.IntN(24)))
		tokens += len(ids[len(ids)-1])
	}
	reg := prometheus.NewRegistry()
	cfg := tokenConfig(m, Embed)
	cfg.Plan, cfg.Audit, cfg.Metrics, cfg.Ladder = windowed(t, m).For, 1, metrics.New(reg, "1"),
		&kern.Ladder{Delta: .3, Most: 1}
	extended, dense := 0, 0
	for _, r := range process(t, cfg, idMessage(t, 0, ids...)).Results {
		if len(r.Tokens.Stats) != 4 {
			t.Fatalf("%d statistics", len(r.Tokens.Stats))
		}
		for _, s := range r.Tokens.Stats {
			if !s.Ladder || s.Delta > .3 || s.Error > s.Bound || s.Extended+s.Dense > r.Tokens.NTokens {
				t.Errorf("%s: %+v", r.Tokens.ID, s)
			}
			extended, dense = extended+int(s.Extended), dense+int(s.Dense)
		}
	}
	if extended == 0 || dense == 0 {
		t.Fatalf("%d rows read more, %d all: nothing was tested", extended, dense)
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(fmt.Sprintf(`
# HELP entropipe_attention_rows_total Rows of attention heads under a ladder by the keys that they read: layout (the masks' blocks), extended (further blocks), dense (all keys).
# TYPE entropipe_attention_rows_total counter
entropipe_attention_rows_total{rung="dense",source="t"} %d
entropipe_attention_rows_total{rung="extended",source="t"} %d
entropipe_attention_rows_total{rung="layout",source="t"} %d
`, dense, extended, 4*tokens-dense-extended)), "entropipe_attention_rows_total"); err != nil {
		t.Error(err)
	}
	if b := cfg.Totals; b.Rows.Load() != int64(4*tokens) || b.Extended.Load() != int64(extended) ||
		b.Dense.Load() != int64(dense) {
		t.Errorf("totals: %d rows, %d extended, %d dense", b.Rows.Load(), b.Extended.Load(), b.Dense.Load())
	}
}
