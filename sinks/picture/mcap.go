package picture

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"entropipe/schemas"
	"entropipe/schemas/codec"
	"entropipe/schemas/codec/foxglove"
	"entropipe/schemas/codec/mcap"
)

// MCAP is a file of frames for Foxglove, Rerun and other viewers that is being written:
// points as foxglove.PointCloud, results as foxglove.SceneUpdate, poses as
// foxglove.FrameTransform, in Protobuf. A message has the time of its frame. The same
// frames give the same bytes. It holds one frame and an index of its chunks in memory. An
// MCAP is not for concurrent use.
type MCAP struct {
	w        *mcap.Writer
	levels   Levels
	schemas  map[string]uint16
	channels map[string]*mcapChannel
	points   foxglove.Packer
	message  []byte
}

// mcapChannel is a topic of the file.
type mcapChannel struct {
	id       uint16
	messages uint32
	last     int64 // time of the last message
	repeats  int64 // messages with the time of the one before
}

// Levels say which names tell the frames of a selection apart, and which of them have
// poses.
type Levels struct {
	topics, datasets, sequences, sensors map[string]bool
	posed                                map[source]bool // some frame of it has a pose
}

// source names what has one system of coordinates.
type source struct{ topic, dataset, sequence, sensor string }

func sourceOf(k *schemas.FrameKey) source { return source{k.Topic, k.Dataset, k.Sequence, k.Sensor} }

// See adds the names of a frame.
func (l *Levels) See(k *schemas.FrameKey) {
	if l.posed == nil {
		l.posed = map[source]bool{}
	}
	of := sourceOf(k)
	l.posed[of] = l.posed[of] || k.Pose != nil
	for _, level := range []struct {
		names *map[string]bool
		name  string
	}{{&l.topics, k.Topic}, {&l.datasets, k.Dataset}, {&l.sequences, k.Sequence}, {&l.sensors, k.Sensor}} {
		if *level.names == nil {
			*level.names = map[string]bool{}
		}
		(*level.names)[level.name] = true
	}
}

// prefix returns the names that tell k apart from frames that were seen, as the begin of a
// topic: empty, or /name and so on.
func (l *Levels) prefix(k *schemas.FrameKey) (text string) {
	for _, level := range []struct {
		names map[string]bool
		name  string
	}{{l.topics, k.Topic}, {l.datasets, k.Dataset}, {l.sequences, k.Sequence}, {l.sensors, k.Sensor}} {
		if name := strings.Trim(level.name, "/"); len(level.names) > 1 && name != "" {
			text += "/" + name
		}
	}
	return text
}

// poseOf returns the pose in which a viewer shows the frame. A source without any pose stands
// at the origin of the world if the file has several sources: a viewer shows nothing whose way
// to the others it does not know. Otherwise the pose is nil where it is not known.
func (l *Levels) poseOf(k *schemas.FrameKey) *codec.Pose {
	if k.Pose == nil && len(l.posed) > 1 && !l.posed[sourceOf(k)] {
		return &codec.Pose{0: 1, 5: 1, 10: 1}
	}
	return k.Pose
}

// NewMCAP returns an MCAP file that writes to out. levels has seen every frame that will be
// added.
func NewMCAP(out io.Writer, levels Levels) *MCAP {
	return &MCAP{w: mcap.NewWriter(out, mcap.Options{Library: "entropipe", Compression: mcap.Zstd}), levels: levels,
		schemas: map[string]uint16{}, channels: map[string]*mcapChannel{}}
}

// Close ends the file. repeats is the number of messages that have the time of the message
// before them on their topic: a viewer shows only the last of those.
func (m *MCAP) Close() (repeats int64, err error) {
	for _, c := range m.channels {
		repeats += c.repeats
	}
	return repeats, m.w.Close()
}

