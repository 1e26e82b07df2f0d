package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kafka "github.com/segmentio/kafka-go"
)

// Law: no error shows a password that SASLprep refuses, nor the character that it
// refuses; it says where the character stands, and of what kind it is.
func TestRefusedPasswordsAreNotShown(t *testing.T) {
	for _, c := range []struct{ user, password, want string }{
		{"ann", "hunter2\n", "password: its character 8 is a line end"},
		{"ann", "hunter2\r\n", "password: its character 8 is a line end"},
		{"ann", "hun\x07ter2", "password: its character 4 is a control character"},
		{"ann", "hunter2\U0001F600", "password: its character 8 is forbidden, or not assigned in Unicode 3.2"},
		{"ann", "hunter2\u0378", "password: its character 8 is forbidden, or not assigned"},
		{"ann", "hunter2\ue000", "password: its character 8 is for private use"},
		{"ann", "hunter2\u0627", "two writing directions"},
		{"ann", "hunter2\xff", "password: it is not UTF-8"},
		{"ann\n", "hunter2", "user's name: its character 4 is a line end"},
		{"hunter2\n", "hunter2\n", "user's name"},
	} {
		for _, name := range []string{"SCRAM-SHA-256", "scram-sha-512"} {
			_, err := mechanism(name, c.user, c.password)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s %q: %v; want %s", name, c.password, err, c.want)
				continue
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				if text := e.Error(); strings.Contains(text, "hun") || strings.Contains(text, "ter2") ||
					strings.Contains(text, "\\u") {
					t.Errorf("%s: %q shows the password", name, text)
				}
			}
		}
		if m, err := mechanism("plain", c.user, c.password); err != nil ||
			strings.Contains(fmt.Sprintf("%v %+v %#v %s", m, m, m, m), "hun") && !strings.Contains(c.user, "hun") {
			t.Errorf("PLAIN %q: %v, %v", c.password, m, err)
		}
	}
}

// A broker's own words stand in kafka-go's errors, and may quote what they refuse.
func TestBrokersWordsDoNotShowThePassword(t *testing.T) {
	m, err := mechanism("PLAIN", "ann", "kafka")
	if err != nil {
		t.Fatal(err)
	}
	s := Security{SASL: m}
	quoting := fmt.Errorf("dial kafka1: %w",
		fmt.Errorf("%w: no user ann with password kafka", kafka.SASLAuthenticationFailed))
	if got := s.conceal(quoting); strings.Contains(got.Error(), "password kafka") ||
		!errors.Is(got, kafka.SASLAuthenticationFailed) {
		t.Errorf("%v", got)
	}
	for _, plain := range []error{errors.New("dial tcp kafka:9092: connection refused"),
		fmt.Errorf("kafka: %w", kafka.TopicAuthorizationFailed), fmt.Errorf("x: %w", kafka.SASLAuthenticationFailed)} {
		if got := s.conceal(plain); got.Error() != plain.Error() {
			t.Errorf("%v became %v: that a name is hidden tells that it is the password", plain, got)
		}
	}
	if got := (&Security{}).conceal(quoting); got != quoting {
		t.Errorf("%v without SASL", got)
	}
}

// A password's file is read for every connection, without the line end that
// editors leave; a broken file is an error that names it.
func TestPasswordFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{"hunter2": "hunter2", "hunter2\n": "hunter2", "hunter2\r\n": "hunter2",
		"hunter2\n\n": "hunter2\n", "hunter2\r": "hunter2\r", " x ": " x ", "": "", "\n": "",
		strings.Repeat("x", maxPassword+1): ""} {
		write(text)
		password, err := PasswordFile(file)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("a file of %d bytes: %v", len(text), err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, err := password(); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if _, err := PasswordFile(file + "2"); err == nil || !strings.Contains(err.Error(), file+"2") {
		t.Errorf("%v of a file that is not there", err)
	}
	if _, err := PasswordFile(filepath.Dir(file)); err == nil {
		t.Error("a folder is a password")
	}

	write("first\n")
	password, err := PasswordFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := MechanismOf("PLAIN", "ann", password)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "second"} {
		write(want + "\n")
		if _, sent, err := m.Start(context.Background()); err != nil || string(sent) != "\x00ann\x00"+want {
			t.Errorf("%q is sent, %v; want %s", sent, err, want)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.Start(context.Background()); err == nil || !strings.Contains(err.Error(), file) ||
		strings.Contains(err.Error(), "second") {
		t.Errorf("%v after the file has gone", err)
	}
}

// A pipe, such as <(command) of a shell, gives its password once, and it is kept.
func TestPasswordOfAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	name := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(name); err != nil {
		t.Skipf("pipes have no names here: %v", err)
	}
	if _, err := w.WriteString("hunter2\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	password, err := PasswordFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := password(); got != "hunter2" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
}
