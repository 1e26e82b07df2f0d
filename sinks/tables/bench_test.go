package tables

import (
	"crypto/sha256"
	"hash"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/record"
)

// The benchmarks measure encoding, without a disk. Each reports ns a row (of
// the table) or a frame.

func benchmarkEncode(b *testing.B, batch *schemas.Batch, tables ...*table) {
	e := newTables(Config{PartitionBy: []string{record.ByDataset}, RowGroupRows: 1 << 20, RowGroupBytes: 64e6}, tables)
	plan := e.Plan(batch, 0)
	var rows, size int64
	for b.Loop() {
		rows, size = 0, 0
		for i := range plan {
			out := &countingWriter{sum: sha256.New()}
			n, err := e.Encode(out, plan[i], batch)
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

// countingWriter hashes and counts what a commit writes.
type countingWriter struct {
	sum   hash.Hash
	bytes int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.bytes += int64(len(p))
	return w.sum.Write(p)
}

// BenchmarkTriangles: eight LiDAR frames of 240,000 triangles.
func BenchmarkTriangles(b *testing.B) {
	batch := batches.Synthetic(batches.Spec{Topic: "points", Records: 8, Frames: 1, Points: 3, Plain: true})
	for i := range batch.Results {
		batch.Results[i].Triangles = batches.Mesh(240_000, uint64(i))
	}
	benchmarkEncode(b, batch, trianglesTable)
}

// BenchmarkHulls: 10,000 hulls of 45 vertices.
func BenchmarkHulls(b *testing.B) {
	benchmarkEncode(b, batches.Synthetic(batches.Spec{Topic: "points", Records: 100, Frames: 100, Points: 45,
		Plain: true}), hullsTable)
}

// BenchmarkDrawings: all tables of 100,000 drawings of 45 points, the hull of
// each with 12 vertices.
func BenchmarkDrawings(b *testing.B) {
	batch := batches.Synthetic(batches.Spec{Topic: "points", Records: 1000, Frames: 100, Points: 12, Plain: true})
	for i := range batch.Results {
		batch.Results[i].Triangles = batches.Mesh(76, uint64(i))
	}
	benchmarkEncode(b, batch, framesTable, hullsTable, maximaTable, trianglesTable)
}

// BenchmarkPoints: two LiDAR frames of 120,000 points with intensity.
func BenchmarkPoints(b *testing.B) {
	batch := batches.Synthetic(batches.Spec{Topic: "points", Records: 2, Frames: 1, Points: 3, Plain: true})
	for i := range batch.Results {
		const n = 120_000
		p := &schemas.Points{Idx: make([]int32, n), X32: make([]float32, n), Y32: make([]float32, n),
			Z32: make([]float32, n), Intensity: make([]float32, n)}
		for j := range n {
			p.Idx[j], p.X32[j], p.Y32[j], p.Z32[j], p.Intensity[j] = int32(j), float32(j%977)/16, float32(j%1319)/16,
				float32(j%64)/32, float32(j%100)/100
		}
		batch.Results[i].Points = p
	}
	benchmarkEncode(b, batch, pointsTable)
}
