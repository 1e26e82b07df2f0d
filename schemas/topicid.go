package schemas

import "entropipe/schemas/codec/identity"

// TopicID is the id that a Kafka cluster gives a topic at its creation.
type TopicID = identity.TopicID

// ParseTopicID is the inverse of TopicID.String. It accepts no other form.
func ParseTopicID(s string) (id TopicID, err error) { return identity.ParseTopicID(s) }
