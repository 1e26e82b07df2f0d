//go:build readers

package picture

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// GDAL reads the hulls, maxima, triangles and points of the tables.
func TestGeoPackageInPython(t *testing.T) {
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	e := hostile(t)
	file := geoPackageOf(t, e, []string{LayerPoints, LayerHull, LayerMaxima, LayerTriangles})
	said, err := exec.Command(interpreter, "../../.ci/readers/geopackage.py", file, e.dir).CombinedOutput()
	t.Logf("%s", bytes.TrimSpace(said))
	if err != nil {
		t.Error(err)
	}
}

// mcap and foxglove-schemas-protobuf read the points, hulls, maxima and meshes of the
// tables. The time of a frame is its position, by which the script finds its points.
func TestMCAPInPython(t *testing.T) {
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	e := hostile(t)
	for i := range e.results {
		e.results[i].TimeNs = int64(i)
	}
	file, _ := mcapOf(t, e.results, []string{LayerPoints, LayerHull, LayerMaxima, LayerTriangles})
	path := filepath.Join(t.TempDir(), "all.mcap")
	if err := os.WriteFile(path, file, 0o666); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(interpreter, "../../.ci/readers/mcap_export.py", path, e.dir).CombinedOutput()
	t.Logf("%s", bytes.TrimSpace(said))
	if err != nil {
		t.Error(err)
	}
}
