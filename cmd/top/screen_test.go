package top

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"
)

// ended is a screen that says whether it was finished.
type ended struct {
	tcell.SimulationScreen
	finished chan struct{}
}

func (e *ended) Fini() {
	e.SimulationScreen.Fini()
	close(e.finished)
}

// The terminal is given back whatever ends the program; hostile names reach it as text.
func TestScreen(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*ended, *scripted, context.CancelFunc)
		want string // panic
	}{
		{"q", func(e *ended, _ *scripted, _ context.CancelFunc) { e.InjectKey(tcell.KeyRune, 'q', 0) }, ""},
		{"Ctrl-C", func(e *ended, _ *scripted, _ context.CancelFunc) { e.InjectKey(tcell.KeyCtrlC, 0, 0) }, ""},
		{"signal", func(_ *ended, _ *scripted, stop context.CancelFunc) { stop() }, ""},
		{"panic of the poller", func(_ *ended, s *scripted, _ context.CancelFunc) {
			s.answers <- func() (*reading, error) { panic("broken") }
		}, "panic: broken"},
		{"panic of the picture", func(_ *ended, s *scripted, _ context.CancelFunc) {
			s.answers <- func() (*reading, error) { return &reading{}, nil }
		}, "nil pointer"},
		{"failure, then q", func(e *ended, s *scripted, _ context.CancelFunc) {
			s.answers <- func() (*reading, error) { return nil, errors.New("gone") }
			e.InjectKey(tcell.KeyDown, 0, 0)
			e.InjectKey(tcell.KeyRune, 'q', 0)
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			screen := &ended{tcell.NewSimulationScreen(""), make(chan struct{})}
			if err := screen.Init(); err != nil {
				t.Fatal(err)
			}
			screen.SetSize(80, 24)
			s := &scripted{answers: make(chan func() (*reading, error), 10)}
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			result := make(chan any, 1)
			go func() {
				defer func() { result <- recover() }()
				if err := run(ctx, screen, s, busy(), time.Millisecond); err != nil {
					t.Error(err)
				}
			}()
			c.end(screen, s, stop)
			select {
			case got := <-result:
				text := ""
				if err, is := got.(error); is {
					text = err.Error()
				} else if got != nil {
					text = got.(string)
				}
				if c.want == "" && text != "" || !strings.Contains(text, c.want) {
					t.Errorf("panic %q, want %q", text, c.want)
				}
			case <-time.After(time.Minute):
				t.Fatal("it has not ended")
			}
			select {
			case <-screen.finished:
			default:
				t.Error("the terminal was not given back")
			}
		})
	}
}

// What is painted is the picture, cell by cell, also with wide characters.
func TestPaint(t *testing.T) {
	screen := tcell.NewSimulationScreen("")
	if err := screen.Init(); err != nil {
		t.Fatal(err)
	}
	defer screen.Fini()
	screen.SetSize(80, 60)
	m := newModel("name", began)
	m.take(busy())
	m.update(size{80, 60})
	m.update(keyPane2)
	paint(screen, m.view())
	cells, columns, _ := screen.GetContents()
	for y, r := range m.view() {
		var b strings.Builder
		for x := 0; x < columns; x++ {
			cell := string(cells[y*columns+x].Runes)
			b.WriteString(cell)
			x += max(width(cell)-1, 0)
		}
		if got := strings.TrimRight(b.String(), " "); got != r.String() {
			t.Errorf("row %d: %q, want %q", y, got, r.String())
		}
	}
}
