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

// What members say of their output: "entropipe output <name>", and, where they
// know it, " inode <number>", and " page <URL>" if others can watch them. What may
// stand behind that is for later programs.
const (
	outputPrefix = "entropipe output "
	inodePrefix  = "inode "
	pagePrefix   = " page "
)

// subscription is what a member says when it joins: topics, to where the results
// go, and where it can be watched.
func (c *Consumer) subscription() ([]byte, error) {
	said := c.ownOutput()
	if c.cfg.Page != "" && said != nil {
		said = append(said, pagePrefix+c.cfg.Page...)
	}
	return protocol.Marshal(metadataVersion, groupdata.Subscription{Topics: c.cfg.Topics, UserData: said})
}

// pageOf returns the URL of its page that a member tells; empty if it tells none.
func pageOf(said []byte) string {
	rest, ok := strings.CutPrefix(string(said), outputPrefix)
	if !ok {
		return ""
	}
	_, page, _ := strings.Cut(rest, pagePrefix)
	page, _, _ = strings.Cut(page, " ")
	return page
}

// ownOutput is what this member says of its output; nil where it has none.
func (c *Consumer) ownOutput() []byte {
	if c.cfg.Output == "" {
		return nil
	}
	said := outputPrefix + c.cfg.Output
	if c.cfg.OutputInode != "" {
		said += " " + inodePrefix + c.cfg.OutputInode
	}
	return []byte(said)
}

// outputOf reads what a member says of its output. Strangers say nothing; early
// programs, and members whose store has no inodes, say no inode.
func outputOf(said []byte) (output, inode string) {
	rest, ok := strings.CutPrefix(string(said), outputPrefix)
	if !ok {
		return "", ""
	}
	output, rest, _ = strings.Cut(rest, " ")
	if rest, ok = strings.CutPrefix(rest, inodePrefix); ok {
		inode, _, _ = strings.Cut(rest, " ")
	}
	return output, inode
}

// conflict returns an error if what a member says names another output than this
// one's, or a copy of it.
func (c *Consumer) conflict(member string, said []byte) *OutputError {
	output, inode := outputOf(said)
	if output == "" || c.cfg.Output == "" {
		return nil
	}
	e := &OutputError{Group: c.cfg.Group, Member: member}
	if output != c.cfg.Output {
		return e
	}
	if inode == "" || c.cfg.OutputInode == "" || inode == c.cfg.OutputInode {
		return nil
	}
	e.Output, e.Inode, e.Own = output, inode, c.cfg.OutputInode
	return e
}

// OutputError says that a member of the group writes to another output. If Output is
// not empty, the other output is a copy with the same name.
type OutputError struct {
	Group, Member string
	Output        string // name of both; empty: the outputs have different names
	Inode, Own    string // inode of the member's copy, and inode of this one
}

func (e *OutputError) Error() string {
	if e.Output == "" {
		return fmt.Sprintf("group %s: another member, %s, writes to another output, so each would get a part of the "+
			"records: give this one a group of its own", e.Group, e.Member)
	}
	return fmt.Sprintf("group %s: another member, %s, writes to another copy of this output: both are %s, but their "+
		"_commits/store.json are two files (one was copied, or came from a backup), of inodes %s there and %s here. "+
		"Copies take partitions from each other, and each gets a part of the records. Stop the other one, or give "+
		"this one a group of its own with --group NAME, now and at every later start; "+
		"to make of this copy an output with a name of its own, remove its _commits/store.json, and nothing else",
		e.Group, e.Member, e.Output, e.Inode, e.Own)
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
		case other == nil:
			return nil
		case time.Since(begin) > c.cfg.Timing.Session+c.cfg.Timing.Watch:
			return other
		}
		what := "another output"
		if other.Output != "" {
			what = "another copy of this output"
		}
		c.log.Warn("waiting: a member of the group writes to "+what, "group", c.cfg.Group, "member", other.Member)
		if err := sleep(ctx, c.cfg.Timing.Watch); err != nil {
			return err
		}
	}
	return nil
}

// otherOutput returns the first conflict with a member, nil if there is none.
func (c *Consumer) otherOutput(members []describegroups.ResponseGroupMember) *OutputError {
	for _, m := range members {
		var s groupdata.Subscription
		// none while the group divides, or a stranger's
		if protocol.Unmarshal(m.MemberMetadata, metadataVersion, &s) != nil {
			continue
		}
		if other := c.conflict(m.MemberID, s.UserData); other != nil {
			return other
		}
	}
	return nil
}

// members is what the group's coordinator knows of its members.
func (c *Consumer) members(ctx context.Context) (members []describegroups.ResponseGroupMember, err error) {
	r, err := c.cluster.call(ctx, c.cfg.Group, describeVersion, callTimeout,
		&describegroups.Request{Groups: []string{c.cfg.Group}})
	if err != nil {
		return nil, err
	}
	for _, g := range r.(*describegroups.Response).Groups {
		members = append(members, g.Members...)
	}
	return members, nil
}
