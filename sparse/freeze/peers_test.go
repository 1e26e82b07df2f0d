package freeze

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"entropipe/models/mat"
	"entropipe/models/safetensors"
	"entropipe/sparse/hf"
	"entropipe/sparse/hf/hftest"
	"entropipe/sparse/model"
	"entropipe/sparse/plan"
	"entropipe/sparse/support"
	"entropipe/sparse/token"
)

// peerPython is the peers' Python; without one the test is skipped.
func peerPython(t *testing.T) string {
	t.Helper()
	program := os.Getenv("ENTROPIPE_TORCH_PYTHON")
	if program == "" {
		t.Skip("peers: ENTROPIPE_TORCH_PYTHON is not set (a Python with torch, transformers, tokenizers and " +
			"safetensors)")
	}
	return program
}

// python runs a program with the peers' Python.
func python(t *testing.T, args ...string) {
	t.Helper()
	program := peerPython(t)
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	// small models: threads that wait for each other awake take minutes on a busy machine
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1")
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, text)
	}
	t.Logf("%s", strings.TrimSpace(string(text)))
}

// peerModels are the checkpoints that both sides freeze: random ones of each
// class, and MiniLM where it lies.
func peerModels(t *testing.T) map[string]string {
	t.Helper()
	dirs := map[string]string{}
	for name, config := range map[string]string{"bert": hftest.BERT, "gpt2": hftest.GPT2,
		"llama": hftest.LLaMA, "vit": bigViT} {
		c := hftest.Config(t, config)
		dirs[name] = t.TempDir()
		if err := hf.Save(dirs[name], c, hftest.Tensors(c), safetensors.F32); err != nil {
			t.Fatal(err)
		}
	}
	if dir := os.Getenv("ENTROPIPE_MINILM"); dir != "" {
		dirs["minilm"] = dir
	} else {
		t.Log("without MiniLM: ENTROPIPE_MINILM is not set (.ci/minilm installs it and prints the folder)")
	}
	return dirs
}

