package sinks

import (
	"io"
	"testing"

	"entropipe/schemas"
)

// The benchmarks measure encoding, without a disk. Each reports ns a row (of
// the table) or a frame.

func benchmarkEncode(b *testing.B, batch *schemas.Batch, tables ...*table) {
	cfg := &Config{PartitionBy: []string{byDataset}, RowGroupRows: 1 << 20, RowGroupBytes: 64e6}
	o := &Output{cfg: *cfg, tables: tables}
	e := newEncoder(cfg)
	plan := o.plan(batch, 0)
	var rows, size int64
	for b.Loop() {
		rows, size = 0, 0
		for i := range plan {
			out := newSummingWriter(io.Discard)
			n, err := e.encode(out, &plan[i], batch)
			if err != nil {
				b.Fatal(err)
			}
			rows += n
			size += out.bytes
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(batch.Results)), "ns/frame")
	b.ReportMetric(float64(size), "bytes")
}

// BenchmarkTriangles: eight LiDAR frames of 240,000 triangles.
func BenchmarkTriangles(b *testing.B) {
	batch := synthetic(batchSpec{topic: "points", records: 8, frames: 1, points: 3, plain: true})
	for i := range batch.Results {
		batch.Results[i].Triangles = canonicalMesh(240_000, uint64(i))
	}
	benchmarkEncode(b, batch, trianglesTable)
}

// BenchmarkHulls: 10,000 hulls of 45 vertices.
func BenchmarkHulls(b *testing.B) {
	benchmarkEncode(b, synthetic(batchSpec{topic: "points", records: 100, frames: 100, points: 45, plain: true}), hullsTable)
}

// BenchmarkDrawings: all tables of 100,000 drawings of 45 points, the hull of
// each with 12 vertices.
func BenchmarkDrawings(b *testing.B) {
	batch := synthetic(batchSpec{topic: "points", records: 1000, frames: 100, points: 12, plain: true})
	for i := range batch.Results {
		batch.Results[i].Triangles = canonicalMesh(76, uint64(i))
	}
	benchmarkEncode(b, batch, framesTable, hullsTable, maximaTable, trianglesTable)
}

// BenchmarkPoints: two LiDAR frames of 120,000 points with intensity.
func BenchmarkPoints(b *testing.B) {
	batch := synthetic(batchSpec{topic: "points", records: 2, frames: 1, points: 3, plain: true})
	for i := range batch.Results {
		const n = 120_000
		p := &schemas.Points{Idx: make([]int32, n), X32: make([]float32, n), Y32: make([]float32, n), Z32: make([]float32, n), Intensity: make([]float32, n)}
		for j := range n {
			p.Idx[j], p.X32[j], p.Y32[j], p.Z32[j], p.Intensity[j] = int32(j), float32(j%977)/16, float32(j%1319)/16, float32(j%64)/32, float32(j%100)/100
		}
		batch.Results[i].Points = p
	}
	benchmarkEncode(b, batch, pointsTable)
}
