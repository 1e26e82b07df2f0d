package models

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// tensorSpec is the requirement of a mode on one tensor.
type tensorSpec struct {
	shape []int // 0: any number above 0
	value func(t Tensor) error
}

// localWidths and headWidth are the outputs of the layers of a network: three of each point,
// and one of the point and the whole frame.
var (
	localWidths = []int{64, 128, 256}
	headWidth   = 128
)

// tensorOfOp is the tensor of a seed model that serves an operator.
var tensorOfOp = map[string]string{"hull2d": "directions2", "hull3d": "directions3", "maxima2d": "orthant2",
	"maxima3d": "orthant3"}

// specs returns the tensors that a model must have; it may have no others.
func (m *Meta) specs() map[string]tensorSpec {
	if m.Mode == Seed {
		specs := map[string]tensorSpec{}
		for _, op := range m.Ops {
			spec := tensorSpec{[]int{0, opDims[op]}, unitRows}
			if strings.HasPrefix(op, "maxima") {
				spec.value = positive
			}
			specs[tensorOfOp[op]] = spec
		}
		return specs
	}
	specs := map[string]tensorSpec{
		"head.1.weight": {[]int{m.Dims, headWidth}, nil},
		"head.1.bias":   {[]int{m.Dims}, nil},
	}
	in := m.Dims
	for i, out := range localWidths {
		addLayer(specs, fmt.Sprintf("local.%d", i), in, out)
		in = out
	}
	addLayer(specs, "head.0", 2*in, headWidth) // the point's features, then the frame's
	return specs
}

// addLayer adds a linear layer with its batch normalisation.
func addLayer(specs map[string]tensorSpec, name string, in, out int) {
	specs[name+".weight"] = tensorSpec{[]int{out, in}, nil}
	for _, part := range []string{".bias", ".bn.gamma", ".bn.beta", ".bn.mean"} {
		specs[name+part] = tensorSpec{[]int{out}, nil}
	}
	specs[name+".bn.var"] = tensorSpec{[]int{out}, positive}
}

// Validate returns the first fault of a model, or nil: metadata that do not fit the
// mode; a tensor that is missing, unknown, of another shape or not finite; a variance
// or an orthant weight that is not above 0; a direction without unit length.
func (m *EntropyNet) Validate() error {
	if err := m.Meta.validate(); err != nil {
		return err
	}
	specs := m.Meta.specs()
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		t, ok := m.Tensors[name]
		if !ok {
			return fmt.Errorf("tensor %q is missing from a %s model for %s", name, m.Meta.Mode,
				strings.Join(m.Meta.Ops, ","))
		}
		if err := specs[name].check(t); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Tensors)) {
		if _, ok := specs[name]; !ok {
			return fmt.Errorf("tensor %q has no place in a %s model for %s", name, m.Meta.Mode,
				strings.Join(m.Meta.Ops, ","))
		}
	}
	return nil
}

func (s tensorSpec) check(t Tensor) error {
	same := func(got, want int) bool { return got > 0 && (want == 0 || got == want) }
	if !slices.EqualFunc(t.Shape, s.shape, same) {
		return fmt.Errorf("shape %v, want %s", t.Shape, strings.ReplaceAll(fmt.Sprint(s.shape), "[0 ", "[K "))
	}
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	if n != len(t.Data) {
		return fmt.Errorf("%d values, want %d", len(t.Data), n)
	}
	for i, v := range t.Data {
		if v-v != 0 {
			return fmt.Errorf("value %d is %v", i, v)
		}
	}
	if s.value == nil {
		return nil
	}
	return s.value(t)
}

func positive(t Tensor) error {
	for i, v := range t.Data {
		if v <= 0 {
			return fmt.Errorf("value %d is %v, want one above 0", i, v)
		}
	}
	return nil
}

// unitRows allows what rounding to float16 does to a unit vector.
func unitRows(t Tensor) error {
	for row := range slices.Chunk(t.Data, t.Shape[1]) {
		sum := 0.0
		for _, v := range row {
			sum += float64(v) * float64(v)
		}
		if math.Abs(math.Sqrt(sum)-1) > 1e-3 {
			return fmt.Errorf("direction %v has length %v, want 1", row, math.Sqrt(sum))
		}
	}
	return nil
}
