package foxglove

import (
	"fmt"
	"strconv"
	"sync"

	"entropipe/ops/live"
	messages "entropipe/schemas/codec/foxglove"
)

// encoder makes the messages of scenes, in memory of its own. It is for one goroutine.
type encoder struct {
	packer messages.Packer
}

// append appends the message of a kind. A layer without anything in this scene is an entity
// without figures, so that a viewer does not keep what an earlier scene had.
func (e *encoder) append(b []byte, k kind, of *stream, s *live.Scene) []byte {
	switch k {
	case points:
		return e.cloud(of, s).Append(b)
	case frames:
		return appendRow(b, s)
	case transforms:
		t := messages.FrameTransform{TimeNs: s.TimeNs, Parent: messages.World, Child: frameOf(of, s),
			Pose: messages.PoseOf(s.Pose)}
		return t.Append(b)
	}
	entity := messages.Entity{TimeNs: s.TimeNs, FrameID: frameOf(of, s), ID: kindNames[k], Metadata: keysOf(s)}
	switch k {
	case hull:
		addHull(s, &entity)
	case hull3d:
		if s.Hull3 != nil {
			addTriangles(s, &entity, s.Hull3.Faces, messages.Hull3DColor)
		}
	case maxima:
		addMaxima(s, &entity)
	case mesh:
		addTriangles(s, &entity, s.Triangles, messages.MeshColor)
	}
	update := messages.SceneUpdate{Entities: []messages.Entity{entity}}
	return update.Append(b)
}

// frameOf returns the frame of reference of a scene: that of its sensor if the pose is known.
func frameOf(of *stream, s *live.Scene) string {
	if s.Pose == nil {
		return messages.World
	}
	if sensor := safe(s.Sensor); sensor != "" {
		return of.name + "/" + sensor
	}
	return of.name
}

// originOf returns the pose of the scene's offsets in its frame of reference.
func originOf(s *live.Scene) messages.Pose {
	return messages.Pose{Position: messages.Vector{X: s.Origin[0], Y: s.Origin[1], Z: s.Origin[2]}}
}

// keysOf names the frame, for a person who clicks on what is drawn.
func keysOf(s *live.Scene) []messages.KeyValue {
	keys := []messages.KeyValue{{Key: "dataset", Value: s.Dataset}, {Key: "sequence", Value: s.Sequence},
		{Key: "frame_id", Value: strconv.FormatInt(s.FrameID, 10)},
		{Key: "source", Value: fmt.Sprintf("%s/%d/%d/%d", s.Topic, s.Partition, s.Offset, s.Index)}}
	if s.Drawing != nil && s.Drawing.Label != "" {
		keys = append(keys, messages.KeyValue{Key: "label", Value: s.Drawing.Label})
	}
	return keys
}

// finiteAt reports whether all coordinates of a point are finite.
func finiteAt(s *live.Scene, k int) bool {
	sum := s.X[k]*0 + s.Y[k]*0
	if s.Z != nil {
		sum += s.Z[k] * 0
	}
	return sum == 0
}

// shown returns the number of the scene's finite points.
func shown(s *live.Scene) (n int) {
	for k := range s.X {
		if finiteAt(s, k) {
			n++
		}
	}
	return n
}

// cloud returns the finite points that the scene holds, in memory of e. A cloud without z has
// z 0. Field index names the points if some of the frame's points are not among them.
func (e *encoder) cloud(of *stream, s *live.Scene) *messages.PointCloud {
	c := &messages.PointCloud{TimeNs: s.TimeNs, FrameID: frameOf(of, s), Pose: originOf(s)}
	var at []int32 // positions of finite points; nil: all
	n := shown(s)
	if n < s.Len() {
		at = make([]int32, 0, n)
		for k := range s.X {
			if finiteAt(s, k) {
				at = append(at, int32(k))
			}
		}
	}
	e.packer.Reset()
	e.packer.Float32("x", pick(s.X, at))
	e.packer.Float32("y", pick(s.Y, at))
	e.packer.Float32("z", pick(s.Z, at))
	if s.Intensity != nil {
		e.packer.Float32("intensity", pick(s.Intensity, at))
	}
	if s.Return != nil {
		e.packer.Int32("return", pick(s.Return, at))
	}
	switch {
	case s.Numbers != nil:
		e.packer.Int32("index", pick(s.Numbers, at))
	case at != nil:
		e.packer.Int32("index", at)
	}
	e.packer.Pack(c, n)
	return c
}

