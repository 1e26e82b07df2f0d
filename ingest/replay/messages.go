package replay

import (
	"fmt"
	"slices"
	"strings"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/foxglove"
	"entropipe/schemas/codec/pointcloud2"
)

// cloudDecoder decodes the messages of a topic.
type cloudDecoder func(c *codec.Cloud, message []byte, limit int64) error

// decoderOf returns the decoder of the point clouds of a schema in an encoding of messages;
// nil if the messages are no clouds.
func decoderOf(schema, encoding string) cloudDecoder {
	switch {
	case isPointCloud2(schema) && encoding == "cdr":
		return pointcloud2.Decode
	case schema == foxglove.PointCloudSchema && encoding == "protobuf":
		return foxglove.Decode
	case schema == foxglove.PointCloudSchema && encoding == "json":
		return foxglove.DecodeJSON
	}
	return nil
}

// isPointCloud2 knows the names of ROS 2, of tools that shorten it, and of DDS.
func isPointCloud2(schema string) bool {
	return schema == pointcloud2.Schema || schema == "sensor_msgs/PointCloud2" ||
		schema == "sensor_msgs::msg::dds_::PointCloud2_"
}

// topicInfo is a topic of a recording.
type topicInfo struct{ name, schema, encoding string }

// String describes the topic in errors.
func (t topicInfo) String() string {
	schema := t.schema
	if schema == "" {
		schema = "no schema"
	}
	return t.name + " (" + schema + ", " + t.encoding + ")"
}

// maxTopics is how many topics an error lists.
const maxTopics = 40

// listTopics lists topics in the order of their names, each once.
func listTopics(topics map[topicInfo]bool) string {
	names := make([]string, 0, len(topics))
	for t := range topics {
		names = append(names, t.String())
	}
	if len(names) == 0 {
		return "there is no topic"
	}
	slices.Sort(names)
	more := ""
	if len(names) > maxTopics {
		more = fmt.Sprintf(" and %d more", len(names)-maxTopics)
		names = names[:maxTopics]
	}
	return "the topics are " + strings.Join(names, ", ") + more
}

// checkTopics returns an error if a wanted topic is not among the topics of recordings, or
// holds no clouds; without wanted ones, if none holds clouds.
func checkTopics(topics map[topicInfo]bool, wanted []string) error {
	clouds := map[string]bool{}
	all := map[string]topicInfo{}
	ros1 := false
	for t := range topics {
		all[t.name] = t
		if decoderOf(t.schema, t.encoding) != nil {
			clouds[t.name] = true
		}
		ros1 = ros1 || t.encoding == "ros1" && isPointCloud2(t.schema)
	}
	hint := ""
	if ros1 {
		hint = "; messages of ROS 1 are not read: rosbags-convert writes them as ROS 2"
	}
	for _, name := range wanted {
		t, ok := all[name]
		switch {
		case !ok:
			return fmt.Errorf("there is no topic %s; %s", name, listTopics(topics))
		case !clouds[name]:
			return fmt.Errorf("topic %s holds no point clouds%s; %s", t, hint, listTopics(topics))
		}
	}
	if len(wanted) == 0 && len(clouds) == 0 {
		return fmt.Errorf("no topic holds point clouds (%s in cdr; %s in protobuf or json)%s; %s", pointcloud2.Schema,
			foxglove.PointCloudSchema, hint, listTopics(topics))
	}
	return nil
}