// Add writes the messages of a frame. Layers that are shown and have nothing in this frame
// are written empty, so that a viewer does not keep what an earlier frame had.
func (m *MCAP) Add(s *Frame) error {
	prefix, frame := m.levels.prefix(&s.FrameKey), s.Sensor
	if frame == "" {
		frame = s.Dataset
	}
	if prefix != "" {
		frame = strings.TrimPrefix(prefix, "/")
	}
	if pose := m.levels.poseOf(&s.FrameKey); pose != nil {
		t := foxglove.FrameTransform{TimeNs: s.TimeNs, Parent: foxglove.World, Child: frame,
			Pose: foxglove.PoseOf(pose)}
		if err := m.write(prefix+"/tf", foxglove.FrameTransformSchema, s, t.Append(m.message[:0])); err != nil {
			return err
		}
	}
	if s.layers[LayerPoints] && (len(s.Points.Idx) > 0 || s.NPoints == s.NDropped) {
		cloud := m.cloud(s, frame)
		if err := m.write(prefix+"/points", foxglove.PointCloudSchema, s, cloud.Append(m.message[:0])); err != nil {
			return err
		}
	}
	for _, e := range []struct {
		layer, topic string
		fill         func(*Frame, *foxglove.Entity)
	}{{LayerHull, "/hull", addHull}, {LayerHull3D, "/hull3d", addHull3D}, {LayerMaxima, "/maxima", addMaxima},
		{LayerTriangles, "/mesh", addMesh}} {
		if !s.layers[e.layer] || e.layer == LayerHull3D && s.Hull3 == nil {
			continue
		}
		entity := foxglove.Entity{TimeNs: s.TimeNs, FrameID: frame, ID: e.topic[1:], Metadata: keysOf(s)}
		e.fill(s, &entity)
		scene := foxglove.SceneUpdate{Entities: []foxglove.Entity{entity}}
		if err := m.write(prefix+e.topic, foxglove.SceneUpdateSchema, s, scene.Append(m.message[:0])); err != nil {
			return err
		}
	}
	return nil
}

// write writes a message, and keeps its memory for the next one.
func (m *MCAP) write(topic, schema string, s *Frame, message []byte) error {
	m.message = message
	c := m.channels[topic]
	if c == nil {
		if m.schemas[schema] == 0 {
			m.schemas[schema] = m.w.AddSchema(schema, "protobuf", foxglove.Schema(schema))
		}
		c = &mcapChannel{id: m.w.AddChannel(topic, "protobuf", m.schemas[schema], map[string]string{
			"dataset": s.Dataset, "unit": s.Unit()}), last: math.MinInt64}
		m.channels[topic] = c
	}
	if c.last == s.TimeNs && schema != foxglove.FrameTransformSchema {
		c.repeats++
	}
	c.last = s.TimeNs
	at := uint64(max(s.TimeNs, 0)) // the format has no time before 1970
	err := m.w.Write(c.id, c.messages, at, at, message)
	c.messages++
	return err
}

// keysOf names the frame, for a person who clicks on what is drawn.
func keysOf(s *Frame) []foxglove.KeyValue {
	keys := []foxglove.KeyValue{{Key: "dataset", Value: s.Dataset}, {Key: "sequence", Value: s.Sequence},
		{Key: "frame_id", Value: strconv.FormatInt(s.FrameID, 10)}, {Key: "source",
			Value: fmt.Sprintf("%s/%d/%d/%d", s.Topic, s.Partition, s.Offset, s.Index)}}
	if s.Drawing != nil && s.Drawing.Label != "" {
		keys = append(keys, foxglove.KeyValue{Key: "label", Value: s.Drawing.Label})
	}
	return keys
}

// cloud returns the points with all their columns, in memory of m. Coordinates have the
// type of the table; a cloud without z has z 0. Field index names the points if some of
// the frame's points are not in the table.
func (m *MCAP) cloud(s *Frame, frame string) *foxglove.PointCloud {
	p, n := s.Points, len(s.Points.Idx)
	c := &foxglove.PointCloud{TimeNs: s.TimeNs, FrameID: frame}
	m.points.Reset()
	for axis, name := range []string{"x", "y", "z"} {
		if p.X64 != nil {
			m.points.Float64(name, [][]float64{p.X64, p.Y64, p.Z64}[axis])
		} else {
			m.points.Float32(name, [][]float32{p.X32, p.Y32, p.Z32}[axis])
		}
	}
	if p.Intensity != nil {
		m.points.Float32("intensity", p.Intensity)
	}
	for i, v := range p.Int32s() {
		if *v != nil {
			m.points.Int32(codec.Int32Names[i], *v)
		}
	}
	if p.Elongation != nil {
		m.points.Float32("elongation", p.Elongation)
	}
	if p.TOffsetNs != nil { // the schema has no int64
		after := make([]float64, n)
		for k, ns := range p.TOffsetNs {
			if after[k] = float64(ns); ns == codec.NoInt64 {
				after[k] = math.NaN()
			}
		}
		m.points.Float64("t_offset_ns", after)
	}
	if n != int(s.NPoints) {
		m.points.Int32("index", p.Idx)
	}
	m.points.Pack(c, n)
	return c
}
