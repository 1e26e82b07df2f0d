package freeze

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"
)

// freeze.py reads compressed files, byte order marks and masks of padding as the
// verb does.
func TestPeersReadTheSameCalibration(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string, pack bool) {
		data := []byte(text)
		if pack {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			if _, err := z.Write(data); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const rows, text = "\ufeff{\"input_ids\":[1,2,0],\"attention_mask\":[1,1,0]}\n{\"input_ids\":[3]}\n",
		"\ufeffone\ntwo"
	put("a.jsonl", rows, false)
	put("b.jsonl.gz", rows, true)
	put("c.txt", text, false)
	put("d.txt.gz", text, true)
	put("e.txt", text, true) // compressed, and not called so
	python(t, "-c", `
import os, sys
sys.path.insert(0, sys.argv[1])
from freeze import read_inputs, read_texts
for name in ("a.jsonl", "b.jsonl.gz"):
    assert read_texts(os.path.join(sys.argv[2], name), 9) == ([], [[1, 2], [3]]), name
for name in ("c.txt", "d.txt.gz"):
    assert read_texts(os.path.join(sys.argv[2], name), 9) == (["one\n", "two"], []), name
try:
    read_inputs(os.path.join(sys.argv[2], "e.txt"), None, [], 9, False)
    assert False, "compressed bytes are no text"
except SystemExit as e:
    assert "e.txt: is not text in UTF-8" in str(e), e
`, filepath.Join("..", "..", "models"), dir)
}

// freeze.py takes the flag --bucket in the verb's forms, and refuses the rows that
// the verb refuses.
func TestPeersTakeTheSameFlagsAndRefuseTheSameRows(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"double": `{"text": "a", "text": "b"}`,
		"case": `{"text": "a", "Text": "b"}`, "half": `{"text": "\ud83d"}`, "list": `[1]`} {
		if err := os.WriteFile(filepath.Join(dir, name+".jsonl"),
			[]byte("{\"text\": \"good \\ud83d\\ude00\", \"x\": {\"a\": 1, \"a\": 2}}\n"+text+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	python(t, "-c", `
import argparse, os, sys
sys.path.insert(0, sys.argv[1])
import freeze
for name, said in (("double", "twice"), ("case", "twice"), ("half", "surrogates"), ("list", "object")):
    try:
        freeze.read_texts(os.path.join(sys.argv[2], name + ".jsonl"), 9)
        assert False, name
    except SystemExit as e:
        assert f"{name}.jsonl:2: " in str(e) and said in str(e), e
asked = []
freeze.facts = lambda lm: (dict(arch="bert", causal=False), 2048)
def inputs(path, lm, buckets, *rest):
    asked.append(buckets)
    raise SystemExit(0)
freeze.read_inputs = inputs
for flags in (["--bucket", "256,512"], ["--bucket=256,512"], ["--bucket", "256", "--bucket", "512"], ["--bucket", "64,128", "--bucket", "256"], []):
    try:
        freeze.main(["--lm", "x", "--calibrate", "y", "--out", "z"] + flags)
    except SystemExit as e:
        assert e.code == 0, e
assert asked == [[256, 512]] * 3 + [[64, 128, 256], [2048]], asked
`, filepath.Join("..", "..", "models"), dir)
}
