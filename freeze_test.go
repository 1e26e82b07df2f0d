package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/cmd"
	"entropipe/cmd/command"
	"entropipe/models/safetensors"
	"entropipe/sparse/freeze"
	"entropipe/sparse/hf/hftest"
	"entropipe/sparse/support"
)

// idLines writes count lines of n ids that the models of hftest know.
func idLines(t *testing.T, count, n int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(8, 1))
	var b strings.Builder
	for range count {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(r.IntN(61))
		}
		line, err := json.Marshal(map[string]any{"id": "a", "input_ids": ids})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n\n", line)
	}
	return writeText(t, "ids.jsonl", b.String())
}

func writeText(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// runCommand runs a command line and returns its status and what it printed.
func runCommand(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = cmd.Main(args, &out, &errs)
	return status, out.String(), errs.String()
}

// The verb writes a mask that is read again, says what it is worth, and can
// judge and export a mask that is there.
func TestFreezeWritesAMaskAndJudgesIt(t *testing.T) {
	lm := hftest.Dir(t, hftest.Config(t, hftest.GPT2))
	ids, out := idLines(t, 8, 96), t.TempDir()
	code, text, log := runCommand(t, "freeze", "--lm", lm, "--calibrate", ids, "--out", out, "--block", "16", "--sparsity", "0.5")
	if code != 0 {
		t.Fatal(log)
	}
	for _, want := range []string{"mass kept", "2·B·delta", "perplexity on 2 inputs", "dense: "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	first, err := support.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	code, text, log = runCommand(t, "freeze", "--lm", lm, "--calibrate", ids, "--out", other, "--block", "16", "--select", "imported", "--import", out, "--json")
	if code != 0 {
		t.Fatal(log)
	}
	var document struct {
		Mask    string           `json:"mask_sha256"`
		Quality *support.Quality `json:"quality"`
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if sha, _ := first.SHA256(); document.Mask != sha {
		t.Errorf("the imported mask is %s, was %s", document.Mask, sha)
	}
	if diff := cmp.Diff(first.Quality, document.Quality); diff != "" {
		t.Errorf("judged otherwise: %s", diff)
	}
	for _, form := range []string{"ort", "flex", "flashinfer"} {
		file := filepath.Join(other, form+".safetensors")
		if code, _, log := runCommand(t, "export", out, "--as", form, "-o", file); code != 0 {
			t.Fatal(log)
		}
		f, err := safetensors.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		if f.Metadata()["format"] != form {
			t.Errorf("%s: %v", form, f.Metadata())
		}
		f.Close()
	}
	// What was exported can be imported.
	code, _, log = runCommand(t, "freeze", "--lm", lm, "--calibrate", ids, "--out", other, "--block", "16", "--select", "imported",
		"--import", filepath.Join(other, "flashinfer.safetensors"))
	if code != 0 {
		t.Fatal(log)
	}
	again, err := support.Read(other)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := first.SHA256()
	if b, _ := again.SHA256(); a != b {
		t.Error("a mask that went through FlashInfer's form is another")
	}
}

// Text goes through the tokenizer of the shipped model.
func TestFreezeReadsText(t *testing.T) {
	text := writeText(t, "notes.txt", strings.Repeat("Points, lines and planes; what is hidden stays so.\n", 20))
	code, out, log := runCommand(t, "freeze", "--lm", "builtin:bytes", "--calibrate", text, "--out", t.TempDir(), "--block", "32", "--bucket", "128",
		"--sequences", "4", "--select", "window")
	if code != 0 {
		t.Fatal(log)
	}
	if !strings.Contains(out, "lengths to 128") {
		t.Error(out)
	}
}

func TestFreezeSaysWhatIsWrong(t *testing.T) {
	lm := hftest.Dir(t, hftest.Config(t, hftest.BERT))
	ids := idLines(t, 4, 96)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--calibrate", ids, "--sparsity", "1"}, command.ExitUsage, "--sparsity 1"},
		{[]string{"--calibrate", ids, "--block", "20"}, command.ExitUsage, "--block 20"},
		{[]string{"--calibrate", ids, "--select", "imported"}, command.ExitUsage, "--import"},
		{[]string{"--calibrate", ids, "--beyond", "1,2"}, command.ExitUsage, "--beyond"},
		{[]string{"--calibrate", ids, "--sequences", "2"}, command.ExitUsage, "--sequences"},
		{[]string{"--calibrate", "absent.txt"}, command.ExitRuntime, "absent.txt"},
		{[]string{"--calibrate", writeText(t, "a.txt", "text"), "--block", "16"}, command.ExitRuntime, "tokenizer.json"},
		{[]string{"--calibrate", writeText(t, "a.jsonl", "{\"input_ids\":[1]}\n[2]\n")}, command.ExitRuntime, "a.jsonl:2:"},
		{[]string{"--calibrate", writeText(t, "f.jsonl", strings.Repeat("{\"input_ids\":[61]}\n", 9))}, command.ExitRuntime, "f.jsonl: sequence 1 has the id 61"},
		{[]string{"--calibrate", writeText(t, "g.txt", "\x1f\x8b\x08")}, command.ExitRuntime, "g.txt: is not text in UTF-8"},
		{[]string{"--calibrate", writeText(t, "h.txt.gz", "text")}, command.ExitRuntime, "h.txt.gz: "},
		{[]string{"--calibrate", writeText(t, "b.jsonl", "{\"ids\":[1]}")}, command.ExitRuntime, "b.jsonl:1: "},
		{[]string{"--calibrate", writeText(t, "c.jsonl", "{\"input_ids\":[1]}\n{\"text\":\"a\"}")}, command.ExitRuntime, "mixed"},
		{[]string{"--calibrate", writeText(t, "d.parquet", "PAR1")}, command.ExitRuntime, "d.parquet"},
		{[]string{"--calibrate", writeText(t, "e.jsonl", "")}, command.ExitRuntime, "neither text nor sequences"},
		{[]string{"--calibrate", ids, "--block", "16", "--bucket", "0"}, command.ExitUsage, "bucket"},
		{[]string{"--calibrate", ids, "--block", "16", "--bucket", "97"}, command.ExitRuntime, "96 positions"},
		{[]string{"--calibrate", ids, "--block", "16", "--tokens", "100"}, command.ExitRuntime, "more --tokens"},
	} {
		t.Run(strings.Join(c.args[2:], " ")+filepath.Base(c.args[1]), func(t *testing.T) {
			code, _, log := runCommand(t, append([]string{"freeze", "--lm", lm, "--out", t.TempDir()}, c.args...)...)
			if code != c.code || !strings.Contains(log, c.want) {
				t.Errorf("status %d, want %d with %q:\n%s", code, c.code, c.want, log)
			}
		})
	}
}

func TestExportOfAMaskSaysForWhom(t *testing.T) {
	lm, out := hftest.Dir(t, hftest.Config(t, hftest.BERT)), t.TempDir()
	code, _, log := runCommand(t, "freeze", "--lm", lm, "--calibrate", idLines(t, 4, 96), "--out", out, "--block", "16", "--select", "window")
	if code != 0 {
		t.Fatal(log)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, command.ExitUsage, "ort|flex|flashinfer"},
		{[]string{"--as", "svg"}, command.ExitUsage, "ort|flex|flashinfer"},
		{[]string{"--as", "flex", "--offset", "3"}, command.ExitUsage, "no frames"},
		{[]string{"--as", "ort"}, command.ExitRuntime, "causal"},
	} {
		code, _, log := runCommand(t, append([]string{"export", out}, c.args...)...)
		if code != c.code || !strings.Contains(log, c.want) {
			t.Errorf("%v: status %d, want %d with %q:\n%s", c.args, code, c.code, c.want, log)
		}
	}
	// What is at the place of a failed export stays.
	file := writeText(t, "old.safetensors", "old")
	if code, _, log := runCommand(t, "export", out, "--as", "ort", "-o", file); code != command.ExitRuntime {
		t.Fatal(log)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "old" {
		t.Errorf("%q is there after a failed export, %v", data, err)
	}
}

// A mask may lie beside the model's own files, which stay as they are.
func TestAMaskMayLieBesideItsModel(t *testing.T) {
	lm := hftest.Dir(t, hftest.Config(t, hftest.BERT))
	ids := idLines(t, 4, 96)
	for range 2 { // the second reads a folder that has a mask
		if code, _, log := runCommand(t, "freeze", "--lm", lm, "--calibrate", ids, "--out", lm, "--block", "16", "--progress"); code != 0 {
			t.Fatal(log)
		}
	}
	if _, err := support.Read(lm); err != nil {
		t.Error(err)
	}
}

// A ViT's inputs are pixels; its keys are sorted by cluster.
func TestFreezeOfImages(t *testing.T) {
	lm := hftest.Dir(t, hftest.Config(t, hftest.ViT))
	header := fmt.Sprintf("%-117s\n", "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 2, 8, 12), }")
	pixels := writeText(t, "pixels.npy", "\x93NUMPY\x01\x00\x76\x00"+header+strings.Repeat("\x01\x02\x03", 4*2*8*12/3))
	code, out, log := runCommand(t, "freeze", "--lm", lm, "--calibrate", pixels, "--out", t.TempDir(), "--block", "16", "--select", freeze.Entropy)
	if code != 0 {
		t.Fatal(log)
	}
	if !strings.Contains(out, "cosine on 2 inputs") {
		t.Error(out)
	}
	bert := hftest.Dir(t, hftest.Config(t, hftest.BERT))
	if code, _, log := runCommand(t, "freeze", "--lm", bert, "--calibrate", pixels, "--out", t.TempDir()); code != command.ExitRuntime {
		t.Errorf("pixels for a model of tokens: status %d\n%s", code, log)
	}
}
