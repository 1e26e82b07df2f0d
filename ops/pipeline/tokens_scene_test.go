package pipeline

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"entropipe/ops/live"
	"entropipe/schemas"
)

// A sequence that somebody views is a scene of its words, what comes next, and the blocks of
// its mask; the row is the same as without a viewer.
func TestSceneOfASequence(t *testing.T) {
	m := tiny(t, 1)
	msg := idMessage(t, 3, randomIDs(rand.New(rand.NewPCG(1, 2)), 40))
	for _, task := range []Task{Embed, Logits, Generate} {
		cfg := tokenConfig(m, task)
		cfg.Plan, cfg.Tokenizer = windowed(t, m).For, letters(t)
		plain := process(t, cfg, msg)
		cfg.Tap = &live.Tap{}
		cfg.Tap.Always()
		if got := process(t, cfg, msg); fmt.Sprint(got.Results[0].Tokens.ID, got.Results[0].Tokens.TopIDs) !=
			fmt.Sprint(plain.Results[0].Tokens.ID, plain.Results[0].Tokens.TopIDs) {
			t.Errorf("%s: the row changes with a viewer", task)
		}
		s := cfg.Tap.Newest(cfg.Tap.Streams()[0])
		if s == nil || s.Text == nil || s.Offset != 3 {
			t.Fatalf("%s: scene %+v", task, s)
		}
		x := s.Text
		if x.ID != "3/0" || x.Task != string(task) || x.NTokens != 40 || len(x.IDs) != 40 || len(x.Words) != 40 ||
			x.Generated != (task == Generate) {
			t.Errorf("%s: %+v", task, x)
		}
		if want := map[Task]int{Embed: 0, Logits: 3, Generate: 4}[task]; len(x.Next) != want {
			t.Errorf("%s: next %v, want %d", task, x.Next, want)
		}
		if task == Logits && (x.Next[0].Logprob >= 0 || x.Next[0].Logprob < x.Next[2].Logprob) {
			t.Errorf("next %v, want the likeliest first", x.Next)
		}
		// Each block of queries reads its own block of keys, and the plan adds the first one or none.
		if x.BlockSize != 16 || len(x.Blocks) != 3 || len(x.Blocks[0]) != 3 || x.Blocks[2][2] != 1 ||
			x.Blocks[0][1] != 0 || x.Blocks[2][1] != 0 {
			t.Errorf("%s: blocks of %d: %v", task, x.BlockSize, x.Blocks)
		}
	}
	long := idMessage(t, 4, make([]int32, 600))
	cfg := tokenConfig(m, Logits)
	cfg.Tap = &live.Tap{}
	cfg.Tap.Always()
	if out := process(t, cfg, long); len(out.Rejects) != 1 || out.Rejects[0].Reason != schemas.ReasonTooLong {
		t.Fatalf("%+v", out)
	}
	if n := len(cfg.Tap.Streams()); n != 0 {
		t.Errorf("a reject has one of %d streams", n)
	}
}
