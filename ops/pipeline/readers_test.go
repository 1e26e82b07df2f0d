//go:build readers

package pipeline

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"entropipe/algos/geomtest"
	"entropipe/schemas"
)

// A consumer in Python, with pyarrow and SciPy, finds in the survivors what it
// finds in the whole frame. ENTROPIPE_PYTHON names an interpreter that has what
// .ci/readers/requirements.txt lists.
func TestSurvivorsInPython(t *testing.T) {
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	publish := schemas.OpSet(0).With(schemas.Hull2D).With(schemas.Hull3D).With(schemas.Maxima3D)
	f := NewFrames(FrameConfig{Ops: []schemas.Op{}, Publish: publish})
	for seed := range uint64(3) {
		dir := t.TempDir()
		whole, part := filepath.Join(dir, "whole"), filepath.Join(dir, "part")
		value := points32(t, geomtest.Lidar[float32](6000, seed))
		results, _ := f.Process(message(value))
		for path, data := range map[string][]byte{whole: value, part: results[0].Publish.Value} {
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		said, err := exec.Command(interpreter, "testdata/survivors.py", whole, part).CombinedOutput()
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, said)
		}
		t.Logf("%s", bytes.TrimSpace(said))
		if seed > 0 {
			continue
		}
		// A check that cannot fail is a defect: a corner of the hull is missing.
		hull := NewFrames(FrameConfig{Ops: []schemas.Op{schemas.Hull2D},
			Publish: schemas.OpSet(0).With(schemas.Maxima3D)})
		results, _ = hull.Process(message(value))
		if err := os.WriteFile(part, results[0].Publish.Value, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := exec.Command(interpreter, "testdata/survivors.py", whole, part).Run(); err == nil {
			t.Error("the loss of a corner was not noticed")
		}
	}
}
