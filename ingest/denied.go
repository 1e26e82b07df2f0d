package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/findcoordinator"
)

// DeniedError says that the brokers refuse an operation to this client: an ACL
// that allows it is missing. Waiting does not help.
type DeniedError struct {
	Resource  string // topic, group or cluster
	Name      string // name of the topic or group
	Operation string // the first missing permission: Describe, Read, Write or Create
	Principal string // this client, as ACLs name it
	Broker    string
	Err       error // Kafka's code
}

func (e *DeniedError) Error() string {
	of, flag := fmt.Sprintf("%s %q", e.Resource, e.Name), fmt.Sprintf("--%s %s", e.Resource, e.Name)
	if e.Resource == "cluster" {
		of, flag = "the cluster", "--cluster"
	}
	operation, also := e.Operation, ""
	if operation == "Describe" { // Read and Write include it, and are what is wanted next
		operation, also = "Read", " (or Write, to send)"
	}
	return fmt.Sprintf("%s: the brokers do not let %s %s it: an ACL is missing (%v); who administers them allows it "+
		"with: kafka-acls.sh --bootstrap-server %s --add --allow-principal '%s' --operation %s%s %s",
		of, e.Principal, strings.ToLower(e.Operation), e.Err, e.Broker, e.Principal, operation, also, flag)
}

func (e *DeniedError) Unwrap() error { return e.Err }

// denied is Security.denied of these brokers.
func (k *cluster) denied(err error, operation, name string) error {
	return k.security.denied(err, operation, name, k.brokers[0])
}

// denied returns err as a *DeniedError where a missing ACL is its cause, about
// name, the topic or group that was asked for; else err.
func (s *Security) denied(err error, operation, name, broker string) error {
	already, code := (*DeniedError)(nil), kafka.Error(0)
	if errors.As(err, &already) || !errors.As(err, &code) {
		return err
	}
	e := &DeniedError{Name: name, Operation: operation, Principal: s.principal(), Broker: broker, Err: code}
	switch code {
	case kafka.TopicAuthorizationFailed:
		e.Resource = "topic"
	case kafka.GroupAuthorizationFailed:
		e.Resource = "group"
	case kafka.TransactionalIDAuthorizationFailed:
		e.Resource = "transactional-id"
	case kafka.ClusterAuthorizationFailed:
		e.Resource, e.Name = "cluster", ""
	default:
		return err
	}
	return e
}

// coordinator returns why the brokers do not name the coordinator of a group; nil
// if they do. kafka-go's Transport drops their reason, and goes on as if a broker
// were away.
func (k *cluster) coordinator(ctx context.Context, group string) error {
	const version = 1
	m, err := k.call(ctx, "", version, callTimeout, &findcoordinator.Request{Key: group})
	if err != nil {
		return err
	}
	if code := m.(*findcoordinator.Response).ErrorCode; code != 0 {
		return kafka.Error(code)
	}
	return nil
}

// principal is how ACLs name this client, unless the brokers have rules of their
// own for it.
func (s *Security) principal() string {
	name := ""
	if c, ok := s.SASL.(*credentials); ok {
		name = c.user
	} else if leaf := s.certificate(); leaf != nil {
		name = leaf.Subject.String()
	}
	return "User:" + cmp.Or(name, "ANONYMOUS")
}
