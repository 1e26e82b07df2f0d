package value

import (
	"log/slog"
	"regexp"
	"strconv"
	"strings"
)

// Secret is a text that no output shows.
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

// userinfo matches the part of a word between :// and the last @. A URL that was cleaned
// as a path has one slash only.
var userinfo = regexp.MustCompile(`:/{1,2}\S*@`)

// Discreet returns text with the user and password of every URL replaced. No flag takes a
// URL with a password, but an error that refuses one may quote it.
func Discreet(text string) string { return userinfo.ReplaceAllString(text, "://(hidden)@") }

// secretWord ends the part of a key that may be shown: after a slip such as = for a colon
// the password follows it.
var secretWord = regexp.MustCompile(`(?i)passw(or)?d|secret`)

// DiscreetKey returns an unknown key of a file without the parts that may be a password.
func DiscreetKey(key string) string {
	if at := secretWord.FindStringIndex(key); at != nil && at[1] < len(key) {
		return key[:at[1]] + "…"
	}
	if strings.Contains(key, "@") {
		return "…@…"
	}
	return key
}

// DiscreetAttr applies Discreet to strings and errors of a log. It is a
// slog.HandlerOptions.ReplaceAttr.
func DiscreetAttr(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case string:
		if shown := Discreet(v); shown != v {
			a.Value = slog.StringValue(shown)
		}
	case error:
		if text := v.Error(); userinfo.MatchString(text) {
			a.Value = slog.StringValue(Discreet(text))
		}
	}
	return a
}
