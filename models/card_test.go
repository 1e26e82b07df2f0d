package models

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/models/safetensors"
)

var testCard = Card{
	Title: "Directions | for a rotating scanner", Purpose: "Hints for hulls in space.",
	Data:    []CardData{{"scanner 1-5", "training", 5, 600000}, {"scanner 6-9", "judging", 4, 480000}},
	Metrics: []Metric{{"survivors", "scanner 6-9", 0.0125, ""}, {"time", "scanner 6-9", 1.5, "ms"}},
	Limits:  []string{"Not for terrestrial scans."},
}

func TestCardsStandBesideTheirModels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scanner.safetensors")
	m := random(seedMeta, 1)
	if err := testCard.Write(path, m); err == nil || !strings.Contains(err.Error(), "has not been written") {
		t.Errorf("a card of nothing: %v", err)
	}
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	if err := testCard.Write(path, m); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "scanner.card.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Directions \\| for a rotating scanner\n", "| file | `scanner.safetensors` |",
		"| SHA-256 | `" + m.SHA256 + "` |", "| data sha256 | " + m.Meta.DataSHA256 + " |",
		"| seed | 18446744073709551615 |", "\n    entropipe train \"x\" --seed 7\n",
		"| scanner 1-5 | training | 5 | 600000 |", "| survivors | scanner 6-9 | 0.0125 |",
		"| time | scanner 6-9 | 1.5 ms |", "* Not for terrestrial scans.\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var fields map[string]any
	text, err = os.ReadFile(filepath.Join(filepath.Dir(path), "scanner.card.json"))
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil || fields["sha256"] != m.SHA256 || fields["format"] != CardFormat || fields["parameters"] != 50.0 ||
		fields["metadata"].(map[string]any)["command"] != m.Meta.Command {
		t.Errorf("%v in %s", err, text)
	}
	bad := testCard
	bad.Metrics = []Metric{{"error", "", math.NaN(), ""}}
	if err := bad.Write(path, m); err == nil || !strings.Contains(err.Error(), `metric "error" is NaN`) {
		t.Errorf("NaN: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "scanner.safetensors")
	m := random(seedMeta, 1)
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	if d, err := Describe(path); err != nil || d.Card != nil || d.Values != 50 {
		t.Fatalf("without card: %+v, %v", d, err)
	}
	if err := testCard.Write(path, m); err != nil {
		t.Fatal(err)
	}
	d, err := Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&testCard, d.Card); diff != "" {
		t.Error("card:", diff)
	}
	for _, want := range []string{"scanner.safetensors: a seed model of 50 values for " +
		"hull3d,maxima3d,hull2d,maxima2d, points of 3 dimensions\n", "  sha256: " + m.SHA256 + "\n",
		"  dataset: kitti\n", "  survivors: hull2d=0,hull3d=0.0125\n", "  tensor directions3: F32 [5 3]\n",
		"  training: scanner 1-5, 5 frames, 600000 points\n", "  time on scanner 6-9: 1.5 ms\n"} {
		if !strings.Contains(d.String(), want) {
			t.Errorf("no %q in\n%s", want, d)
		}
	}
	m.Meta.Steps++ // the card is that of the file before
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	if d, err := Describe(path); err != nil || d.Card != nil {
		t.Errorf("the card of another file: %+v, %v", d, err)
	}
}

func TestDescribeOtherFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "other.safetensors")
	if err := safetensors.WriteFile(path, map[string]string{"format": "pt", "by": "\x1b[2J"},
		[]safetensors.Array{{Name: "a", Shape: []int{2, 1}, Data: []int64{1, 2}},
			{Name: "b", Data: []float32{1}}}); err != nil {
		t.Fatal(err)
	}
	const listing = "  tensor a: I64 [2 1]\n  tensor b: F32 []\n"
	if d, err := Describe(path); err != nil ||
		d.String() != "other.safetensors: 2 tensors of 3 values\n  by: \"\\x1b[2J\"\n  format: pt\n"+listing {
		t.Errorf("got %v, %v", d, err)
	}
	index := filepath.Join(dir, "all.index.json")
	if err := os.WriteFile(index, []byte(`{"weight_map":{"a":"other.safetensors","b":"other.safetensors"}}`),
		0o666); err != nil {
		t.Fatal(err)
	}
	if d, err := Describe(index); err != nil || !strings.HasSuffix(d.String(), listing) {
		t.Errorf("index: %v, %v", d, err)
	}
	broken := random(netMeta, 1)
	broken.Tensors["head.1.bias"].Data[0] = float32(math.NaN())
	if err := writeUnchecked(path, broken); err != nil {
		t.Fatal(err)
	}
	if d, err := Describe(path); err == nil || !strings.Contains(err.Error(), `tensor "head.1.bias": value 0 is NaN`) {
		t.Errorf("a broken model: %v, %v", d, err)
	}
}
