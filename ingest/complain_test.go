package ingest

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Law: however many partitions fail together, the log has a few lines of them
// every five seconds, and says how many it has not; one that fails alone is
// named every time.
func TestComplaintsOfManyPartitionsAreFew(t *testing.T) {
	for _, c := range []struct {
		partitions, warnings int
		untold               bool
	}{{1, 6, false}, {4, 24, false}, {5, 24, true}, {500, 24, true}} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			consumer := &Consumer{log: slog.New(slog.NewTextHandler(&log, nil))}
			var all []*Partition
			for id := range c.partitions {
				all = append(all, consumer.partition("t", int32(id), nil))
			}
			for range 60 { // half a minute
				for _, p := range all {
					p.complain("fetch fails", 7, errors.New("connection refused"))
				}
				time.Sleep(500 * time.Millisecond)
			}
			if n := strings.Count(log.String(), "level=WARN"); n != c.warnings {
				t.Errorf("%d partitions made %d lines, want %d:\n%.2000s", c.partitions, n, c.warnings, log.String())
			}
			if told := strings.Contains(log.String(), "not_logged_of_other_partitions="); told != c.untold {
				t.Errorf("%d partitions: told of others: %v\n%.2000s", c.partitions, told, log.String())
			}
		})
	}
}
