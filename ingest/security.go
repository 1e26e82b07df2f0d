package ingest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
)

// Security says how brokers are spoken to. The zero value: in plain text, without
// a name. It is not changed after use, and may be shared.
type Security struct {
	TLS  *tls.Config    // nil: plain text
	SASL sasl.Mechanism // nil: no name
}

// LoadTLS returns a configuration that trusts brokers whose certificates are
// signed by one in the PEM file ca, or by one of the system's where ca is empty.
// With cert and key, PEM files too, it shows a certificate of its own to brokers
// that ask for one; the files are read again for every connection, since those
// who issue certificates for hours renew them in place.
func LoadTLS(ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no certificate in PEM form", ca)
		}
	}
	if cert == "" && key == "" {
		return c, nil
	}
	load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}
	if _, err := load(nil); err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", cert, key, err)
	}
	c.GetClientCertificate = load
	return c, nil
}

// mismatch tells from the error of a first connection what is wrong with s, ""
// where the broker may only be away: waiting helps against that alone.
func (s *Security) mismatch(err error) string {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var remote *net.OpError
	switch {
	case errors.As(err, &certificate):
		return "its certificate is not trusted: --tls-ca names the file of who signed it"
	case errors.As(err, &record):
		return "it does not speak TLS at this port"
	case errors.As(err, &remote) && remote.Op == "remote error": // a TLS alert
		return "it refuses this client's TLS: it may want a certificate, --tls-cert and --tls-key"
	case errors.Is(err, kafka.SASLAuthenticationFailed):
		return "it refuses --sasl-user and --sasl-password"
	case errors.Is(err, kafka.UnsupportedSASLMechanism):
		return "it does not know this --sasl mechanism"
	case errors.Is(err, kafka.IllegalSASLState):
		return "it takes no --sasl at this port"
	}
	return ""
}

// hangsUp tells a connection that the broker has closed without an answer.
func hangsUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
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
