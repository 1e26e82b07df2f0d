//go:build readers

package picture

import (
	"bytes"
	"os"
	"os/exec"
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
