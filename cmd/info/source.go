package info

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"entropipe/algos/geom"
	"entropipe/cmd/command"
	"entropipe/ingest/replay"
	"entropipe/schemas/codec"
)

// sourcesInfo is what the inputs at some paths hold.
type sourcesInfo struct {
	Inputs   []*sourceInfo `json:"inputs"`
	Frames   int64         `json:"frames"`
	Points   int64         `json:"points"`
	Skipped  int64         `json:"skipped"`            // files and frames that could not be read
	Problems []string      `json:"problems,omitempty"` // the paths', before an input was opened
}

// sourceInfo is what one input holds.
type sourceInfo struct {
	Format    string        `json:"format"`
	Path      string        `json:"path"`
	Files     int           `json:"files,omitempty"` // 0: the path is read as a whole
	Dataset   string        `json:"dataset"`
	Sequence  string        `json:"sequence"` // the first one's
	Frames    int64         `json:"frames"`
	Points    int64         `json:"points"`
	Fields    []string      `json:"fields"`
	Ignored   []string      `json:"ignored,omitempty"` // fields that have no column
	NonFinite int64         `json:"non_finite"`        // points with a coordinate that is NaN or infinite
	Poses     int64         `json:"poses"`             // frames with a pose
	Least     [3]float64    `json:"least"`             // least x, y and z of finite coordinates
	Most      [3]float64    `json:"most"`
	First     *time.Time    `json:"first,omitempty"`
	Last      *time.Time    `json:"last,omitempty"`
	Streams   []*streamInfo `json:"streams"`
	Skipped   int64         `json:"skipped"` // could not be read
	Problems  []string      `json:"problems,omitempty"`

	streams map[[2]string]*streamInfo
}

// streamInfo is what one sensor of one sequence gave.
type streamInfo struct {
	Sequence  string     `json:"sequence"`
	Sensor    string     `json:"sensor"`
	Frames    int64      `json:"frames"`
	Points    int64      `json:"points"`
	First     *time.Time `json:"first,omitempty"`
	Last      *time.Time `json:"last,omitempty"`
	Backwards int64      `json:"backwards"` // frames whose time lies before that of the frame before
	Repeated  int64      `json:"repeated"`  // frames whose number is not above all before

	before, number int64
	timed          bool
}

// describeInputs reads whatever lies at paths.
func describeInputs(e *command.Env, paths []string) (*sourcesInfo, error) {
	noted := &notes{}
	files := replay.Files{Paths: paths, SkipBad: true, Log: slog.New(noted)}
	in, err := files.Open()
	if err != nil {
		return nil, withoutHint(err)
	}
	defer in.Close()
	all := &sourcesInfo{Problems: noted.take(), Skipped: in.Skipped()}
	var frames atomic.Int64
	show := command.StartProgress(e.Stderr, quietAtFirst(e.Log), "frames", 0,
		func() (int64, string) { return frames.Load(), "" })
	defer show.Stop()
	for _, part := range in.List() {
		s := newSourceInfo(part)
		all.Inputs = append(all.Inputs, s)
		src, err := in.OpenInput(part)
		if err == nil {
			err = s.read(e.Ctx, src, &frames)
		}
		if err != nil && (len(in.List()) == 1 || e.Ctx.Err() != nil) {
			return nil, withoutHint(err)
		}
		if err != nil {
			s.Problems = append(s.Problems, err.Error())
			s.Skipped++
		}
		s.Problems = append(s.Problems, noted.take()...)
		s.finish()
		all.Frames, all.Points, all.Skipped = all.Frames+s.Frames, all.Points+s.Points, all.Skipped+s.Skipped
	}
	return all, nil
}

// withoutHint returns err as it is: info has no flag to go on with.
func withoutHint(err error) error {
	var bad *replay.BadInputError
	if errors.As(err, &bad) {
		return bad
	}
	return err
}

func newSourceInfo(in replay.Input) *sourceInfo {
	inf, path := math.Inf(1), in.Path
	if len(in.Files) == 1 {
		path = filepath.Join(path, in.Files[0])
	}
	return &sourceInfo{Format: in.Format, Path: path, Files: len(in.Files), Fields: []string{},
		Least: [3]float64{inf, inf, inf}, Most: [3]float64{-inf, -inf, -inf}, Streams: []*streamInfo{},
		streams: map[[2]string]*streamInfo{}}
}

// read reads a whole source and closes it.
func (s *sourceInfo) read(ctx context.Context, src replay.Source, frames *atomic.Int64) error {
	defer src.Close()
	var it replay.Item
	for {
		err := src.Next(&it)
		if k, ok := src.(interface{ Skipped() int64 }); ok {
			s.Skipped = k.Skipped()
		}
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		s.add(&it)
		frames.Add(it.Frames())
	}
}

