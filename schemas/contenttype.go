package schemas

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/foxglove"
	"entropipe/schemas/codec/las"
	"entropipe/schemas/codec/nuscenes"
	"entropipe/schemas/codec/pcd"
	"entropipe/schemas/codec/ply"
	"entropipe/schemas/codec/pointcloud2"
)

// Content types of a message's value, as producers here write them. A value without a
// content type is Arrow. docs/messages.md lists them with the names that are read, too.
const (
	ContentTypeArrow    = "application/vnd.apache.arrow.stream"
	ContentTypeKITTI    = "application/vnd.kitti.velodyne" // raw .bin: x, y, z, reflectance as float32
	ContentTypeNuScenes = "application/vnd.nuscenes.lidar" // .pcd.bin: x, y, z, intensity, ring as float32

	// sensor_msgs/msg/PointCloud2 of ROS 2 in CDR; headers add ";type=sensor_msgs/msg/PointCloud2".
	ContentTypeCDR          = "application/vnd.ros2.cdr"
	ContentTypeFoxglove     = "application/vnd.foxglove.pointcloud+protobuf"
	ContentTypeFoxgloveJSON = "application/vnd.foxglove.pointcloud+json"

	ContentTypePCD = "application/vnd.pcl.pcd" // files of the Point Cloud Library
	ContentTypeLAS = "application/vnd.las"     // files of the ASPRS
	ContentTypePLY = "model/vnd.ply"           // polygon files of Stanford

	contentTypeOctets   = "application/octet-stream" // header format or the topic decides what the value is
	contentTypeJSON     = "application/json"         // likewise, of texts in JSON
	contentTypeProtobuf = "application/protobuf"     // likewise, of messages in protobuf
)

// format is a content type of points/1, besides Arrow.
type format struct {
	name        string // short name: the value of --content-type and of header format
	contentType string // as documented, without parameters
	also        []string
	// params are values of the parameters "type", "proto" and "messageType" that name the
	// message; the media type with another value is another message. Nil: no such parameter.
	params []string
	within string // the general content type under which the topic or header format may name this one
	what   string // a noun with its article, for people

	// decode turns a value into columns; its error is a *codec.Error.
	decode func(c *codec.Cloud, value []byte, limit int64) error
	// is reports whether a value begins as one of the format, or, where the format has no
	// magic, is one. Nil: nothing tells values of the format from other numbers.
	is func(value []byte) bool
	// numbers is set if any bytes of a fitting length are a value, perhaps with nonsense.
	numbers bool
}

// arrowFormat stands for the values that the decoder reads itself.
var arrowFormat = &format{name: "arrow", contentType: ContentTypeArrow, within: contentTypeOctets,
	what: "an Arrow stream"}

// formats are the content types, Arrow first.
var formats = []*format{
	arrowFormat,
	{name: "kitti", contentType: ContentTypeKITTI, within: contentTypeOctets, what: "a raw KITTI .bin",
		decode: decodeKITTI, numbers: true},
	{name: "nuscenes", contentType: ContentTypeNuScenes, within: contentTypeOctets, what: "a nuScenes .pcd.bin",
		decode: nuscenes.Decode, numbers: true},
	{name: "pointcloud2", contentType: ContentTypeCDR, within: contentTypeOctets, what: "a PointCloud2 of ROS 2",
		params: []string{pointcloud2.Schema, "sensor_msgs/PointCloud2"}, decode: pointcloud2.Decode, is: isPointCloud2},
	{name: "foxglove", contentType: ContentTypeFoxglove, within: contentTypeProtobuf,
		what: "a foxglove.PointCloud in Protobuf", params: []string{foxglove.PointCloudSchema}, decode: foxglove.Decode,
		is: isFoxglove},
	{name: "foxglove-json", contentType: ContentTypeFoxgloveJSON, within: contentTypeJSON,
		what: "a foxglove.PointCloud in JSON", params: []string{foxglove.PointCloudSchema}, decode: foxglove.DecodeJSON,
		is: isFoxgloveJSON},
	{name: "pcd", contentType: ContentTypePCD, also: []string{"application/x-pcd"}, within: contentTypeOctets,
		what: "a PCD file", decode: pcd.Decode, is: pcd.Is},
	{name: "las", contentType: ContentTypeLAS, also: []string{"application/x-las"}, within: contentTypeOctets,
		what: "a LAS file", decode: las.Decode, is: las.Is},
	{name: "ply", contentType: ContentTypePLY, also: []string{"application/ply", "application/x-ply"},
		within: contentTypeOctets, what: "a PLY file", decode: ply.Decode, is: ply.Is},
}

