package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf8"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// MechanismOf returns the SASL mechanism of that name, PLAIN, SCRAM-SHA-256 or
// SCRAM-SHA-512 in any case. It calls password now, and for every new connection,
// since the password may change; password must be safe for concurrent use. No error
// of the mechanism and its sessions contains the password.
func MechanismOf(name, user string, password func() (string, error)) (sasl.Mechanism, error) {
	c := &credentials{name: strings.ToUpper(name), user: user, password: password}
	switch c.name {
	case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
	default:
		return nil, fmt.Errorf("SASL mechanism %q: want PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", name)
	}
	_, _, err := c.current()
	return c, err
}

// credentials are a mechanism that asks for its password at every connection. Its
// errors do not show the password, as those of the SCRAM library do.
type credentials struct {
	name, user string
	password   func() (string, error)

	mu     sync.Mutex
	secret string         // the password of made
	made   sasl.Mechanism // kept while the password is the same: it caches the key, which takes thousands of hashes
}

// Name returns the mechanism's name in Kafka's protocol.
func (c *credentials) Name() string { return c.name }

// String names the mechanism and the user, without the password.
func (c *credentials) String() string { return c.name + " as " + c.user }

// GoString is String: %#v would show the password.
func (c *credentials) GoString() string { return c.String() }

// Start begins to log in over one connection.
func (c *credentials) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	m, secret, err := c.current()
	if err != nil {
		return nil, nil, err
	}
	s, first, err := m.Start(ctx)
	if err != nil {
		return nil, nil, conceal(err, secret)
	}
	return &dialogue{s, secret}, first, nil
}

// current returns the mechanism for the password as it is now.
func (c *credentials) current() (sasl.Mechanism, string, error) {
	secret, err := c.password()
	if err != nil {
		return nil, "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made != nil && c.secret == secret {
		return c.made, secret, nil
	}
	m, err := c.mechanism(c.user, secret)
	if err != nil {
		return nil, "", c.refusal(secret)
	}
	c.made, c.secret = m, secret
	return m, secret, nil
}

// mechanism makes a mechanism of the library. Its error may quote the user and
// the password.
func (c *credentials) mechanism(user, password string) (sasl.Mechanism, error) {
	switch c.name {
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, user, password)
	case "SCRAM-SHA-512":
		return scram.Mechanism(scram.SHA512, user, password)
	}
	return plain.Mechanism{Username: user, Password: password}, nil
}

// refusal says which of user and password SASLprep (RFC 4013) refuses, and what
// it holds, without quoting it.
func (c *credentials) refusal(password string) error {
	what, text := "password", password
	if _, err := c.mechanism(c.user, "x"); err != nil {
		what, text = "user's name", c.user
	}
	reason := "its letters of two writing directions are mixed"
	number := 0
	for _, r := range text {
		number++
		if _, err := c.mechanism(string(r), "x"); err != nil {
			reason = fmt.Sprintf("its character %d is %s", number, kindOf(r))
			break
		}
	}
	if !utf8.ValidString(text) {
		reason = "it is not UTF-8"
	}
	return fmt.Errorf("%s cannot use the %s: %s, which SASLprep (RFC 4013) forbids", c.name, what, reason)
}

// kindOf says of what kind a character is that SASLprep refuses, and not which.
func kindOf(r rune) string {
	switch {
	case r == '\n' || r == '\r':
		return "a line end"
	case unicode.IsControl(r):
		return "a control character"
	case unicode.Is(unicode.Co, r):
		return "for private use"
	}
	return "forbidden, or not assigned in Unicode 3.2"
}

// dialogue is a session of credentials.
type dialogue struct {
	sasl.StateMachine
	secret string
}

// Next answers the broker.
func (d *dialogue) Next(ctx context.Context, challenge []byte) (bool, []byte, error) {
	done, response, err := d.StateMachine.Next(ctx, challenge)
	return done, response, conceal(err, d.secret)
}

// conceal returns err, or where its text holds the secret an error without it.
// The cause goes, too: whoever unwraps an error may print it.
func conceal(err error, secret string) error {
	if err == nil || secret == "" || !strings.Contains(err.Error(), secret) {
		return err
	}
	return errors.New("(an error that quotes the password, and is not shown)")
}

// conceal returns err without a broker's words that quote the password: kafka-go
// puts them behind the code of an answer about SASL. Other errors are never
// changed, or one that names the host kafka would tell that this is the password.
func (s *Security) conceal(err error) error {
	c, ok := s.SASL.(*credentials)
	code := kafka.Error(0)
	if !ok || !errors.As(err, &code) || code != kafka.SASLAuthenticationFailed && code != kafka.IllegalSASLState &&
		code != kafka.UnsupportedSASLMechanism {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.secret == "" || !strings.Contains(err.Error(), c.secret) {
		return err
	}
	return fmt.Errorf("%w (the broker's own words are not shown: they quote the password)", code)
}

// discreet is kafka-go's Transport with errors that do not show the password.
type discreet struct {
	*kafka.Transport
	security Security
}

// RoundTrip sends a request and waits for the answer.
func (d *discreet) RoundTrip(ctx context.Context, addr net.Addr, request kafka.Request) (kafka.Response, error) {
	r, err := d.Transport.RoundTrip(ctx, addr, request)
	return r, d.security.conceal(err)
}

// maxPassword bounds what is read of a password's file.
const maxPassword = 64 << 10

// PasswordFile returns a function that reads a password from a file, for
// MechanismOf. It drops one line end after the password, because editors and kubectl
// leave one. PasswordFile reads the file once itself; if the file is not regular, for
// example a pipe, the function keeps that password. Errors name the file and do not
// quote its content.
func PasswordFile(name string) (func() (string, error), error) {
	first, regular, err := readPassword(name)
	if err != nil {
		return nil, err
	}
	return func() (string, error) {
		if !regular {
			return first, nil
		}
		password, _, err := readPassword(name)
		return password, err
	}, nil
}

func readPassword(name string) (password string, regular bool, err error) {
	// a pipe that nobody writes to is empty, instead of a wait without end
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", false, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxPassword+1))
	switch password = TrimLineEnd(string(text)); {
	case err != nil:
		return "", false, err
	case len(text) > maxPassword:
		return "", false, fmt.Errorf("%s: the file has more than %d KiB; name a file that holds a password only",
			name, maxPassword>>10)
	case password == "":
		return "", false, fmt.Errorf("%s: the file holds no password", name)
	}
	return password, info.Mode().IsRegular(), nil
}

// TrimLineEnd returns text without one \n or \r\n at its end.
func TrimLineEnd(text string) string {
	if before, ok := strings.CutSuffix(text, "\n"); ok {
		return strings.TrimSuffix(before, "\r")
	}
	return text
}
