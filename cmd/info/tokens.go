package info

import (
	"fmt"
	"io"
	"strings"

	"entropipe/cmd/command"
	"entropipe/ingest/replay"
)

// sequencesInfo is what a file of texts or token ids holds.
type sequencesInfo struct {
	Path       string `json:"path"`
	Sequences  int64  `json:"sequences"`
	Texts      int64  `json:"texts"`       // sequences that are text; the others are ids
	Bytes      int64  `json:"bytes"`       // total of the texts
	Tokens     int64  `json:"tokens"`      // total of the ids
	MostBytes  int    `json:"most_bytes"`  // longest text
	MostTokens int    `json:"most_tokens"` // longest sequence of ids
	Skipped    int64  `json:"skipped"`     // could not be read
}

// describeSequences reads a whole file.
func describeSequences(path string, t replay.Tokens) (fmt.Stringer, error) {
	src, err := t.Open()
	if err != nil {
		return nil, err
	}
	defer src.Close()
	s := &sequencesInfo{Path: path}
	var it replay.Item
	for {
		err := src.Next(&it)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		s.Sequences += it.Frames()
		s.Tokens += it.Points()
		for i := range it.Sequences {
			q := &it.Sequences[i]
			if q.IsText {
				s.Texts++
			}
			s.Bytes += int64(len(q.Text))
			s.MostBytes, s.MostTokens = max(s.MostBytes, len(q.Text)), max(s.MostTokens, len(q.IDs))
		}
	}
	if k, ok := src.(interface{ Skipped() int64 }); ok {
		s.Skipped = k.Skipped()
	}
	return s, nil
}

// String is the summary for people.
func (s *sequencesInfo) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s texts of %s", s.Path, command.Count(s.Texts), command.ByteSize(s.Bytes))
	if s.Texts > 0 {
		fmt.Fprintf(&b, " (the longest %s)", command.ByteSize(int64(s.MostBytes)))
	}
	fmt.Fprintf(&b, ", %s sequences of %s token ids", command.Count(s.Sequences-s.Texts), command.Count(s.Tokens))
	if s.Sequences > s.Texts {
		fmt.Fprintf(&b, " (the longest %s)", command.Count(int64(s.MostTokens)))
	}
	b.WriteString("\n")
	if s.Skipped > 0 {
		fmt.Fprintf(&b, "  %s rows could not be read\n", command.Count(s.Skipped))
	}
	return b.String()
}
