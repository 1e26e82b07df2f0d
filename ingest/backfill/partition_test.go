package backfill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"entropipe/ingest/replay"
	"entropipe/schemas"
	"entropipe/sinks/record"
)

// failing is what the tests of this file need of a testing.T or a rapid.T.
type failing interface {
	Fatalf(format string, args ...any)
	Context() context.Context
}

// readLane reads a lane from an offset on, with fetches of so many bytes, and returns its
// values by offset; a hole has none.
func readLane(t failing, p *Partition, from int64, size int32) map[int64]string {
	got := map[int64]string{}
	for at := from; ; {
		f, err := p.Fetch(t.Context(), at, size)
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatalf("fetch at %d: %v", at, err)
		}
		if f.From != at || f.Next <= at || f.End != p.lane.Items {
			t.Fatalf("fetch at %d: [%d, %d) of %d", at, f.From, f.Next, f.End)
		}
		for _, m := range f.Messages {
			if m.Offset < at || m.Offset >= f.Next || got[m.Offset] != "" || m.Partition != p.number {
				t.Fatalf("fetch at %d: a message at %d of partition %d", at, m.Offset, m.Partition)
			}
			at = m.Offset + 1
			got[m.Offset] = fmt.Sprintf("%s=%s %s %d", m.Key, m.Value, m.Headers[0].Value, m.Time.UnixNano())
		}
		if f.Release != nil {
			f.Release()
		}
		at = f.Next
	}
}

// A lane yields each of its items at its offset, wherever reading begins and whatever a
// fetch takes, and says so again in another process.
func TestLanesYieldTheirItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, opt := drawShelf(t), drawOptions(t)
		plan, store, lanes := build(t, a, opt)
		o := shelfOpener(a, plan, store)
		for i := range lanes {
			l := &lanes[i]
			in := a.input(above("/archive", l.Input.Path))
			p := o.Lane(l.Number)
			size := rapid.Int32Range(1, 5000).Draw(t, "fetch size")
			from := rapid.Int64Range(0, l.Items).Draw(t, "from")
			if _, err := p.Check(t.Context(), schemas.Position{Next: from}); err != nil {
				t.Fatal(err)
			}
			got := readLane(t, p, from, size)
			for k := from; k < l.Items; k++ {
				pos := l.First + k
				want := fmt.Sprintf("%s=%s/%d %d %d", in.name, in.name, pos, pos, (pos+1)*100_000_000)
				if in.bad[pos] {
					want = ""
				}
				if got[k] != want {
					t.Fatalf("lane %d of %s, offset %d: %q, want %q", l.Number, in.name, k, got[k], want)
				}
				delete(got, k)
			}
			if len(got) > 0 {
				t.Fatalf("lane %d has more: %v", l.Number, got)
			}
			p.Close()
		}
	})
}

// lane opens lane 0 of a small archive, whose first fetch takes one item.
func oneLane(t *testing.T, a *shelf, opt Options) *Partition {
	t.Helper()
	opt.items = 20
	plan, store := planOf(t, a, opt)
	return shelfOpener(a, plan, store).Lane(0)
}

