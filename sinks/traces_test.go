package sinks_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/protocol"
	"entropipe/sinks/record"
)

// The model in sinks/internal/protocol is only worth what the code has in common with it. So
// the code runs the model's paths: every call of a store that the model knows waits for its
// turn, ends as the path says, and afterwards the output holds what the model says.

// turn is a call that waits: what it is, and how it is to end.
type turn struct {
	op  string
	how chan string // done, exists, unsure, dropped, crash
}

var (
	errCrashed = errors.New("the process has died")
	errUnsure  = errors.New("the answer is lost")
)

// modelStore is an output in memory. One writer at a time touches it.
type modelStore struct {
	files map[string][]byte
}

// gate is the store as one writer sees it.
type gate struct {
	*modelStore
	turns   chan turn // the calls of this writer that wait
	dead    bool
	asks    bool // the answer of a creation was lost: the next reading is a step
	winning bool // Publish is called by Commit
}

// wait waits for the writer's turn and returns how its call is to end.
func (g *gate) wait(op string) string {
	if g.dead {
		return "crash"
	}
	t := turn{op, make(chan string)}
	g.turns <- t
	how := <-t.how
	g.dead = how == "crash"
	return how
}

func (g *gate) Create(_ context.Context, name string, data []byte) error {
	how := "done"
	if _, manifest := record.ManifestStart(name[strings.LastIndexByte(name, '/')+1:]); manifest {
		how = g.wait("create")
	}
	_, there := g.files[name]
	switch {
	case how == "crash":
		return errCrashed
	case how == "dropped":
		g.asks = true
		return errUnsure
	case there:
		return sinks.ErrExists
	}
	g.files[name] = data
	if how == "unsure" {
		g.asks = true
		return errUnsure
	}
	return nil
}

func (g *gate) Read(_ context.Context, name string) ([]byte, error) {
	if g.asks {
		g.asks = false
		g.wait("ask")
	}
	data, ok := g.files[name]
	switch {
	case g.dead:
		return nil, errCrashed
	case !ok:
		return nil, sinks.ErrNotFound
	}
	return data, nil
}

func (g *gate) Stage(_ context.Context, name string) (io.WriteCloser, error) {
	if g.dead {
		return nil, errCrashed
	}
	return &stagedFile{store: g.modelStore, name: name}, nil
}

type stagedFile struct {
	bytes.Buffer
	store *modelStore
	name  string
}

func (f *stagedFile) Close() error {
	f.store.files[f.name] = f.Bytes()
	return nil
}

func (g *gate) Publish(_ context.Context, moves []sinks.Move) error {
	op := "adopt"
	if g.winning {
		op = "publish"
	}
	for _, m := range moves {
		if g.wait(op) == "crash" {
			return errCrashed
		}
		data, staged := g.files[m.From]
		if _, published := g.files[m.To]; !staged && !published {
			return &sinks.LostFileError{Move: m, Problem: "it is at neither place"}
		}
		if staged {
			g.files[m.To] = data
			delete(g.files, m.From)
		}
	}
	return nil
}

func (g *gate) Discard(_ context.Context, folder string) error {
	inside := func(name string, _ []byte) bool { return strings.HasPrefix(name, folder+"/") }
	found := false
	for name := range g.files {
		found = found || inside(name, nil)
	}
	if found && g.wait(map[bool]string{true: "lose", false: "clean"}[g.winning]) == "crash" {
		return errCrashed
	}
	maps.DeleteFunc(g.files, inside)
	return nil
}

func (g *gate) Open(_ context.Context, name string) (sinks.Object, error) {
	data, ok := g.files[name]
	switch {
	case g.dead:
		return nil, errCrashed
	case !ok:
		return nil, sinks.ErrNotFound
	}
	return object{bytes.NewReader(data)}, nil
}

type object struct{ *bytes.Reader }

func (object) Close() error { return nil }

