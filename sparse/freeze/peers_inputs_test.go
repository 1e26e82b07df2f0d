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
	const rows, text = "\ufeff{\"input_ids\":[1,2,0],\"attention_mask\":[1,1,0]}\n{\"input_ids\":[3]}\n", "\ufeffone\ntwo"
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