// pick returns the values at the positions at; all if at is nil. A nil column stays nil.
func pick[T any](values []T, at []int32) []T {
	if at == nil || values == nil {
		return values
	}
	picked := make([]T, len(at))
	for k, i := range at {
		picked[k] = values[i]
	}
	return picked
}

// vectorAt returns the coordinates of a point, relative to the origin.
func vectorAt(s *live.Scene, k int) messages.Vector {
	v := messages.Vector{X: float64(s.X[k]), Y: float64(s.Y[k])}
	if s.Z != nil {
		v.Z = float64(s.Z[k])
	}
	return v
}

// addHull adds the hull in the plane at the height of its points. The sum of the origin and a
// corner is the corner's coordinate bit for bit: the origin is 0, or an integer near it.
func addHull(s *live.Scene, e *messages.Entity) {
	h := s.Hull
	if h == nil || len(h.X) == 0 {
		return
	}
	e.Metadata = append(e.Metadata,
		messages.KeyValue{Key: "area", Value: strconv.FormatFloat(h.Area, 'g', -1, 64)},
		messages.KeyValue{Key: "perimeter", Value: strconv.FormatFloat(h.Perimeter, 'g', -1, 64)})
	corners := make([]messages.Vector, len(h.X))
	for k := range h.X {
		corners[k] = messages.Vector{X: h.X[k] - s.Origin[0], Y: h.Y[k] - s.Origin[1]}
		if i, found := s.Position(h.Idx[k]); found && s.Z != nil {
			corners[k].Z = float64(s.Z[i])
		}
	}
	line := messages.HullLine(corners)
	line.Pose = originOf(s)
	e.Lines = append(e.Lines, line)
}

// addTriangles adds triangles of points of the scene; nothing if it does not hold them all.
func addTriangles(s *live.Scene, e *messages.Entity, corners []int32, ink messages.Color) {
	if len(corners) == 0 {
		return
	}
	for _, number := range corners {
		if _, found := s.Position(number); !found {
			return
		}
	}
	t := messages.TrianglesOf(corners, s.Len(), func(number int32) int {
		k, _ := s.Position(number)
		return int(k)
	}, func(k int) messages.Vector { return vectorAt(s, k) })
	t.Color, t.Pose = ink, originOf(s)
	e.Triangles = append(e.Triangles, t)
}

// addMaxima adds a cross at each maximum. It is as large as a hundredth of the scene's hull.
func addMaxima(s *live.Scene, e *messages.Entity) {
	arm := .1
	if s.Hull != nil && s.Hull.Perimeter > 0 {
		arm = s.Hull.Perimeter / 800
	}
	var all []messages.Vector
	for i := range s.Maxima {
		for _, number := range s.Maxima[i].Idx {
			if k, found := s.Position(number); found {
				all = append(all, vectorAt(s, int(k)))
			}
		}
	}
	if len(all) == 0 {
		return
	}
	line := messages.Crosses(all, arm)
	line.Pose = originOf(s)
	e.Lines = append(e.Lines, line)
}

// payloads keeps the newest message of each channel that somebody watches, so that several
// clients cost one encoding. Any goroutine may call its methods.
type payloads struct {
	mu        sync.Mutex
	byChannel map[uint32]*payload
}

// payload is the newest message of a channel.
type payload struct {
	users int // guarded by payloads

	mu    sync.Mutex
	scene *live.Scene // shown by data
	data  []byte
	encoder
}

// use returns the payload of a channel for one more user.
func (p *payloads) use(id uint32) *payload {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byChannel == nil {
		p.byChannel = map[uint32]*payload{}
	}
	one := p.byChannel[id]
	if one == nil {
		one = &payload{}
		p.byChannel[id] = one
	}
	one.users++
	return one
}

// release drops a user, and the memory with the last one.
func (p *payloads) release(id uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.byChannel[id]; one != nil {
		if one.users--; one.users == 0 {
			delete(p.byChannel, id)
		}
	}
}

// append appends the message of a scene.
func (p *payload) append(b []byte, k kind, of *stream, s *live.Scene) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.scene != s {
		p.data, p.scene = p.encoder.append(p.data[:0], k, of, s), s
	}
	return append(b, p.data...)
}
