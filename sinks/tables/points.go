package tables

import (
	"github.com/parquet-go/parquet-go"

	"entropipe/schemas"
	"entropipe/schemas/codec"
)

func addPoints(t *tableWriter, r *schemas.Result) {
	p := r.Points
	addPointColumns(t, r, func(from, to int) {
		t.floats32(p.X32[from:to])
		t.floats32(p.Y32[from:to])
		if p.Z32 == nil {
			t.absent(1, to-from)
		} else {
			t.floats32(p.Z32[from:to])
		}
	})
}

// addPointsWide appends frames of either width: float32 widens exactly.
func addPointsWide(t *tableWriter, r *schemas.Result) {
	p := r.Points
	axis := func(narrow []float32, wide []float64, from, to int) {
		switch {
		case wide != nil:
			floats64(t, wide[from:to])
		case narrow != nil:
			floats64(t, narrow[from:to])
		default:
			t.absent(1, to-from)
		}
	}
	addPointColumns(t, r, func(from, to int) {
		axis(p.X32, p.X64, from, to)
		axis(p.Y32, p.Y64, from, to)
		axis(p.Z32, p.Z64, from, to)
	})
}

// addExtra appends the columns of pointFields, of points [from, to).
func addExtra(t *tableWriter, e *codec.Extra, from, to int) {
	columns := e.Int32s()
	integers := func(first, end int) {
		for _, v := range columns[first:end] {
			if *v == nil {
				t.absent(1, to-from)
			} else {
				optionalIntegers(t, (*v)[from:to], codec.NoInt32, parquet.Int32Value)
			}
		}
	}
	integers(0, 4)
	if e.Elongation == nil {
		t.absent(1, to-from)
	} else {
		t.floats32(e.Elongation[from:to])
	}
	if e.TOffsetNs == nil {
		t.absent(1, to-from)
	} else {
		optionalIntegers(t, e.TOffsetNs[from:to], codec.NoInt64, parquet.Int64Value)
	}
	integers(4, len(columns))
}

// addPointColumns appends the points of a frame column by column, chunkRows rows at a
// time; coordinates appends columns x, y and z of points [from, to).
func addPointColumns(t *tableWriter, r *schemas.Result, coordinates func(from, to int)) {
	p := r.Points
	t.begin(len(p.Idx), len(p.Idx)*56)
	for from := 0; from < len(p.Idx); from += chunkRows {
		to := min(from+chunkRows, len(p.Idx))
		addShortKeys(t, &r.FrameKey, to-from)
		t.stride32(p.Idx[from:], 1, to-from)
		coordinates(from, to)
		if p.Intensity == nil {
			t.absent(1, to-from)
		} else {
			t.floats32(p.Intensity[from:to])
		}
		addExtra(t, &p.Extra, from, to)
		t.end(to - from)
	}
}
