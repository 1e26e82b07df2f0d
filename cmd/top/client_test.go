package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"entropipe/cmd/command"
	"entropipe/ops/live"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/tables"
)

// serve starts a process that answers as the live page's server does; token "": it wants none.
func serve(t *testing.T, token string) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	for path, text := range map[string]string{
		"/api/state": `{"version":"9","future":[1],"totals":{"frames":7},"lag":{"verdict":"keeping up` + "\u009b2J" + `"}}`,
		"/api/rejects": `{"reasons":[{"stage":"decode","reason":"r","count":3,"sample":{"topic":"p","offset":5,` +
			`"message":"\u001b[31m"}}]}`,
		"/api/series": `{"frames":[1,2]}`,
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
				http.Error(w, "no", http.StatusUnauthorized)
				return
			}
			io.WriteString(w, text)
		})
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// top runs the command, not on a terminal.
func top(t *testing.T, c Command) (out string, err error) {
	t.Helper()
	var stdout bytes.Buffer
	err = c.Run(&command.Env{Ctx: context.Background(), Stdout: &stdout, Stderr: io.Discard,
		Log: slog.New(slog.DiscardHandler)})
	return stdout.String(), err
}

// Elsewhere than on a terminal there is one JSON document with all that the process says.
func TestDocumentOfAProcess(t *testing.T) {
	out, err := top(t, Command{What: serve(t, "").URL})
	var got struct {
		Address string
		State   struct {
			Future []int
			Totals live.Counts[int64]
			Lag    live.Lag
		}
		Rejects struct{ Reasons []refusal }
		Files   any
	}
	if err != nil || json.Unmarshal([]byte(out), &got) != nil {
		t.Fatal(err, out)
	}
	if got.State.Totals.Frames != 7 || got.State.Future[0] != 1 || got.Rejects.Reasons[0].Count != 3 ||
		got.Files != nil ||
		!strings.HasPrefix(got.Address, "http://127") || got.State.Lag.Verdict != "keeping up\u009b2J" {
		t.Errorf("%+v", got)
	}
	for _, r := range out {
		if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 {
			t.Errorf("the control character %q in %q", r, out)
		}
	}
}

// A token opens what wants one. It is sent to no other server.
func TestTokens(t *testing.T) {
	s := serve(t, "correct")
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked.Store(true) }))
	defer other.Close()
	away := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer away.Close()
	for _, c := range []struct{ what, file, want string }{
		{s.URL, "", "wants a token: give --token-file"},
		{s.URL, file("wrong"), "refuses the token"},
		{s.URL, file("correct\n"), ""},
		{s.URL + "/?token=correct", "", ""},
		{s.URL, file(""), "want one line"},
		{s.URL, file("two\nlines"), "want one line"},
		{s.URL, "/does/not/exist", "--token-file: open"},
		{t.TempDir(), file("correct"), "needs no token"},
		{away.URL, file("correct"), "HTTP status 307"},
	} {
		_, err := top(t, Command{What: c.what, TokenFile: c.file})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.what, c.file, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "correct") {
			t.Errorf("the token is in %v", err)
		}
	}
	if leaked.Load() {
		t.Error("the redirect was followed")
	}
}

// What cannot be read is an error that says why, soon.
func TestUnreachable(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	answer := func(text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, text)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	old := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(old.Close)
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	for _, c := range []struct{ what, want string }{
		{closed.URL, "connection refused"},
		{"http://" + silent.Addr().String(), "does not answer within 4s"},
		{answer("<html>"), "serves no numbers of entropipe"},
		{answer("[]"), "serves no numbers of entropipe"},
		{answer(`{"totals":"x"}`), "serves no numbers of entropipe"},
		{answer(strings.Repeat(" ", mostAnswer+1)), "more than"},
		{old.URL, "serves no numbers of entropipe"},
		{t.TempDir(), "is not an output"},
		{file, "is a file"},
		{"no-such-folder", "no folder here, and no address"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			out, err := top(t, Command{What: c.what})
			if err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
				t.Errorf("%s: %v, %q; want %q", c.what, err, out, c.want)
			}
		})
	}
}

