package ingest

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/leavegroup"
)

// A process that is killed stays a member of its group until its session ends,
// and keeps its partitions. Killed while it waits to join, it becomes a member
// after its death: the group waits for one session more, and for the rebalance
// timeout where it was made the leader. A broker of package kfake then keeps it
// for ever. So members say in their client id which process they are, and whoever
// reads the group on the same machine sends those away whose processes are gone.
// That takes nothing from exactly once: offsets are the output's affair, and a
// member that is sent away by mistake joins again.
//
// Of a process on another machine nobody can tell, so there the session decides.
// A shorter session would help: but it must outlast a pause of the process. A static
// member (static.go) is not sent away: its partitions are kept for its successor.

// process says which process a member is. Of the zero value nothing is known.
type process struct {
	place string // machine since its start, process namespace and user: where pid means this process
	pid   int
	start uint64 // when it began, in the machine's ticks
}

// clientID is what a member calls itself when it joins. Other requests go by the
// plain name, which quotas may be for.
func (p process) clientID(name string) string {
	if p.place == "" {
		return name
	}
	return fmt.Sprintf("%s-%s-%d-%d", name, p.place, p.pid, p.start)
}

// processOf is the inverse of clientID.
func processOf(name, clientID string) (p process, ok bool) {
	rest, ok := strings.CutPrefix(clientID, name+"-")
	said := strings.Split(rest, "-")
	if !ok || len(said) != 3 || said[0] == "" {
		return process{}, false
	}
	pid, err := strconv.ParseInt(said[1], 10, 32)
	start, err2 := strconv.ParseUint(said[2], 10, 64)
	if err != nil || err2 != nil || pid <= 0 {
		return process{}, false
	}
	return process{said[0], int(pid), start}, true
}

const describeVersion = 0

// dismiss makes the group drop the members whose processes are dead. What fails
// is left to their sessions.
func (c *Consumer) dismiss(ctx context.Context) {
	if c.self.place == "" {
		return
	}
	members, err := c.members(ctx)
	if err != nil {
		return
	}
	for _, m := range members {
		p, ok := processOf(c.cfg.ClientID, m.ClientID)
		if !ok || p.place != c.self.place || !p.dead() {
			continue
		}
		if err := c.leave(ctx, m.MemberID, ""); err != nil {
			c.log.Info("a member whose process is dead stays in the group until its session ends", "group", c.cfg.Group,
				"pid", p.pid, "error", err)
			continue
		}
		c.log.Info("a member of the group is sent away: its process is dead", "group", c.cfg.Group, "pid", p.pid)
	}
}

// dismissal does that from now on until ctx ends.
func (c *Consumer) dismissal(ctx context.Context) {
	for sleep(ctx, c.cfg.Timing.Watch) == nil {
		c.dismiss(ctx)
	}
}

// leave ends a membership; instance is empty unless the member is static.
func (c *Consumer) leave(ctx context.Context, member, instance string) error {
	version := int16(leaveVersion)
	if instance != "" {
		version = staticLeaveVersion
	}
	r, err := c.cluster.call(ctx, c.cfg.Group, version, callTimeout, &leavegroup.Request{GroupID: c.cfg.Group,
		MemberID: member, Members: []leavegroup.RequestMember{{MemberID: member, GroupInstanceID: instance}}})
	if err != nil {
		return err
	}
	answer := r.(*leavegroup.Response)
	// The broker sends the throttle time first, kafka-go reads the code first.
	codes := []kafka.Error{kafka.Error(int16(answer.ThrottleTimeMS))}
	for _, m := range answer.Members {
		codes = append(codes, kafka.Error(m.ErrorCode))
	}
	for _, code := range codes {
		if code != 0 && code != kafka.UnknownMemberId { // it has left already
			return code
		}
	}
	return nil
}