// writeInputs writes a calibration: ids, or the pixels of bigViT.
func writeInputs(t *testing.T, in Inputs) string {
	t.Helper()
	if in.Images != nil {
		path := filepath.Join(t.TempDir(), "pixels.npy")
		header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 2, 40, 40), }",
			len(in.Images)/(2*40*40))
		header += strings.Repeat(" ", 63-(len(header)+10)%64) + "\n"
		data := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
		data = append(data, header...)
		for _, x := range in.Images {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := filepath.Join(t.TempDir(), "ids.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, ids := range in.Sequences {
		if err := json.NewEncoder(f).Encode(map[string]any{"input_ids": ids}); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// peer is a mask that both sides freeze.
type peer struct {
	name, model, dir string
	in               Inputs
	o                Options
	may              int    // heads that may differ
	out              string // the script's folder
}

// peers are all cases: each class of models, in each way that its keys are
// clustered. On MiniLM, with text, a tie may fall the other way.
func peers(t *testing.T) (all []*peer) {
	for name, dir := range peerModels(t) {
		selectors := []string{Mass, Affinity, Entropy}
		if name == "gpt2" { // these look at no weights: one model says it all
			selectors = append(selectors, Window, BigBird)
		}
		in, o, may := sequences(6, 96), Options{Sparsity: 0.6, Block: 16, Buckets: []int{96}, Seed: 7, Workers: 2}, 0
		switch name {
		case "minilm":
			in, o.Buckets, may = minilmText(t, dir, 256, 8), []int{256}, 2
		case "vit":
			in, o.Buckets = images(6), nil
		}
		for _, s := range selectors {
			o.Select, o.Permute, o.Mode = s, name == "vit" && s != Mass, support.Static
			all = append(all, &peer{name + " " + s, name, dir, in, o, may, t.TempDir()})
			if o.Mode = support.Anchor; (name == "bert" || name == "minilm") && s != Mass {
				all = append(all, &peer{name + " " + s + " anchor", name, dir, in, o, may, t.TempDir()})
			}
		}
		if name == "bert" { // two buckets, and sequences that fill none
			in.Sequences = slices.Concat(in.Sequences[:2], sequences(2, 41).Sequences, sequences(4, 90).Sequences)
			o.Select, o.Mode, o.Buckets = Entropy, support.Static, []int{48, 96}
			all = append(all, &peer{"bert entropy, two buckets", "bert of all lengths", dir, in, o, may, t.TempDir()})
		}
	}
	return all
}

// arguments are the script's.
func (p *peer) arguments(inputs string) []string {
	args := []string{"--lm", p.dir, "--calibrate", inputs, "--out", p.out, "--select", p.o.Select, "--mode", p.o.Mode,
		"--sparsity", fmt.Sprint(p.o.Sparsity),
		"--block", fmt.Sprint(p.o.Block), "--seed", fmt.Sprint(p.o.Seed), "--device", "cpu", "--masses",
		filepath.Join(p.out, "masses.npz")}
	for _, n := range p.o.Buckets {
		args = append(args, "--bucket", fmt.Sprint(n))
	}
	return args
}

// freezeAll runs models/freeze.py once for each, in one process: most of a run's
// time PyTorch takes to start.
const freezeAll = `import json, sys
sys.path.insert(0, sys.argv[1])
import freeze
with open(sys.argv[2]) as f:
    for argv in json.load(f):
        freeze.main(argv)`

// A mask that models/freeze.py makes with PyTorch is the one that is made here:
// the same blocks, order, anchors and identity, so the same rows are served; and
// masses agree within 1e-4.
func TestPyTorchFreezesTheSameMasks(t *testing.T) {
	peerPython(t)
	all := peers(t)
	inputs, runs := map[string]string{}, [][]string{}
	for _, p := range all {
		if inputs[p.model] == "" {
			inputs[p.model] = writeInputs(t, p.in)
		}
		runs = append(runs, p.arguments(inputs[p.model]))
	}
	text, err := json.Marshal(runs)
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "runs.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	python(t, "-c", freezeAll, filepath.Join("..", "..", "models"), list)
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			m, err := model.Load(p.dir)
			if err != nil {
				t.Fatal(err)
			}
			here, err := Freeze(t.Context(), m, p.in, p.o)
			if err != nil {
				t.Fatal(err)
			}
			there, err := support.Read(p.out)
			if err != nil {
				t.Fatal(err)
			}
			compareMasses(t, m, p.in, p.o, filepath.Join(p.out, "masses.npz"))
			if compareSets(t, here, there, p.may) {
				compareRows(t, m, here, there, p.in)
			}
		})
	}
}

// minilmText is real text, in pieces.
func minilmText(t testing.TB, dir string, length, count int) Inputs {
	t.Helper()
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	text, err := os.ReadFile(filepath.Join(root, "text", "wikitext-2", "valid.txt"))
	if err != nil {
		t.Skipf("real data: %v (set ENTROPIPE_TESTDATA)", err)
	}
	tokenizer, err := token.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Inputs{Sequences: Pieces(tokenizer, strings.Lines(string(text)), length, count)}
}

