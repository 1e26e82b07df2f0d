package bucket

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// sources are the places where credentials may be, in the order in which the programs of
// AWS look. It asks again when four fifths of their time are over, and keeps what it has until
// they expire, if nobody answers.
//
// The chain of minio-go is not used: it hides why a source has nothing, and then sends
// requests without a signature.
type sources struct {
	mu   sync.Mutex
	all  []namedSource
	last credentials.Provider // the one that had credentials; nil: none had
	held credentials.Value    // credentials of last
}

type namedSource struct {
	name string
	credentials.Provider
}

// newSources returns the usual places. amazon tells whether the server is one of AWS: on
// other machines nobody answers for the address of AWS's metadata service.
func newSources(amazon bool) *sources {
	s := &sources{all: []namedSource{{"variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY", &credentials.EnvAWS{}}}}
	identity := os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != ""
	if identity {
		s.all = append(s.all, namedSource{"web identity",
			&credentials.IAM{Endpoint: os.Getenv("AWS_ENDPOINT_URL_STS")}})
	}
	s.all = append(s.all, namedSource{"profile " + profile(), &credentials.FileAWSCredentials{}})
	container := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") + os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	endpoint := os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT")
	metadata := (amazon || endpoint != "") && !strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true")
	switch {
	case identity: // the provider of identities asks for nothing else
	case container != "":
		s.all = append(s.all, namedSource{"role of the container", &credentials.IAM{}})
	case metadata:
		s.all = append(s.all, namedSource{"role of the machine",
			&credentials.IAM{Endpoint: strings.TrimRight(endpoint, "/")}})
	}
	return s
}

func profile() string {
	if name := os.Getenv("AWS_PROFILE"); name != "" {
		return name
	}
	return "default"
}

// Retrieve implements credentials.Provider.
func (s *sources) Retrieve() (credentials.Value, error) { return s.RetrieveWithCredContext(nil) }

// RetrieveWithCredContext implements credentials.Provider. The error names every place.
func (s *sources) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := s.last != nil
	var why []string
	for _, source := range s.all {
		v, err := source.RetrieveWithCredContext(cc)
		if err == nil && v.AccessKeyID != "" && v.SecretAccessKey != "" {
			s.last, s.held = source.Provider, v
			return v, nil
		}
		text := "nothing there"
		if err != nil {
			text = reasonOf(err)
		}
		why = append(why, source.name+": "+text)
	}
	if had && time.Until(s.held.Expiration) > time.Minute {
		return s.held, nil // the next request asks again
	}
	return credentials.Value{}, &credentialsError{had, errors.New(strings.Join(why, "; "))}
}

// reasonOf returns in one line why a source has nothing.
func reasonOf(err error) string {
	ended := (*exec.ExitError)(nil)
	if errors.As(err, &ended) { // its output may be secret
		return "its credential_process ended with " + ended.String()
	}
	return short(err.Error())
}

// IsExpired implements credentials.Provider.
func (s *sources) IsExpired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last == nil || s.last.IsExpired()
}

// credentialsError is the error when no place has credentials.
type credentialsError struct {
	had bool // there were some, which have expired
	err error
}

func (e *credentialsError) Error() string {
	if e.had {
		return fmt.Sprintf("the credentials have expired, and there are no new ones (%v)", e.err)
	}
	return fmt.Sprintf("there are no credentials (%v)", e.err)
}

func (e *credentialsError) Unwrap() error { return e.err }

// short returns the first line of a text of others, and not too much of it.
func short(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > 200 {
		return string(runes[:200]) + "…"
	}
	return strings.TrimSuffix(text, ".")
}
