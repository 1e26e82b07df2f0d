package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	groupdata "github.com/segmentio/kafka-go/protocol/consumer"
	"github.com/segmentio/kafka-go/protocol/describegroups"
)

// View is what the brokers say of the Consumer's group. It is for people: between a question
// and its answer members come and go, and committed offsets are advice.
type View struct {
	Stable     bool // false: the group divides its partitions anew, and members may show none
	Members    []ViewMember
	Partitions []ViewPartition // partitions of Config.Topics, by topic and number

	// OffsetsErr says why Committed and End are unknown; nil if the brokers told them.
	OffsetsErr error
}

// ViewMember is a member of the group.
type ViewMember struct {
	ID   string // id that the coordinator gave the member
	Name string // host and process, or a short form of ID
	Self bool   // the member is this Consumer
	Ours bool   // the member says that it writes to this output
	Page string // URL of the member's live page, http or https, without user and query; empty: none can be reached
}

// ViewPartition is a partition of the topics.
type ViewPartition struct {
	Topic     string
	ID        int32
	Owner     *ViewMember // nil: no member reads the partition, or the group does not say who
	Committed int64       // offset committed to the group; -1: none, or unknown
	End       int64       // last stable offset; -1: unknown
}

// View asks the brokers for the members of the group, for the partitions of the topics, and for
// committed offsets. The error says why the members are unknown: a *DeniedError if an ACL is
// missing. Any goroutine may call it.
func (c *Consumer) View(ctx context.Context) (*View, error) {
	group, err := c.described(ctx)
	if err != nil {
		return nil, err
	}
	counts, err := c.cluster.partitions(ctx, c.cfg.Topics)
	if err != nil {
		return nil, err
	}
	v := &View{Stable: group.GroupState == "Stable"}
	type place struct {
		topic string
		id    int32
	}
	owners := map[place]int{}
	for _, m := range group.Members {
		for _, t := range assignedTo(&m) {
			for _, id := range t.Partitions {
				owners[place{t.Topic, id}] = len(v.Members)
			}
		}
		v.Members = append(v.Members, c.viewed(&m))
	}
	for _, topic := range slices.Sorted(maps.Keys(counts)) {
		for id := range counts[topic] {
			p := ViewPartition{Topic: topic, ID: id, Committed: -1, End: -1}
			if i, owned := owners[place{topic, id}]; owned {
				p.Owner = &v.Members[i]
			}
			v.Partitions = append(v.Partitions, p)
		}
	}
	v.OffsetsErr = c.viewOffsets(ctx, v.Partitions)
	return v, nil
}

// described asks the coordinator for the group.
func (c *Consumer) described(ctx context.Context) (*describegroups.ResponseGroup, error) {
	group := c.cfg.Group
	r, err := c.cluster.call(ctx, group, describeVersion, callTimeout, &describegroups.Request{Groups: []string{group}})
	if err != nil {
		if why := c.cluster.coordinator(ctx, group); why != nil {
			err = why // kafka-go's Transport drops the reason
		}
		return nil, c.cluster.denied(err, "Describe", group)
	}
	groups := r.(*describegroups.Response).Groups
	if len(groups) != 1 {
		return nil, fmt.Errorf("group %s: the brokers describe %d groups", group, len(groups))
	}
	if code := kafka.Error(groups[0].ErrorCode); code != 0 {
		return nil, c.cluster.denied(code, "Describe", group)
	}
	return &groups[0], nil
}

// assignedTo returns the partitions of a member; none if its assignment cannot be read.
func assignedTo(m *describegroups.ResponseGroupMember) []groupdata.TopicPartition {
	var a groupdata.Assignment
	if len(m.MemberAssignment) == 0 || unmarshal(m.MemberAssignment, &a) != nil {
		return nil
	}
	return a.AssignedPartitions
}

// unmarshal reads what a stranger may have written: a panic of the decoder is an error.
func unmarshal(from []byte, to any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("metadata of a member: %v", p)
		}
	}()
	return protocol.Unmarshal(from, metadataVersion, to)
}

