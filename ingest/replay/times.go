package replay

import (
	"bufio"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"entropipe/ingest/filesys"
)

// times holds the moments of a drive's scans. Line i of its file, counted from
// 0, belongs to scan number i; an empty line to a scan that is missing.
type times struct {
	file  string
	clock Clock
	ns    []int64 // noTime where the line is empty
}

const noTime = math.MinInt64

// maxTimes bounds a file of times: a scan every 0.1 s for a month.
const maxTimes = 1 << 25

// readTimes reads timestamps.txt (a date and time a line, taken as UTC) or
// times.txt (seconds from the start of the sequence).
func readTimes(path string) (*times, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, fmt.Errorf("kitti: %w", err)
	}
	defer f.Close()
	t := &times{file: path, clock: UTC}
	parse := parseTimestamp
	if filesys.Base(path) == "times.txt" {
		t.clock, parse = SinceEpoch, parseSeconds
	}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		ns := int64(noTime)
		if s := strings.TrimSpace(lines.Text()); s != "" {
			if ns, err = parse(s); err != nil {
				return nil, &BadInputError{File: path, Line: len(t.ns) + 1, Detail: err.Error(), Err: err}
			}
		}
		if len(t.ns) == maxTimes {
			return nil, &BadInputError{File: path, Detail: fmt.Sprintf("more than %d lines", maxTimes)}
		}
		t.ns = append(t.ns, ns)
	}
	if err := lines.Err(); err != nil {
		return nil, &BadInputError{File: path, Line: len(t.ns) + 1, Detail: err.Error(), Err: err}
	}
	return t, nil
}

// at returns the time of scan number n.
func (t *times) at(n int64) (int64, error) {
	if n >= int64(len(t.ns)) {
		return 0, &BadInputError{File: t.file, Detail: fmt.Sprintf("no line for scan %d: the file has %d lines", n,
			len(t.ns))}
	}
	if t.ns[n] == noTime {
		return 0, &BadInputError{File: t.file, Line: int(n) + 1,
			Detail: fmt.Sprintf("empty, but there is a scan %d", n)}
	}
	return t.ns[n], nil
}

// parseTimestamp reads "2011-09-26 13:02:25.951199337". The zone is not
// stated; the convention is UTC.
func parseTimestamp(s string) (int64, error) {
	t, ok := parseUTC(s)
	if !ok {
		return 0, fmt.Errorf("want a time like 2011-09-26 13:02:25.951199337, got %.60q", s)
	}
	return unixNano(t)
}

// parseUTC reads a date and a time of day, with any fraction of the second. The
// time package alone would take an hour of one digit and spaces, too.
func parseUTC(s string) (t time.Time, ok bool) {
	const layout = "2006-01-02 15:04:05"
	t, err := time.Parse(layout, s)
	return t, err == nil && strings.HasPrefix(s, t.Format(layout))
}

// parseSeconds reads seconds since the start, as "1.036224e-01".
func parseSeconds(s string) (int64, error) {
	v, err := strconv.ParseFloat(s, 64)
	ns := math.Round(v * 1e9)
	if err != nil || !(ns >= 0 && ns < 1e18) {
		return 0, fmt.Errorf("want seconds since the start like 1.036224e-01, got %.60q", s)
	}
	return int64(ns), nil
}

// unixNano refuses the years that do not fit into nanoseconds since 1970.
func unixNano(t time.Time) (int64, error) {
	if y := t.Year(); y < 1678 || y > 2261 {
		return 0, fmt.Errorf("the year %d does not fit into nanoseconds since 1970", y)
	}
	return t.UnixNano(), nil
}
