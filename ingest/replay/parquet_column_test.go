package replay

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// Floats are the same in pages of every kind: plain, with a dictionary, with nulls in some
// pages, of both widths, in several row groups.
func TestParquetFloatsOfEveryPage(t *testing.T) {
	type row struct {
		X float32  `parquet:"x"`
		Y float64  `parquet:"y,zstd"`
		Z *float32 `parquet:"z,optional"`
		I float32  `parquet:"intensity,dict"`
		D *float64 `parquet:"elongation,optional,dict"`
	}
	const n = 5000
	rows := make([]row, n)
	for i := range rows {
		z, d := float32(i)/3, float64(i%50)
		rows[i] = row{X: float32(i) / 7, Y: float64(float32(i) / 9), Z: &z, I: float32(i % 100), D: &d}
		if i > 2000 && i%1700 == 0 { // some pages have no null
			rows[i].Z, rows[i].D = nil, nil
		}
	}
	path := filepath.Join(t.TempDir(), "cloud.parquet")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[row](file, parquet.PageBufferSize(1000), parquet.MaxRowsPerRowGroup(2100))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	src, err := Table{Paths: []string{path}, Format: FormatParquet}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var it Item
	if err := src.Next(&it); err != nil {
		t.Fatal(err)
	}
	if it.Cloud.Len() != n || !it.Cloud.Double {
		t.Fatalf("%d points, double %v", it.Cloud.Len(), it.Cloud.Double)
	}
	same := func(got float64, want float64, there bool) bool {
		return there && got == want || !there && math.IsNaN(got)
	}
	for i, r := range rows {
		var z, d float64
		if r.Z != nil {
			z, d = float64(*r.Z), *r.D
		}
		c := &it.Cloud
		if c.Cloud64.X[i] != float64(r.X) || c.Cloud64.Y[i] != r.Y || !same(c.Cloud64.Z[i], z, r.Z != nil) ||
			c.Intensity[i] != r.I || !same(float64(c.Elongation[i]), d, r.D != nil) {
			t.Fatalf("row %d: %v %v %v, intensity %v, elongation %v; want %+v", i, c.Cloud64.X[i], c.Cloud64.Y[i],
				c.Cloud64.Z[i], c.Intensity[i], c.Elongation[i], r)
		}
	}
}
