package broker

import (
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	metadataKey     = 3
	createTopicsKey = 19
	invalidTopic    = 17 // INVALID_TOPIC_EXCEPTION

	limitConfig = "max.message.bytes"
)

// newTopics stands before kfake where topics come into being.
type newTopics struct {
	cluster *kfake.Cluster
	limit   string
}

func (n newTopics) install() {
	n.cluster.ControlKey(metadataKey, n.metadata)
	n.cluster.ControlKey(createTopicsKey, n.create)
}

// metadata creates the topics that a client may create by asking for them.
// kfake would do so too, but it forgets such a topic when it is killed, and
// describes its limit wrongly.
func (n newTopics) metadata(kreq kmsg.Request) (kmsg.Response, error, bool) {
	n.cluster.KeepControl()
	req, ok := kreq.(*kmsg.MetadataRequest)
	if !ok || !req.AllowAutoTopicCreation {
		return nil, nil, false
	}
	for _, t := range req.Topics {
		if t.Topic == nil || !validName(*t.Topic) || n.cluster.TopicInfo(*t.Topic) != nil {
			continue
		}
		// An error means that the name collides with another topic's; the
		// answer then says that there is no such topic.
		_ = n.cluster.CreateTopic(*t.Topic, -1, map[string]string{limitConfig: n.limit})
	}
	return nil, nil, false
}

// create gives topics the broker's limit where the creator sets none, and
// refuses names that would be paths: they become folders.
func (n newTopics) create(kreq kmsg.Request) (kmsg.Response, error, bool) {
	n.cluster.KeepControl()
	req, ok := kreq.(*kmsg.CreateTopicsRequest)
	if !ok {
		return nil, nil, false
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		if !validName(t.Topic) {
			return refuse(req), nil, true
		}
		if !hasLimit(t.Configs) {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = limitConfig, kmsg.StringPtr(n.limit)
			t.Configs = append(t.Configs, c)
		}
	}
	return nil, nil, false
}

func hasLimit(configs []kmsg.CreateTopicsRequestTopicConfig) bool {
	for _, c := range configs {
		if c.Name == limitConfig {
			return true
		}
	}
	return false
}

func refuse(req *kmsg.CreateTopicsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewCreateTopicsResponseTopic()
		rt.Topic, rt.ErrorCode = t.Topic, invalidTopic
		rt.ErrorMessage = kmsg.StringPtr("a topic name is 1 to 249 of the characters a-z A-Z 0-9 . _ -, and neither " +
			". nor ..")
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// validName is Kafka's own rule.
func validName(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > 249 {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
