package foxglove

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// level is that of a status.
type level int

// The levels.
const (
	info level = iota
	warning
	failure
)

// opMessage is the first byte of a message of a channel.
const opMessage = 1

// headerSize is the size of what stands before the message of a channel.
const headerSize = 1 + 4 + 8

// appendHeader appends what stands before the message of a channel.
func appendHeader(b []byte, subscription uint32, timeNs uint64) []byte {
	b = append(b, opMessage)
	b = binary.LittleEndian.AppendUint32(b, subscription)
	return binary.LittleEndian.AppendUint64(b, timeNs)
}

// marshal returns v as JSON without escapes for HTML.
func marshal(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("foxglove: " + err.Error()) // texts and numbers alone
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

func serverInfo(version, session string) []byte {
	return marshal(struct {
		Op           string            `json:"op"`
		Name         string            `json:"name"`
		Capabilities []string          `json:"capabilities"`
		Metadata     map[string]string `json:"metadata"`
		SessionID    string            `json:"sessionId"`
	}{"serverInfo", "entropipe", []string{}, map[string]string{"version": version}, session})
}

func status(l level, format string, args ...any) []byte {
	return marshal(struct {
		Op      string `json:"op"`
		Level   level  `json:"level"`
		Message string `json:"message"`
	}{"status", l, fmt.Sprintf(format, args...)})
}

// channel is an entry of the message advertise.
type channel struct {
	ID             uint32 `json:"id"`
	Topic          string `json:"topic"`
	Encoding       string `json:"encoding"`
	SchemaName     string `json:"schemaName"`
	SchemaEncoding string `json:"schemaEncoding"`
	Schema         string `json:"schema"`
}

func advertise(channels []channel) []byte {
	return marshal(struct {
		Op       string    `json:"op"`
		Channels []channel `json:"channels"`
	}{"advertise", channels})
}

func unadvertise(ids []uint32) []byte {
	return marshal(struct {
		Op         string   `json:"op"`
		ChannelIDs []uint32 `json:"channelIds"`
	}{"unadvertise", ids})
}

// request is a text of a client.
type request struct {
	Op            string `json:"op"`
	Subscriptions []struct {
		ID        *uint32 `json:"id"`
		ChannelID *uint32 `json:"channelId"`
	} `json:"subscriptions"`
	SubscriptionIDs []uint32 `json:"subscriptionIds"`
}

// parse reads a text of a client. problem is the status that answers a wrong one; nil if it
// is right. A request that is right has subscriptions with both ids.
func parse(text []byte) (r request, problem []byte) {
	var head struct {
		Op *string `json:"op"`
	}
	if err := json.Unmarshal(text, &head); err != nil || head.Op == nil {
		return r, status(failure, "Invalid message: want a JSON object with the text op")
	}
	switch *head.Op {
	case "subscribe", "unsubscribe":
	default:
		return r, status(warning, "This server knows subscribe and unsubscribe, not %.40q", *head.Op)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, status(failure, "Invalid message: ids are numbers from 0 to 4294967295")
	}
	for _, s := range r.Subscriptions {
		if s.ID == nil || s.ChannelID == nil {
			return r, status(failure, "Invalid message: a subscription needs id and channelId")
		}
	}
	return r, nil
}
