package ingest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go/protocol"
	groupdata "github.com/segmentio/kafka-go/protocol/consumer"
	"github.com/segmentio/kafka-go/protocol/describegroups"
)

// outputPrefix tells what members of this package say from what others do.
const outputPrefix = "entropipe output "

// subscription is what a member says when it joins: topics, and to where the
// results go.
func (c *Consumer) subscription() ([]byte, error) {
	return protocol.Marshal(metadataVersion, groupdata.Subscription{Topics: c.cfg.Topics, UserData: c.ownOutput()})
}

// ownOutput is what this member says of its output; nil where it has none.
func (c *Consumer) ownOutput() []byte {
	if c.cfg.Output == "" {
		return nil
	}
	return []byte(outputPrefix + c.cfg.Output)
}

// differs tells whether another member's words name an output other than this
// one's.
func (c *Consumer) differs(said []byte) bool {
	output, ok := strings.CutPrefix(string(said), outputPrefix)
	return ok && c.cfg.Output != "" && output != c.cfg.Output
}

// outputError says that a member of the group writes to another output.
type outputError struct{ group, member string }

func (e *outputError) Error() string {
	return fmt.Sprintf("group %s: another member, %s, writes to another output, so each would get a part of the records: give this one a group of its own", e.group, e.member)
}

// agree returns when no member of the group says that it writes to another
// output. One that died elsewhere counts until its session ends, so an error
// comes after that time only. Where nothing can be learnt, all is well: of
// members that join at the same moment the leader's output holds; see divide.
func (c *Consumer) agree(ctx context.Context) error {
	for begin := time.Now(); c.cfg.Output != ""; {
		members, err := c.members(ctx)
		if err != nil {
			return nil
		}
		other := c.otherOutput(members)
		switch {
		case other == "":
			return nil
		case time.Since(begin) > c.cfg.Timing.Session+c.cfg.Timing.Watch:
			return &outputError{c.cfg.Group, other}
		}
		c.log.Warn("waiting: a member of the group writes to another output", "group", c.cfg.Group, "member", other)
		if err := sleep(ctx, c.cfg.Timing.Watch); err != nil {
			return err
		}
	}
	return nil
}

// otherOutput names a member that writes to another output, "" if none does.
func (c *Consumer) otherOutput(members []describegroups.ResponseGroupMember) string {
	for _, m := range members {
		var s groupdata.Subscription
		if protocol.Unmarshal(m.MemberMetadata, metadataVersion, &s) != nil { // none while the group divides, or a stranger's
			continue
		}
		if c.differs(s.UserData) {
			return m.MemberID
		}
	}
	return ""
}

// members is what the group's coordinator knows of its members.
func (c *Consumer) members(ctx context.Context) (members []describegroups.ResponseGroupMember, err error) {
	r, err := c.cluster.call(ctx, c.cfg.Group, describeVersion, callTimeout, &describegroups.Request{Groups: []string{c.cfg.Group}})
	if err != nil {
		return nil, err
	}
	for _, g := range r.(*describegroups.Response).Groups {
		members = append(members, g.Members...)
	}
	return members, nil
}
