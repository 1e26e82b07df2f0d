package models

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// reference evaluates the formula of README.md in float64, for points
// [N][dims]; nothing of it is folded or reordered.
func reference(m *EntropyNet, points []float32) []float64 {
	layer := func(name string, rows [][]float64, relu bool) [][]float64 {
		w, bias := m.Tensors[name+".weight"], m.Tensors[name+".bias"].Data
		gamma, normed := m.Tensors[name+".bn.gamma"]
		beta, mean, variance := m.Tensors[name+".bn.beta"], m.Tensors[name+".bn.mean"], m.Tensors[name+".bn.var"]
		var out [][]float64
		for _, row := range rows {
			result := make([]float64, w.Shape[0])
			for j := range result {
				sum := float64(bias[j])
				for k, v := range row {
					sum += v * float64(w.Data[j*len(row)+k])
				}
				if normed {
					sum = (sum-float64(mean.Data[j]))/math.Sqrt(float64(variance.Data[j])+1e-5)*float64(gamma.Data[j]) +
						float64(beta.Data[j])
				}
				if relu {
					sum = max(sum, 0)
				}
				result[j] = sum
			}
			out = append(out, result)
		}
		return out
	}
	var h [][]float64
	for row := range slices.Chunk(points, m.Meta.Dims) {
		h = append(h, nil)
		for _, v := range row {
			h[len(h)-1] = append(h[len(h)-1], float64(v))
		}
	}
	for i := range 3 {
		h = layer(fmt.Sprintf("local.%d", i), h, true)
	}
	most := slices.Clone(h[0])
	for _, row := range h {
		for k, v := range row {
			most[k] = max(most[k], v)
		}
	}
	for i := range h {
		h[i] = slices.Concat(h[i], most)
	}
	var moved []float64
	for _, row := range layer("head.1", layer("head.0", h, true), false) {
		for _, v := range row {
			moved = append(moved, m.Meta.Sigma*math.Tanh(v))
		}
	}
	return moved
}

// unitPoints are n points of the unit square or cube.
func unitPoints(rng *rand.Rand, n, dims int) []float32 {
	points := make([]float32, n*dims)
	for i := range points {
		points[i] = rng.Float32()
	}
	return points
}

// networks are models of every mode and number of dimensions, without the
// metadata that do not matter here.
func networks() []*EntropyNet {
	return []*EntropyNet{
		random(netMeta, 5),
		random(Meta{Mode: Denoise, Dims: 3, Ops: []string{"maxima3d"}, Normalise: NormaliseBox, Sigma: 2.5,
			Command: "a, \"b\" é"}, 6),
	}
}

// The exported graph, run by an interpreter of the operators it uses, is the
// formula.
func TestONNXIsTheFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, m := range networks() {
		var b bytes.Buffer
		if err := m.WriteONNX(&b); err != nil {
			t.Fatal(err)
		}
		model := decode(t, b.Bytes())
		if ir, set := model.one(t, 1), decode(t, model.one(t, 8).bytes); ir.number != 8 || set.one(t, 2).number != 17 {
			t.Errorf("IR %d, operators %d", ir.number, set.one(t, 2).number)
		}
		properties := map[string]string{}
		for _, f := range model[14] {
			entry := decode(t, f.bytes)
			properties[string(entry.one(t, 1).bytes)] = string(entry.one(t, 2).bytes)
		}
		if properties["mode"] != m.Meta.Mode || properties["command"] != m.Meta.Command {
			t.Errorf("properties %q", properties)
		}
		for _, n := range []int{1, 2, 37} {
			points := unitPoints(rng, n, m.Meta.Dims)
			got := evaluate(t, decode(t, model.one(t, 7).bytes), matrix{n, m.Meta.Dims, points})
			want := reference(m, points)
			if got.rows != n || got.cols != m.Meta.Dims {
				t.Fatalf("%s, %d points: result of %d x %d", m.Meta.Mode, n, got.rows, got.cols)
			}
			for i, v := range got.v {
				if math.Abs(float64(v)-want[i]) > 1e-5*m.Meta.Sigma {
					t.Errorf("%s, %d points: value %d is %v, want %v", m.Meta.Mode, n, i, v, want[i])
				}
			}
		}
	}
}

func TestWhatONNXCannotHold(t *testing.T) {
	huge := random(netMeta, 1)
	huge.Tensors["local.1.weight"].Data[3] = 1e38
	huge.Tensors["local.1.bn.gamma"].Data[0] = 1e30
	broken := random(netMeta, 1)
	delete(broken.Tensors, "head.0.bias")
	for _, c := range []struct {
		m    *EntropyNet
		want string
	}{
		{random(seedMeta, 1), "a seed model has no network"},
		{huge, `layer "local.1": weights and normalisation together exceed float32`},
		{broken, `tensor "head.0.bias" is missing`},
	} {
		var b bytes.Buffer
		if err := c.m.WriteONNX(&b); err == nil || !strings.Contains(err.Error(), c.want) || b.Len() > 0 {
			t.Errorf("got %v and %d bytes, want %q and none", err, b.Len(), c.want)
		}
	}
}

