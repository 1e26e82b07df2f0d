package pipeline

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"entropipe/schemas"
)

// An open transaction that lasts is a line of the log, and its end is another one.
func TestOpenTransactionIsLogged(t *testing.T) {
	var log bytes.Buffer
	p := &Pipeline{cfg: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, began: time.Now().Add(-time.Hour)}
	r := &reader{session: &session{p: p, topic: "points", id: 3}}
	fetched := func(end, high int64) {
		r.transaction(&schemas.Fetched{End: end, High: high})
		r.logEnd.Store(end)
	}
	lines := func(step string, waiting, ended int) {
		t.Helper()
		if w, e := strings.Count(log.String(), "open transaction;"), strings.Count(log.String(), "has ended"); w !=
			waiting || e != ended {
			t.Errorf("%s: %d lines about waiting and %d about the end, want %d and %d: %s", step, w, e, waiting, ended,
				&log)
		}
	}
	fetched(5, 5)
	fetched(5, 8)
	lines("it is new", 0, 0)
	r.hiddenSince.Store(p.ticks() - int64(hiddenFrom))
	fetched(5, 8)
	fetched(5, 9)
	lines("it lasts", 1, 0)
	fetched(7, 9)
	lines("another one holds the log", 1, 1)
	r.hiddenSince.Store(p.ticks() - int64(hiddenFrom))
	fetched(7, 9)
	lines("the other one lasts", 2, 1)
	fetched(9, 9)
	fetched(9, 9)
	lines("it has ended", 2, 2)
}
