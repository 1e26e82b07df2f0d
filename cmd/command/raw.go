package command

import (
	"fmt"
	"slices"
	"strings"

	"entropipe/cmd/mistake"
	"entropipe/schemas"
)

// rawVelodyne is the only raw format: x, y, z and reflectance of each point as float32.
const rawVelodyne = "velodyne"

// RawTopics reads the values of --raw: velodyne for all topics, TOPIC=velodyne for one.
// The error is a Usage about a value that is neither, or about a topic that is not among
// topics; nil allows every topic.
func RawTopics(settings, topics []string) (schemas.RawTopics, error) {
	var raw schemas.RawTopics
	for _, text := range settings {
		topic, format, named := strings.Cut(text, "=")
		if !named {
			format = text
		}
		switch {
		case format != rawVelodyne:
			return raw, mistake.Value("raw", " %s: want %s or TOPIC=%s", text, rawVelodyne, rawVelodyne)
		case !named:
			raw.All = true
		case topics != nil && !slices.Contains(topics, topic):
			return raw, mistake.About(fmt.Sprintf("--raw %s: %q is not among --topic %s", text, topic,
				strings.Join(topics, ",")), "raw")
		case !slices.Contains(raw.Names, topic):
			raw.Names = append(raw.Names, topic)
		}
	}
	return raw, nil
}
