package schemas

import (
	"strconv"
	"strings"
)

// Names of the schema metadata that say which tokenizer made the ids of a
// message. A header of the same name, with hyphens or underscores, says the same.
const (
	metaTokenizer = "tokenizer"
	metaVocabSize = "vocab_size"
	metaSHA256    = "tokenizer_sha256"

	headerVocabSize = "vocab-size"
	headerSHA256    = "tokenizer-sha256"
)

// stated is what schema metadata say about a tokenizer, verbatim. Missing fields are
// empty.
type stated struct{ name, size, sha string }

// Vocabulary returns what the schema metadata and headers of the last message that
// Sequences read say about the tokenizer that made its ids. Missing fields are zero.
// SHA256 is in lower case. After an error Vocabulary returns the zero value.
func (d *Decoder) Vocabulary() Vocabulary { return d.vocabulary }

// readVocabulary reads what metadata and headers say of the tokenizer. Two
// places that contradict each other are an error: one of them is wrong, and
// nothing tells which.
func readVocabulary(m *Message, l *layout) (v Vocabulary, err *FormatError) {
	v.Tokenizer = l.tokenizer.name
	if v.SHA256, err = readSHA256(l.tokenizer.sha); err != nil {
		return Vocabulary{}, err
	}
	if v.Size, err = readVocabSize(l.tokenizer.size); err != nil {
		return Vocabulary{}, err
	}
	if b := headerValue(m.Headers, headerSHA256); len(b) > 0 {
		sha, err := readSHA256(string(b))
		if err != nil {
			return Vocabulary{}, err
		}
		if v.SHA256 != "" && v.SHA256 != sha {
			return Vocabulary{}, formatErr(ReasonBadHeader, -1, "header %s is %s, but the schema metadata say %s",
				headerSHA256, sha, v.SHA256)
		}
		v.SHA256 = sha
	}
	if b := headerValue(m.Headers, headerVocabSize); len(b) > 0 {
		size, err := readVocabSize(string(b))
		if err != nil {
			return Vocabulary{}, err
		}
		if v.Size != 0 && v.Size != size {
			return Vocabulary{}, formatErr(ReasonBadHeader, -1, "header %s is %d, but the schema metadata say %d",
				headerVocabSize, size, v.Size)
		}
		v.Size = size
	}
	return v, nil
}

// readSHA256 returns the hash in lower case; empty for an empty one.
func readSHA256(s string) (string, *FormatError) {
	if s == "" {
		return "", nil
	}
	if len(s) != 64 || strings.Trim(s, "0123456789abcdefABCDEF") != "" {
		return "", formatErr(ReasonBadHeader, -1,
			"%s is %.80q; want the SHA-256 of tokenizer.json, 64 hexadecimal digits", metaSHA256, s)
	}
	return strings.ToLower(s), nil
}

// readVocabSize returns the size; 0 for an empty one.
func readVocabSize(s string) (int, *FormatError) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 1 {
		return 0, formatErr(ReasonBadHeader, -1, "%s is %.80q; want the number of ids, above 0", metaVocabSize, s)
	}
	return int(n), nil
}

// readTokenizer keeps what the schema's metadata say of a tokenizer. Of a key
// that stands there twice the last one counts, as in Arrow's own maps.
func (r *layoutReader) readTokenizer(schema table) {
	start, n := r.vector(schema, 2, 4)
	for i := 0; i < n && !r.broken; i++ {
		pair := r.table(r.deref(start + 4*i))
		var to *string
		switch string(r.str(pair, 0)) {
		case metaTokenizer:
			to = &r.tokenizer.name
		case metaVocabSize:
			to = &r.tokenizer.size
		case metaSHA256:
			to = &r.tokenizer.sha
		default:
			continue
		}
		value := r.str(pair, 1)
		*to = string(value[:min(len(value), maxName)])
	}
}
