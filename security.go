package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

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

// securityFlags say how brokers are spoken to.
type securityFlags struct {
	TLS      bool   `name:"tls" help:"Speak TLS with the brokers. The other flags of TLS imply it." group:"Brokers"`
	CA       string `name:"tls-ca" placeholder:"FILE" help:"Certificates (PEM) of those who sign the brokers'; by default the system's." group:"Brokers"`
	Cert     string `name:"tls-cert" placeholder:"FILE" help:"Certificate (PEM) to show to the brokers, with --tls-key." group:"Brokers"`
	Key      string `name:"tls-key" placeholder:"FILE" help:"Its private key (PEM)." group:"Brokers"`
	SASL     string `name:"sasl" enum:"none,plain,scram-sha-256,scram-sha-512" default:"none" help:"How to log in to the brokers (${enum})." group:"Brokers"`
	User     string `name:"sasl-user" placeholder:"NAME" help:"Who logs in." group:"Brokers"`
	Password Secret `name:"sasl-password" placeholder:"TEXT" help:"With what; a variable, ENTROPIPE_SASL_PASSWORD, does not show in lists of processes." group:"Brokers"`
}

func (f *securityFlags) login() bool { return f.SASL != "" && f.SASL != "none" }

// check returns the first mistake, as a usageError.
func (f *securityFlags) check() error {
	switch {
	case (f.Cert == "") != (f.Key == ""):
		return usageError{errors.New("--tls-cert, --tls-key: want both or none")}
	case !f.login() && (f.User != "" || f.Password != ""):
		return usageError{errors.New("--sasl-user, --sasl-password: want --sasl, the mechanism")}
	case f.login() && (f.User == "" || f.Password == ""):
		return usageError{errors.New("--sasl " + f.SASL + ": want --sasl-user and --sasl-password")}
	}
	return nil
}

// open checks the flags and reads the files that they name. What is wrong is a
// usageError.
func (f *securityFlags) open(log *slog.Logger) (s ingest.Security, err error) {
	if err := f.check(); err != nil {
		return s, err
	}
	if f.TLS || cmp.Or(f.CA, f.Cert) != "" {
		if s.TLS, err = ingest.LoadTLS(f.CA, f.Cert, f.Key); err != nil {
			return s, usageError{fmt.Errorf("TLS: %w", err)}
		}
	}
	if !f.login() {
		return s, nil
	}
	if f.SASL == "plain" && s.TLS == nil {
		log.Warn("--sasl plain without --tls: the password goes to the brokers unencrypted")
	}
	if s.SASL, err = ingest.Mechanism(f.SASL, f.User, string(f.Password)); err != nil {
		return s, usageError{err}
	}
	return s, nil
}
