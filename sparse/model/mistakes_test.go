package model

import (
	"testing"

	"entropipe/models/mat"
	"entropipe/sparse/hf"
	"entropipe/sparse/hf/hftest"
	"entropipe/sparse/kern"
)

// A caller's mistake panics with a constant text before anything is computed.
func TestMistakesPanic(t *testing.T) {
	bert, gpt, vit := loadText(t, hftest.BERT).NewSession(1), loadText(t, hftest.GPT2).NewSession(1),
		loadText(t, hftest.ViT).NewSession(1)
	matrix := func(rows, cols int) mat.Matrix { return mat.Of(rows, cols, make([]float32, rows*cols)) }
	batch := Batch{IDs: []int32{1, 2, 3}, Starts: []int32{0, 3}}
	const image = 2 * 8 * 12
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"no worker", func() { bert.m.NewSession(0) }, badWorkers},
		{"no starts", func() { bert.Hidden(Batch{IDs: batch.IDs}, Options{}) }, badStarts},
		{"starts from 1", func() { bert.Hidden(Batch{IDs: batch.IDs, Starts: []int32{1, 3}}, Options{}) }, badStarts},
		{"starts to 2", func() { bert.Hidden(Batch{IDs: batch.IDs, Starts: []int32{0, 2}}, Options{}) }, badStarts},
		{"starts that fall", func() { bert.Hidden(Batch{IDs: batch.IDs, Starts: []int32{0, 2, 1, 3}}, Options{}) },
			badStarts},
		{"a ladder beside another attention", func() {
			bert.Hidden(batch, Options{Ladder: &kern.Ladder{Delta: .1}, Attend: new(kern.Scratch).Attend})
		}, badLadder},
		{"a ladder alone", func() { bert.Hidden(batch, Options{Ladder: &kern.Ladder{Delta: .1}}) }, ""},
		{"text for images", func() { vit.Hidden(batch, Options{}) }, badClass},
		{"images for text", func() { gpt.Images(make([]float32, image), 1, Options{}) }, badClass},
		{"pixels too few", func() { vit.Images(make([]float32, image-1), 1, Options{}) }, badImages},
		{"pixels too many", func() { vit.Images(make([]float32, 2*image), 1, Options{}) }, badImages},
		{"fewer images than none", func() { vit.Images(nil, -1, Options{}) }, badImages},
		{"logits of an encoder", func() { bert.Logits(matrix(1, 61), matrix(1, 48)) }, badHead},
		{"logits of other rows", func() { gpt.Logits(matrix(2, 61), matrix(1, 48)) }, badHead},
		{"logits of another width", func() { gpt.Logits(matrix(1, 60), matrix(1, 48)) }, badHead},
		{"logits of other states", func() { gpt.Logits(matrix(1, 61), matrix(1, 47)) }, badHead},
		{"classes of part of an image", func() { vit.Classify(matrix(1, 3), matrix(6, 48)) }, badHead},
		{"classes of too many images", func() { vit.Classify(matrix(2, 3), matrix(7, 48)) }, badHead},
		{"an embedding of another width", func() {
			bert.Pool(make([]float32, 47), matrix(1, 48), hf.Pooling{Mode: hf.CLS})
		}, badPooling},
		{"a mode that is none", func() { bert.Pool(make([]float32, 48), matrix(1, 48), hf.Pooling{Mode: "max"}) },
			badPooling},
	} {
		got := func() (p any) {
			defer func() {
				if r := recover(); r != nil {
					p = r
				}
			}()
			c.do()
			return ""
		}()
		if got != c.want {
			t.Errorf("%s: panic %v, want %q", c.name, got, c.want)
		}
	}
}
