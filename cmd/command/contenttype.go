package command

import (
	"fmt"
	"slices"
	"strings"

	"entropipe/cmd/mistake"
	"entropipe/schemas"
)

// ContentTypes reads the values of --content-type: TYPE for all topics, TOPIC=TYPE for one,
// where TYPE is a short name or the text of a header. The error is a Usage about a value that
// is neither, or about a topic that is not among topics; nil allows every topic.
func ContentTypes(settings, topics []string) (schemas.ContentTypes, error) {
	var types schemas.ContentTypes
	for _, text := range settings {
		topic, name, named := strings.Cut(text, "=")
		if !named || strings.Contains(topic, "/") { // a media type with a parameter
			topic, name = "", text
		}
		if named && topic != "" && topics != nil && !slices.Contains(topics, topic) {
			return types, mistake.About(fmt.Sprintf("--content-type %s: %q is not among --topic %s", text, topic,
				strings.Join(topics, ",")), "content-type")
		}
		if !types.Set(topic, name) {
			return types, mistake.Value("content-type", " %s: want TYPE or TOPIC=TYPE, where TYPE is a content "+
				"type or one of %s", text, strings.Join(schemas.ContentTypeNames(), ", "))
		}
	}
	return types, nil
}
