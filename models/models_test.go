package models

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"entropipe/models/safetensors"
)

// random returns a valid model with values that a seed decides.
func random(meta Meta, seed uint64) *EntropyNet {
	rng := rand.New(rand.NewPCG(seed, 1))
	m := &EntropyNet{Meta: meta, Tensors: map[string]Tensor{}}
	specs := meta.specs()
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		n, shape := 1, slices.Clone(specs[name].shape)
		for i, d := range shape {
			if d == 0 {
				shape[i] = 5
			}
			n *= shape[i]
		}
		t := Tensor{shape, make([]float32, n)}
		last := float64(shape[len(shape)-1])
		for i := range t.Data {
			switch {
			case strings.HasSuffix(name, "bn.var"), strings.HasPrefix(name, "orthant"):
				t.Data[i] = float32(0.5 + 2*rng.Float64())
			case strings.HasSuffix(name, "bn.gamma"):
				t.Data[i] = float32(0.5 + rng.Float64())
			case strings.HasSuffix(name, "weight"):
				t.Data[i] = float32(rng.NormFloat64() / math.Sqrt(last))
			default:
				t.Data[i] = float32(rng.NormFloat64() / 4)
			}
		}
		if strings.HasPrefix(name, "directions") {
			for row := range slices.Chunk(t.Data, shape[1]) {
				unit(row)
			}
		}
		m.Tensors[name] = t
	}
	return m
}

func unit(row []float32) {
	sum := 0.0
	for _, v := range row {
		sum += float64(v) * float64(v)
	}
	for i := range row {
		row[i] /= float32(math.Sqrt(sum))
	}
}

var (
	seedMeta = Meta{Mode: Seed, Dims: 3, Ops: []string{"hull3d", "maxima3d", "hull2d", "maxima2d"},
		Normalise: NormaliseBox, Survivors: map[string]float64{"hull3d": 0.0125, "hull2d": 0},
		Dataset: "kitti", Sensor: "velodyne, left", DataSHA256: strings.Repeat("0a", 32),
		Command: `entropipe train "x" --seed 7`, Seed: math.MaxUint64, Steps: 40}
	netMeta = Meta{Mode: Perturb, Dims: 2, Ops: []string{"hull2d"}, Normalise: NormaliseBox, Sigma: 0.1,
		Regulariser: "F", Tau: 5e-4}
)

var sameMeta = cmpopts.EquateEmpty()

func TestWhatIsWrittenIsRead(t *testing.T) {
	for i, meta := range []Meta{
		seedMeta, netMeta,
		{Mode: Denoise, Dims: 3, Ops: []string{"maxima3d"}, Normalise: NormaliseBox, Sigma: 1e-3, Regulariser: "hsoft",
			Tau: 0.1, Steps: 1, Dataset: "0"},
		{Mode: Seed, Dims: 2, Ops: []string{"maxima2d"}, Normalise: NormaliseBox},
	} {
		path := filepath.Join(t.TempDir(), "m.safetensors")
		m := random(meta, uint64(i))
		if err := m.Write(path); err != nil {
			t.Fatalf("%v: %v", meta, err)
		}
		got, err := ReadEntropyNet(path)
		if err != nil {
			t.Fatalf("%v: %v", meta, err)
		}
		if diff := cmp.Diff(m, got, sameMeta); diff != "" {
			t.Errorf("%v: %s", meta, diff)
		}
		data, err := os.ReadFile(path)
		if sum := sha256.Sum256(data); err != nil || got.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("SHA-256 %s is not the file's; %v", got.SHA256, err)
		}
		if err := m.Write(path); err != nil || m.SHA256 != got.SHA256 {
			t.Errorf("written again it is %s, want %s; %v", m.SHA256, got.SHA256, err)
		}
	}
}

