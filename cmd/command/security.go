package command

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/ingest"
)

// topicScheme begins the address of a topic.
const topicScheme = "kafka://"

// IsTopicURL reports whether what begins with kafka://, in any case.
func IsTopicURL(what string) bool {
	return len(what) >= len(topicScheme) && strings.EqualFold(what[:len(topicScheme)], topicScheme)
}

// TopicURL splits kafka://HOST[:PORT][,…]/TOPIC, a text for which IsTopicURL holds. The
// error is a Usage, and does not quote a text with an @, which may hold a password; the
// errors of package net/url would.
func TopicURL(what string) (brokers []string, topic string, err error) {
	hosts, topic, _ := strings.Cut(what[len(topicScheme):], "/")
	if strings.Contains(what, "@") {
		return nil, "", mistake.NewUsage(fmt.Errorf("a topic is kafka://HOST[:PORT]/TOPIC: %w", ingest.ErrUserInBroker))
	}
	if topic = strings.Trim(topic, "/"); hosts == "" || topic == "" {
		return nil, "", mistake.NewUsage(fmt.Errorf("%s: want kafka://HOST[:PORT]/TOPIC", what))
	}
	return strings.Split(hosts, ","), topic, nil
}

// Security are the flags of secure connections to brokers: TLS and SASL.
type Security struct {
	TLS      bool         `name:"tls" content:"no"`
	CA       string       `name:"tls-ca" placeholder:"FILE" content:"no" more:"yes"`
	Cert     string       `name:"tls-cert" placeholder:"FILE" content:"no" more:"yes"`
	Key      string       `name:"tls-key" placeholder:"FILE" content:"no" more:"yes"`
	SASL     string       `name:"sasl" enum:"none,plain,scram-sha-256,scram-sha-512" default:"none" content:"no"`
	User     string       `name:"sasl-user" placeholder:"NAME" content:"no" more:"yes"`
	Password value.Secret `name:"sasl-password" placeholder:"TEXT" content:"no" more:"yes"`
	File     string       `name:"sasl-password-file" placeholder:"FILE" content:"no" more:"yes"`
}

func (f *Security) login() bool { return f.SASL != "" && f.SASL != "none" }

// Check returns all mistakes of the flags, joined, each a Usage. It opens no file.
func (f *Security) Check() error {
	var pair, login error
	if (f.Cert == "") != (f.Key == "") {
		pair = mistake.About("--tls-cert, --tls-key: want both or none", "tls-cert", "tls-key")
	}
	switch {
	case f.Password != "" && f.File != "":
		login = mistake.About("--sasl-password, --sasl-password-file: want one of them",
			"sasl-password-file", "sasl-password")
	case !f.login() && (f.User != "" || f.Password != "" || f.File != ""):
		login = mistake.About("--sasl-user, --sasl-password, --sasl-password-file need --sasl, the mechanism",
			"sasl-user", "sasl-password", "sasl-password-file")
	case f.login() && (f.User == "" || f.Password == "" && f.File == ""):
		login = mistake.About("--sasl "+f.SASL+" needs --sasl-user and --sasl-password or --sasl-password-file", "sasl")
	}
	return errors.Join(pair, login)
}

// Open checks the flags and reads the files that they name. The error is a Usage. A
// password that would be sent unencrypted is logged as a warning.
func (f *Security) Open(log *slog.Logger) (s ingest.Security, err error) {
	if err := f.Check(); err != nil {
		return s, err
	}
	if f.TLS || cmp.Or(f.CA, f.Cert) != "" {
		if s.TLS, err = ingest.LoadTLS(f.CA, f.Cert, f.Key); err != nil {
			return s, mistake.About("TLS: "+err.Error(), f.tlsFiles(err)...)
		}
	}
	if !f.login() {
		return s, nil
	}
	if f.SASL == "plain" && s.TLS == nil {
		log.Warn("--sasl plain without --tls: the password goes to the brokers unencrypted")
	}
	return s, f.openLogin(&s)
}

// openLogin sets the mechanism of SASL in s.
func (f *Security) openLogin(s *ingest.Security) (err error) {
	password := func() (string, error) { return string(f.Password), nil }
	flag := "sasl-password"
	if f.File != "" {
		flag = "sasl-password-file"
		if password, err = ingest.PasswordFile(f.File); err != nil {
			return mistake.About("--sasl-password-file: "+err.Error(), flag)
		}
	}
	if s.SASL, err = ingest.MechanismOf(f.SASL, f.User, password); err != nil {
		return mistake.About("--sasl: "+err.Error(), flag, "sasl-user")
	}
	return nil
}

// tlsFiles returns the flags whose files err may be about.
func (f *Security) tlsFiles(err error) []string {
	if f.CA != "" && strings.Contains(err.Error(), f.CA) {
		return []string{"tls-ca"}
	}
	return []string{"tls-cert", "tls-key", "tls-ca"}
}
