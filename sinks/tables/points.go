package tables

import (
	"entropipe/schemas"
	"entropipe/schemas/codec"
)

func addPoints(t *tableWriter, r *schemas.Result) {
	p := r.Points
	addPointColumns(t, r, func() {
		t.floats32(p.X32)
		t.floats32(p.Y32)
		t.floatsOrNone(p.Z32, p.Len())
	})
}

// addPointsWide appends frames of either width: float32 widens exactly.
func addPointsWide(t *tableWriter, r *schemas.Result) {
	p := r.Points
	axis := func(narrow []float32, wide []float64) {
		switch {
		case wide != nil:
			t.floats64(wide)
		case narrow != nil:
			t.widened(narrow)
		default:
			t.absent(1, p.Len())
		}
	}
	addPointColumns(t, r, func() {
		axis(p.X32, p.X64)
		axis(p.Y32, p.Y64)
		axis(p.Z32, p.Z64)
	})
}

// addPointColumns appends the points of a frame column by column; coordinates appends
// columns x, y and z.
func addPointColumns(t *tableWriter, r *schemas.Result, coordinates func()) {
	p := r.Points
	n := p.Len()
	t.begin(n, n*56)
	addShortKeys(t, &r.FrameKey, n)
	if p.Idx == nil {
		t.count32(0, n)
	} else {
		t.stride32(p.Idx, 1, n)
	}
	coordinates()
	t.floatsOrNone(p.Intensity, n)
	addExtra(t, &p.Extra, n)
	t.end(n)
}

// addExtra appends the columns of pointFields, of n points.
func addExtra(t *tableWriter, e *codec.Extra, n int) {
	columns := e.Int32s()
	integers := func(first, end int) {
		for _, v := range columns[first:end] {
			if *v == nil {
				t.absent(1, n)
			} else {
				t.some32(*v, codec.NoInt32)
			}
		}
	}
	integers(0, 4)
	t.floatsOrNone(e.Elongation, n)
	if e.TOffsetNs == nil {
		t.absent(1, n)
	} else {
		t.some64(e.TOffsetNs, codec.NoInt64)
	}
	integers(4, len(columns))
}
