package ingest

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// Law: a broker without a port has Kafka's; what is no address is refused.
func TestBrokerWithoutPortHasKafkas(t *testing.T) {
	for given, want := range map[string]string{
		"kafka1": "kafka1:9092", "kafka1:9093": "kafka1:9093", " kafka1:9093 ": "kafka1:9093",
		"127.0.0.1": "127.0.0.1:9092",
		"::1":       "[::1]:9092", "[::1]": "[::1]:9092", "[::1]:19092": "[::1]:19092",
		"fe80::1%eth0":     "[fe80::1%eth0]:9092",
		"2001:db8::7:9093": "[2001:db8::7:9093]:9092",
		"":                 "", "kafka1:": "", ":9092": "", "kafka1:0": "", "kafka1:65536": "",
		"kafka1:http": "", "[::1": "",
		"::1]": "", "a:b:c": "", "a b": "", "kafka1:9092/topic": "",
	} {
		got, err := Addresses([]string{given})
		switch {
		case want == "" && (err == nil || !strings.Contains(err.Error(), "HOST:PORT")):
			t.Errorf("%q: %q, %v; want an error", given, got, err)
		case want != "" && (err != nil || !slices.Equal(got, []string{want})):
			t.Errorf("%q: %q, %v; want %q", given, got, err, want)
		}
	}
}

// Law: what may hold a password is refused, and none of its parts are quoted.
func TestBrokersWithAUserAreNotQuoted(t *testing.T) {
	for _, brokers := range [][]string{
		{"sasl://ann:hunter2@kafka1:9092"}, {"ann:hunter2@kafka1"}, {"kafka1:9092", "sasl://ann:hunter2@kafka2"},
		{"sasl://ann:hun", "ter2@kafka1:9092"}, // a password with a comma
		{"ann:hunter2", "x@kafka1:9092"}, {"SASL_SSL://hunter2"}, {"https://hunter2:1/"},
	} {
		_, err := Addresses(brokers)
		if !errors.Is(err, ErrUserInBroker) || strings.Contains(err.Error(), "hun") ||
			strings.Contains(err.Error(), "ter2") {
			t.Errorf("%q: %v", brokers, err)
		}
		for name, try := range map[string]func() error{
			"consumer": func() error {
				_, err := NewConsumer(Config{Brokers: brokers, Topics: []string{"points"}, Group: "g"})
				return err
			},
			"outbox": func() error {
				_, err := OpenOutbox(t.Context(), OutboxConfig{Brokers: brokers, Topic: "points"})
				return err
			},
			"describe": func() error { _, err := Describe(t.Context(), brokers, Security{}, "points"); return err },
		} {
			if err := try(); !errors.Is(err, ErrUserInBroker) || strings.Contains(err.Error(), "hun") {
				t.Errorf("%s of %q: %v", name, brokers, err)
			}
		}
	}
}
