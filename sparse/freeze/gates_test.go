package freeze

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/models/safetensors"
	"entropipe/sparse/model"
	"entropipe/sparse/train"
)

// The blocks that a training left open are the mask that is made of its gates,
// for L1 and for the window beside it.
func TestGatesOfATrainingAreImported(t *testing.T) {
	text, err := train.ByteText("text", []byte(strings.Repeat("the quick brown fox jumps over the lazy dog. ", 200)))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []train.Regulariser{train.L1, train.Window} {
		dir := t.TempDir()
		result, err := train.LM(context.Background(),
			train.Config{Layers: 2, Dim: 32, Heads: 2, Context: 64, Steps: 30, Seed: 1, Regulariser: r, Sparsity: 0.5},
			text, dir, "")
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		mask, err := ReadMask(filepath.Join(dir, "gates.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		var in Inputs
		for i := range 4 {
			in.Sequences = append(in.Sequences, text.Learn[64*i:64*(i+1)])
		}
		set, err := Freeze(t.Context(), m, in, Options{Select: Imported, Import: mask, Block: 16, Buckets: []int{64}})
		if err != nil {
			t.Fatal(err)
		}
		b, closed := set.Buckets[0], 0
		for l, heads := range result.Trainer.Open() {
			for h, open := range heads {
				layout := b.Layouts[b.Of[l*2+h]]
				for row := range 4 {
					cols, _ := layout.Row(row)
					at := 0
					for c := range row + 1 {
						read := at < len(cols) && cols[at] == int32(c)
						if read {
							at++
						} else {
							closed++
						}
						if read != open[row*4+c] {
							t.Errorf("%s, layer %d, head %d: block %d of row %d is read: %v, and was left open: %v", r,
								l, h, c, row, read, open[row*4+c])
						}
					}
				}
			}
		}
		if closed == 0 {
			t.Errorf("%s: no block was closed", r)
		}
	}
}

func TestGatesOfAnotherForm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gates.safetensors")
	if err := safetensors.WriteFile(path, nil,
		[]safetensors.Array{{Name: "open", Shape: []int{2, 2}, Data: make([]bool, 4)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadMask(path); err == nil || !strings.Contains(err.Error(), "BOOL [layers, heads, rows, columns]") {
		t.Errorf("got %v", err)
	}
}