// Numbers of the metadata come back as the same bits.
func TestMetadataRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		meta := Meta{Mode: Denoise, Dims: 3, Ops: []string{"hull3d", "maxima2d"}, Normalise: NormaliseBox,
			Sigma: rapid.Float64Range(1e-30, 1e30).Draw(t, "sigma"), Tau: rapid.Float64Range(0, 1).Draw(t, "tau"),
			Regulariser: rapid.SampledFrom(regularisers).Draw(t, "regulariser"),
			Survivors:   map[string]float64{"hull3d": rapid.Float64Range(0, 1).Draw(t, "survivors")},
			Dataset:     rapid.String().Draw(t, "dataset"), Sensor: rapid.String().Draw(t, "sensor"),
			Command: rapid.String().Draw(t, "command"),
			Seed:    rapid.Uint64().Draw(t, "seed"), Steps: rapid.IntRange(0, math.MaxInt).Draw(t, "steps")}
		got, err := parseMeta(meta.strings())
		if err != nil || got.validate() != nil {
			t.Fatalf("%+v: %v, %v", meta, err, got.validate())
		}
		if diff := cmp.Diff(meta, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Each fault of a model is one error that names the file and the fault, both
// where it is read and where it is written.
func TestFaultyModelsAreRefused(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		name  string
		meta  Meta
		spoil func(m *EntropyNet)
		want  string
	}{
		{"NaN weight", netMeta, func(m *EntropyNet) { m.Tensors["local.1.weight"].Data[7] = nan },
			`tensor "local.1.weight": value 7 is NaN`},
		{"infinite bias", netMeta, func(m *EntropyNet) { m.Tensors["head.1.bias"].Data[1] = inf },
			`tensor "head.1.bias": value 1 is -Inf`},
		{"variance 0", netMeta, func(m *EntropyNet) { m.Tensors["head.0.bn.var"].Data[2] = 0 },
			`tensor "head.0.bn.var": value 2 is 0, want one above 0`},
		{"negative variance", netMeta, func(m *EntropyNet) { m.Tensors["local.0.bn.var"].Data[0] = -1 },
			`value 0 is -1`},
		{"missing", netMeta, func(m *EntropyNet) { delete(m.Tensors, "local.2.bn.beta") },
			`tensor "local.2.bn.beta" is missing from a perturb model for hull2d`},
		{"left over", netMeta, func(m *EntropyNet) { m.Tensors["local.3.bias"] = m.Tensors["local.0.bias"] },
			`tensor "local.3.bias" has no place in a perturb model`},
		{"wrong shape", netMeta, func(m *EntropyNet) { m.Tensors["local.2.bias"] = m.Tensors["local.1.bias"] },
			`tensor "local.2.bias": shape [128], want [256]`},
		{"transposed", netMeta, func(m *EntropyNet) {
			m.Tensors["local.1.weight"] = Tensor{[]int{64, 128}, make([]float32, 64*128)}
		}, "shape [64 128], want [128 64]"},
		{"a vector as matrix", netMeta, func(m *EntropyNet) {
			m.Tensors["head.1.bias"] = Tensor{[]int{2, 1}, make([]float32, 2)}
		}, "shape [2 1], want [2]"},
		{"other dimensions", netMeta, func(m *EntropyNet) { m.Meta.Dims = 3 },
			`tensor "head.1.bias": shape [2], want [3]`},
		{"length", netMeta, func(m *EntropyNet) { m.Tensors["head.1.bias"] = Tensor{[]int{2}, make([]float32, 3)} },
			"3 values, want 2"},
		{"no sigma", netMeta, func(m *EntropyNet) { m.Meta.Sigma = 0 }, "sigma 0: want"},
		{"NaN sigma", netMeta, func(m *EntropyNet) { m.Meta.Sigma = math.NaN() }, "sigma NaN: want"},
		{"sigma beyond float32", netMeta, func(m *EntropyNet) { m.Meta.Sigma = 1e39 }, "sigma 1e+39: want"},
		{"sigma below float32", netMeta, func(m *EntropyNet) { m.Meta.Sigma = 1e-60 }, "sigma 1e-60: want"},
		{"negative tau", netMeta, func(m *EntropyNet) { m.Meta.Tau = -1 }, "tau -1: want"},
		{"unknown mode", netMeta, func(m *EntropyNet) { m.Meta.Mode = "prune" },
			`mode "prune": want seed, perturb, denoise`},
		{"dimensions", netMeta, func(m *EntropyNet) { m.Meta.Dims = 4 }, "dims 4: want 2 or 3"},
		{"normalisation", netMeta, func(m *EntropyNet) { m.Meta.Normalise = "" }, `normalise "": want box`},
		{"regulariser", netMeta, func(m *EntropyNet) { m.Meta.Regulariser = "L2" },
			`regulariser "L2": want none, F, hdiff, hsoft`},
		{"hash", netMeta, func(m *EntropyNet) { m.Meta.DataSHA256 = "abcd" }, "want 64 hexadecimal digits"},
		{"hash in capitals", netMeta, func(m *EntropyNet) { m.Meta.DataSHA256 = strings.Repeat("AB", 32) },
			"want 64 hexadecimal digits"},
		{"steps", netMeta, func(m *EntropyNet) { m.Meta.Steps = -1 }, "steps -1"},
		{"no operator", netMeta, func(m *EntropyNet) { m.Meta.Ops = nil }, "ops: "},
		{"unknown operator", netMeta, func(m *EntropyNet) { m.Meta.Ops = []string{"delaunay2d"} },
			`ops: "delaunay2d": want hull2d, hull3d, maxima2d, maxima3d`},
		{"operator twice", netMeta, func(m *EntropyNet) { m.Meta.Ops = []string{"hull2d", "hull2d"} },
			"ops: hull2d comes twice"},
		{"operator in space", netMeta, func(m *EntropyNet) { m.Meta.Ops = []string{"hull3d"} },
			"ops: hull3d is not for points of 2 dimensions"},
		{"survivors of a stranger", netMeta, func(m *EntropyNet) {
			m.Meta.Survivors = map[string]float64{"maxima2d": 0.5}
		}, `survivors: "maxima2d" is not among ops`},
		{"survivors", netMeta, func(m *EntropyNet) { m.Meta.Survivors = map[string]float64{"hull2d": 1.5} },
			"hull2d: 1.5 is no fraction"},
		{"NaN survivors", netMeta, func(m *EntropyNet) { m.Meta.Survivors = map[string]float64{"hull2d": math.NaN()} },
			"NaN is no fraction"},
		{"seed with sigma", seedMeta, func(m *EntropyNet) { m.Meta.Sigma = 0.1 },
			"sigma 0.1: a seed model moves no point"},
		{"no direction", seedMeta, func(m *EntropyNet) { m.Tensors["directions3"] = Tensor{[]int{0, 3}, nil} },
			`tensor "directions3": shape [0 3], want [K 3]`},
		{"directions for other dimensions", seedMeta,
			func(m *EntropyNet) { m.Tensors["directions3"] = m.Tensors["directions2"] }, `shape [5 2], want [K 3]`},
		{"not of length 1", seedMeta, func(m *EntropyNet) { m.Tensors["directions2"].Data[0] += 1 }, `has length`},
		{"no direction at all", seedMeta, func(m *EntropyNet) { clear(m.Tensors["directions2"].Data[:2]) },
			"direction [0 0] has length 0, want 1"},
		{"weight 0", seedMeta, func(m *EntropyNet) { m.Tensors["orthant3"].Data[4] = 0 },
			`tensor "orthant3": value 4 is 0`},
		{"an operator's tensor", seedMeta, func(m *EntropyNet) {
			m.Meta.Ops = []string{"hull3d"}
			m.Meta.Survivors = nil
		}, `tensor "directions2" has no place in a seed model for hull3d`},
	} {
		dir := t.TempDir()
		m := random(c.meta, 1)
		c.spoil(m)
		path := filepath.Join(dir, "m.safetensors")
		check := func(err error) {
			t.Helper()
			if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want one line with %q", c.name, err, c.want)
			}
		}
		check(m.Write(path))
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: written all the same: %v, %v", c.name, left, err)
		}
		if err := writeUnchecked(path, m); err != nil {
			if c.name == "length" { // cannot be put into a file
				continue
			}
			t.Fatalf("%s: %v", c.name, err)
		}
		_, err := ReadEntropyNet(path)
		check(err)
	}
}

