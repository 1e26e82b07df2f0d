package tables

import (
	"strings"

	"entropipe/schemas"
)

// addKeys appends the columns of keys.
func addKeys(t *tableWriter, k *schemas.FrameKey) {
	if !t.noSequence {
		t.text(k.Sequence)
	}
	t.int64(k.FrameID)
	t.text(k.Sensor)
	t.int64(microseconds(k.TimeNs))
	t.int64(k.TimeNs)
	t.int32(k.Partition)
	t.int64(k.Offset)
	t.int32(k.Index)
}

// microseconds returns ⌊ns/1000⌋, also for times before 1970.
func microseconds(ns int64) int64 {
	us := ns / 1000
	if ns%1000 < 0 {
		us--
	}
	return us
}

func addFrame(t *tableWriter, r *schemas.Result) {
	t.begin(1, 256)
	addKeys(t, &r.FrameKey)
	t.int32(r.NPoints)
	t.int32(r.NDropped)
	for _, op := range &r.Ops {
		if op.Status == "" {
			t.nulls(3)
			continue
		}
		t.text(string(op.Status))
		t.int32(op.N)
		t.int64(op.Ns)
	}
	if r.Drawing == nil {
		t.nulls(2)
	} else {
		t.int64(r.Drawing.ID)
		t.text(r.Drawing.Label)
	}
	t.textOrNull(r.Stage)
	t.textOrNull(r.ModelSHA)
	t.int64(r.LatencyNs)
	t.pose(r.Pose)
	t.end(1)
}

func addHull3D(t *tableWriter, r *schemas.Result) {
	h := r.Hull3
	t.begin(1, 192+4*(len(h.Idx)+len(h.Faces)))
	addKeys(t, &r.FrameKey)
	t.int32(r.NPoints)
	t.int32(int32(len(h.Idx)))
	t.list(h.Idx)
	t.list(h.Faces)
	t.float64(h.Area)
	t.float64(h.Volume)
	t.floatOrNull(h.ErrorBound)
	t.text(string(h.Status))
	t.end(1)
}

func addMaxima(t *tableWriter, r *schemas.Result) {
	size := 0
	for i := range r.Maxima {
		size += 128 + 4*len(r.Maxima[i].Idx)
	}
	t.begin(len(r.Maxima), size)
	for i := range r.Maxima {
		m := &r.Maxima[i]
		addKeys(t, &r.FrameKey)
		t.text(m.Directions)
		t.list(m.Idx)
		t.floatOrNull(m.ErrorBound)
		t.end(1)
	}
}

func addEntropy(t *tableWriter, r *schemas.Result) {
	t.begin(len(r.Entropy), 160*len(r.Entropy))
	for i := range r.Entropy {
		e := &r.Entropy[i]
		addKeys(t, &r.FrameKey)
		t.text(e.Op.String())
		t.int32(e.N)
		t.float64(e.Lower)
		t.float64(e.Upper)
		t.text(e.Kind)
		t.floatOrNull(e.F)
		t.int32(e.N) // n_survivors, which schema 2 has twice
		t.textOrNull(e.Stage)
		t.end(1)
	}
}

// addTriangles appends a frame column by column: a frame has about two triangles for
// each of its points.
func addTriangles(t *tableWriter, r *schemas.Result) {
	n := len(r.Triangles) / 3
	t.begin(n, n*40)
	addShortKeys(t, &r.FrameKey, n)
	t.count32(0, n)
	for v := range 3 {
		t.stride32(r.Triangles[v:], 3, n)
	}
	t.end(n)
}

func addShortKeys(t *tableWriter, f *schemas.FrameKey, n int) {
	t.repeat64(f.FrameID, n)
	t.repeat32(f.Partition, n)
	t.repeat64(f.Offset, n)
	t.repeat32(f.Index, n)
}

// validText returns s with invalid UTF-8 replaced by U+FFFD: a string column must be
// readable whatever bytes a producer sent.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
