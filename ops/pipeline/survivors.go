package pipeline

import (
	"bytes"
	"slices"

	"entropipe/preprocess"
	"entropipe/schemas"
)

// survivors returns the points that the results of the operators ops depend on, as
// ascending numbers in the whole frame; never nil. They are the points that these
// operators find: every other point lies in the hull of the found points, or below
// a found point on every axis. Of equal points the lowest number survives.
//
// An operator that has run for the tables does not run again.
func (o *operators[T]) survivors(ops schemas.OpSet, r *schemas.Result, in *preprocess.Prepared[T]) []int32 {
	keep := o.keep[:0]
	if keep == nil {
		keep = []int32{}
	}
	for op := range schemas.NumOps {
		space := op == schemas.Hull3D || op == schemas.Maxima3D
		if !ops.Has(op) || space && in.Cloud.Z == nil || o.pruned != nil && !o.pruned.For.Has(op) {
			continue
		}
		if r.Ops[op].Status != "" && !approximate(op, r) {
			keep = append(keep, found(op, r)...)
			continue
		}
		n := len(keep)
		switch op {
		case schemas.Hull2D:
			keep = o.hull.Append(keep, in.Cloud)
		case schemas.Hull3D:
			o.hull3.Seeds = in.Hints.Hull3D
			keep, o.faces, _ = o.hull3.Append(keep, o.faces[:0], in.Cloud)
		case schemas.Maxima2D:
			keep = o.maxima.Append2D(keep, in.Cloud)
		case schemas.Maxima3D:
			keep = o.maxima.Append3D(keep, in.Cloud)
		}
		o.original(in, keep[n:])
	}
	slices.Sort(keep)
	o.keep = slices.Compact(keep)
	return o.keep
}

// found returns the points that op found; op has run.
func found(op schemas.Op, r *schemas.Result) []int32 {
	switch op {
	case schemas.Hull2D:
		return r.Hull.Idx
	case schemas.Hull3D:
		return r.Hull3.Idx
	}
	return maximaOf(op, r).Idx
}

// maximaOf returns the maxima that op found; op has run.
func maximaOf(op schemas.Op, r *schemas.Result) *schemas.Maxima {
	for i := range r.Maxima {
		if r.Maxima[i].Directions == maximaDirections[op] {
			return &r.Maxima[i]
		}
	}
	panic("pipeline: the result has no maxima of an operator that ran")
}

// maximaDirections are the names of the directions in which each maxima operator
// looks.
var maximaDirections = [schemas.NumOps]string{schemas.Maxima2D: "x:max,y:max", schemas.Maxima3D: "x:max,y:max,z:max"}

// sender makes the records to publish. It belongs to one worker.
type sender struct {
	encoder schemas.Encoder
	points  schemas.Survivors
	value   []byte
	keep    []int32
}

// survivors makes the record of a pruned frame of m; keep are the points' numbers
// in the whole frame. A frame that is pruned already is pruned further, for those of
// ops that it was pruned for; the record is nil if there is no such operator.
func (s *sender) survivors(m *schemas.Message, fr *schemas.Frame, r *schemas.Result,
	keep []int32, ops schemas.OpSet) (*schemas.Record, error) {
	p := schemas.Pruned{For: ops, NPoints: r.NPoints, NDropped: r.NDropped}
	if fr.Pruned != nil {
		if p.For &= fr.Pruned.For; p.For == 0 {
			return nil, nil
		}
		s.keep = positions(s.keep[:0], fr.Pruned.Index, keep)
		keep = s.keep
	}
	c, err := s.points.Of(fr, keep), error(nil)
	if s.value, err = s.encoder.AppendPoints(s.value[:0], c); err != nil {
		return nil, err
	}
	p.Index = c.Index
	return schemas.PrunedRecord(m, fr.FrameKey, &p, bytes.Clone(s.value)), nil
}

// found makes the record of the results r of the frame fr of m.
func (s *sender) found(m *schemas.Message, fr *schemas.Frame, r *schemas.Result) (*schemas.Record, error) {
	var err error
	if s.value, err = s.encoder.AppendResults(s.value[:0], r, fr); err != nil {
		return nil, err
	}
	return schemas.ResultsRecord(m, r, bytes.Clone(s.value)), nil
}

// record returns the record to publish for m: its pruned frame, or m unchanged if it
// holds drawings or a frame that was pruned for other operators.
func (s *sender) record(m *schemas.Message, frames []schemas.Frame, pruned *schemas.Record) *schemas.Record {
	if pruned != nil {
		return pruned
	}
	return schemas.ForwardedRecord(m, frames[0].FrameKey)
}

// positions appends, for each of numbers, its position in index. Both slices ascend,
// and index contains every one of numbers.
func positions(dst, index, numbers []int32) []int32 {
	at := 0
	for _, n := range numbers {
		for index[at] != n {
			at++
		}
		dst = append(dst, int32(at))
	}
	return dst
}
