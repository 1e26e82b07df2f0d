package token

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// encoded is what the reference makes of a text.
type encoded struct {
	IDs     []int32
	Decoded string
}

func (e *encoded) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&e.IDs, &e.Decoded})
}

func (e encoded) MarshalJSON() ([]byte, error) { return json.Marshal([]any{e.IDs, e.Decoded}) }

// python returns the interpreter that has the reference, and skips the test
// where none is named.
func python(t testing.TB) string {
	t.Helper()
	path := os.Getenv("ENTROPIPE_TORCH_PYTHON")
	if path == "" {
		t.Skip("the reference: ENTROPIPE_TORCH_PYTHON does not name a Python that has the package tokenizers")
	}
	return path
}

// reference encodes texts with the Python package.
func reference(t testing.TB, file string, texts []string) []encoded {
	t.Helper()
	var in bytes.Buffer
	for _, text := range texts {
		in.WriteString(base64.StdEncoding.EncodeToString([]byte(text)))
		in.WriteByte('\n')
	}
	cmd := exec.Command(python(t), filepath.Join("testdata", "reference.py"), "encode", file)
	cmd.Stdin = &in
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	results := make([]encoded, 0, len(texts))
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<30)
	for lines.Scan() {
		var e encoded
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		results = append(results, e)
	}
	if len(results) != len(texts) {
		t.Fatalf("the reference answered %d of %d texts", len(results), len(texts))
	}
	return results
}

// moduleRoot walks up from the working directory to the folder of go.mod.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}

// testData returns the path of a part of the real data: below the folder that
// ENTROPIPE_TESTDATA names, or else ../shared/data beside the repository. It
// skips the test, with the reason, when that is not there.
func testData(t testing.TB, parts ...string) string {
	t.Helper()
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join(moduleRoot(t), "..", "shared", "data")
	}
	path := filepath.Join(append([]string{root}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("real data: %v (set ENTROPIPE_TESTDATA)", err)
	}
	return path
}
