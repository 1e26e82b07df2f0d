package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/describegroups"
)

// Member is a member of a consumer group.
type Member struct {
	ID       string // id that the coordinator gave the member
	ClientID string // client id that the member sends
	Host     string // address of the member, as the coordinator sees it
}

// Members returns the members of a group; none if the group does not exist. It leaves
// out members whose processes ran on this machine and are dead, though the group
// keeps them until their sessions end. It returns an error after at most ten seconds
// if the brokers do not answer, and after ten more if they do not name the members.
func Members(ctx context.Context, brokers []string, security Security, group string) ([]Member, error) {
	if group == "" {
		return nil, errors.New("no consumer group given")
	}
	k, err := newCluster(brokers, security, adminClient, nil)
	if err != nil {
		return nil, err
	}
	defer k.close()
	if err := k.reach(ctx, adminConnect); err != nil {
		return nil, err
	}
	described, err := k.describeGroup(ctx, group)
	if err != nil {
		return nil, fmt.Errorf("group %s: the brokers do not name its members: %w", group, err)
	}
	self := thisProcess()
	var members []Member
	for _, m := range described {
		if p, ok := processOf(defaultClientID, m.ClientID); ok && self.place != "" &&
			p.place == self.place && p.dead() {
			continue
		}
		members = append(members, Member{m.MemberID, m.ClientID, m.ClientHost})
	}
	return members, nil
}

// describeGroup asks the coordinator for the members of a group, again for a while
// where it is about to know: a group's first question may make it.
func (k *cluster) describeGroup(ctx context.Context, group string) ([]describegroups.ResponseGroupMember, error) {
	var b backoff
	for end := time.Now().Add(adminConnect); ; {
		r, err := k.call(ctx, group, describeVersion, callTimeout, &describegroups.Request{Groups: []string{group}})
		var members []describegroups.ResponseGroupMember
		if err == nil {
			for _, g := range r.(*describegroups.Response).Groups {
				switch code := kafka.Error(g.ErrorCode); code {
				case 0, kafka.GroupIdNotFound:
					members = append(members, g.Members...)
				default:
					err = code
				}
			}
		}
		var code kafka.Error
		switch errors.As(err, &code); {
		case err == nil:
			return members, nil
		case refused(code) || time.Now().After(end):
			return nil, err
		}
		if err := b.wait(ctx); err != nil {
			return nil, err
		}
	}
}
