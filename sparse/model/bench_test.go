package model

import (
	"fmt"
	"testing"

	"entropipe/sparse/hf/hftest"
)

// Hidden states of MiniLM: one sequence, and a batch of lengths 8 to 57.
func BenchmarkHidden(b *testing.B) {
	m, _ := minilm(b)
	batches := map[string]Batch{"batch": join(nil)}
	for _, n := range []int{32, 128, 512} {
		batches[fmt.Sprint(n)] = one(ramp(n, 1000))
	}
	var mixed [][]int32
	for i := range 64 {
		mixed = append(mixed, ramp(8+i%50, 100*i+1000))
	}
	batches["batch"] = join(mixed)
	for _, name := range []string{"32", "128", "512", "batch"} {
		for _, workers := range []int{1, 2} {
			s := m.NewSession(workers)
			b.Run(fmt.Sprintf("%s/workers=%d", name, workers), func(b *testing.B) {
				for b.Loop() {
					if _, err := s.Hidden(batches[name], Options{}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N*len(batches[name].IDs))/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}

func ramp(n, from int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(from + i)
	}
	return ids
}

// One more token of each of some sequences, four layers of GPT-2's width.
func BenchmarkStep(b *testing.B) {
	c := hftest.Config(b,
		`{"model_type":"gpt2","architectures":["GPT2LMHeadModel"],"n_embd":768,"n_layer":4,"n_head":12,"vocab_size":8000,"n_positions":4096}`)
	tensors := hftest.Tensors(c)
	for _, v := range tensors {
		for i := range v {
			v[i] *= 0.2
		}
	}
	m := loadTensors(b, c, tensors)
	for _, sequences := range []int{1, 8} {
		for _, n := range []int{64, 1024} {
			var prompts [][]int32
			for i := range sequences {
				prompts = append(prompts, ramp(n, 100*i))
			}
			g := &generation{Session: m.NewSession(2), maxNew: 1}
			if err := g.prompt(join(prompts), Options{}); err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("sequences=%d/tokens=%d", sequences, n), func(b *testing.B) {
				for b.Loop() {
					if err := g.step(); err != nil {
						b.Fatal(err)
					}
					for _, q := range g.open {
						q.length = n // the same token again
					}
				}
				b.ReportMetric(float64(b.N*sequences)/b.Elapsed().Seconds(), "tokens/s")
			})
			g.close()
		}
	}
}
