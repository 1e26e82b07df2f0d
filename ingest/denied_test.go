//go:build !kafka

package ingest

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"entropipe/schemas"
)

// Law: what an ACL forbids is named at once, with its resource, the operation, who
// asked, and the command that allows it.
func TestMissingACLsAreNamed(t *testing.T) {
	const topic, group = "lidar", "crew"
	allow := func(resource kmsg.ACLResourceType, name string, operation kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: resource, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral,
			Operation: operation, Allow: true}
	}
	describe := allow(kmsg.ACLResourceTypeTopic, topic, kmsg.ACLOperationDescribe)
	read := allow(kmsg.ACLResourceTypeTopic, topic, kmsg.ACLOperationRead)
	write := allow(kmsg.ACLResourceTypeTopic, topic, kmsg.ACLOperationWrite)
	ofGroup := allow(kmsg.ACLResourceTypeGroup, group, kmsg.ACLOperationRead)
	consume := func(t *testing.T, addr string, s Security) error {
		c := consumer(t, addr, []string{topic}, func(c *Config) { c.Security, c.Group, c.UntilEnd = s, group, true })
		return c.Run(t.Context(), newReader(t).handle("reader"))
	}
	send := func(name string) func(t *testing.T, addr string, s Security) error {
		return func(t *testing.T, addr string, s Security) error {
			o, err := OpenOutbox(t.Context(), OutboxConfig{Brokers: []string{addr}, Security: s, Topic: name})
			if err != nil {
				return err
			}
			return errors.Join(o.Send(t.Context(), &schemas.Record{Value: []byte("v")}, func() {}), o.Close())
		}
	}
	for _, c := range []struct {
		name string
		acls []kfake.ACL
		do   func(t *testing.T, addr string, s Security) error
		want DeniedError
	}{
		{"nothing", nil, consume, DeniedError{Resource: "topic", Name: topic, Operation: "Describe"}},
		{"topic to be seen", []kfake.ACL{describe, ofGroup}, consume,
			DeniedError{Resource: "topic", Name: topic, Operation: "Read"}},
		{"topic without group", []kfake.ACL{read}, consume,
			DeniedError{Resource: "group", Name: group, Operation: "Read"}},
		{"find", nil, func(t *testing.T, addr string, s Security) error {
			return Find(t.Context(), []string{addr}, s, []string{topic})
		}, DeniedError{Resource: "topic", Name: topic, Operation: "Describe"}},
		{"describe", nil, func(t *testing.T, addr string, s Security) error {
			_, err := Describe(t.Context(), []string{addr}, s, topic)
			return err
		}, DeniedError{Resource: "topic", Name: topic, Operation: "Describe"}},
		{"send without Write", []kfake.ACL{describe}, send(topic),
			DeniedError{Resource: "topic", Name: topic, Operation: "Write"}},
		{"send without anything", nil, send(topic), DeniedError{Resource: "topic", Name: topic, Operation: "Describe"}},
		{"create", []kfake.ACL{allow(kmsg.ACLResourceTypeTopic, "fresh", kmsg.ACLOperationDescribe)}, send("fresh"),
			DeniedError{Resource: "topic", Name: "fresh", Operation: "Create"}},
		{"all that is needed", []kfake.ACL{read, write, ofGroup}, func(t *testing.T, addr string, s Security) error {
			return errors.Join(send(topic)(t, addr, s), consume(t, addr, s))
		}, DeniedError{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr, _ := start(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "x"),
				kfake.User("PLAIN", "ann", "y", c.acls...))
			root := login(t, "plain", "root", "x")
			if err := EnsureTopic(t.Context(), []string{addr}, root, topic, TopicSpec{Partitions: 2}); err != nil {
				t.Fatal(err)
			}
			o, err := OpenOutbox(t.Context(), OutboxConfig{Brokers: []string{addr}, Security: root, Topic: topic})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(o.Send(t.Context(), &schemas.Record{Value: []byte("v")}, func() {}),
				o.Close()); err != nil {
				t.Fatal(err)
			}
			t.Parallel()
			err = c.do(t, addr, login(t, "plain", "ann", "y"))
			var got *DeniedError
			switch errors.As(err, &got); {
			case c.want.Resource == "":
				if err != nil {
					t.Fatal(err)
				}
				return
			case got == nil:
				t.Fatalf("%v, want that an ACL is missing", err)
			}
			if got.Resource != c.want.Resource || got.Name != c.want.Name || got.Operation != c.want.Operation ||
				got.Principal != "User:ann" || got.Broker != addr {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			for _, text := range []string{"an ACL is missing", "kafka-acls.sh --bootstrap-server " + addr,
				"--allow-principal 'User:ann'", "--" + got.Resource + " " + got.Name} {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v lacks %q", err, text)
				}
			}
			t.Log(err)
		})
	}
}