// viewed returns what m says of itself.
func (c *Consumer) viewed(m *describegroups.ResponseGroupMember) ViewMember {
	host := strings.TrimPrefix(m.ClientHost, "/")
	v := ViewMember{ID: m.MemberID}
	if own := c.memberID.Load(); own != nil {
		v.Self = *own == m.MemberID
	}
	p, ok := processOf(c.cfg.ClientID, m.ClientID)
	here := ok && p.place == c.self.place
	switch name, _ := os.Hostname(); {
	case here && name != "":
		v.Name = fmt.Sprintf("%s, process %d", name, p.pid)
	case ok:
		v.Name = fmt.Sprintf("%s, process %d", host, p.pid)
	default:
		v.Name = short(cmp.Or(m.MemberID, m.ClientID))
	}
	var s groupdata.Subscription
	if len(m.MemberMetadata) == 0 || unmarshal(m.MemberMetadata, &s) != nil { // none while the group divides
		return v
	}
	output, _ := outputOf(s.UserData)
	if v.Ours = output != "" && output == c.cfg.Output; v.Ours {
		v.Page = reachable(pageOf(s.UserData), host, here)
	}
	return v
}

// short returns the begin of an id.
func short(id string) string {
	const enough = 16
	if letters := []rune(id); len(letters) > enough {
		return string(letters[:enough]) + "…"
	}
	return id
}

// viewOffsets adds committed offsets and the ends of the log.
func (c *Consumer) viewOffsets(ctx context.Context, all []ViewPartition) error {
	asked := map[string][]int{}
	for i := range all {
		asked[all[i].Topic] = append(asked[all[i].Topic], int(all[i].ID))
	}
	r, err := c.cluster.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: c.cfg.Group, Topics: asked})
	if err == nil {
		err = r.Error
	}
	if err != nil {
		return c.cluster.denied(err, "Read", c.cfg.Group)
	}
	committed := map[string]map[int]int64{}
	for topic, partitions := range r.Topics {
		committed[topic] = map[int]int64{}
		for _, p := range partitions {
			if p.Error == nil {
				committed[topic][p.Partition] = p.CommittedOffset
			}
		}
	}
	ends := map[string]map[int32]int64{}
	for topic, ids := range asked {
		numbers := make([]int32, len(ids))
		for i, id := range ids {
			numbers[i] = int32(id)
		}
		of, failed := c.cluster.listOffsets(ctx, topic, numbers, kafka.LastOffset, true)
		ends[topic], err = of, errors.Join(err, failed)
	}
	for i := range all {
		p := &all[i]
		if offset, known := committed[p.Topic][int(p.ID)]; known {
			p.Committed = offset
		}
		if end, known := ends[p.Topic][p.ID]; known {
			p.End = end
		}
	}
	return err
}

// maxPage bounds the URL of a page.
const maxPage = 200

// CheckPage returns an error unless page is a URL that others may be sent to: http or https,
// with a host, without user, query and fragment.
func CheckPage(page string) error {
	u, err := url.Parse(page)
	switch {
	case err != nil || len(page) > maxPage ||
		strings.ContainsFunc(page, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("want http[s]://HOST[:PORT][/PATH], at most 200 ASCII characters")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		return errors.New("want http[s]://HOST[:PORT][/PATH]")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("want no user, query or fragment")
	}
	return nil
}

// reachable returns the URL by which the page of a member can be reached from here, or "".
// host is where the coordinator sees the member. A member that listens on all addresses is
// reached there, and one on loopback from its own machine alone.
func reachable(page, host string, here bool) string {
	if page == "" || CheckPage(page) != nil {
		return ""
	}
	u, err := url.Parse(page)
	if err != nil {
		return ""
	}
	ip, err := netip.ParseAddr(u.Hostname())
	switch {
	case err != nil && u.Hostname() != "localhost":
		return u.String()
	case err != nil || ip.Unmap().IsLoopback():
		if !here {
			return ""
		}
	case ip.IsUnspecified():
		if here {
			host = "127.0.0.1"
		}
		if _, err := netip.ParseAddr(host); err != nil {
			return ""
		}
		switch port := u.Port(); {
		case port != "":
			u.Host = net.JoinHostPort(host, port)
		case strings.Contains(host, ":"):
			u.Host = "[" + host + "]"
		default:
			u.Host = host
		}
	}
	return u.String()
}
