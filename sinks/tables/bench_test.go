package tables

import (
	"crypto/sha256"
	"hash"
	"math"
	"math/rand/v2"
	"testing"

	"entropipe/schemas"
	"entropipe/schemas/codec"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/record"
)

// The benchmarks measure encoding, without a disk. Each reports ns a row (of
// the table) or a frame.

func benchmarkEncode(b *testing.B, batch *schemas.Batch, tables ...*table) {
	e := newTables(Config{PartitionBy: []string{record.ByDataset}, Tables: []string{Messages}, RowGroupRows: 1 << 20,
		RowGroupBytes: 64e6}, tables)
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
	b.ReportMetric(float64(size)/float64(rows), "B/row")
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

// sweep returns the points of a LiDAR turn: 64 lasers over ground and walls, with a noise of
// 2 cm in the range, and intensities of 100 steps as KITTI has them. All bits of the
// coordinates' mantissas are in use.
func sweep(n int, seed uint64) *schemas.Points {
	random := rand.New(rand.NewPCG(seed, 1))
	p := &schemas.Points{X32: make([]float32, n), Y32: make([]float32, n), Z32: make([]float32, n),
		Intensity: make([]float32, n)}
	for i := range n {
		laser, turn := i*64/n, 2*math.Pi*float64(i%(n/64))/float64(n/64)
		down := math.Pi / 180 * (-2 + 27*float64(laser)/64)
		wall := 15 + 30*math.Abs(math.Sin(3*turn))
		far := wall / math.Cos(down)
		if down > 0 {
			far = min(far, 1.73/math.Sin(down))
		}
		far += 0.02 * random.NormFloat64()
		p.X32[i] = float32(far * math.Cos(down) * math.Cos(turn))
		p.Y32[i] = float32(far * math.Cos(down) * math.Sin(turn))
		p.Z32[i] = float32(-far * math.Sin(down))
		p.Intensity[i] = float32(int(100*math.Exp(-far/40)*random.Float64())) / 100
	}
	return p
}

// benchmarkPoints encodes two frames of 119,000 points.
func benchmarkPoints(b *testing.B, t *table, change func(*schemas.Points)) {
	batch := batches.Synthetic(batches.Spec{Topic: "points", Records: 2, Frames: 1, Points: 3, Plain: true})
	for i := range batch.Results {
		p := sweep(119_000, uint64(i))
		change(p)
		batch.Results[i].Points = p
	}
	benchmarkEncode(b, batch, t)
}

// BenchmarkPoints: x, y, z and intensity as float32.
func BenchmarkPoints(b *testing.B) {
	benchmarkPoints(b, pointsTable, func(*schemas.Points) {})
}

// BenchmarkPointsWide: coordinates as float64.
func BenchmarkPointsWide(b *testing.B) {
	benchmarkPoints(b, pointsTable, func(p *schemas.Points) {
		p.X64, p.Y64, p.Z64 = make([]float64, p.Len()), make([]float64, p.Len()), make([]float64, p.Len())
		for i := range p.X64 { // by an odd factor, so that no mantissa ends with zeros
			p.X64[i], p.Y64[i], p.Z64[i] = float64(p.X32[i])*1.1, float64(p.Y32[i])*1.1, float64(p.Z32[i])*1.1
		}
		p.X32, p.Y32, p.Z32 = nil, nil, nil
	})
}

// BenchmarkPointsFields: with rings, labels of which some are null, and times.
func BenchmarkPointsFields(b *testing.B) {
	benchmarkPoints(b, pointsTable, func(p *schemas.Points) {
		n := p.Len()
		p.Ring, p.Label, p.TOffsetNs = make([]int32, n), make([]int32, n), make([]int64, n)
		for i := range n {
			p.Ring[i], p.Label[i], p.TOffsetNs[i] = int32(i*64/n), int32(i/100%20), int64(i%(n/64))*55_296
			if i/1000%10 == 0 {
				p.Label[i] = codec.NoInt32
			}
		}
	})
}