// What was committed is compared with what the archive gives now.
func TestCheckComparesTheLastRecord(t *testing.T) {
	a := small()
	p := oneLane(t, a, Options{})
	f, err := p.Fetch(t.Context(), 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	last := f.Messages[0].ID()
	f.Release()
	id, err := p.Check(t.Context(), schemas.Position{Next: 5, Last: &last, TopicID: TopicID(p.opener.Plan)})
	if err != nil || id != TopicID(p.opener.Plan) || id.IsZero() {
		t.Fatalf("the same record: %v, %v", id, err)
	}
	if p.at != 5 {
		t.Errorf("the source is at %d: it is opened again for the next item", p.at)
	}
	for what, pos := range map[string]schemas.Position{
		"another sum": {Next: 5, Last: &schemas.RecordID{Offset: 4, Timestamp: last.Timestamp,
			CRC32C: last.CRC32C + 1}},
		"another time": {Next: 5, Last: &schemas.RecordID{Offset: 4, Timestamp: last.Timestamp + 1,
			CRC32C: last.CRC32C}},
		"another offset": {Next: 5, Last: &schemas.RecordID{Offset: 3, Timestamp: last.Timestamp, CRC32C: last.CRC32C}},
	} {
		var changed *SourceChangedError
		if _, err := p.Check(t.Context(), pos); !errors.As(err, &changed) {
			t.Errorf("%s: %v, want a SourceChangedError", what, err)
		}
	}
	for what, pos := range map[string]schemas.Position{
		"behind the end": {Next: 21},
		"another plan":   {Next: 5, TopicID: schemas.TopicID{1}},
	} {
		if _, err := oneLane(t, a, Options{}).Check(t.Context(), pos); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if _, err := oneLane(t, a, Options{}).Check(t.Context(), schemas.Position{Next: 20, Last: &last}); err != nil {
		t.Errorf("a lane that is done: %v", err)
	}
}

// A partition that has moved on by itself belongs to another process, too.
func TestCheckNoticesAnotherProcess(t *testing.T) {
	p := oneLane(t, small(), Options{})
	check := func(next int64, busy bool) {
		t.Helper()
		_, err := p.Check(t.Context(), schemas.Position{Next: next})
		if other := (*BusyError)(nil); errors.As(err, &other) != busy || err != nil && !busy {
			t.Errorf("at %d: %v, busy %t", next, err, busy)
		}
	}
	check(3, false)
	check(3, false)
	p.Committed(t.Context(), 7)
	check(7, false)
	check(9, true)
	check(7, false)
}

// Whatever happens to files while a lane is read stops that lane with the file's name,
// before anything of the fetch is handed over.
func TestFilesThatChange(t *testing.T) {
	file := "/archive/a/data/000007.bin"
	now := replay.File{Size: 5, ModTime: 1_700_000_000_000_000_000}
	for name, c := range map[string]struct {
		file, identity string
		state          replay.File
		err            error
		changed        bool
		want           string
	}{
		"other size": {file: file, state: replay.File{Size: 6, ModTime: now.ModTime},
			changed: true, want: "5 bytes"},
		"shorter": {file: file, state: replay.File{Size: 1, ModTime: now.ModTime},
			changed: true, want: "has 1"},
		"other time": {file: file, state: replay.File{Size: 5, ModTime: 2e18}, changed: true,
			want: "2033-05-18"},
		"gone":         {file: file, err: fs.ErrNotExist, changed: true, want: "gone"},
		"stale handle": {file: file, err: syscall.ESTALE, want: "stale"},
		"input/output": {file: file, err: syscall.EIO, want: "input/output error"},
		"common file": {file: "/archive/a/times.txt", state: replay.File{Size: 9}, changed: true,
			want: "times.txt"},
		"other time by sum": {file: file, identity: record.BySHA256,
			state: replay.File{Size: 5, SHA256: record.PartHash([]byte("000007.bin"))}},
		"other content": {file: file, identity: record.BySHA256,
			state: replay.File{Size: 5, SHA256: record.PartHash(nil)}, changed: true, want: "content"},
		"common by sum": {file: "/archive/a/times.txt", identity: record.BySHA256, changed: true,
			state: replay.File{Size: 5, SHA256: record.PartHash(nil)}, want: "content"},
	} {
		for _, when := range []string{"before the lane", "before the item", "behind the item"} {
			t.Run(name+" "+when, func(t *testing.T) {
				a := small()
				p := oneLane(t, a, Options{Identity: c.identity})
				looked := 0
				a.stat = func(path string) (replay.File, error, bool) {
					if path == c.file {
						looked++
					}
					if path != c.file || when == "behind the item" && looked == 1 {
						return replay.File{}, nil, false
					}
					if c.err != nil {
						return replay.File{}, &fs.PathError{Op: "stat", Path: path, Err: c.err}, true
					}
					return c.state, nil, true
				}
				var err error
				at := int64(0)
				if when != "before the lane" {
					at = 7
				}
				for err == nil && at < 20 {
					var f schemas.Fetched
					if f, err = p.Fetch(t.Context(), at, 1); err == nil {
						at = f.Next
						f.Release()
					}
				}
				if c.want == "" {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				var changed *SourceChangedError
				var unreadable *SourceError
				switch {
				case err == nil:
					t.Fatal("no error")
				case errors.As(err, &changed) != c.changed || errors.As(err, &unreadable) == c.changed:
					t.Errorf("%v is a %T", err, err)
				case !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.file):
					t.Errorf("%v, want %q of %s", err, c.want, c.file)
				}
				if c.file == file && at > 7 {
					t.Errorf("the items before %d were handed over", at)
				}
			})
		}
	}
}

// A file that was added to a folder moves all items behind it.
func TestFilesThatMove(t *testing.T) {
	a := small()
	plan, store := planOf(t, a, Options{items: 10})
	o := shelfOpener(a, plan, store)
	o.Archive = moved{a}
	var changed *SourceChangedError
	if _, err := o.Lane(1).Fetch(t.Context(), 0, 1); !errors.As(err, &changed) || changed.Lane != 1 ||
		!strings.Contains(err.Error(), "000011.bin") {
		t.Errorf("moved files: %v", err)
	}
}

// moved is an archive whose items have got other files.
type moved struct{ *shelf }

func (m moved) Open(ctx context.Context, in replay.Input, from int64) (replay.Source, error) {
	s, err := m.shelf.Open(ctx, in, from)
	if err == nil {
		s.(*shelfSource).shift = 1
	}
	return s, err
}

// An input that has become shorter is not a row of holes; bad items at its end are.
func TestShorterInput(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *shelfInput)
		ok     bool
	}{
		"shorter":     {func(in *shelfInput) { in.items = 17 }, false},
		"bad items":   {func(in *shelfInput) { in.bad = map[int64]bool{17: true, 18: true, 19: true} }, true},
		"all bad":     {func(in *shelfInput) { in.bad = badUntil(30) }, true},
		"none is bad": {func(*shelfInput) {}, true},
	} {
		a := &shelf{root: "/archive", inputs: []shelfInput{{name: "b", items: 20, size: 70}}}
		p := oneLane(t, a, Options{})
		c.change(&a.inputs[0])
		at := int64(0)
		var err error
		for err == nil {
			var f schemas.Fetched
			if f, err = p.Fetch(t.Context(), at, 1); err == nil {
				at = f.Next
				if f.Release != nil {
					f.Release()
				}
			}
		}
		var changed *SourceChangedError
		if c.ok && (err != io.EOF || at != 20) || !c.ok && (!errors.As(err, &changed) || at != 17) {
			t.Errorf("%s: %v at %d", name, err, at)
		}
	}
}

