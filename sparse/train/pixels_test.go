package train

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/models/mat"
)

// somePixels are images of noise, as a network of these images takes them.
func somePixels(tr *Trainer, n int, seed uint64) (pixels []float32, labels []int32) {
	r := rand.New(rand.NewPCG(seed, 9))
	pixels = make([]float32, n*tr.net.form.side*tr.net.form.side)
	for i := range pixels {
		pixels[i] = 2*r.Float32() - 1
	}
	for range n {
		labels = append(labels, int32(r.IntN(tr.net.form.classes)))
	}
	return pixels, labels
}

// image is the loss of an image, row by row, by the reference.
func (r *reference) image(pixels []float64, label int32) float64 {
	m, v := r.cut()
	across := r.f.side / r.f.patch
	x := make([][]float64, r.f.n)
	for i := range x {
		first := v["class"]
		if i > 0 {
			var patch []float64
			for k := range r.f.patch * r.f.patch {
				row, col := (i-1)/across*r.f.patch+k/r.f.patch, (i-1)%across*r.f.patch+k%r.f.patch
				patch = append(patch, pixels[row*r.f.side+col])
			}
			first = affine(patch, v["patchB"], m["patches"])
		}
		x[i] = slices.Clone(m["positions"][i])
		for j, y := range first {
			x[i][j] += y
		}
	}
	loss, _ := r.sequence(x, []int32{label}, 0, 0)
	return loss
}

// Losses and gradients are the reference's, along the gradient and elsewhere, at
// every level; also through the gates of L1.
func TestPixelGradientsAreFiniteDifferences(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		for _, reg := range []Regulariser{None, L1} {
			t.Run(string(reg), func(t *testing.T) {
				tr, pl := settled(t, false, reg, 2)
				pixels, labels := somePixels(tr, 2, 6)
				grads := make([]float32, len(pixels))
				losses := tr.PixelGradients(grads, pixels, labels)
				ref := referenceOf(tr, pl)
				size := len(pixels) / len(labels)
				for i, label := range labels {
					x := doubles(pixels[i*size : (i+1)*size])
					if want := ref.image(x, label); math.Abs(losses[i]-want) > 1e-4*want {
						t.Errorf("image %d: loss %v, the reference has %v", i, losses[i], want)
					}
					check := slopes{t: t, tries: 2, value: func() float64 { return ref.image(x, label) },
						r: rand.New(rand.NewPCG(5, 5))}
					check.compare(fmt.Sprintf("image %d", i), x, grads[i*size:(i+1)*size])
				}
			})
		}
	})
}

// A gradient has the same bits alone, in any batch, for any number of workers,
// and where it is written over the pixels.
func TestPixelGradientsDoNotDependOnTheBatch(t *testing.T) {
	one, _ := settled(t, false, L1, 1)
	pixels, labels := somePixels(one, 7, 8)
	size := len(pixels) / len(labels)
	want, wantLosses := make([]float32, len(pixels)), []float64{}
	for i := range labels {
		at := i * size
		wantLosses = append(wantLosses, one.PixelGradients(want[at:at+size], pixels[at:at+size], labels[i:i+1])...)
	}
	for _, workers := range []int{1, 2, 5} {
		tr, _ := settled(t, false, L1, workers)
		got := slices.Clone(pixels)
		losses := tr.PixelGradients(got, got, labels)
		if !slices.Equal(losses, wantLosses) {
			t.Errorf("%d workers: losses %v, one by one %v", workers, losses, wantLosses)
		}
		for i, v := range got {
			if math.Float32bits(v) != math.Float32bits(want[i]) {
				t.Fatalf("%d workers, image %d, pixel %d: %v, alone %v", workers, i/size, i%size, v, want[i])
			}
		}
		if none := tr.PixelGradients(nil, nil, nil); len(none) != 0 {
			t.Errorf("no image has losses %v", none)
		}
	}
}

// PixelGradients does not change the following steps of a training.
func TestPixelGradientsLeaveTrainingAlone(t *testing.T) {
	for _, reg := range []Regulariser{Paper, L1} {
		asked, _ := settled(t, false, reg, 2)
		other, _ := settled(t, false, reg, 2)
		for step := range 3 {
			pixels, labels := somePixels(asked, 3, uint64(step))
			asked.PixelGradients(pixels, pixels, labels)
			if err := asked.Step(); err != nil {
				t.Fatal(err)
			}
			if err := other.Step(); err != nil {
				t.Fatal(err)
			}
		}
		for i, v := range asked.net.params {
			if math.Float32bits(v) != math.Float32bits(other.net.params[i]) {
				t.Fatalf("%s: parameter %d is %v, want %v", reg, i, v, other.net.params[i])
			}
		}
	}
}

func TestPixelGradientsRefuse(t *testing.T) {
	images, _ := settled(t, false, None, 1)
	text, _ := settled(t, true, None, 1)
	size := images.net.form.side * images.net.form.side
	for _, c := range []struct {
		name        string
		tr          *Trainer
		dst, pixels int
		labels      []int32
		want        string
	}{
		{"text", text, 0, 0, nil, badNoImages},
		{"half an image", images, size / 2, size / 2, []int32{0}, badPixels},
		{"no room", images, size - 1, size, []int32{0}, badPixels},
		{"no label", images, size, size, nil, badPixels},
		{"negative", images, size, size, []int32{-1}, badLabel},
		{"beyond", images, size, size, []int32{8}, badLabel},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if got := recover(); got != c.want {
					t.Errorf("panic %v, want %q", got, c.want)
				}
			}()
			c.tr.PixelGradients(make([]float32, c.dst), make([]float32, c.pixels), c.labels)
		})
	}
}

// Gradients equal those of PyTorch through the written model.
func TestTransformersPixelGradients(t *testing.T) {
	c := small(None)
	c.Steps, c.Patch = 30, 4
	images, dir := blobs(60), t.TempDir()
	r, err := ViT(context.Background(), c, images, dir, "")
	if err != nil {
		t.Fatal(err)
	}
	pixels, labels := somePixels(r.Trainer, 3, 2)
	want := ask(t, map[string]any{"kind": "gradients", "dir": dir, "side": images.Side,
		"pixels": pixels, "labels": labels})
	grads := make([]float32, len(pixels))
	r.Trainer.PixelGradients(grads, pixels, labels)
	compare(t, mat.Of(len(labels), len(pixels)/len(labels), grads), want)
}
