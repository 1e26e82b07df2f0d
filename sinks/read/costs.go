package read

import (
	"fmt"
	"io"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// charging is a store that charges for requests.
type charging interface {
	// Charge returns what a commit of these files takes.
	Charge(files []record.File) sinks.Charge
	// Price returns what that costs in dollars, and at which prices.
	Price(c sinks.Charge) (dollars float64, prices string)
}

// CommitCosts says what the commits of an output took of a store that charges for requests, on
// the average, if none had to be repeated.
type CommitCosts struct {
	Commits        int64   `json:"commits"`
	Put            float64 `json:"put"` // a commit
	Copy           float64 `json:"copy"`
	Delete         float64 `json:"delete"`
	Bytes          float64 `json:"bytes"`           // files a commit
	MillionDollars float64 `json:"million_dollars"` // requests of 10^6 such commits
	Prices         string  `json:"prices"`
}

// newCommitCosts returns the costs of commits whose charges add up to sum; nil: there are none.
func newCommitCosts(store charging, sum sinks.Charge, commits int64) *CommitCosts {
	if commits == 0 {
		return nil
	}
	dollars, prices := store.Price(sum)
	each := func(n int64) float64 { return float64(n) / float64(commits) }
	return &CommitCosts{Commits: commits, Put: each(sum.Put), Copy: each(sum.Copy), Delete: each(sum.Delete),
		Bytes: each(sum.Bytes), MillionDollars: dollars / float64(commits) * 1e6, Prices: prices}
}

func (c *CommitCosts) write(w io.Writer) {
	fmt.Fprintf(w, "a commit takes %.3g PUT, %.3g COPY and %.3g DELETE for %.3g bytes of files; the requests of "+
		"10^6 such "+
		"commits cost %.3g $ (%s)\n", c.Put, c.Copy, c.Delete, c.Bytes, c.MillionDollars, c.Prices)
}
