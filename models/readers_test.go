//go:build readers

package models

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// python runs testdata/check.py with the interpreter that ENTROPIPE_PYTHON
// names, which must have what .ci/readers/requirements.txt lists.
func python(t *testing.T, args ...string) {
	t.Helper()
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	said, err := exec.Command(interpreter, append([]string{"testdata/check.py"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, said)
	}
	t.Logf("%s: %s", args[0], bytes.TrimSpace(said))
}

// ONNX Runtime computes the formula to 1e-5 of sigma.
func TestONNXRuntime(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i, m := range networks() {
		dir := t.TempDir()
		path := filepath.Join(dir, "model.onnx")
		var model bytes.Buffer
		if err := m.WriteONNX(&model); err != nil {
			t.Fatal(err)
		}
		write(t, path, model.Bytes())
		for _, n := range []int{1, 2, 100, 3000} {
			points := unitPoints(rng, n, m.Meta.Dims)
			writeValues(t, filepath.Join(dir, fmt.Sprint(n, ".points")), points)
			writeValues(t, filepath.Join(dir, fmt.Sprint(n, ".want")), reference(m, points))
		}
		python(t, "onnx", path, dir)
		if i == 0 { // a check that cannot fail is a defect
			writeValues(t, filepath.Join(dir, "1.want"), []float64{1, 1})
			if err := exec.Command(os.Getenv("ENTROPIPE_PYTHON"), "testdata/check.py", "onnx", path,
				dir).Run(); err == nil {
				t.Error("a wrong displacement was not noticed")
			}
		}
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func writeValues(t *testing.T, path string, values any) {
	t.Helper()
	b, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, b)
}
