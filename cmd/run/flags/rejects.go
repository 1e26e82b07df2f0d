package flags

import (
	"fmt"
	"strconv"
	"strings"

	"entropipe/cmd/command"
	"entropipe/ops/pipeline"
)

// rejectLimit is --max-rejects: how many frames and sequences may be refused before
// run calls the stream wrong. The zero value is auto.
type rejectLimit struct {
	kind    limitKind
	most    int64   // bound for limitCount
	percent float64 // bound for limitShare
}

type limitKind int

const (
	limitAuto  limitKind = iota // none; with --until-end: not all
	limitNone                   // whatever comes
	limitCount                  // so many
	limitShare                  // so many of a hundred
)

// shareFrom is how many frames, sequences and rejects there must be before their
// share is looked at while run goes on: the first one alone says nothing.
const shareFrom = 100

const expectedRejects = "auto, none, a number like 100, or a share like 5%"

// UnmarshalText reads auto, none, N or N%.
func (l *rejectLimit) UnmarshalText(data []byte) error {
	text := strings.TrimSpace(string(data))
	share, isShare := strings.CutSuffix(text, "%")
	switch {
	case text == "auto":
		*l = rejectLimit{}
		return nil
	case text == "none":
		*l = rejectLimit{kind: limitNone}
		return nil
	case isShare:
		if p, err := strconv.ParseFloat(share, 64); err == nil && p >= 0 && p <= 100 {
			*l = rejectLimit{kind: limitShare, percent: p}
			return nil
		}
	default:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			*l = rejectLimit{kind: limitCount, most: n}
			return nil
		}
	}
	return fmt.Errorf("%q: expected %s", text, expectedRejects)
}

// Pattern returns a regular expression of the texts that UnmarshalText reads.
func (rejectLimit) Pattern() string { return `^ *(auto|none|[0-9]+|[0-9]+([.][0-9]*)?%) *$` }

// String returns l in the form that UnmarshalText reads.
func (l rejectLimit) String() string {
	switch l.kind {
	case limitNone:
		return "none"
	case limitCount:
		return strconv.FormatInt(l.most, 10)
	case limitShare:
		return strconv.FormatFloat(l.percent, 'f', -1, 64) + "%"
	}
	return "auto"
}

// Exceeded says in which way the totals of this process are beyond the limit, nil
// if they are not. atEnd: run has reached the end of --until-end, so that there is
// nothing to wait for.
func (l *rejectLimit) Exceeded(st *pipeline.Stats, atEnd bool) error {
	all := st.Rejects + st.Frames + st.Sequences
	over := false
	switch l.kind {
	case limitAuto:
		over = atEnd && st.Rejects > 0 && st.Rejects == all
	case limitCount:
		over = st.Rejects > l.most
	case limitShare:
		over = (atEnd || all >= shareFrom) && float64(st.Rejects)*100 > l.percent*float64(all)
	}
	if !over {
		return nil
	}
	return &RejectsError{limit: *l, rejects: st.Rejects, all: all}
}

// RejectsError says that more was refused than --max-rejects allows.
type RejectsError struct {
	limit        rejectLimit
	rejects, all int64
}

// Error names the limit, how it was missed, and where the reasons are.
func (e *RejectsError) Error() string {
	const where = "table rejects has the reasons, and what is committed stays"
	if e.limit.kind == limitAuto {
		return fmt.Sprintf("nothing but rejects came, %s of them: %s (--max-rejects none takes that for success)",
			command.Count(e.rejects), where)
	}
	return fmt.Sprintf("%s of %s frames and sequences were refused, more than --max-rejects %s: %s",
		command.Count(e.rejects), command.Count(e.all), e.limit, where)
}

// Limited tells whether the limit can be exceeded before the end.
func (l rejectLimit) Limited() bool { return l.kind > limitNone }
