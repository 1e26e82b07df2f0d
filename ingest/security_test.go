//go:build !kafka

package ingest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	mathbig "math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"entropipe/schemas"
)

// authority signs certificates, for a day.
type authority struct {
	dir    string
	key    *ecdsa.PrivateKey
	ca     *x509.Certificate
	caFile string
	serial int64
	change func(*x509.Certificate) // applied to each certificate before it is signed; may be nil
}

func newAuthority(t *testing.T) *authority {
	a := &authority{dir: t.TempDir()}
	a.caFile, _ = a.sign(t, "ca")
	return a
}

// sign writes NAME.pem and NAME.key. The first certificate is the authority's own.
func (a *authority) sign(t *testing.T, name string) (cert, key string) {
	t.Helper()
	a.serial++
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: mathbig.NewInt(a.serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}, IsCA: a.ca == nil,
		BasicConstraintsValid: true}
	if a.ca == nil {
		a.ca, a.key = c, k
	} else if a.change != nil {
		a.change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.ca, &k.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// server is the TLS of a broker; with mutual it asks clients for certificates.
func (a *authority) server(t *testing.T, mutual bool) kfake.Opt {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.sign(t, "broker"))
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}}
	if mutual {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		text, err := os.ReadFile(a.caFile)
		if err != nil || !c.ClientCAs.AppendCertsFromPEM(text) {
			t.Fatal("the authority's certificate", err)
		}
	}
	return kfake.TLS(c)
}

