package export

import (
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The values that shells complete after --as are those that export takes: of an output, of
// a model and of a mask.
func TestCompletedFormats(t *testing.T) {
	field, _ := reflect.TypeFor[Command]().FieldByName("As")
	values := strings.Split(field.Tag.Get("values"), ",")
	for _, as := range values {
		c := Command{Out: t.TempDir(), As: as, File: "x", Width: minPictureWidth}
		if err := c.check(io.Discard); err != nil && as != "onnx" && !slices.Contains(maskForms, as) {
			t.Errorf("--as %s is completed and refused: %v", as, err)
		}
	}
	for _, as := range append([]string{"onnx"}, maskForms...) {
		if !slices.Contains(values, as) {
			t.Errorf("--as %s is not completed", as)
		}
	}
	c := Command{Out: t.TempDir(), As: "nothing"}
	err := c.check(io.Discard)
	if err == nil {
		t.Fatal("--as nothing is taken")
	}
	_, known, _ := strings.Cut(err.Error(), "want ")
	for _, as := range strings.Split(known, ", ") {
		if !slices.Contains(values, as) {
			t.Errorf("--as %s is taken and not completed", as)
		}
	}
}