// add takes an item into account.
func (s *sourceInfo) add(it *replay.Item) {
	if s.Frames == 0 {
		s.Dataset, s.Sequence = it.Dataset, it.Sequence
	}
	key := [2]string{it.Sequence, it.Sensor}
	stream := s.streams[key]
	if stream == nil {
		stream = &streamInfo{Sequence: it.Sequence, Sensor: it.Sensor, number: math.MinInt64}
		s.streams[key] = stream
		s.Streams = append(s.Streams, stream)
	}
	stream.add(it)
	s.Frames += it.Frames()
	s.Points += it.Points()
	if it.Pose != nil {
		s.Poses++
	}
	for _, name := range it.Ignored {
		if !slices.Contains(s.Ignored, name) {
			s.Ignored = append(s.Ignored, name)
		}
	}
	s.addPoints(it)
	if isDate(it) {
		extend(&s.First, &s.Last, it.TimeNs)
	}
}

// addPoints takes the columns of an item into account.
func (s *sourceInfo) addPoints(it *replay.Item) {
	if it.Drawings != nil {
		s.field("x", true)
		s.field("y", true)
		for i := range it.Drawings {
			s.NonFinite += cover(s, geom.Cloud[float64]{X: it.Drawings[i].X, Y: it.Drawings[i].Y})
		}
		return
	}
	c := &it.Cloud
	s.field("x", true)
	s.field("y", true)
	s.field("z", c.HasZ())
	s.field("intensity", c.Intensity != nil)
	for i, column := range c.Int32s() {
		s.field(codec.Int32Names[i], *column != nil)
	}
	s.field("elongation", c.Elongation != nil)
	s.field("t_offset_ns", c.TOffsetNs != nil)
	if c.Double {
		s.NonFinite += cover(s, c.Cloud64)
	} else {
		s.NonFinite += cover(s, c.Cloud32)
	}
}

func (s *sourceInfo) field(name string, there bool) {
	if there && !slices.Contains(s.Fields, name) {
		s.Fields = append(s.Fields, name)
	}
}

// add takes an item of the stream into account.
func (m *streamInfo) add(it *replay.Item) {
	m.Frames += it.Frames()
	m.Points += it.Points()
	if it.Number <= m.number {
		m.Repeated++
	}
	m.number = max(m.number, it.Number+it.Frames()-1)
	if it.Clock == replay.NoClock || it.Clock == replay.Unordered {
		return
	}
	if m.timed && it.TimeNs < m.before {
		m.Backwards++
	}
	m.timed, m.before = true, it.TimeNs
	if isDate(it) {
		extend(&m.First, &m.Last, it.TimeNs)
	}
}

func isDate(it *replay.Item) bool { return it.Clock == replay.UTC || it.Clock == replay.Unordered }

// extend widens a span of time.
func extend(first, last **time.Time, ns int64) {
	t := time.Unix(0, ns).UTC()
	if *first == nil || t.Before(**first) {
		*first = &t
	}
	if *last == nil || t.After(**last) {
		*last = &t
	}
}

// cover widens the extent by the finite coordinates of c, and returns the number of points
// that have another one.
func cover[T geom.Float](s *sourceInfo, c geom.Cloud[T]) (bad int64) {
	for axis, v := range [...][]T{c.X, c.Y, c.Z} {
		least, most := T(math.Inf(1)), T(math.Inf(-1))
		for _, f := range v {
			if f-f == 0 {
				least, most = min(least, f), max(most, f)
			}
		}
		s.Least[axis], s.Most[axis] = min(s.Least[axis], float64(least)), max(s.Most[axis], float64(most))
	}
	for i := range c.X {
		sum := c.X[i] - c.X[i] + (c.Y[i] - c.Y[i])
		if c.Z != nil {
			sum += c.Z[i] - c.Z[i]
		}
		if sum != 0 {
			bad++
		}
	}
	return bad
}

// finish replaces what no frame has set, and names what is wrong.
func (s *sourceInfo) finish() {
	for axis := range s.Least {
		if s.Least[axis] > s.Most[axis] {
			s.Least[axis], s.Most[axis] = 0, 0
		}
	}
	var backwards, repeated int64
	for _, m := range s.Streams {
		backwards, repeated = backwards+m.Backwards, repeated+m.Repeated
	}
	for _, p := range []struct {
		count int64
		text  string
	}{{backwards, "frames have a time before that of the frame before them"},
		{repeated, "frames have a number that is not above those before them"},
		{s.NonFinite, "points have a coordinate that is NaN or infinite"}} {
		if p.count > 0 {
			s.Problems = append(s.Problems, command.Count(p.count)+" "+p.text)
		}
	}
}

