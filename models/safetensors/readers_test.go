//go:build readers

package safetensors

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The reference library reads our files, and we read those that it writes.
// ENTROPIPE_PYTHON names an interpreter that has it.
func TestReferenceLibrary(t *testing.T) {
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "ours.safetensors"), filepath.Join(dir, "theirs.safetensors")
	metadata := map[string]string{"format": "test/1", "text": "<&> \" \\ \u2028 é 😀"}
	if err := WriteFile(ours, metadata, every()); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(interpreter, "../testdata/check.py", "tensors", ours,
		theirs).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if diff := cmp.Diff(content(t, ours), content(t, theirs)); diff != "" {
		t.Error(diff)
	}
	f, err := Open(theirs)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if diff := cmp.Diff(metadata, f.Metadata()); diff != "" {
		t.Error(diff)
	}
}

// content returns each tensor's type, shape and bytes.
func content(t *testing.T, path string) map[string]Array {
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]Array{}
	for _, x := range f.Tensors() {
		raw, err := io.ReadAll(x.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		all[x.Name] = Array{x.Name, x.DType, x.Shape, raw}
	}
	return all
}