func writeUnchecked(path string, m *EntropyNet) error {
	var arrays []safetensors.Array
	for name, t := range m.Tensors {
		arrays = append(arrays, safetensors.Array{Name: name, Shape: t.Shape, Data: t.Data})
	}
	s := m.Meta.strings()
	if m.Meta.Sigma == 0 {
		s["sigma"] = "0"
	}
	return safetensors.WriteFile(path, s, arrays)
}

func TestFaultyMetadataAreRefused(t *testing.T) {
	good := func() map[string]string { return netMeta.strings() }
	for _, c := range []struct{ key, value, want string }{
		{"format", "entropynet/2", `its format is "entropynet/2", want entropynet/1`},
		{"format", "pt", `its format is "pt"`},
		{"dims", "two", `metadata dims: "two" is no number`},
		{"dims", "9999999999999999999999", "is no number"},
		{"steps", "1.5", `metadata steps: "1.5" is no number`},
		{"seed", "-1", `metadata seed: "-1" is no number`},
		{"sigma", "", `metadata sigma: "" is no number`},
		{"tau", "1e999", `metadata tau: "1e999" is no number`},
		{"survivors", "hull2d", `metadata survivors: "hull2d" is no number`},
		{"survivors", "hull2d=1,hull2d=1", "is no number"},
		{"colour", "red", `metadata colour: "red" is nothing that entropynet/1 knows`},
	} {
		s := good()
		s[c.key] = c.value
		if _, err := parseMeta(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %q", c.key, c.value, err, c.want)
		}
	}
	for _, key := range []string{"format", "mode", "dims", "ops", "normalise", "seed", "steps"} {
		s := good()
		delete(s, key)
		if _, err := parseMeta(s); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("without %s: %v", key, err)
		}
	}
}

