package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"entropipe/cmd/command"
)

// summary says what became of the selected messages.
type summary struct {
	From    string           `json:"from"`
	To      string           `json:"to"`
	DryRun  bool             `json:"dry_run"`
	Seconds float64          `json:"seconds"`
	Bytes   int64            `json:"bytes"` // bytes of values that were sent
	Counts                   // sum over all reasons
	Reasons []*reasonSummary `json:"reasons"`
	Listed  []listed         `json:"listed"`        // messages that were not sent
	Left    int64            `json:"listed_beyond"` // further ones

	begun time.Time
}

// Counts are numbers of messages.
type Counts struct {
	Sent    int64 `json:"sent"`        // or, of a dry run, would be sent
	Before  int64 `json:"sent_before"` // by an earlier replay
	AtLimit int64 `json:"at_limit"`    // sent again --max-replays times
	Partial int64 `json:"partial"`     // with rows beside their rejects
	Gone    int64 `json:"gone"`        // the value is nowhere
}

// reasonSummary is the summary of one reason.
type reasonSummary struct {
	Stage  string `json:"stage"`
	Reason string `json:"reason"`
	Counts
}

// listed is a message that was not sent.
type listed struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
	Why    string `json:"why"`
}

const (
	maxListed = 10_000
	maxShown  = 20
)

func newSummary(c *Command) *summary {
	return &summary{From: c.From, To: c.To, DryRun: c.DryRun, begun: time.Now(), Reasons: []*reasonSummary{},
		Listed: []listed{}}
}

// of returns the counts of a candidate's reason.
func (s *summary) of(c *candidate) *Counts {
	at, found := slices.BinarySearchFunc(s.Reasons, c, func(r *reasonSummary, c *candidate) int {
		return cmp.Or(cmp.Compare(r.Stage, c.stage), cmp.Compare(r.Reason, c.reason))
	})
	if !found {
		s.Reasons = slices.Insert(s.Reasons, at, &reasonSummary{Stage: c.stage, Reason: c.reason})
	}
	return &s.Reasons[at].Counts
}

// list notes a message that is not sent.
func (s *summary) list(c *candidate, why string) {
	if len(s.Listed) == maxListed {
		s.Left++
		return
	}
	s.Listed = append(s.Listed, listed{c.id.String(), c.stage + "/" + c.reason, why})
}

// empty tells whether no message was looked at.
func (s *summary) empty() bool { return len(s.Reasons) == 0 }

// String is a line for all, one a reason, and one for each of the first messages that were not
// sent.
func (s *summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s to %s: %s", s.From, s.To, s.Counts.text(s.DryRun))
	if !s.DryRun {
		fmt.Fprintf(&b, ", %s in %.1f s", command.ByteSize(s.Bytes), s.Seconds)
	}
	b.WriteString("\n")
	for _, r := range s.Reasons {
		fmt.Fprintf(&b, "  %s/%s: %s\n", r.Stage, r.Reason, r.Counts.text(s.DryRun))
	}
	for _, l := range s.Listed[:min(len(s.Listed), maxShown)] {
		fmt.Fprintf(&b, "not sent: %s (%s): %s\n", l.ID, l.Reason, l.Why)
	}
	if n := int64(len(s.Listed)) + s.Left - maxShown; n > 0 {
		fmt.Fprintf(&b, "and %s more that were not sent; --json lists %s\n", command.Count(n), command.Count(int64(
			len(s.Listed))))
	}
	return b.String()
}

func (c *Counts) text(dry bool) string {
	did := "sent"
	if dry {
		did = "to send"
	}
	return fmt.Sprintf("%s %s, %s sent before, %s at the limit, %s partly accepted, %s gone", command.Count(c.Sent),
		did, command.Count(c.Before), command.Count(c.AtLimit), command.Count(c.Partial), command.Count(c.Gone))
}