// Waiting does not add an ACL: what takes as long as brokers are waited for is not
// told at once.
func TestMissingACLIsNotWaitedFor(t *testing.T) {
	addr, _ := start(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "x"),
		kfake.User("PLAIN", "ann", "y"))
	k, err := newCluster([]string{addr}, login(t, "plain", "ann", "y"), "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := k.extents(ctx, "lidar", time.Hour)
		done <- err
	}()
	select {
	case err := <-done:
		if no := (*DeniedError)(nil); !errors.As(err, &no) {
			t.Errorf("%v, want that an ACL is missing", err)
		}
	case <-time.After(hangs):
		cancel()
		<-done
		t.Error("it is asked again and again")
	}
}

// Law: a certificate that is refused is refused by its reason: another name, its
// time, who signed it; and so is one of this client's.
func TestRefusedCertificatesAreNamed(t *testing.T) {
	yesterday, tomorrow := time.Now().Add(-24*time.Hour), time.Now().Add(24*time.Hour)
	for _, c := range []struct {
		name   string
		broker func(*x509.Certificate)
		client func(*x509.Certificate) // nil: it shows none
		want   string
	}{
		{"expired", func(c *x509.Certificate) { c.NotAfter = yesterday; c.NotBefore = yesterday.Add(-time.Hour) }, nil,
			"its certificate has expired on " + yesterday.UTC().Format("2006-01-02 15:04:05 UTC")},
		{"too early", func(c *x509.Certificate) { c.NotBefore = tomorrow; c.NotAfter = tomorrow.Add(time.Hour) }, nil,
			"its certificate is not valid before " + tomorrow.UTC().Format("2006-01-02 15:04:05 UTC") +
				": a clock is wrong"},
		{"another name", func(c *x509.Certificate) {
			c.IPAddresses = nil
			c.DNSNames = []string{"kafka1.example", "kafka2.example"}
		}, nil, "its certificate is for kafka1.example, kafka2.example, and not for 127.0.0.1"},
		{"another address", func(c *x509.Certificate) {
			c.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 7)}
			c.DNSNames = nil
		}, nil, "its certificate is for 10.0.0.7, and not for 127.0.0.1"},
		{"no name", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, nil }, nil,
			"its certificate is for no name of a host"},
		{"not of a server", func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}, nil, "its certificate cannot be used: x509: certificate specifies an incompatible key usage"},
		{"client's expired", nil, func(c *x509.Certificate) {
			c.NotAfter = yesterday
			c.NotBefore = yesterday.Add(-time.Hour)
		}, "the certificate of --tls-cert has expired on " + yesterday.UTC().Format("2006-01-02 15:04:05 UTC")},
		{"client's too early", nil, func(c *x509.Certificate) {
			c.NotBefore = tomorrow
			c.NotAfter = tomorrow.Add(time.Hour)
		}, "the certificate of --tls-cert is not valid before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAuthority(t)
			s := Security{TLS: loaded(t, a.caFile, "", "")}
			if c.client != nil {
				a.change = c.client
				cert, key := a.sign(t, "client")
				s.TLS = loaded(t, a.caFile, cert, key)
			}
			a.change = c.broker
			addr, _ := start(t, a.server(t, c.client != nil))
			k, err := newCluster([]string{addr}, s, "test", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer k.close()
			err = k.reach(t.Context(), 4*hangs)
			if !errors.Is(err, ErrNoBroker) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			t.Log(err)
		})
	}
}
