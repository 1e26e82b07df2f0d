package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	groupdata "github.com/segmentio/kafka-go/protocol/consumer"
	"github.com/segmentio/kafka-go/protocol/heartbeat"
	"github.com/segmentio/kafka-go/protocol/joingroup"
	"github.com/segmentio/kafka-go/protocol/syncgroup"
)

// Versions of the group requests; see pinned.
const (
	joinVersion      = 4 // the coordinator gives out the member's name first
	syncVersion      = 2
	heartbeatVersion = 0
	leaveVersion     = 2
	metadataVersion  = 0 // version of the subscription and the assignment within them
)

// memberIDRequired is the answer to a first join: join again, with this name.
const memberIDRequired = kafka.Error(79)

// balancers divide the partitions among the members; the group uses the first
// that all its members know.
var balancers = []kafka.GroupBalancer{kafka.RangeGroupBalancer{}, kafka.RoundRobinGroupBalancer{}}

// generation is what a member holds between two rebalances.
type generation struct {
	id       int32
	member   string
	leader   bool
	counts   map[string]int32 // partitions of each topic when the leader divided them
	assigned map[string][]int32
}

// membership is this process's place in the group. It is used by one goroutine.
type membership struct {
	c      *Consumer
	id     string // the member's name; empty: none yet
	joined bool   // has been a member before
	stays  bool   // the group is not left at the end
	anew   bool   // leave before the next join
}