// contentTypesHelp lists the content types that header content-type may have.
func contentTypesHelp() string {
	var list []string
	for _, f := range formats {
		list = append(list, f.contentType)
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

// ContentTypeNames returns the short names of the content types.
func ContentTypeNames() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// ContentTypes says what the values of topics are that have no header content-type. The
// zero value says nothing: they are Arrow.
type ContentTypes struct {
	all    *format
	topics map[string]*format
}

// Set makes the content type that text names, by its short name or as a header has it, that
// of topic; an empty topic is every topic that has none of its own. It reports whether text
// names one.
func (c *ContentTypes) Set(topic, text string) bool {
	f := formatNamed([]byte(text))
	if f == nil {
		f, _ = formatOfType([]byte(text))
	}
	if f == nil {
		return false
	}
	if topic == "" {
		c.all = f
		return true
	}
	if c.topics == nil {
		c.topics = map[string]*format{}
	}
	c.topics[topic] = f
	return true
}

// String returns what c says with short names, settings of topics in their order. Two
// ContentTypes that say the same of every topic have the same text; that of the zero value is
// empty.
func (c ContentTypes) String() string {
	var settings []string
	whole := c.all
	if whole == nil {
		whole = arrowFormat
	} else if whole != arrowFormat {
		settings = append(settings, whole.name)
	}
	for topic, f := range c.topics {
		if f != whole {
			settings = append(settings, topic+"="+f.name)
		}
	}
	slices.Sort(settings)
	return strings.Join(settings, ",")
}

// of returns the format of a topic; nil: not said.
func (c *ContentTypes) of(topic string) *format {
	if f, ok := c.topics[topic]; ok {
		return f
	}
	return c.all
}

func formatNamed(name []byte) *format {
	for _, f := range formats {
		if sameFold(name, f.name) {
			return f
		}
	}
	return nil
}

// formatOfType returns the format of a header's content type; nil if there is none. other
// is the message that the parameters of a known type name, if it is not read.
func formatOfType(text []byte) (f *format, other []byte) {
	media, params, _ := bytes.Cut(text, []byte{';'})
	media = bytes.TrimSpace(media)
	message := messageParam(params)
	for _, f := range formats {
		if !f.hasType(media, message != nil) {
			continue
		}
		if f.params == nil || message == nil || slices.Contains(f.params, string(message)) {
			return f, nil
		}
		other = message
	}
	return nil, other
}

// hasType reports whether values of f may have the type media, which is followed by the name
// of a message if withMessage is set.
func (f *format) hasType(media []byte, withMessage bool) bool {
	if sameFold(media, f.contentType) || withMessage && f.params != nil && generalOf(media) == f.within {
		return true
	}
	for _, name := range f.also {
		if sameFold(media, name) {
			return true
		}
	}
	return false
}

// messageParam returns the value of the parameter that names a message; nil if there is
// none.
func messageParam(params []byte) []byte {
	for len(params) > 0 {
		var p []byte
		p, params, _ = bytes.Cut(params, []byte{';'})
		key, value, _ := bytes.Cut(p, []byte{'='})
		key = bytes.TrimSpace(key)
		if sameFold(key, "type") || sameFold(key, "proto") || sameFold(key, "messagetype") {
			return bytes.Trim(bytes.TrimSpace(value), `"`)
		}
	}
	return nil
}

// sameFold compares without regard to case, and does not allocate.
func sameFold(b []byte, s string) bool { return len(b) == len(s) && bytes.EqualFold(b, []byte(s)) }

// general returns the general content type, one that leaves open what the value is, of a
// header's text; "" for others. No header is as good as application/octet-stream.
func general(text []byte) string {
	media, params, _ := bytes.Cut(text, []byte{';'})
	kind := generalOf(bytes.TrimSpace(media))
	if kind != contentTypeOctets && messageParam(params) != nil {
		return ""
	}
	return kind
}

func generalOf(media []byte) string {
	switch {
	case len(media) == 0 || sameFold(media, contentTypeOctets):
		return contentTypeOctets
	case sameFold(media, contentTypeJSON):
		return contentTypeJSON
	case sameFold(media, contentTypeProtobuf) || sameFold(media, "application/x-protobuf"):
		return contentTypeProtobuf
	}
	return ""
}

// authority says who named the format of a value.
type authority uint8

const (
	byNobody authority = iota // the format is Arrow
	byTopic                   // the topic's content type
	byHeader
)

// formatOf returns the format of the value of m: that of its headers, else that of its topic,
// else Arrow.
func (d *Decoder) formatOf(m *Message) (*format, authority, *FormatError) {
	full := headerValue(m.Headers, HeaderContentType)
	kind := general(full)
	if kind == "" {
		f, other := formatOfType(full)
		switch {
		case f != nil:
			return f, byHeader, nil
		case other != nil:
			return nil, 0, formatErr(ReasonUnknownContentType, -1, "content-type is %.120q, a message %.80s; this "+
				"build reads %s", full, other, contentTypesHelp())
		}
		return nil, 0, formatErr(ReasonUnknownContentType, -1, "content-type is %.120q; this build reads %s", full,
			contentTypesHelp())
	}
	if f := formatNamed(headerValue(m.Headers, HeaderFormat)); f != nil && len(full) > 0 && fits(f, kind) {
		return f, byHeader, nil
	}
	f, schema := d.ContentTypes.of(m.Topic), headerValue(m.Headers, HeaderSchema)
	switch {
	case kind == contentTypeOctets && len(schema) > 0 && string(schema) != SchemaPoints:
		return arrowFormat, byHeader, nil // no other format has it
	case f != nil && fits(f, kind) && f != arrowFormat && !d.isArrow(m.Value, f):
		return f, byTopic, nil
	case kind == contentTypeOctets:
		return arrowFormat, byNobody, nil
	}
	return nil, 0, formatErr(ReasonUnknownContentType, -1, "content-type is %.120q, which does not say what message "+
		"the value is%s", full, wanted(kind, m.Topic))
}

// fits reports whether values of f may come under the general content type kind.
func fits(f *format, kind string) bool { return kind == contentTypeOctets || kind == f.within }

// isArrow reports whether a value without a content type is Arrow, though its topic holds
// values of f: it begins as a stream. Streams of before Arrow 0.15 are told apart from plain
// numbers only.
func (d *Decoder) isArrow(value []byte, f *format) bool {
	if !f.numbers {
		return bytes.HasPrefix(value, []byte{0xff, 0xff, 0xff, 0xff})
	}
	_, _, err := d.layout(value)
	return err == nil || err.Reason != ReasonNotArrow && err.Reason != ReasonEmpty
}

// wanted says which content types a general one stands for.
func wanted(kind, topic string) string {
	for _, f := range formats {
		if f.within == kind {
			return "; " + f.what + " comes " + f.howToSend(topic)
		}
	}
	return ""
}

// howToSend says how a value of f is sent to topic.
func (f *format) howToSend(topic string) string {
	return fmt.Sprintf("with header %s: %s, or run with --content-type %s=%s", HeaderContentType, f.contentType, topic,
		f.name)
}