// 24 pieces of 512 tokens through MiniLM, certificates and judgement included: a
// window's time is what every selector takes beside its choice.
func BenchmarkSelectors(b *testing.B) {
	dir := os.Getenv("ENTROPIPE_MINILM")
	if dir == "" {
		b.Skip("real weights: ENTROPIPE_MINILM is not set (.ci/minilm installs them and prints the folder)")
	}
	m, err := model.Load(dir)
	if err != nil {
		b.Fatal(err)
	}
	in := minilmText(b, dir, 512, 24)
	for _, selector := range []string{Window, Mass, Affinity, Entropy} {
		b.Run(selector, func(b *testing.B) {
			for b.Loop() {
				if _, err := Freeze(b.Context(), m, in, Options{Select: selector, Sparsity: 0.75, Block: 16,
					Buckets: []int{512}, Seed: 1, Workers: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// compareSets allows a few heads another layout or other anchors. It says
// whether none has.
func compareSets(t *testing.T, here, there *support.Set, may int) bool {
	t.Helper()
	if here.Facts != there.Facts || here.Source != there.Source || here.Select != there.Select ||
		here.Mode != there.Mode {
		t.Errorf("%+v %+v %+v %s\n%+v %+v %+v %s", here.Facts, here.Source, here.Select, here.Mode, there.Facts,
			there.Source, there.Select, there.Mode)
	}
	differ := 0
	for head := range here.Buckets[0].Of {
		if here.Mode == support.Anchor {
			layer, kv := head/here.KVHeads, head%here.KVHeads
			a, b := here.Anchors.Of(&here.Facts, layer, kv), there.Anchors.Of(&there.Facts, layer, kv)
			if !slices.Equal(a, b) {
				differ++
				t.Logf("head %d: anchors differ by up to %g", head, furthest(a, b))
			}
			continue
		}
		a, b := here.Buckets[0].Layouts[here.Buckets[0].Of[head]], there.Buckets[0].Layouts[there.Buckets[0].Of[head]]
		if !a.Equal(b) {
			differ++
			t.Logf("head %d: %v %v, PyTorch's %v %v", head, a.RowPtr, a.Col, b.RowPtr, b.Col)
		}
	}
	t.Logf("%d of %d heads agree", len(here.Buckets[0].Of)-differ, len(here.Buckets[0].Of))
	a, _ := here.SHA256()
	if b, _ := there.SHA256(); differ > may || (a == b) != (differ == 0) {
		t.Errorf("%d heads differ, at most %d may; identities %s and %s", differ, may, a, b)
	}
	return differ == 0
}

func furthest(a, b []float32) (most float64) {
	for i := range a {
		most = max(most, math.Abs(float64(a[i])-float64(b[i])))
	}
	return most
}

func compareMasses(t *testing.T, m *model.Model, in Inputs, o Options, path string) {
	t.Helper()
	f, err := newRun(t.Context(), m, in, o)
	if err != nil {
		t.Fatal(err)
	}
	here, err := f.captureMass()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	file, err := archive.Open("arr_0.npy")
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	_, there, err := parseNPY(data)
	if err != nil {
		t.Fatal(err)
	}
	worst, at := 0.0, 0
	for _, sum := range here[0].sums {
		for i, x := range sum {
			worst = max(worst, math.Abs(x-there[at+i]))
		}
		at += len(sum)
	}
	t.Logf("masses differ by at most %.2g", worst)
	if at != len(there) || !(worst <= 1e-4) {
		t.Errorf("%d of %d masses differ by up to %g", at, len(there), worst)
	}
}

// compareRows serves one input with both sets.
func compareRows(t *testing.T, m *model.Model, here, there *support.Set, in Inputs) {
	t.Helper()
	var rows [2][]float32
	for i, s := range []*support.Set{here, there} {
		p, err := plan.New(s, plan.Facts{Facts: Facts(m), Always: true})
		if err != nil {
			t.Fatal(err)
		}
		o := model.Options{Plan: p.For, Hook: p.Hook()}
		session := m.NewSession(2)
		var hidden mat.Matrix
		if in.Images != nil {
			hidden, err = session.Images(in.Images[:2*40*40], 1, o)
		} else {
			ids := in.Sequences[0]
			hidden, err = session.Hidden(model.Batch{IDs: ids, Starts: []int32{0, int32(len(ids))}}, o)
		}
		if err != nil {
			t.Fatal(err)
		}
		rows[i] = hidden.Data
	}
	for i := range rows[0] {
		if math.Float32bits(rows[0][i]) != math.Float32bits(rows[1][i]) {
			t.Fatalf("number %d of the rows is %v, with PyTorch's mask %v", i, rows[0][i], rows[1][i])
		}
	}
}