func badUntil(n int64) map[int64]bool {
	bad := map[int64]bool{}
	for i := range n {
		bad[i] = true
	}
	return bad
}

// The memory of a fetch is used again once it is released, and only then.
func TestFetchedMemory(t *testing.T) {
	p := oneLane(t, small(), Options{})
	first, err := p.Fetch(t.Context(), 0, 2*messageCost+100)
	if err != nil || len(first.Messages) < 2 {
		t.Fatalf("%d messages, %v", len(first.Messages), err)
	}
	if first.Bytes > 3*messageCost {
		t.Errorf("%d bytes for a limit of %d", first.Bytes, 2*messageCost+100)
	}
	kept := string(first.Messages[0].Value)
	second, err := p.Fetch(t.Context(), first.Next, 1)
	if err != nil || string(first.Messages[0].Value) != kept {
		t.Fatalf("the first fetch has changed: %q, %v", first.Messages[0].Value, err)
	}
	second.Release()
	first.Release()
	if n := len(p.opener.free.free); n != len(first.Messages)+len(second.Messages) {
		t.Errorf("%d blocks wait for their use", n)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second release passes")
		}
	}()
	first.Release()
}

// A fetch ends with its context, without handing over what was read.
func TestFetchEndsWithItsContext(t *testing.T) {
	p := oneLane(t, small(), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Fetch(ctx, 0, 100); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := p.Fetch(t.Context(), 0, 100); err != nil {
		t.Errorf("later: %v", err)
	}
}
