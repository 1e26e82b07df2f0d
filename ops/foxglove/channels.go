package foxglove

import (
	"encoding/base64"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"entropipe/ops/live"
	messages "entropipe/schemas/codec/foxglove"
)

// kind is what a channel shows of a stream.
type kind uint32

// The kinds. Each stream has a channel for each, but for transforms, which share one.
const (
	points kind = iota
	hull
	hull3d
	maxima
	mesh
	frames
	kinds
	transforms = kinds
)

var kindNames = [...]string{points: "points", hull: "hull", hull3d: "hull3d", maxima: "maxima", mesh: "mesh",
	frames: "frames", transforms: "tf"}

// tfChannel is the id of the channel of transforms.
const tfChannel = 1

// stream is what the server knows of a stream. Its position in the registry decides the ids of
// its channels, which are the same for all clients.
type stream struct {
	live.Stream
	name   string // begin of its topics, without the first stroke
	first  uint32 // id of its first channel
	tokens atomic.Bool
}

// id returns the id of a channel of the stream.
func (s *stream) id(k kind) uint32 {
	if k == transforms {
		return tfChannel
	}
	return s.first + uint32(k)
}

// channels returns the channels of the stream as they are advertised.
func (s *stream) channels() []channel {
	all := make([]channel, kinds)
	for k := range kinds {
		all[k] = channelOf(s.id(k), "/"+s.name+"/"+kindNames[k], k)
	}
	return all
}

// ids returns the ids of the stream's channels.
func (s *stream) ids() []uint32 {
	all := make([]uint32, kinds)
	for k := range kinds {
		all[k] = s.id(k)
	}
	return all
}

// channelOf returns a channel with its schema.
func channelOf(id uint32, topic string, k kind) channel {
	c := channel{ID: id, Topic: topic, Encoding: "protobuf", SchemaEncoding: "protobuf"}
	switch k {
	case frames:
		c.Encoding, c.SchemaEncoding, c.SchemaName, c.Schema = "json", "jsonschema", "entropipe.frames", rowSchema()
		return c
	case points:
		c.SchemaName = messages.PointCloudSchema
	case transforms:
		c.SchemaName = messages.FrameTransformSchema
	default:
		c.SchemaName = messages.SceneUpdateSchema
	}
	c.Schema = descriptors()[c.SchemaName]
	return c
}

// descriptors returns the schemas in base64, by name.
var descriptors = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for _, name := range []string{messages.PointCloudSchema, messages.SceneUpdateSchema,
		messages.FrameTransformSchema} {
		all[name] = base64.StdEncoding.EncodeToString(messages.Schema(name))
	}
	return all
})

// registry gives streams names and ids.
type registry struct {
	mu      sync.Mutex
	streams []*stream
	taken   map[string]bool
}

// sync takes up the streams that are new, at most maxStreams in all, and returns all of them.
// The result must not be changed. known are the streams of a tap, which keeps their order.
func (r *registry) sync(known []live.Stream) []*stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.streams); i < min(len(known), maxStreams); i++ {
		r.streams = append(r.streams, &stream{Stream: known[i], name: r.name(known[i]),
			first: uint32(tfChannel + 1 + i*int(kinds))})
	}
	return r.streams[:len(r.streams):len(r.streams)]
}

// name returns a name that no other stream has.
func (r *registry) name(of live.Stream) string {
	name := safe(of.Topic)
	if sequence := safe(of.Sequence); sequence != "" {
		name = strings.TrimPrefix(name+"/"+sequence, "/")
	}
	if name == "" {
		name = "stream"
	}
	if r.taken == nil {
		r.taken = map[string]bool{}
	}
	free := name
	for i := 2; r.taken[free]; i++ {
		free = name + "_" + strconv.Itoa(i)
	}
	r.taken[free] = true
	return free
}

// maxName bounds the bytes of a name of a producer in a topic.
const maxName = 128

// safe returns text as a part of a topic: letters and digits of ASCII, ., - and _, with single
// strokes between. Anything else becomes _.
func safe(text string) string {
	var b strings.Builder
	for _, r := range text {
		if b.Len() == maxName {
			break
		}
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			b.WriteRune(r)
		case r == '/':
			if b.Len() > 0 && !strings.HasSuffix(b.String(), "/") {
				b.WriteByte('/')
			}
		default:
			b.WriteByte('_')
		}
	}
	return strings.TrimSuffix(b.String(), "/")
}
