package broker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// diskEvery is the time between two lines about a disk that cannot be written.
const diskEvery = time.Minute

// aboutDisk are the beginnings of kfake's messages about its files.
var aboutDisk = []string{"persist ", "compact ", "rebuildSegments ", "save session state", "delete topic "}

// brokerLog passes on what kfake says of its disk, at most a line a minute: a
// producer that tries again would make hundreds. The rest is for those who debug.
type brokerLog struct {
	log *slog.Logger
	dir string

	mu     sync.Mutex
	logged time.Time
	untold int // since then
}

// Logf implements kfake.Logger.
func (l *brokerLog) Logf(level kfake.LogLevel, format string, args ...any) {
	if level > kfake.LogLevelWarn || level == kfake.LogLevelNone {
		return
	}
	text := fmt.Sprintf(format, args...)
	for _, prefix := range aboutDisk {
		if strings.HasPrefix(text, prefix) {
			l.disk(text)
			return
		}
	}
	l.log.Log(context.Background(), slog.LevelDebug, "broker", "says", text)
}

// disk logs a failure of the folder, unless one was logged within the last minute.
func (l *brokerLog) disk(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.logged.IsZero() || now.Sub(l.logged) >= diskEvery {
		l.log.Warn("the broker cannot write its folder: producers get an error, and what they are told is "+
			"acknowledged is there", "folder", l.dir, "error", text, "failures_not_logged", l.untold)
		l.logged, l.untold = now, 0
		return
	}
	l.untold++
}
