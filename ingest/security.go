package ingest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"

	"entropipe/models/plainfile"
)

// Security configures encryption and login for connections to brokers. The zero value
// means plain text and no login. It must not change after its first use, and may be
// shared.
type Security struct {
	TLS  *tls.Config    // nil: plain text
	SASL sasl.Mechanism // nil: no login
}

// maxPEM is the largest file of certificates that is read: all that the world's
// authorities have are a quarter of a megabyte.
const maxPEM = 16 << 20

// LoadTLS returns a configuration that trusts brokers whose certificates are signed
// by a certificate in the PEM file ca, or by one of the system's if ca is empty. If
// cert and key name PEM files, it shows that client certificate to brokers that ask
// for one. It reads cert and key again for every connection, since short-lived
// certificates are renewed in place.
func LoadTLS(ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		text, err := plainfile.ReadText(ca, maxPEM)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: the file holds no certificate in PEM form", ca)
		}
	}
	if cert == "" && key == "" {
		return c, nil
	}
	load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		certText, err := plainfile.ReadText(cert, maxPEM)
		if err != nil {
			return nil, err
		}
		keyText, err := plainfile.ReadText(key, maxPEM)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(certText, keyText)
		return &pair, err
	}
	if _, err := load(nil); err != nil {
		return nil, fmt.Errorf("certificate %s cannot be used with key %s: %w", cert, key, err)
	}
	c.GetClientCertificate = load
	return c, nil
}

// mismatch tells from the error of a first connection to addr what is wrong with
// s, "" where the broker may only be away: waiting helps against that alone.
func (s *Security) mismatch(addr string, err error) string {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var remote *net.OpError
	switch {
	case errors.As(err, &certificate):
		return untrusted(addr, certificate)
	case errors.As(err, &record):
		return "it does not speak TLS at this port"
	case errors.As(err, &remote) && remote.Op == "remote error": // a TLS alert
		return s.alert(remote.Err)
	case errors.Is(err, kafka.SASLAuthenticationFailed):
		return "it refuses --sasl-user and --sasl-password"
	case errors.Is(err, kafka.UnsupportedSASLMechanism):
		return "it does not know this --sasl mechanism"
	case errors.Is(err, kafka.IllegalSASLState):
		return "it takes no --sasl at this port"
	}
	return ""
}

// untrusted says why the certificate of the broker at addr is refused here.
func untrusted(addr string, err *tls.CertificateVerificationError) string {
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &name):
		return fmt.Sprintf("its certificate is for %s, and not for %s: --brokers names it otherwise than its "+
			"certificate does", names(name.Certificate), name.Host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return ofDates(whose(invalid.Cert, err.UnverifiedCertificates), invalid.Cert)
	case errors.As(err, &invalid):
		return fmt.Sprintf("%s cannot be used: %v", whose(invalid.Cert, err.UnverifiedCertificates), invalid)
	}
	return "its certificate is not trusted: --tls-ca names the file of who signed it"
}

// whose names the certificate that is at fault: a broker's own, or one that
// signed it.
func whose(c *x509.Certificate, shown []*x509.Certificate) string {
	if c == nil || len(shown) > 0 && c.Equal(shown[0]) {
		return "its certificate"
	}
	return fmt.Sprintf("the certificate %q, which signed its own,", c.Subject)
}

// ofDates says that a certificate is used outside of its time.
func ofDates(what string, c *x509.Certificate) string {
	if now := time.Now(); c == nil || now.After(c.NotAfter) || !now.Before(c.NotBefore) {
		when := ""
		if c != nil {
			when = " on " + c.NotAfter.UTC().Format("2006-01-02 15:04:05 UTC")
		}
		return what + " has expired" + when + ": it is to be renewed"
	}
	return fmt.Sprintf("%s is not valid before %s: a clock is wrong, here or where it was signed", what,
		c.NotBefore.UTC().Format("2006-01-02 15:04:05 UTC"))
}

// names lists for whom a certificate is.
func names(c *x509.Certificate) string {
	all := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return fmt.Sprintf("no name of a host (its subject, %q, does not count)", c.Subject)
	}
	const most = 8
	if n := len(all); n > most {
		all = append(all[:most], fmt.Sprintf("%d more", n-most))
	}
	return strings.Join(all, ", ")
}

// alert says what a broker's TLS alert is about. Package tls exports no type for
// alerts, so their texts decide.
func (s *Security) alert(err error) string {
	text, own := err.Error(), s.certificate()
	switch {
	case own != nil && (strings.Contains(text, "expired certificate") || time.Now().After(own.NotAfter) ||
		time.Now().Before(own.NotBefore)):
		return "it refuses this client's TLS: " + ofDates("the certificate of --tls-cert", own)
	case own != nil && strings.Contains(text, "unknown certificate authority"):
		return fmt.Sprintf("it refuses this client's TLS: it does not trust who signed the certificate of "+
			"--tls-cert, %q", own.Issuer)
	case own != nil:
		return "it refuses this client's TLS, or the certificate of --tls-cert"
	}
	return "it refuses this client's TLS: it may want a certificate, --tls-cert and --tls-key"
}

// certificate is what this client shows to brokers now; nil for none.
func (s *Security) certificate() *x509.Certificate {
	if s.TLS == nil || s.TLS.GetClientCertificate == nil {
		return nil
	}
	pair, err := s.TLS.GetClientCertificate(nil)
	if err != nil {
		return nil
	}
	return pair.Leaf
}

// hangsUp tells a connection that the broker has closed without an answer.
func hangsUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}

// want says what a broker may want that hangs up.
func (s *Security) want() string {
	switch {
	case s.TLS == nil && s.SASL == nil:
		return "it may want --tls, --sasl or both, or is no Kafka broker"
	case s.TLS == nil:
		return "it may want --tls, or is no Kafka broker"
	case s.SASL == nil:
		return "it may speak no TLS at this port, or want --sasl or a certificate (--tls-cert, --tls-key)"
	}
	return "it may speak no TLS at this port, or want a certificate (--tls-cert, --tls-key)"
}