// join becomes a member of the next generation. It waits for a coordinator that
// is away, for ever once it has been a member, else for a minute.
func (m *membership) join(ctx context.Context) (*generation, error) {
	var b backoff
	var logged time.Time
	for started := time.Now(); ; {
		gen, err := m.tryJoin(ctx)
		if err == nil {
			m.joined = true
			m.c.memberID.Store(&gen.member)
			m.c.stats.generation.Store(gen.id + 1)
			return gen, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		code := kafka.Error(0)
		if !errors.As(err, &code) || code == kafka.BrokerNotAvailable {
			if why := m.c.cluster.coordinator(ctx, m.c.cfg.Group); errors.Is(why, kafka.GroupAuthorizationFailed) {
				err = why
			}
		}
		switch errors.As(err, &code); code {
		case memberIDRequired, kafka.RebalanceInProgress:
			continue // not failures; the coordinator sets the pace
		case kafka.UnknownMemberId:
			m.id = ""
		case kafka.FencedInstanceID:
			return nil, m.fenced()
		}
		var other *OutputError
		if errors.As(err, &other) {
			return nil, err
		}
		m.c.stats.joinErrors.Add(1)
		if refused(code) || !m.joined && time.Since(started) > firstJoin {
			return nil, m.c.cluster.denied(fmt.Errorf("group %s cannot be joined: %w", m.c.cfg.Group, err),
				"Read", m.c.cfg.Group)
		}
		if time.Since(logged) > debugEvery {
			logged = time.Now()
			m.c.complaints.warn(m.c.log, "joining the group fails, trying again", err, "group", m.c.cfg.Group)
		}
		if err := b.wait(ctx); err != nil {
			return nil, err
		}
	}
}

const firstJoin = time.Minute

// refused tells answers that will not change.
func refused(e kafka.Error) bool {
	switch e {
	case kafka.GroupAuthorizationFailed, kafka.TopicAuthorizationFailed, kafka.InvalidSessionTimeout,
		kafka.InvalidGroupId,
		kafka.InconsistentGroupProtocol, kafka.GroupMaxSizeReached, kafka.UnsupportedVersion:
		return true
	}
	return false
}

func (m *membership) tryJoin(ctx context.Context) (*generation, error) {
	t := m.c.cfg.Timing
	req := &joingroup.Request{
		GroupID: m.c.cfg.Group, MemberID: m.id, GroupInstanceID: m.c.cfg.Instance, ProtocolType: "consumer",
		SessionTimeoutMS: int32(t.Session.Milliseconds()), RebalanceTimeoutMS: int32(t.Rebalance.Milliseconds()),
	}
	subscription, err := m.c.subscription()
	if err != nil {
		return nil, err
	}
	for _, b := range balancers {
		req.Protocols = append(req.Protocols, joingroup.RequestProtocol{Name: b.ProtocolName(), Metadata: subscription})
	}
	// The answer comes when every member has joined, or has been given up.
	// Members may have asked for a longer time than this one.
	r, err := m.c.cluster.callAs(ctx, m.joinClientID(), m.c.cfg.Group, m.version(joinVersion, staticJoinVersion),
		2*t.Rebalance+callTimeout, req)
	if err != nil {
		return nil, err
	}
	join := r.(*joingroup.Response)
	if join.MemberID != "" {
		m.id = join.MemberID
	}
	if join.ErrorCode != 0 {
		return nil, kafka.Error(join.ErrorCode)
	}
	return m.sync(ctx, join)
}

// sync gives or gets the assignment.
func (m *membership) sync(ctx context.Context, join *joingroup.Response) (*generation, error) {
	gen := &generation{id: join.GenerationID, member: m.id, leader: join.LeaderID == m.id,
		assigned: map[string][]int32{}}
	req := &syncgroup.Request{GroupID: m.c.cfg.Group, GenerationID: gen.id, MemberID: m.id,
		GroupInstanceID: m.c.cfg.Instance}
	if gen.leader {
		var err error
		if req.Assignments, err = m.divide(ctx, gen, join); err != nil {
			return nil, err
		}
	}
	r, err := m.c.cluster.call(ctx, m.c.cfg.Group, m.version(syncVersion, staticSyncVersion),
		m.c.cfg.Timing.Rebalance+callTimeout, req)
	if err != nil {
		return nil, err
	}
	sync := r.(*syncgroup.Response)
	if sync.ErrorCode != 0 {
		return nil, kafka.Error(sync.ErrorCode)
	}
	if len(sync.Assignments) == 0 {
		return gen, nil
	}
	var a groupdata.Assignment
	if err := protocol.Unmarshal(sync.Assignments, metadataVersion, &a); err != nil {
		return nil, fmt.Errorf("an assignment that cannot be read: %w", err)
	}
	if other := m.c.conflict(join.LeaderID, a.UserData); other != nil {
		return nil, other
	}
	for _, t := range a.AssignedPartitions {
		gen.assigned[t.Topic] = append(gen.assigned[t.Topic], t.Partitions...)
	}
	return gen, nil
}

// divide is the leader's work: every partition of every topic goes to a member
// that reads the topic. With every assignment goes the leader's output: a member
// that writes to another sees it and leaves.
func (m *membership) divide(ctx context.Context, gen *generation,
	join *joingroup.Response) ([]syncgroup.RequestAssignment, error) {
	// The name of a static member begins with its instance: it gets the same partitions again.
	slices.SortFunc(join.Members, func(a, b joingroup.ResponseMember) int {
		return strings.Compare(a.MemberID, b.MemberID)
	})
	members := make([]kafka.GroupMember, len(join.Members))
	var topics []string
	for i, jm := range join.Members {
		var s groupdata.Subscription
		if err := protocol.Unmarshal(jm.Metadata, metadataVersion, &s); err != nil {
			return nil, fmt.Errorf("member %s has a subscription that cannot be read: %w", jm.MemberID, err)
		}
		members[i] = kafka.GroupMember{ID: jm.MemberID, Topics: s.Topics}
		topics = append(topics, s.Topics...)
	}
	slices.Sort(topics)
	var err error
	if gen.counts, err = m.c.cluster.partitions(ctx, slices.Compact(topics)); err != nil {
		return nil, err
	}
	var all []kafka.Partition
	for topic, n := range gen.counts {
		for id := range n {
			all = append(all, kafka.Partition{Topic: topic, ID: int(id)})
		}
	}
	i := slices.IndexFunc(balancers, func(b kafka.GroupBalancer) bool { return b.ProtocolName() == join.ProtocolName })
	if i < 0 {
		return nil, fmt.Errorf("the group divides its partitions by %q, which is not known here", join.ProtocolName)
	}
	return encodeAssignments(members, balancers[i].AssignGroups(members, all), m.c.ownOutput())
}

func encodeAssignments(members []kafka.GroupMember, byMember kafka.GroupMemberAssignments,
	output []byte) ([]syncgroup.RequestAssignment, error) {
	var out []syncgroup.RequestAssignment
	for _, member := range members {
		a := groupdata.Assignment{UserData: output}
		for topic, ids := range byMember[member.ID] {
			t := groupdata.TopicPartition{Topic: topic}
			for _, id := range ids {
				t.Partitions = append(t.Partitions, int32(id))
			}
			a.AssignedPartitions = append(a.AssignedPartitions, t)
		}
		b, err := protocol.Marshal(metadataVersion, a)
		if err != nil {
			return nil, err
		}
		out = append(out, syncgroup.RequestAssignment{MemberID: member.ID, Assignment: b})
	}
	return out, nil
}

// beat is the coordinator's answer to a heartbeat.
type beat int

const (
	beatFine    beat = iota // still a member; or no answer, which proves nothing
	beatRevoked             // the group rebalances: drain and join again
	beatExpelled
	beatFenced // a later process has this member's instance id
)

// heartbeat tells the coordinator that the member lives.
func (m *membership) heartbeat(ctx context.Context, gen *generation) beat {
	version := m.version(heartbeatVersion, staticHeartbeatVersion)
	r, err := m.c.cluster.call(ctx, m.c.cfg.Group, version, callTimeout, &heartbeat.Request{GroupID: m.c.cfg.Group,
		GenerationID: gen.id, MemberID: gen.member, GroupInstanceID: m.c.cfg.Instance})
	if err != nil {
		return beatFine
	}
	answer := r.(*heartbeat.Response)
	code := kafka.Error(answer.ErrorCode)
	if version >= 1 { // the broker sends the throttle time first, kafka-go reads the code first
		code = kafka.Error(int16(answer.ThrottleTimeMs))
	}
	switch code {
	case 0, kafka.NotCoordinatorForGroup, kafka.GroupCoordinatorNotAvailable, kafka.GroupLoadInProgress:
		return beatFine
	case kafka.RebalanceInProgress:
		return beatRevoked
	case kafka.FencedInstanceID:
		return beatFenced
	default:
		m.c.log.Warn("the group has dropped this member", "group", m.c.cfg.Group, "generation", gen.id, "error", code)
		return beatExpelled
	}
}

// leave tells the group not to wait for this member. It takes a second at most. A static
// member that stays keeps its partitions for its successor.
func (m *membership) leave(ctx context.Context) {
	m.c.stats.generation.Store(0)
	if m.id == "" || m.stays {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := m.c.leave(ctx, m.id, m.c.cfg.Instance); err != nil {
		m.c.log.Debug("leaving the group fails; it will notice", "group", m.c.cfg.Group, "error", err)
	}
	m.id = ""
}
