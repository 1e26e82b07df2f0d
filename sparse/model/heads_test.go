package model

import (
	"math"
	"strings"
	"testing"

	"entropipe/models"
	"entropipe/models/mat"
	"entropipe/sparse/hf"
	"entropipe/sparse/hf/hftest"
	"entropipe/sparse/kern"
)

func TestPool(t *testing.T) {
	m := loadText(t, hftest.BERT)
	s := m.NewSession(1)
	rows := mat.Of(3, 48, hftest.Values("rows", 3*48))
	mean := make([]float32, 48)
	for j := range mean {
		mean[j] = float32((float64(rows.Row(0)[j]) + float64(rows.Row(1)[j]) + float64(rows.Row(2)[j])) / 3)
	}
	unit := func(v []float32) []float32 {
		length, out := 0.0, make([]float32, len(v))
		for _, x := range v {
			length += float64(x) * float64(x)
		}
		for i, x := range v {
			out[i] = float32(float64(x) / math.Sqrt(length))
		}
		return out
	}
	zero := make([]float32, 48)
	for _, c := range []struct {
		name string
		rows mat.Matrix
		p    hf.Pooling
		want []float32
	}{
		{"mean", rows, hf.Pooling{Mode: hf.Mean}, mean},
		{"mean of one row", rows.Slice(1, 2), hf.Pooling{Mode: hf.Mean}, rows.Row(1)},
		{"mean, of unit length", rows, hf.Pooling{Mode: hf.Mean, Normalize: true}, unit(mean)},
		{"first row", rows, hf.Pooling{Mode: hf.CLS}, rows.Row(0)},
		{"first row, of unit length", rows, hf.Pooling{Mode: hf.CLS, Normalize: true}, unit(rows.Row(0))},
		{"none", rows, hf.Pooling{Mode: hf.None, Normalize: true}, zero},
		{"no rows", rows.Slice(0, 0), hf.Pooling{Mode: hf.Mean}, zero},
		{"zeros of unit length", mat.Of(2, 48, make([]float32, 96)), hf.Pooling{Mode: hf.Mean, Normalize: true}, zero},
	} {
		got := hftest.Values("what a caller left there", 48)
		s.Pool(got, c.rows, c.p)
		near(t, c.name, got, c.want, 1e-7)
	}
}

// A row's logits do not depend on the other rows.
func TestLogitsDoNotDependOnTheirBatch(t *testing.T) {
	m := loadText(t, hftest.GPT2)
	rows := mat.Of(33, 48, hftest.Values("rows", 33*48))
	levels(t, func(t *testing.T) {
		all, one := mat.Of(33, 61, make([]float32, 33*61)), mat.Of(1, 61, make([]float32, 61))
		m.NewSession(3).Logits(all, rows)
		s := m.NewSession(1)
		for i := range 33 {
			s.Logits(one, rows.Slice(i, i+1))
			if !same(one.Data, all.Row(i)) {
				t.Errorf("row %d differs from itself alone", i)
			}
		}
	})
}

// The hook sees queries and keys after their rotation: those of position 0 are
// not turned, equal tokens at other positions differ.
func TestTheHookSeesWhatIsAttended(t *testing.T) {
	m := loadText(t, hftest.LLaMA)
	var layers []int
	_, err := m.NewSession(1).Hidden(join([][]int32{{5, 5}, {5}}),
		Options{Hook: func(layer, sequence int, j *kern.Job) {
			if sequence == 0 {
				layers = append(layers, layer)
				if layer == 0 && same(j.K.Row(0), j.K.Row(1)) {
					t.Error("keys of equal tokens at two positions are the same")
				}
			}
			if want := []int{2, 1}[sequence]; j.Q.Rows != want || j.Q.Cols != 48 || j.K.Cols != 24 || !j.Causal ||
				j.Scale != m.config.Scale {
				t.Errorf("layer %d, sequence %d: %+v", layer, sequence, *j)
			}
		}})
	if err != nil || len(layers) != 2 || layers[0] != 0 || layers[1] != 1 {
		t.Errorf("layers %v, %v", layers, err)
	}
}

func TestOpenOfWhatIsShipped(t *testing.T) {
	for _, name := range models.Transformers() {
		m, err := Open(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(m.SHA256()) != 64 {
			t.Errorf("%s: checksum %q", name, m.SHA256())
		}
	}
	for name, want := range map[string]string{"builtin:none": "builtin:none", "no/such/folder": "no/such/folder: "} {
		if _, err := Open(name); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
