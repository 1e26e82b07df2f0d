package token

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A decoder is one step of the file's decoder: it maps the parts of a text to new
// parts.
type decoder struct {
	kind     decoderKind
	prefix   string // decodeWordPiece
	cleanup  bool   // decodeWordPiece
	from, to string // decodeReplace; decodeMetaspace: from alone
	prepend  bool   // decodeMetaspace: the pre-tokenizer has put a mark before the text
	content  string // decodeStrip: a character
	left     int    // decodeStrip: largest number of characters removed at the beginning
	right    int    // decodeStrip: largest number of characters removed at the end
}

type decoderKind int

const (
	decodeByteLevel decoderKind = iota
	decodeWordPiece
	decodeReplace
	decodeByteFallback
	decodeFuse
	decodeStrip
	decodeMetaspace
)

// Decode returns the text of ids. It omits special tokens and ids that no token
// has. For a byte-level model Decode(Encode(nil, s)) is s if s is valid UTF-8 and
// spells no special token, and if no added token strips white space; with
// add_prefix_space the text has that space, and NFC may join letters to their
// marks. If ids end within a character, the text ends with U+FFFD. A WordPiece
// model gives normalized words. Decode may be called concurrently.
func (t *Tokenizer) Decode(ids []int32) string {
	parts := make([]string, 0, len(ids))
	for _, id := range ids {
		text, ok := t.Token(id)
		if !ok || t.special[id] {
			continue
		}
		if normalized, ok := t.respelled[id]; ok {
			text = normalized
		}
		parts = append(parts, text)
	}
	if len(t.decoders) == 0 {
		return strings.Join(parts, " ")
	}
	for i := range t.decoders {
		parts = t.decoders[i].apply(parts)
	}
	return strings.Join(parts, "")
}

func (d *decoder) apply(parts []string) []string {
	switch d.kind {
	case decodeByteLevel:
		return []string{decodeBytes(parts)}
	case decodeByteFallback:
		return decodeFallback(parts)
	case decodeFuse:
		return []string{strings.Join(parts, "")}
	}
	for i, part := range parts {
		switch d.kind {
		case decodeWordPiece:
			parts[i] = d.wordPiece(part, i == 0)
		case decodeReplace:
			parts[i] = strings.ReplaceAll(part, d.from, d.to)
		case decodeStrip:
			parts[i] = d.strip(part)
		case decodeMetaspace:
			parts[i] = d.metaspace(part, i == 0)
		}
	}
	return parts
}

// decodeBytes converts the letters of byte-level tokens to bytes. A token with any
// other letter stays as it is.
func decodeBytes(parts []string) string {
	var out []byte
	for _, part := range parts {
		var ok bool
		if out, ok = appendLetterBytes(out, part); !ok {
			out = append(out, part...)
		}
	}
	return string(appendValid(nil, string(out)))
}

// decodeFallback joins runs of byte tokens to characters. Each byte of a run that
// is not UTF-8 becomes U+FFFD.
func decodeFallback(parts []string) []string {
	var out []string
	var run []byte
	flush := func() {
		switch {
		case len(run) == 0:
		case utf8.Valid(run):
			out = append(out, string(run))
		default:
			for range run {
				out = append(out, "\uFFFD")
			}
		}
		run = run[:0]
	}
	for _, part := range parts {
		if b, ok := fallbackByte(part); ok {
			run = append(run, b)
			continue
		}
		flush()
		out = append(out, part)
	}
	flush()
	return out
}

// fallbackByte returns the byte of a token such as <0x0A>.
func fallbackByte(token string) (byte, bool) {
	if len(token) != 6 || token[:3] != "<0x" || token[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(b), err == nil
}

// cleanup holds the replacements of WordPiece's decoder, which remove the spaces
// before punctuation and English endings.
var cleanup = [][2]string{
	{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
	{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
}

func (d *decoder) wordPiece(part string, first bool) string {
	if !first {
		if inner, ok := strings.CutPrefix(part, d.prefix); ok {
			part = inner
		} else {
			part = " " + part
		}
	}
	if d.cleanup {
		for _, c := range cleanup {
			part = strings.ReplaceAll(part, c[0], c[1])
		}
	}
	return part
}

func (d *decoder) strip(part string) string {
	for n := d.left; n > 0 && strings.HasPrefix(part, d.content); n-- {
		part = part[len(d.content):]
	}
	for n := d.right; n > 0 && strings.HasSuffix(part, d.content); n-- {
		part = part[:len(part)-len(d.content)]
	}
	return part
}

func (d *decoder) metaspace(part string, first bool) string {
	with := " "
	if first && d.prepend {
		with = ""
	}
	return strings.ReplaceAll(part, d.from, with)
}

func (t *Tokenizer) readDecoder(data json.RawMessage) error {
	return each(data, "decoders", 0, func(kind string, data json.RawMessage) error {
		d, err := readDecoder(kind, data)
		if err != nil {
			return err
		}
		t.decoders = append(t.decoders, d)
		return nil
	})
}

func readDecoder(kind string, data json.RawMessage) (decoder, error) {
	switch kind {
	case "ByteLevel":
		return decoder{kind: decodeByteLevel}, nil
	case "ByteFallback":
		return decoder{kind: decodeByteFallback}, nil
	case "Fuse":
		return decoder{kind: decodeFuse}, nil
	case "WordPiece":
		c := struct {
			Prefix  string `json:"prefix"`
			Cleanup bool   `json:"cleanup"`
		}{"##", true}
		err := json.Unmarshal(data, &c)
		return decoder{kind: decodeWordPiece, prefix: c.Prefix, cleanup: c.Cleanup}, err
	case "Replace":
		from, to, err := readReplace(data)
		return decoder{kind: decodeReplace, from: string(from), to: string(to)}, err
	case "Strip":
		var c struct {
			Content string `json:"content"`
			Start   int    `json:"start"`
			Stop    int    `json:"stop"`
		}
		if err := json.Unmarshal(data, &c); err != nil {
			return decoder{}, err
		}
		if utf8.RuneCountInString(c.Content) != 1 || c.Start < 0 || c.Stop < 0 {
			return decoder{}, errors.New("content is not one character, or a count is negative")
		}
		return decoder{kind: decodeStrip, content: c.Content, left: c.Start, right: c.Stop}, nil
	case "Metaspace":
		c, err := readMetaspace(data)
		return decoder{kind: decodeMetaspace, from: c.Replacement, prepend: c.scheme != prependNever}, err
	}
	return decoder{}, errUnsupported
}
