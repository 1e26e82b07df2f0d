package value

import (
	"log/slog"
	"regexp"
	"strconv"
	"strings"
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

// Discreet returns text with the user's name and password of every URL replaced.
// No value of such a form is ever taken; what refuses one may quote it.
func Discreet(text string) string { return userinfo.ReplaceAllString(text, "://(hidden)@") }

// secretWord ends the part of a key that may be shown: what follows may be the
// password, behind a slip such as = for a colon.
var secretWord = regexp.MustCompile(`(?i)passw(or)?d|secret`)

// DiscreetKey returns a key of a file that no flag has, as it may be shown.
func DiscreetKey(key string) string {
	if at := secretWord.FindStringIndex(key); at != nil && at[1] < len(key) {
		return key[:at[1]] + "…"
	}
	if strings.Contains(key, "@") {
		return "…@…"
	}
	return key
}

// DiscreetAttr is discreet for what a log is told.
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
