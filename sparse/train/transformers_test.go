package train

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"entropipe/models/mat"
)

// script opens a directory with transformers, unchanged, and prints logits, or
// the gradients of the losses by the pixels.
const script = `
import json, sys, torch
from transformers import AutoModelForCausalLM, AutoModelForImageClassification
request = json.load(open(sys.argv[1]))
with torch.no_grad():
    if request["kind"] == "text":
        m, info = AutoModelForCausalLM.from_pretrained(request["dir"], output_loading_info=True)
        out = m(torch.tensor(request["ids"])).logits
    else:
        m, info = AutoModelForImageClassification.from_pretrained(request["dir"], output_loading_info=True)
        side = request["side"]
        pixels = torch.tensor(request["pixels"]).view(-1, 1, side, side)
        if request["kind"] == "gradients":
            with torch.enable_grad():
                loss = torch.nn.functional.cross_entropy(m(pixels.requires_grad_()).logits, torch.tensor(request["labels"]), reduction="sum")
                out, = torch.autograd.grad(loss, pixels)
        else:
            out = m(pixels).logits
odd = [str(k) for k in ("missing_keys", "unexpected_keys", "mismatched_keys") if info[k]]
json.dump({"odd": odd, "logits": out.flatten().tolist()}, open(sys.argv[2], "w"))
`

// ask runs the script, or skips the test where no Python with torch is named.
func ask(t *testing.T, request map[string]any) []float64 {
	t.Helper()
	python := os.Getenv("ENTROPIPE_TORCH_PYTHON")
	if python == "" {
		t.Skip("set ENTROPIPE_TORCH_PYTHON to a Python with torch and transformers")
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.json"), filepath.Join(dir, "out.json")
	data, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in, data, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", script, in, out)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1") // as in package freeze's tests
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var answer struct {
		Odd    []string  `json:"odd"`
		Logits []float64 `json:"logits"`
	}
	if data, err = os.ReadFile(out); err == nil {
		err = json.Unmarshal(data, &answer)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Odd) > 0 {
		t.Errorf("transformers reports %v", answer.Odd)
	}
	return answer.Logits
}

func compare(t *testing.T, got mat.Matrix, want []float64) {
	t.Helper()
	if len(want) != got.Rows*got.Cols {
		t.Fatalf("%d logits, want %d", len(want), got.Rows*got.Cols)
	}
	for i := range got.Rows {
		for j, v := range got.Row(i) {
			if w := want[i*got.Cols+j]; !(math.Abs(float64(v)-w) <= 1e-4) {
				t.Fatalf("row %d, logit %d: %v, transformers has %v", i, j, v, w)
			}
		}
	}
}

// transformers opens a written model and computes the same logits.
func TestTransformersOpensText(t *testing.T) {
	c := small(Entropy)
	c.Steps = 30
	text, err := ByteText("made", ByteTokenizer()) // any text will do
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r, err := LM(context.Background(), c, text, dir, "")
	if err != nil {
		t.Fatal(err)
	}
	p := newPass(r.Trainer.net, 2)
	p.begin(2)
	r.Trainer.data.held(p, 0, 0)
	r.Trainer.data.held(p, 1, 2)
	p.forward(nil)
	logits := p.outputs()
	compare(t, logits, ask(t, map[string]any{"kind": "text", "dir": dir,
		"ids": [][]int32{p.ids[:c.Context], p.ids[c.Context:]}}))
}

func TestTransformersOpensImages(t *testing.T) {
	c := small(None)
	c.Steps, c.Patch = 30, 4
	images, dir := blobs(60), t.TempDir()
	r, err := ViT(context.Background(), c, images, dir, "")
	if err != nil {
		t.Fatal(err)
	}
	p := newPass(r.Trainer.net, 2)
	p.begin(2)
	size := images.Side * images.Side
	pixels := make([]float32, 2*size)
	for k, i := range images.HeldOut()[:2] {
		r.Trainer.data.held(p, k, k)
		Normalised(pixels[k*size:(k+1)*size], images.Image(i))
	}
	p.forward(nil)
	compare(t, p.outputs(), ask(t, map[string]any{"kind": "images", "dir": dir, "side": images.Side, "pixels": pixels}))
}