// The totals of an output come from its commits; new commits appear with rates.
func TestOutput(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 30)
	out, err := top(t, Command{What: dir})
	var got struct {
		Out, Store string
		Partitions []struct{ End, Manifests int64 }
		Tables     []struct {
			Table       string
			Rows, Files int64
		}
	}
	if err != nil || json.Unmarshal([]byte(out), &got) != nil || got.Out == "" || got.Store == "" ||
		len(got.Partitions) != 1 || got.Partitions[0].End != 30 || got.Partitions[0].Manifests != 3 ||
		len(got.Tables) == 0 {
		t.Fatal(err, out)
	}
	c := Command{What: dir}
	from, err := c.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer from.close()
	first, err := from.read(context.Background())
	if err != nil || len(first.outRates) != 0 {
		t.Fatal(err, first.outRates)
	}
	fill(t, dir, 60)
	second, err := from.read(context.Background())
	if err != nil || second.out.Partitions[0].End != 60 || len(second.outHistory) != 1 || second.outHistory[0] <= 0 {
		t.Fatalf("%v %+v %v", err, second.out.Partitions, second.outHistory)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := from.read(context.Background()); err == nil {
		t.Error("an output that is gone has numbers")
	}
}

// scripted is a source whose readings a test chooses.
type scripted struct {
	answers chan func() (*reading, error)
}

func (s *scripted) name() string         { return "scripted" }
func (s *scripted) usual() time.Duration { return time.Millisecond }
func (s *scripted) close()               {}
func (s *scripted) read(ctx context.Context) (*reading, error) {
	select {
	case f := <-s.answers:
		return f()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// The poller tries again after failures, ever later, and goes on when the process is back.
func TestPoll(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s := &scripted{answers: make(chan func() (*reading, error), 10)}
	news := make(chan any)
	s.answers <- func() (*reading, error) { return nil, errors.New("one") }
	s.answers <- func() (*reading, error) { return nil, errors.New("two") }
	s.answers <- func() (*reading, error) { return busy(), nil }
	s.answers <- func() (*reading, error) { return nil, errors.New("three") }
	s.answers <- func() (*reading, error) { panic("four") }
	go poll(ctx, s, time.Millisecond, news)
	m := newModel("name", began)
	m.take(busy())
	for i, want := range []string{"one 1s", "two 2s", "reading", "three 1s", "panic"} {
		event, got := <-news, ""
		switch event := event.(type) {
		case failure:
			got = event.err.Error() + " " + event.wait.String()
			m.update(event)
		case *reading:
			got = "reading"
			m.update(event)
		case crash:
			got = event.String()
		}
		if !strings.HasPrefix(got, want) || m.stale() != strings.Contains(want, " ") && want != "panic" {
			t.Errorf("event %d: %s, stale %v; want %s", i, got, m.stale(), want)
		}
	}
}

// fill makes the folder an output, if it is none, and commits rejects up to an offset, ten at a
// time.
func fill(t *testing.T, dir string, end int64) {
	t.Helper()
	ctx := t.Context()
	store, err := sinks.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	encoder, err := tables.New(tables.Config{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := sinks.Open(ctx, store, encoder, sinks.Config{})
	if err == nil {
		err = out.Base(ctx, "points", schemas.TopicID{}, map[int32]int64{0: 0})
	}
	if err != nil {
		t.Fatal(err)
	}
	at, err := out.Resume(ctx, "points", 0)
	for start := at.Next; err == nil && start < end; start += 10 {
		b := &schemas.Batch{Topic: "points", Start: start, End: start + 10, Messages: 10,
			Last: &schemas.RecordID{Offset: start + 9}}
		for i := range int64(10) {
			b.Rejects = append(b.Rejects, schemas.Reject{Topic: "points", Offset: start + i, Index: -1, Stage: "decode",
				Reason: "test"})
		}
		_, err = out.Commit(ctx, b)
	}
	if err != nil {
		t.Fatal(err)
	}
}
