package live

import (
	"math"
	"slices"
	"strings"
	"time"

	"entropipe/algos/geom"
	"entropipe/schemas"
)

// Capture copies a frame and what the operators found in it. It reads fr, whose memory the
// decoder owns, during the call only; r owns its memory, and the scene shares it.
//
// A frame whose points and triangles take at most MaxWhole bytes is copied whole. Of a
// larger one SamplePoints points are taken, spread over the order of the points, with all
// corners of hulls and all maxima.
func Capture(m *schemas.Message, fr *schemas.Frame, r *schemas.Result) *Scene {
	s := &Scene{FrameKey: ownKey(&r.FrameKey), SentNs: m.SentAt(), CapturedNs: time.Now().UnixNano(),
		NPoints: r.NPoints, Double: fr.Double, Hull: r.Hull, Hull3: r.Hull3, Maxima: r.Maxima,
		Meshed: int32(len(r.Triangles) / 3), Ops: r.Ops}
	columns := 2
	for _, present := range []bool{fr.HasZ(), fr.Intensity != nil, fr.Return != nil, fr.Pruned != nil} {
		if present {
			columns++
		}
	}
	size := 4 * columns * fr.Len()
	var at []int32 // positions to copy; nil: all
	switch {
	case size > MaxWhole:
		at, s.Sampled = s.sample(fr), true
	case size+4*len(r.Triangles) <= MaxWhole:
		s.Triangles = r.Triangles
	}
	if fr.Double {
		copyCloud(s, fr.Cloud64, at)
	} else {
		copyCloud(s, fr.Cloud32, at)
	}
	if !s.Sampled {
		s.Strokes = slices.Clone(fr.Strokes)
	}
	s.Intensity, s.Return = pick(fr.Intensity, at), pick(fr.Return, at)
	switch {
	case fr.Pruned != nil:
		s.Numbers = pick(fr.Pruned.Index, at)
	case at != nil:
		s.Numbers = at
	}
	return s
}

// ownKey returns a copy of k whose texts own their memory.
func ownKey(k *schemas.FrameKey) schemas.FrameKey {
	own := *k
	for _, text := range []*string{&own.Dataset, &own.Sequence, &own.Sensor, &own.Topic} {
		*text = strings.Clone(*text)
	}
	if k.Drawing != nil {
		own.Drawing = &schemas.Drawing{ID: k.Drawing.ID, Label: strings.Clone(k.Drawing.Label)}
	}
	if k.Pose != nil {
		pose := *k.Pose
		own.Pose = &pose
	}
	return own
}

// sample returns positions of fr, ascending: SamplePoints strata of the order of the points
// with one point of each, and every point that hulls and maxima name.
func (s *Scene) sample(fr *schemas.Frame) []int32 {
	n := fr.Len()
	at := Strata(n, SamplePoints)
	position := func(number int32) (int32, bool) { return number, true }
	if fr.Pruned != nil {
		position = func(number int32) (int32, bool) {
			k, found := slices.BinarySearch(fr.Pruned.Index, number)
			return int32(k), found
		}
	}
	for _, numbers := range s.Corners() {
		for _, number := range numbers {
			if k, found := position(number); found {
				at = append(at, k)
			}
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// Corners returns the numbers of the points that hulls and maxima name.
func (s *Scene) Corners() [][]int32 {
	var all [][]int32
	if s.Hull != nil {
		all = append(all, s.Hull.Idx)
	}
	if s.Hull3 != nil {
		all = append(all, s.Hull3.Idx)
	}
	for i := range s.Maxima {
		all = append(all, s.Maxima[i].Idx)
	}
	return all
}

// Strata returns one position of each of k equal parts of n positions, ascending; all of
// them if n <= k. The position within its part comes from a hash, so that regular scans show
// no stripes, and is the same in every call.
func Strata(n, k int) []int32 { return AppendStrata(nil, n, k) }

// AppendStrata appends the positions of Strata to at.
func AppendStrata(at []int32, n, k int) []int32 {
	first := len(at)
	at = slices.Grow(at, min(n, k))[:first+min(n, k)]
	to := at[first:]
	if n <= k {
		for i := range to {
			to[i] = int32(i)
		}
		return at
	}
	// Part i ends at (i+1)·n/k; the quotient grows by whole or by whole+1, as rest says.
	whole, more, from, rest := int64(n/k), int64(n%k), int64(0), int64(0)
	for i := range to {
		size := whole
		if rest += more; rest >= int64(k) {
			rest -= int64(k)
			size++
		}
		hash := uint64(i)*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019
		hash ^= hash >> 29
		to[i] = int32(from + int64(hash>>32*uint64(size)>>32))
		from += size
	}
	return at
}

// pick returns the values at the positions at, or a copy of all if at is nil.
// A nil column stays nil.
func pick[T any](values []T, at []int32) []T {
	if at == nil || values == nil {
		return slices.Clone(values)
	}
	picked := make([]T, len(at))
	for k, i := range at {
		picked[k] = values[i]
	}
	return picked
}

// far is the ratio of a coordinate to the extent from which on offsets are taken.
const far = 16

// copyCloud copies the points at the given positions, all if at is nil, as offsets.
func copyCloud[T geom.Float](s *Scene, c geom.Cloud[T], at []int32) {
	for axis, values := range [][]T{c.X, c.Y, c.Z} {
		if values == nil {
			continue
		}
		s.Origin[axis] = origin(values, at)
	}
	s.X, s.Y = offsets(c.X, at, s.Origin[0]), offsets(c.Y, at, s.Origin[1])
	if c.Z != nil {
		s.Z = offsets(c.Z, at, s.Origin[2])
	}
}

// origin returns 0 if the values lie near 0, measured by their extent, else their least one
// rounded to an integer. NaN and infinities are left out.
func origin[T geom.Float](values []T, at []int32) float64 {
	// Further values widen the extent by as much as they lead away from 0, so a part of the
	// values that is near 0 speaks for all.
	if least, most := extent(values, at, 64); least < most && max(-least, most) <= far*(most-least) {
		return 0
	}
	least, most := extent(values, at, 1)
	if least > most || max(-least, most) <= far*(most-least) || max(-least, most) < 1<<16 {
		return 0
	}
	return math.Floor(least)
}

// extent returns the least and the largest finite value of every step-th position; the least
// is larger if there is none.
func extent[T geom.Float](values []T, at []int32, step int) (least, most float64) {
	low, high := T(math.Inf(1)), T(math.Inf(-1))
	n := len(values)
	if at != nil {
		n = len(at)
	}
	for i := 0; i < n; i += step {
		k := i
		if at != nil {
			k = int(at[i])
		}
		if v := values[k]; v-v == 0 {
			if v < low {
				low = v
			}
			if v > high {
				high = v
			}
		}
	}
	return float64(low), float64(high)
}

// offsets returns values less from, as float32; values that are float32 already are copied as
// they are if from is 0.
func offsets[T geom.Float](values []T, at []int32, from float64) []float32 {
	if same, ok := any(values).([]float32); ok && from == 0 {
		return pick(same, at)
	}
	if at != nil {
		values = pick(values, at)
	}
	to := make([]float32, len(values))
	for i, v := range values {
		to[i] = float32(float64(v) - from)
	}
	return to
}

// Position returns the position in X of the point with that number in the frame as received;
// false if the scene does not hold the point.
func (s *Scene) Position(number int32) (int32, bool) {
	if s.Numbers == nil {
		return number, number >= 0 && int(number) < len(s.X)
	}
	k, found := slices.BinarySearch(s.Numbers, number)
	return int32(k), found
}
