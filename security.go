package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"

	"entropipe/ingest"
)

// Secret is a text that is not shown.
type Secret string

// String hides s.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(secret)"
}

// GoString hides s from %#v.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// MarshalText hides s from encoders, among them slog's.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// userinfo is what stands between :// and the last @ of a word. Where the URL was
// taken for a path, one slash is left.
var userinfo = regexp.MustCompile(`:/{1,2}\S*@`)

// discreet returns text with the user's name and password of every URL replaced.
// No value of such a form is ever taken; what refuses one may quote it.
func discreet(text string) string { return userinfo.ReplaceAllString(text, "://(hidden)@") }

// secretWord ends the part of a key that may be shown: what follows may be the
// password, behind a slip such as = for a colon.
var secretWord = regexp.MustCompile(`(?i)passw(or)?d|secret`)

// discreetKey returns a key of a file that no flag has, as it may be shown.
func discreetKey(key string) string {
	if at := secretWord.FindStringIndex(key); at != nil && at[1] < len(key) {
		return key[:at[1]] + "…"
	}
	if strings.Contains(key, "@") {
		return "…@…"
	}
	return key
}

// discreetAttr is discreet for what a log is told.
func discreetAttr(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case string:
		if shown := discreet(v); shown != v {
			a.Value = slog.StringValue(shown)
		}
	case error:
		if text := v.Error(); userinfo.MatchString(text) {
			a.Value = slog.StringValue(discreet(text))
		}
	}
	return a
}

// topicScheme is how the address of a topic begins.
const topicScheme = "kafka://"

func isTopicURL(what string) bool {
	return len(what) >= len(topicScheme) && strings.EqualFold(what[:len(topicScheme)], topicScheme)
}

// topicURL takes kafka://HOST[:PORT][,…]/TOPIC apart. It is no matter of package
// url, whose errors quote what they refuse. What is wrong is a usageError, which
// quotes nothing where there may be a password.
func topicURL(what string) (brokers []string, topic string, err error) {
	hosts, topic, _ := strings.Cut(what[len(topicScheme):], "/")
	if strings.Contains(what, "@") {
		return nil, "", usageError{fmt.Errorf("a topic is kafka://HOST[:PORT]/TOPIC: %w", ingest.ErrUserInBroker)}
	}
	if topic = strings.Trim(topic, "/"); hosts == "" || topic == "" {
		return nil, "", usageError{fmt.Errorf("%s: want kafka://HOST[:PORT]/TOPIC", what)}
	}
	return strings.Split(hosts, ","), topic, nil
}

// securityFlags say how brokers are spoken to.
type securityFlags struct {
	TLS      bool   `name:"tls" help:"Speak TLS with the brokers. The other flags of TLS imply it." group:"Brokers" content:"no"`
	CA       string `name:"tls-ca" placeholder:"FILE" help:"Certificates (PEM) of those who sign the brokers'; by default the system's." group:"Brokers" content:"no"`
	Cert     string `name:"tls-cert" placeholder:"FILE" help:"Certificate (PEM) to show to the brokers, with --tls-key." group:"Brokers" content:"no"`
	Key      string `name:"tls-key" placeholder:"FILE" help:"Its private key (PEM)." group:"Brokers" content:"no"`
	SASL     string `name:"sasl" enum:"none,plain,scram-sha-256,scram-sha-512" default:"none" help:"How to log in to the brokers (${enum})." group:"Brokers" content:"no"`
	User     string `name:"sasl-user" placeholder:"NAME" help:"Who logs in." group:"Brokers" content:"no"`
	Password Secret `name:"sasl-password" placeholder:"TEXT" help:"With what; a variable, ENTROPIPE_SASL_PASSWORD, does not show in lists of processes. A line end after it, in a variable or file, is no part of it." group:"Brokers" content:"no"`
	File     string `name:"sasl-password-file" placeholder:"FILE" help:"File that holds the password, as Kubernetes mounts secrets; read again for every connection. A line end after the password is no part of it." group:"Brokers" content:"no"`
}

func (f *securityFlags) login() bool { return f.SASL != "" && f.SASL != "none" }

// check returns all mistakes, as usageErrors.
func (f *securityFlags) check() error {
	var pair, login error
	if (f.Cert == "") != (f.Key == "") {
		pair = mistaken("--tls-cert, --tls-key: want both or none", "tls-cert", "tls-key")
	}
	switch {
	case f.Password != "" && f.File != "":
		login = mistaken("--sasl-password, --sasl-password-file: want one of them", "sasl-password-file", "sasl-password")
	case !f.login() && (f.User != "" || f.Password != "" || f.File != ""):
		login = mistaken("--sasl-user, --sasl-password, --sasl-password-file: want --sasl, the mechanism", "sasl-user", "sasl-password", "sasl-password-file")
	case f.login() && (f.User == "" || f.Password == "" && f.File == ""):
		login = mistaken("--sasl "+f.SASL+": want --sasl-user and --sasl-password or --sasl-password-file", "sasl")
	}
	return errors.Join(pair, login)
}

// open checks the flags and reads the files that they name. What is wrong is a
// usageError.
func (f *securityFlags) open(log *slog.Logger) (s ingest.Security, err error) {
	if err := f.check(); err != nil {
		return s, err
	}
	if f.TLS || cmp.Or(f.CA, f.Cert) != "" {
		if s.TLS, err = ingest.LoadTLS(f.CA, f.Cert, f.Key); err != nil {
			return s, mistaken("TLS: "+err.Error(), f.tlsFiles(err)...)
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

// openLogin makes the mechanism of SASL.
func (f *securityFlags) openLogin(s *ingest.Security) (err error) {
	password := func() (string, error) { return string(f.Password), nil }
	flag := "sasl-password"
	if f.File != "" {
		flag = "sasl-password-file"
		if password, err = ingest.PasswordFile(f.File); err != nil {
			return mistaken("--sasl-password-file: "+err.Error(), flag)
		}
	}
	if s.SASL, err = ingest.MechanismOf(f.SASL, f.User, password); err != nil {
		return mistaken("--sasl: "+err.Error(), flag, "sasl-user")
	}
	return nil
}

// tlsFiles names the flags whose files err may be about.
func (f *securityFlags) tlsFiles(err error) []string {
	if f.CA != "" && strings.Contains(err.Error(), f.CA) {
		return []string{"tls-ca"}
	}
	return []string{"tls-cert", "tls-key", "tls-ca"}
}
