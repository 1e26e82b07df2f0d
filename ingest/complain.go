package ingest

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Bounds of what is logged about partitions that cannot be read: a line of each
// partition every while, and of all of them a few. Where a broker goes, hundreds
// fail at once, for one reason.
const (
	complainEvery = 5 * time.Second
	complainLines = 4
)

// complaints counts the lines about all partitions.
type complaints struct {
	mu     sync.Mutex
	since  time.Time
	lines  int // since then
	untold int // since the last line
}

// next tells whether there may be a line now, and how many there could have been
// since the last one.
func (c *complaints) next() (told bool, untold int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.since) >= complainEvery {
		c.since, c.lines = now, 0
	}
	if c.lines >= complainLines {
		c.untold++
		return false, 0
	}
	c.lines++
	untold, c.untold = c.untold, 0
	return true, untold
}

// complain logs as a warning what may be logged now, the rest for those who debug.
func (p *Partition) complain(what string, offset int64, err error) {
	if time.Since(p.logged) < complainEvery {
		return
	}
	p.logged = time.Now()
	level, about := slog.LevelWarn, []any{"topic", p.Topic, "partition", p.ID, "offset", offset, "error", err}
	told, untold := p.c.complaints.next()
	if !told {
		level = slog.LevelDebug
	}
	if untold > 0 {
		about = append(about, "not_logged_of_other_partitions", untold)
	}
	p.c.log.Log(context.Background(), level, what, about...)
}
