package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/segmentio/kafka-go/protocol"
	groupdata "github.com/segmentio/kafka-go/protocol/consumer"
	"github.com/segmentio/kafka-go/protocol/describegroups"
)

// A static member has an instance id (KIP-345), which outlives its process: a process
// that joins with the id of another takes the other's place and partitions, and the
// group does not rebalance. So a static member does not leave when it is stopped: the
// group keeps its partitions until Timing.Session has passed without a heartbeat. It
// leaves when its work is done.
//
// The versions of the group's requests that name the instance are used by static members
// alone; others get along with older brokers.
const (
	staticJoinVersion      = 5
	staticSyncVersion      = 3
	staticHeartbeatVersion = 3
	staticLeaveVersion     = 3
)

// maxInstanceID is the length in bytes that the brokers take.
const maxInstanceID = 249

// CheckInstance returns an error unless id can be a group instance id: 1 to 249 of the
// characters a-z, A-Z, 0-9, '.', '_' and '-', and neither "." nor "..".
func CheckInstance(id string) error {
	switch {
	case id == "", id == ".", id == "..", len(id) > maxInstanceID:
		return fmt.Errorf("want 1 to %d letters, digits, '.', '_', '-'", maxInstanceID)
	}
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-' {
			return fmt.Errorf("want letters, digits, '.', '_', '-'; it has %q", r)
		}
	}
	return nil
}

// InstanceError says that a later process joined the group with this one's instance id.
type InstanceError struct{ Group, Instance string }

func (e *InstanceError) Error() string {
	return fmt.Sprintf("group %s: another process has joined with --group-instance %s and has taken the partitions of "+
		"this one: give each process an id of its own", e.Group, e.Instance)
}

// fenced returns the error of a member whose requests are refused with FENCED_INSTANCE_ID.
func (m *membership) fenced() error {
	return &InstanceError{Group: m.c.cfg.Group, Instance: m.c.cfg.Instance}
}

// version returns that of a request of this member.
func (m *membership) version(dynamic, static int16) int16 {
	if m.c.cfg.Instance != "" {
		return static
	}
	return dynamic
}

// joinClientID is the client id of this member's join. A static member does not say which
// process it is: nobody is to send it away when the process is dead, since its successor
// takes its place.
func (m *membership) joinClientID() string {
	if m.c.cfg.Instance != "" {
		return m.c.cfg.ClientID
	}
	return m.c.self.clientID(m.c.cfg.ClientID)
}

// errUnassigned says that partitions are nobody's.
var errUnassigned = errors.New("a partition is assigned to no member")

// orphans counts the looks at a group at rest that found a partition which is assigned to
// nobody.
//
// The leader notices new partitions, but a static group may have lost it: a leader that
// comes back is no leader to the brokers (KIP-814), and what was added while it was away
// nobody saw. The members act one after the other, by their names, the first at its second
// look: then a leader, if there is one, has had its turn.
type orphans int

// look asks for the assignments of all members and returns errUnassigned if it is up to this
// member to make the group divide its partitions again. counts has the number of partitions
// by topic. Where nothing can be learnt, all is well.
func (o *orphans) look(ctx context.Context, c *Consumer, member string, counts map[string]int32) error {
	if c.cfg.Instance == "" {
		return nil
	}
	r, err := c.cluster.call(ctx, c.cfg.Group, describeVersion, callTimeout,
		&describegroups.Request{Groups: []string{c.cfg.Group}})
	if err != nil {
		return nil
	}
	var turn orphans = 2
	have := map[string][]int32{}
	for _, g := range r.(*describegroups.Response).Groups {
		if g.ErrorCode != 0 || g.GroupState != "Stable" {
			return nil
		}
		for _, m := range g.Members {
			var a groupdata.Assignment
			if len(m.MemberAssignment) > 0 && protocol.Unmarshal(m.MemberAssignment, metadataVersion, &a) != nil {
				return nil
			}
			if m.MemberID < member {
				turn++
			}
			for _, t := range a.AssignedPartitions {
				have[t.Topic] = append(have[t.Topic], t.Partitions...)
			}
		}
	}
	*o++
	for _, topic := range c.cfg.Topics {
		for id := range counts[topic] {
			if !slices.Contains(have[topic], id) {
				if *o >= turn {
					return errUnassigned
				}
				return nil
			}
		}
	}
	*o = 0
	return nil
}
