package foxglove

import (
	"math"
	"sync"

	"entropipe/ops/live"
	"entropipe/schemas"
)

// stamp is a time as viewers know it. Seconds are not negative: frames before 1970 have 0.
type stamp struct {
	Sec  int64 `json:"sec"`
	Nsec int64 `json:"nsec"`
}

func stampOf(ns int64) stamp {
	ns = max(ns, 0)
	return stamp{ns / 1e9, ns % 1e9}
}

// column is one of the rows of frames.
type column struct {
	name, kind, text string // kind: string, integer, number, boolean or time
	value            func(s *live.Scene) any
}

// columns are those of table frames that a scene has, and what a viewer plots besides. A
// value that is nil is left out of the row.
var columns = sync.OnceValue(func() []column {
	all := []column{
		{"topic", "string", "Kafka topic", func(s *live.Scene) any { return s.Topic }},
		{"partition", "integer", "partition of the topic", func(s *live.Scene) any { return s.Partition }},
		{"offset", "integer", "offset of the message", func(s *live.Scene) any { return s.Offset }},
		{"index", "integer", "position of the frame in its message", func(s *live.Scene) any { return s.Index }},
		{"dataset", "string", "data set", func(s *live.Scene) any { return s.Dataset }},
		{"sequence", "string", "drive, segment or recording", func(s *live.Scene) any { return s.Sequence }},
		{"sensor", "string", "sensor", func(s *live.Scene) any { return s.Sensor }},
		{"frame_id", "integer", "number of the frame", func(s *live.Scene) any { return s.FrameID }},
		{"time", "time", "event time", func(s *live.Scene) any { return stampOf(s.TimeNs) }},
		{"captured", "time", "time of the copy", func(s *live.Scene) any { return stampOf(s.CapturedNs) }},
		{"latency_ns", "integer", "time of the copy minus Kafka's timestamp", latency},
		{"n_points", "integer", "points of the frame as received", func(s *live.Scene) any { return s.NPoints }},
		{"n_shown", "integer", "points in the channel points", func(s *live.Scene) any { return shown(s) }},
		{"sampled", "boolean", "the channel points holds a sample", func(s *live.Scene) any { return s.Sampled }},
	}
	for o := range schemas.NumOps {
		all = append(all, operator(o)...)
	}
	return append(all,
		column{"hull_area", "number", "area of the hull in the plane",
			ofHull(func(h *schemas.Hull) float64 { return h.Area })},
		column{"hull_perimeter", "number", "its perimeter",
			ofHull(func(h *schemas.Hull) float64 { return h.Perimeter })},
		column{"hull3d_area", "number", "area of the hull in space",
			ofHull3(func(h *schemas.Hull3) float64 { return h.Area })},
		column{"hull3d_volume", "number", "its volume", ofHull3(func(h *schemas.Hull3) float64 { return h.Volume })},
		column{"drawing_id", "integer", "id of the drawing", func(s *live.Scene) any {
			if s.Drawing == nil {
				return nil
			}
			return s.Drawing.ID
		}},
		column{"label", "string", "label of the drawing", func(s *live.Scene) any {
			if s.Drawing == nil {
				return nil
			}
			return s.Drawing.Label
		}})
})

func latency(s *live.Scene) any {
	if s.SentNs == 0 {
		return nil
	}
	return s.CapturedNs - s.SentNs
}

// operator returns the three columns of an operator.
func operator(o schemas.Op) []column {
	of := func(value func(r *schemas.OpResult) any) func(*live.Scene) any {
		return func(s *live.Scene) any {
			if s.Ops[o].Status == "" {
				return nil
			}
			return value(&s.Ops[o])
		}
	}
	name := o.String()
	return []column{
		{"status_" + name, "string", "outcome of " + name, of(func(r *schemas.OpResult) any { return r.Status })},
		{"n_" + name, "integer", "its corners, maxima or triangles", of(func(r *schemas.OpResult) any { return r.N })},
		{name + "_ns", "integer", "time in " + name + ", ns", of(func(r *schemas.OpResult) any { return r.Ns })},
	}
}

func ofHull(value func(*schemas.Hull) float64) func(*live.Scene) any {
	return func(s *live.Scene) any {
		if s.Hull == nil {
			return nil
		}
		return finite(value(s.Hull))
	}
}

func ofHull3(value func(*schemas.Hull3) float64) func(*live.Scene) any {
	return func(s *live.Scene) any {
		if s.Hull3 == nil {
			return nil
		}
		return finite(value(s.Hull3))
	}
}

// finite returns nil for what JSON cannot say.
func finite(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}

// appendRow appends the row of a scene as JSON, columns in their order.
func appendRow(b []byte, s *live.Scene) []byte {
	b = append(b, '{')
	first := true
	for _, c := range columns() {
		value := c.value(s)
		if value == nil {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(b, marshal(c.name)...), ':')
		b = append(b, marshal(value)...)
	}
	return append(b, '}')
}

// rowSchema returns the JSON Schema of the rows.
var rowSchema = sync.OnceValue(func() string {
	type property map[string]any
	properties := map[string]property{}
	for _, c := range columns() {
		p := property{"type": c.kind, "description": c.text}
		if c.kind == "time" {
			p["type"], p["title"] = "object", "time"
			p["properties"] = map[string]property{"sec": {"type": "integer"}, "nsec": {"type": "integer"}}
		}
		properties[c.name] = p
	}
	return string(marshal(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
		"title": "entropipe.frames", "properties": properties}))
})