func loaded(t *testing.T, ca, cert, key string) *tls.Config {
	t.Helper()
	c, err := LoadTLS(ca, cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func login(t *testing.T, name, user, password string) Security {
	t.Helper()
	m, err := mechanism(name, user, password)
	if err != nil {
		t.Fatal(err)
	}
	return Security{SASL: m}
}

// Whatever the brokers want of clients, records go to them and come back: every
// kind of connection is made alike.
func TestRecordsPassSecureConnections(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.sign(t, "client")
	for _, encrypted := range []string{"plain text", "TLS", "mutual TLS"} {
		for _, mechanism := range []string{"", "plain", "scram-sha-256", "SCRAM-SHA-512"} {
			t.Run(encrypted+" "+mechanism, func(t *testing.T) {
				var broker []kfake.Opt
				var s Security
				if mechanism != "" {
					s = login(t, mechanism, "ann", "päss=,word")
					broker = append(broker, kfake.EnableSASL(),
						kfake.Superuser(strings.ToUpper(mechanism), "ann", "päss=,word"))
				}
				switch encrypted {
				case "TLS":
					s.TLS = loaded(t, a.caFile, "", "")
					broker = append(broker, a.server(t, false))
				case "mutual TLS":
					s.TLS = loaded(t, a.caFile, cert, key)
					broker = append(broker, a.server(t, true))
				}
				addr, _ := start(t, broker...)
				roundTrip(t, addr, s)
			})
		}
	}
}

// roundTrip sends records to a new topic, describes it and reads it as a member of a group.
func roundTrip(t *testing.T, addr string, s Security) {
	t.Helper()
	ctx, topic := deadline(t), name(t)
	o, err := OpenOutbox(ctx, OutboxConfig{Brokers: []string{addr}, Security: s, Topic: topic,
		Create: TopicSpec{Partitions: 2}})
	if err != nil {
		t.Fatal(err)
	}
	const records = 20
	for i := range records {
		if err := o.Send(ctx, &schemas.Record{Key: fmt.Append(nil, i), Value: []byte("v")}, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := Describe(ctx, []string{addr}, s, topic)
	if err != nil {
		t.Fatal(err)
	}
	there := int64(0)
	for _, p := range d.Partitions {
		there += p.Stable
	}
	c, r := consumer(t, addr, []string{topic}, func(c *Config) { c.Security, c.UntilEnd = s, true }), newReader(t)
	if err := c.Run(ctx, r.handle("reader")); err != nil {
		t.Fatal(err)
	}
	if there != records || r.count() != records {
		t.Errorf("%d records are there, %d were read, %d sent", there, r.count(), records)
	}
}

// What does not fit is said at once and by its name, whatever it is. Waiting for
// brokers would not help; those that hang up may be on their way down.
func TestSecurityThatDoesNotFit(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	strangers, strangersKey := stranger.sign(t, "client")
	ssl := Security{TLS: loaded(t, a.caFile, "", "")}
	sasl := []kfake.Opt{kfake.EnableSASL(), kfake.Superuser("PLAIN", "ann", "right")}
	for _, c := range []struct {
		name   string
		broker []kfake.Opt
		client Security
		want   string
		waits  bool
	}{
		{"wrong password", sasl, login(t, "plain", "ann", "wrong"), "--sasl-password", false},
		{"wrong user", sasl, login(t, "plain", "bob", "right"), "--sasl-user", false},
		{"other mechanism", sasl, login(t, "scram-sha-512", "ann", "right"), "--sasl", false},
		{"nameless", sasl, Security{}, "may want --tls, --sasl", true},
		{"certificate of a stranger", []kfake.Opt{a.server(t, false)},
			Security{TLS: loaded(t, stranger.caFile, "", "")}, "--tls-ca", false},
		{"certificate of nobody that the system knows", []kfake.Opt{a.server(t, false)},
			Security{TLS: loaded(t, "", "", "")}, "--tls-ca", false},
		{"TLS to a broker of plain text", nil, ssl, "may speak no TLS", true},
		{"plain text to a broker of TLS", []kfake.Opt{a.server(t, false)}, Security{}, "may want --tls", true},
		{"no certificate", []kfake.Opt{a.server(t, true)}, ssl, "--tls-cert", false},
		{"a stranger's certificate", []kfake.Opt{a.server(t, true)},
			Security{TLS: loaded(t, a.caFile, strangers, strangersKey)}, "--tls-cert", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr, _ := start(t, c.broker...)
			k, err := newCluster([]string{addr}, c.client, "test", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer k.close()
			t.Parallel() // the cases that wait do so together
			within := 4 * hangs
			if c.waits {
				within = 3 * time.Second
			}
			begin := time.Now()
			err = k.reach(context.Background(), within)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), addr) {
				t.Errorf("%v, want something about %s", err, c.want)
			}
			if took := time.Since(begin); !c.waits && took > hangs {
				t.Errorf("it took %v", took)
			}
			t.Log(err)
		})
	}
}

// What a broker did is the reason, not that the time ended while it was asked again.
func TestReasonOutlivesTheTime(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { // hangs up once, and is mute from then on
		for n := 0; ; n++ {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			if n == 0 {
				conn.Close()
			} else {
				defer conn.Close()
			}
		}
	})
	defer serving.Wait()
	defer ln.Close()
	k, err := newCluster([]string{ln.Addr().String()}, Security{}, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	if err := k.reach(context.Background(), 2*time.Second); err == nil ||
		!strings.Contains(err.Error(), "closes the connection") {
		t.Errorf("%v, want what the broker did first", err)
	}
}

// A certificate that is renewed in place is shown from the next connection on.
func TestCertificateIsReadForEveryConnection(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.sign(t, "client")
	c := loaded(t, "", cert, key)
	shown := func() int64 {
		pair, err := c.GetClientCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf.SerialNumber.Int64()
	}
	before := shown()
	a.sign(t, "client")
	if after := shown(); before != 2 || after != 3 {
		t.Errorf("certificates %d and %d are shown, want 2 and 3", before, after)
	}
}

func TestFilesThatAreNoCertificates(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.sign(t, "client")
	_, other := a.sign(t, "other")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{{empty, "", ""}, {key, "", ""}, {"/nowhere.pem", "", ""}, {"", cert, other},
		{"", cert, ""}, {"", "", key}, {"", cert, empty}, {"", cert, "/nowhere.key"}} {
		_, err := LoadTLS(c[0], c[1], c[2])
		if err == nil {
			t.Errorf("%q is no error", c)
			continue
		}
		for _, file := range c[:] {
			if file != "" && !strings.Contains(err.Error(), file) {
				t.Errorf("%q: %v does not name %s", c, err, file)
			}
		}
	}
	if m, err := mechanism("GSSAPI", "ann", "x"); err == nil {
		t.Errorf("GSSAPI is %v", m)
	}
}