// Files that are no model, and halves that are one.
func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, metadata map[string]string, arrays ...safetensors.Array) string {
		path := filepath.Join(dir, name)
		if err := safetensors.WriteFile(path, metadata, arrays); err != nil {
			t.Fatal(err)
		}
		return path
	}
	meta := Meta{Mode: Seed, Dims: 2, Ops: []string{"hull2d"}, Normalise: NormaliseBox}
	half := []byte{0x00, 0x3c, 0, 0, 0, 0, 0x00, 0xbc} // 1, 0, 0, -1
	m, err := ReadEntropyNet(write("half", meta.strings(),
		safetensors.Array{Name: "directions2", DType: safetensors.F16, Shape: []int{2, 2}, Data: half}))
	if err != nil || !slices.Equal(m.Tensors["directions2"].Data, []float32{1, 0, 0, -1}) {
		t.Errorf("halves: %v, %v", m, err)
	}
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxFile+1); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		write("integers", meta.strings(), safetensors.Array{Name: "directions2", Shape: []int{1, 2},
			Data: []int64{1, 0}}): "values of type I64, want F32, F16, BF16",
		write("other",
			map[string]string{"format": "pt"}): `its format is "pt"`,
		write("none", nil): "its metadata names no format",
		large:              "that a model may have",
		dir:                "not a regular file",
		dir + "/absent":    "no such file",
		dir + "/\x00":      "invalid argument",
	} {
		if _, err := ReadEntropyNet(path); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// A model that has lost its end, or a bit of its header, is refused.
func TestTruncatedModels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := random(seedMeta, 3).Write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, err := ParseEntropyNet("m", data[:n]); err == nil || !strings.HasPrefix(err.Error(), "m: ") {
			t.Errorf("%d of %d bytes: %v", n, len(data), err)
		}
	}
	if m, err := ParseEntropyNet("m", data); err != nil || m.Parameters() != 5*(2+3+2+3) {
		t.Errorf("whole: %v, %v", m, err)
	}
}

func TestMatches(t *testing.T) {
	for i, c := range []struct {
		dataset, sensor string // the model's stream
		dims            int
		want            string
	}{
		{"", "", 3, ""},
		{"kitti", "", 3, ""},
		{"kitti", "velodyne", 3, ""},
		{"", "velodyne", 3, ""},
		{"waymo", "velodyne", 3, `the model is for data set "waymo", and this is "kitti"`},
		{"kitti", "top", 3, `the model is for sensor "top", and this is "velodyne"`},
		{"", "", 2, "the model is for points of 2 dimensions, and these have 3"},
	} {
		m := EntropyNet{Meta: Meta{Dataset: c.dataset, Sensor: c.sensor, Dims: c.dims}}
		if got := fmt.Sprint(m.Matches("kitti", "velodyne", 3)); got != c.want && (c.want != "" || got != "<nil>") {
			t.Errorf("row %d: %s, want %q", i, got, c.want)
		}
	}
}

// Whatever is accepted is valid, and written again it is the same model.
func FuzzParseEntropyNet(f *testing.F) {
	for i, meta := range []Meta{seedMeta, {Mode: Seed, Dims: 2, Ops: []string{"hull2d"}, Normalise: NormaliseBox}} {
		path := filepath.Join(f.TempDir(), "m.safetensors")
		if err := random(meta, uint64(i)).Write(path); err != nil {
			f.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		n := 8 + binary.LittleEndian.Uint64(data)
		f.Add(data[8:n], data[n:])
	}
	path := filepath.Join(f.TempDir(), "again.safetensors")
	f.Fuzz(func(t *testing.T, header, values []byte) {
		data := slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header, values)
		m, err := ParseEntropyNet("m", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "m: ") {
				t.Fatalf("%q: %v names no file", data, err)
			}
			return
		}
		sum := m.SHA256
		if err := m.Write(path); err != nil {
			t.Fatalf("%q is read and cannot be written: %v", data, err)
		}
		again, err := ReadEntropyNet(path)
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if diff := cmp.Diff(m, again, sameMeta); diff != "" {
			t.Fatalf("%q, once %s: %s", data, sum, diff)
		}
	})
}

// A description for people is bounded, whatever a file holds, and says what it
// leaves out.
func TestDescriptionsAreBounded(t *testing.T) {
	d := &Description{File: "large", Metadata: map[string]string{"big": strings.Repeat("é", 1<<20)}}
	for i := range 5000 {
		d.Metadata[fmt.Sprint("key", i)] = "\x1b[31m" + strings.Repeat("x", 5000)
		d.Tensors = append(d.Tensors, TensorDescription{strings.Repeat("n", 10000), "F32", []int{1}})
	}
	text := d.String()
	for _, want := range []string{"and 3000 more tensors; --json", "and 4801 more metadata; --json",
		"and 9500 more bytes", "and 2093152 more bytes"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if len(text) > 3<<20 || !utf8.ValidString(text) || strings.Contains(text, "\x1b") {
		t.Errorf("%d bytes", len(text))
	}
}
