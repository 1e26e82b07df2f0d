package models

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
)

// Versions of ONNX that the export declares: operators of set 17, which came
// with version 8 of the intermediate representation. Field numbers below are
// those of onnx.proto.
const (
	onnxOpset = 17
	onnxIR    = 8
)

// WriteONNX writes the network of a perturb or denoise model as an ONNX file. The
// input "points" is a frame of at least one point in normalised coordinates, float32
// [N, dims]. The output "displacement" has the same shape, in metres, and is added to
// the frame's own coordinates. WriteONNX fails for a seed model.
//
// Batch normalisation is folded into the weights, and the frame's half of the last
// hidden layer is computed once a frame, so results equal the formula in README.md up
// to rounding. The file's properties hold the model's metadata and hash.
func (m *EntropyNet) WriteONNX(w io.Writer) error {
	graph, err := m.onnxGraph()
	if err != nil {
		return err
	}
	var f message
	f.varint(1, onnxIR)
	f.text(2, "entropipe")
	f.text(6, fmt.Sprintf("EntropyNet, mode %s: displacements of the points of one frame", m.Meta.Mode))
	f.message(7, graph)
	var set message
	set.text(1, "") // the default domain
	set.varint(2, onnxOpset)
	f.message(8, set)
	properties := m.Meta.strings()
	if m.SHA256 != "" {
		properties["sha256"] = m.SHA256
	}
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		var entry message
		entry.text(1, key)
		entry.text(2, properties[key])
		f.message(14, entry)
	}
	_, err = w.Write(f)
	return err
}

func (m *EntropyNet) onnxGraph() (message, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if m.Meta.Mode == Seed {
		return nil, fmt.Errorf("a %s model has no network to export: want %s or %s", Seed, Perturb, Denoise)
	}
	g := onnxGraph{}
	from := "points"
	for i := range localWidths {
		layer := fmt.Sprintf("local.%d", i)
		weight, bias, err := m.Fold(layer)
		if err != nil {
			return nil, err
		}
		g.tensor(layer+".weight", weight, localWidths[i], len(weight)/localWidths[i])
		g.tensor(layer+".bias", bias, len(bias))
		g.node("Gemm", layer, integer("transB", 1), from, layer+".weight", layer+".bias")
		g.node("Relu", layer+".relu", nil, layer)
		from = layer + ".relu"
	}
	weight, bias, err := m.Fold("head.0")
	if err != nil {
		return nil, err
	}
	features := localWidths[len(localWidths)-1]
	var ofPoint, ofFrame []float32
	for row := range slices.Chunk(weight, 2*features) {
		ofPoint, ofFrame = append(ofPoint, row[:features]...), append(ofFrame, row[features:]...)
	}
	g.tensor("head.0.point", ofPoint, headWidth, features)
	g.tensor("head.0.frame", ofFrame, headWidth, features)
	g.tensor("head.0.bias", bias, headWidth)
	g.node("ReduceMax", "global", append(integers("axes", 0), integer("keepdims", 1)...), from)
	g.node("Gemm", "head.0.once", integer("transB", 1), "global", "head.0.frame", "head.0.bias")
	g.node("Gemm", "head.0.each", integer("transB", 1), from, "head.0.point")
	g.node("Add", "head.0", nil, "head.0.each", "head.0.once")
	g.node("Relu", "head.0.relu", nil, "head.0")
	g.tensor("head.1.weight", m.Tensors["head.1.weight"].Data, m.Meta.Dims, headWidth)
	g.tensor("head.1.bias", m.Tensors["head.1.bias"].Data, m.Meta.Dims)
	g.node("Gemm", "head.1", integer("transB", 1), "head.0.relu", "head.1.weight", "head.1.bias")
	g.node("Tanh", "direction", nil, "head.1")
	g.tensor("sigma", []float32{float32(m.Meta.Sigma)})
	g.node("Mul", "displacement", nil, "direction", "sigma")
	return g.encode(m.Meta.Dims), nil
}

// Fold returns a layer's weights [out, in] and bias with its batch normalisation folded
// in. m must be a valid network, and layer one of the layers with normalisation that
// README.md names. Fold fails if a folded value exceeds float32.
func (m *EntropyNet) Fold(layer string) (weight, bias []float32, err error) {
	part := func(name string) []float32 { return m.Tensors[layer+name].Data }
	out, in := len(part(".bias")), m.Tensors[layer+".weight"].Shape[1]
	for j := range out {
		scale := float64(part(".bn.gamma")[j]) / math.Sqrt(float64(part(".bn.var")[j])+BatchNormEpsilon)
		for _, v := range part(".weight")[j*in : (j+1)*in] {
			weight = append(weight, float32(scale*float64(v)))
		}
		bias = append(bias, float32(float64(scale*(float64(part(".bias")[j])-float64(part(".bn.mean")[j])))+
			float64(part(".bn.beta")[j])))
	}
	for _, v := range slices.Concat(weight, bias) {
		if v-v != 0 {
			return nil, nil, fmt.Errorf("layer %q: weights and normalisation together exceed float32", layer)
		}
	}
	return weight, bias, nil
}

// onnxGraph collects nodes, whose one output has the node's name, and their
// constants.
type onnxGraph struct{ nodes, constants []message }

func (g *onnxGraph) node(op, name string, attributes []message, inputs ...string) {
	var n message
	for _, in := range inputs {
		n.text(1, in)
	}
	n.text(2, name)
	n.text(3, name)
	n.text(4, op)
	for _, a := range attributes {
		n.message(5, a)
	}
	g.nodes = append(g.nodes, n)
}

const onnxFloat = 1 // TensorProto.FLOAT

func (g *onnxGraph) tensor(name string, values []float32, shape ...int) {
	var t message
	for _, d := range shape {
		t.varint(1, uint64(d))
	}
	t.varint(2, onnxFloat)
	t.text(8, name)
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	t.message(9, raw)
	g.constants = append(g.constants, t)
}

// encode returns the graph from "points" to "displacement".
func (g *onnxGraph) encode(dims int) message {
	var graph message
	for _, n := range g.nodes {
		graph.message(1, n)
	}
	graph.text(2, "EntropyNet")
	for _, t := range g.constants {
		graph.message(5, t)
	}
	graph.message(11, frameInfo("points", dims))
	graph.message(12, frameInfo("displacement", dims))
	return graph
}

// frameInfo declares float32 [N, dims], where N is any number.
func frameInfo(name string, dims int) message {
	var any, fixed, shape, tensor, kind, info message
	any.text(2, "N")
	fixed.varint(1, uint64(dims))
	shape.message(1, any)
	shape.message(1, fixed)
	tensor.varint(1, onnxFloat)
	tensor.message(2, shape)
	kind.message(1, tensor)
	info.text(1, name)
	info.message(2, kind)
	return info
}

// integer and integers are attributes; 2 and 7 are their AttributeProto types.
func integer(name string, v uint64) []message {
	var a message
	a.text(1, name)
	a.varint(3, v)
	a.varint(20, 2)
	return []message{a}
}

func integers(name string, values ...uint64) []message {
	var a message
	a.text(1, name)
	for _, v := range values {
		a.varint(8, v)
	}
	a.varint(20, 7)
	return []message{a}
}

// message is a message of protocol buffers: fields one after the other, each a
// key and a value. https://protobuf.dev/programming-guides/encoding/
type message []byte

func (m *message) varint(field int, v uint64) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3), v)
}

func (m *message) message(field int, v message) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3|2), uint64(len(v)))
	*m = append(*m, v...)
}

func (m *message) text(field int, s string) { m.message(field, message(s)) }