// fields are a message's values by number.
type fields map[int][]field

type field struct {
	number uint64
	bytes  []byte
}

func decode(t *testing.T, b []byte) fields {
	t.Helper()
	all := fields{}
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatal("a number is cut off")
		}
		b = b[n:]
		return v
	}
	for len(b) > 0 {
		key := number()
		f := field{number: number()}
		switch key & 7 {
		case 0:
		case 2:
			if f.number > uint64(len(b)) {
				t.Fatal("a value is cut off")
			}
			f.bytes, b = b[:f.number], b[f.number:]
		default:
			t.Fatalf("field %d has wire type %d", key>>3, key&7)
		}
		all[int(key>>3)] = append(all[int(key>>3)], f)
	}
	return all
}

func (f fields) one(t *testing.T, number int) field {
	t.Helper()
	if len(f[number]) != 1 {
		t.Fatalf("%d fields %d, want 1", len(f[number]), number)
	}
	return f[number][0]
}

type matrix struct {
	rows, cols int
	v          []float32
}

func (m matrix) at(i, j int) float32 { return m.v[i%m.rows*m.cols+j%m.cols] } // broadcast

func evaluate(t *testing.T, graph fields, points matrix) matrix {
	values := map[string]matrix{string(decode(t, graph.one(t, 11).bytes).one(t, 1).bytes): points}
	for _, f := range graph[5] {
		x := decode(t, f.bytes)
		m := matrix{1, 1, nil}
		for _, d := range x[1] {
			m.rows, m.cols = m.cols, int(d.number)
		}
		raw := x.one(t, 9).bytes
		if x.one(t, 2).number != 1 || len(raw) != 4*m.rows*m.cols {
			t.Fatalf("constant %s: %d bytes of %d x %d", x.one(t, 8).bytes, len(raw), m.rows, m.cols)
		}
		for b := range slices.Chunk(raw, 4) {
			m.v = append(m.v, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
		values[string(x.one(t, 8).bytes)] = m
	}
	for _, f := range graph[1] {
		node := decode(t, f.bytes)
		var in []matrix
		for _, name := range node[1] {
			m, ok := values[string(name.bytes)]
			if !ok {
				t.Fatalf("%s comes before %s", node.one(t, 3).bytes, name.bytes)
			}
			in = append(in, m)
		}
		values[string(node.one(t, 2).bytes)] = apply(t, node, in)
	}
	return values[string(decode(t, graph.one(t, 12).bytes).one(t, 1).bytes)]
}

func apply(t *testing.T, node fields, in []matrix) matrix {
	attributes := map[string][]uint64{}
	for _, f := range node[5] {
		a := decode(t, f.bytes)
		for _, v := range append(a[3], a[8]...) {
			attributes[string(a.one(t, 1).bytes)] = append(attributes[string(a.one(t, 1).bytes)], v.number)
		}
	}
	each := func(m matrix, f func(i, j int) float32) matrix {
		for i := range m.rows {
			for j := range m.cols {
				m.v = append(m.v, f(i, j))
			}
		}
		return m
	}
	a := in[0]
	same := matrix{rows: a.rows, cols: a.cols}
	switch op := string(node.one(t, 4).bytes); op {
	case "Gemm":
		if attributes["transB"][0] != 1 || a.cols != in[1].cols {
			t.Fatalf("%s: %v, %d and %d columns", node.one(t, 3).bytes, attributes, a.cols, in[1].cols)
		}
		return each(matrix{rows: a.rows, cols: in[1].rows}, func(i, j int) float32 {
			sum := float32(0)
			for k := range a.cols {
				sum += a.at(i, k) * in[1].at(j, k)
			}
			if len(in) > 2 {
				sum += in[2].at(0, j)
			}
			return sum
		})
	case "Relu":
		return each(same, func(i, j int) float32 { return max(a.at(i, j), 0) })
	case "Tanh":
		return each(same, func(i, j int) float32 { return float32(math.Tanh(float64(a.at(i, j)))) })
	case "Add":
		return each(same, func(i, j int) float32 { return a.at(i, j) + in[1].at(i, j) })
	case "Mul":
		return each(same, func(i, j int) float32 { return a.at(i, j) * in[1].at(i, j) })
	case "ReduceMax":
		if !slices.Equal(attributes["axes"], []uint64{0}) || !slices.Equal(attributes["keepdims"], []uint64{1}) {
			t.Fatalf("ReduceMax: %v", attributes)
		}
		return each(matrix{rows: 1, cols: a.cols}, func(_, j int) float32 {
			most := a.at(0, j)
			for i := range a.rows {
				most = max(most, a.at(i, j))
			}
			return most
		})
	default:
		t.Fatalf("no operator is called %s", op)
	}
	return matrix{}
}