func (g *gate) List(_ context.Context, folder string, f func(sinks.Entry) error) error {
	for _, name := range slices.Sorted(maps.Keys(g.files)) {
		if strings.HasPrefix(name, folder+"/") {
			if err := f(sinks.Entry{Name: name, Size: int64(len(g.files[name]))}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *gate) Names(_ context.Context, folder string) (names []string, err error) {
	for name := range g.files {
		if rest, ok := strings.CutPrefix(name, folder+"/"); ok {
			names = append(names, strings.SplitN(rest, "/", 2)[0])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// twoFiles is an Encoder of batches with two files.
type twoFiles struct{}

func (twoFiles) Layout() sinks.Layout {
	return sinks.Layout{Schema: record.FormatVersion, PartitionBy: []string{"dataset"}}
}

func (twoFiles) Plan(b *schemas.Batch, _ int) []sinks.File {
	part := fmt.Sprintf("part-0-%d-%d%s", b.Start, b.End, record.DataSuffix)
	return []sinks.File{
		{Table: "hulls", Path: "hulls/" + part},
		{Table: record.Frames, Path: record.Frames + "/" + part},
	}
}

func (twoFiles) Encode(w io.Writer, f sinks.File, b *schemas.Batch) (int64, error) {
	_, err := fmt.Fprintf(w, "%s %d %d", f.Table, b.Start, b.End)
	return b.End - b.Start, err
}

// modelWriter is a process.
type modelWriter struct {
	gate  *gate
	out   *sinks.Output
	ended chan error // the call that runs has ended
	runs  bool
	pos   schemas.Position
	turn  *turn // the call of the store that waits
}

func (w *modelWriter) start(call func() error) {
	w.runs = true
	go func() { w.ended <- call() }()
}

// settle waits until the writer waits for its turn, or its call has ended.
func (w *modelWriter) settle() error {
	if !w.runs || w.turn != nil {
		return nil
	}
	select {
	case t := <-w.gate.turns:
		w.turn = &t
		return nil
	case err := <-w.ended:
		w.runs = false
		return err
	}
}

// allow lets the call that waits go on.
func (w *modelWriter) allow(op, how string) error {
	if w.turn == nil || w.turn.op != op {
		return fmt.Errorf("the code does %+v", w.turn)
	}
	t := w.turn
	w.turn = nil
	t.how <- how
	return nil
}

// modelRun runs one path.
type modelRun struct {
	store   *modelStore
	writers [2]*modelWriter
}

var errUnrealizable = errors.New(
	"the code lists once and discards in any order, and the model looks again for every step",
)

const modelTopic = "t"

func (r *modelRun) begin(w *modelWriter) error {
	ctx := context.Background()
	w.gate = &gate{modelStore: r.store, turns: make(chan turn)}
	w.ended = make(chan error, 1)
	out, err := sinks.Open(ctx, w.gate, twoFiles{}, sinks.Config{})
	if err != nil {
		return err
	}
	w.out = out
	return out.Base(ctx, modelTopic, schemas.TopicID{}, map[int32]int64{0: 0})
}

func (r *modelRun) step(s protocol.Step) error {
	w, ctx := r.writers[s.Writer], context.Background()
	switch s.Op {
	case "resume":
		if w.out == nil {
			if err := r.begin(w); err != nil {
				return err
			}
		}
		w.gate.winning = false
		w.start(func() (err error) { w.pos, err = w.out.Resume(ctx, modelTopic, 0); return err })
	case "begin":
		w.gate.winning = true
		b := &schemas.Batch{Topic: modelTopic, Start: w.pos.Next, End: int64(s.What),
			Messages: int64(s.What) - w.pos.Next, Last: &schemas.RecordID{Offset: int64(s.What) - 1}}
		for o := b.Start; o < b.End; o++ {
			b.Results = append(b.Results, schemas.Result{FrameKey: schemas.FrameKey{Topic: modelTopic, Offset: o}})
		}
		w.start(func() error {
			_, err := w.out.Commit(ctx, b)
			w.pos.Next = b.End
			return err
		})
	case "clean":
		if w.turn == nil && s.What != protocol.NoAttempt {
			return errUnrealizable
		}
		if s.What == protocol.NoAttempt {
			break
		}
		fallthrough
	case "adopt", "create", "ask", "publish", "lose":
		if s.Op == "lose" && !w.runs {
			return nil // another writer has discarded its files, and there was no call to wait for
		}
		if err := w.allow(s.Op, s.Outcome); err != nil {
			return err
		}
	case "crash":
		w.gate.dead = true
		if w.turn != nil {
			if err := w.allow(w.turn.op, "crash"); err != nil {
				return err
			}
		}
		if w.runs {
			<-w.ended
		}
		*w = modelWriter{}
		return nil
	default:
		return fmt.Errorf("the code has no %s", s.Op)
	}
	if err := w.settle(); err != nil && !errors.Is(err, schemas.ErrLost) {
		return err
	}
	if s.Op == "clean" && s.What == protocol.NoAttempt && (w.runs || w.turn != nil) {
		return fmt.Errorf("the code does %+v", w.turn)
	}
	return nil
}

// view returns what the store holds.
func (r *modelRun) view() (v protocol.View) {
	v.Manifests = map[int]int{}
	for name, data := range r.store.files {
		if start, ok := record.ManifestStart(name[strings.LastIndexByte(name, '/')+1:]); ok {
			m, err := record.ParseManifest(name, data)
			if err != nil {
				panic(err)
			}
			v.Manifests[int(start)] = int(m.End)
			continue
		}
		if strings.HasPrefix(name, record.CommitsFolder) {
			continue
		}
		words := strings.Fields(string(data))
		start, _ := strconv.Atoi(words[1])
		end, _ := strconv.Atoi(words[2])
		at := &v.Published
		if strings.HasPrefix(name, record.StagingFolder) {
			at = &v.Staged
		}
		*at = append(*at, protocol.Range{Start: start, End: end, Frames: words[0] == record.Frames})
	}
	return v
}

func sorted(ranges []protocol.Range) string {
	slices.SortFunc(ranges, func(a, b protocol.Range) int {
		return cmp.Or(a.Start-b.Start, a.End-b.End, strings.Compare(fmt.Sprint(a.Frames), fmt.Sprint(b.Frames)))
	})
	return fmt.Sprint(ranges)
}

// run runs the path, and ends all writers.
func (r *modelRun) run(steps []protocol.Step, views []protocol.View) (err error) {
	defer func() {
		for i := range r.writers {
			if r.writers[i].out != nil {
				r.step(protocol.Step{Writer: i, Op: "crash"})
			}
		}
	}()
	other := false // the code has discarded another attempt first
	for i, s := range steps {
		if err := r.step(s); err != nil && other {
			return errUnrealizable
		} else if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		got, want := r.view(), views[i]
		other = other ||
			s.Op == "clean" && sorted(got.Staged) != sorted(want.Staged) && len(got.Staged) == len(want.Staged)
		if other {
			got.Staged, want.Staged = got.Staged[:0], want.Staged[:0]
		}
		if !maps.Equal(got.Manifests, want.Manifests) || sorted(got.Published) != sorted(want.Published) ||
			sorted(got.Staged) != sorted(want.Staged) {
			return fmt.Errorf("step %d: the output holds %+v, in the model %+v", i, got, want)
		}
		for n, next := range want.Ready {
			if w := r.writers[n]; w.runs || w.pos.Next != int64(next) {
				return fmt.Errorf(
					"step %d: writer %d goes on at %d (a call runs: %t), in the model at %d",
					i,
					n,
					w.pos.Next,
					w.runs,
					next,
				)
			}
		}
	}
	return nil
}

// Law: the code does what the model does, along the model's paths.
func TestTheCodeRunsThePathsOfTheModel(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine at a time: nothing for the race detector")
	}
	defer sinks.SetCreateWait(sinks.SetCreateWait(time.Nanosecond))
	paths, unrealizable, length := 0, 0, 0
	stride := 120
	if os.Getenv("ENTROPIPE_LONG") != "" {
		stride = 40
	}
	for _, size := range []struct{ messages, attempts, stride int }{{1, 2, 1}, {2, 3, stride}} {
		protocol.Paths(size.messages, size.attempts, size.stride, func(steps []protocol.Step, views []protocol.View) {
			if t.Failed() {
				return
			}
			r := &modelRun{store: &modelStore{files: map[string][]byte{}}, writers: [2]*modelWriter{{}, {}}}
			err := r.run(steps, views)
			switch {
			case errors.Is(err, errUnrealizable):
				unrealizable++
			case err != nil:
				t.Errorf("%v\n%+v", err, steps)
			}
			paths, length = paths+1, length+len(steps)
		})
	}
	t.Logf("%d paths of %d steps on average, %d of them not the code's", paths, length/max(paths, 1), unrealizable)
	if paths < 1000 || unrealizable > paths/5 {
		t.Errorf("%d paths, %d of them not the code's", paths, unrealizable)
	}
}