// String is the summary for people.
func (a *sourcesInfo) String() string {
	var b strings.Builder
	for _, s := range a.Inputs {
		s.write(&b)
	}
	for _, p := range a.Problems {
		fmt.Fprintf(&b, "problem: %s\n", p)
	}
	if len(a.Inputs) > 1 {
		fmt.Fprintf(&b, "%d inputs: %s frames, %s points", len(a.Inputs), command.Count(a.Frames),
			command.Count(a.Points))
		if a.Skipped > 0 {
			fmt.Fprintf(&b, ", %s inputs could not be read", command.Count(a.Skipped))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// mostStreams is how many sequences and sensors the summary names.
const mostStreams = 20

func (s *sourceInfo) write(b *strings.Builder) {
	name := strings.TrimSpace(s.Dataset + " " + s.Sequence)
	if name == "" {
		name = s.Format + " " + s.Path
	}
	fmt.Fprintf(b, "%s: %s frames, %s points, x %g to %g, y %g to %g", name, command.Count(s.Frames),
		command.Count(s.Points), s.Least[0], s.Most[0], s.Least[1], s.Most[1])
	if slices.Contains(s.Fields, "z") {
		fmt.Fprintf(b, ", z %g to %g", s.Least[2], s.Most[2])
	}
	fmt.Fprintf(b, "\n  format %s, %s", s.Format, s.Path)
	if s.Files > 1 {
		fmt.Fprintf(b, ", %d files", s.Files)
	}
	b.WriteString("\n")
	if s.First != nil {
		fmt.Fprintf(b, "  from %s to %s\n", s.First.Format(time.RFC3339Nano), s.Last.Format(time.RFC3339Nano))
	}
	if len(s.Fields) > 0 {
		fmt.Fprintf(b, "  fields: %s", strings.Join(s.Fields, ", "))
		if len(s.Ignored) > 0 {
			fmt.Fprintf(b, "; ignored: %s", strings.Join(s.Ignored, ", "))
		}
		b.WriteString("\n")
	}
	if s.Poses > 0 {
		fmt.Fprintf(b, "  poses: %s of %s frames\n", command.Count(s.Poses), command.Count(s.Frames))
	}
	if len(s.Streams) > 1 {
		for _, m := range s.Streams[:min(len(s.Streams), mostStreams)] {
			fmt.Fprintf(b, "  %s %s: %s frames, %s points\n", m.Sequence, m.Sensor, command.Count(m.Frames),
				command.Count(m.Points))
		}
		if n := len(s.Streams) - mostStreams; n > 0 {
			fmt.Fprintf(b, "  and %d more sequences and sensors\n", n)
		}
	}
	if s.Skipped > 0 {
		fmt.Fprintf(b, "  %s inputs could not be read\n", command.Count(s.Skipped))
	}
	for _, p := range s.Problems {
		fmt.Fprintf(b, "  problem: %s\n", p)
	}
}

// notes is a slog.Handler that keeps warnings: they are part of the description.
type notes struct {
	mu   sync.Mutex
	text []string
}

// mostNotes bounds the warnings that are kept between two calls of take.
const mostNotes = 100

// Enabled reports whether a record is kept.
func (n *notes) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle keeps a record as a line.
func (n *notes) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += ", " + a.Key + " " + a.Value.String()
		return true
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.text) < mostNotes {
		n.text = append(n.text, line)
	}
	return nil
}

// WithAttrs drops the attributes: no source has any.
func (n *notes) WithAttrs([]slog.Attr) slog.Handler { return n }

// WithGroup drops the group.
func (n *notes) WithGroup(string) slog.Handler { return n }

// take returns the lines since the last call.
func (n *notes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	text := n.text
	n.text = nil
	return text
}

// quietAtFirst returns a log that drops the first ten seconds: a short look is not
// interesting, and the last line repeats the result.
func quietAtFirst(log *slog.Logger) *slog.Logger {
	return slog.New(&late{Handler: log.Handler(), from: time.Now().Add(9 * time.Second)})
}

// late is a slog.Handler that begins at a time.
type late struct {
	slog.Handler
	from time.Time
}

// Enabled reports whether a record is written.
func (l *late) Enabled(ctx context.Context, level slog.Level) bool {
	return time.Now().After(l.from) && l.Handler.Enabled(ctx, level)
}
