package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"

	"entropipe/cmd/command"
)

// show fills the terminal with the numbers until a key or a signal ends it.
func show(e *command.Env, from source, first *reading, interval time.Duration) error {
	screen, err := tcell.NewScreen()
	if err == nil {
		err = screen.Init()
	}
	if err != nil { // a terminal that is not known
		e.Log.Warn("the numbers are printed as lines", "reason", err, "TERM", os.Getenv("TERM"))
		return printLines(e, from, first, interval)
	}
	return run(e.Ctx, screen, from, first, interval)
}

// run draws on a screen that is initialised, and finishes it, whatever happens: the terminal is as
// before when run returns or panics.
func run(ctx context.Context, screen tcell.Screen, from source, first *reading, interval time.Duration) error {
	defer screen.Fini()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(hangup)

	events, news := make(chan tcell.Event), make(chan any)
	go screen.ChannelEvents(events, ctx.Done())
	go poll(ctx, from, interval, news)
	tick := time.NewTicker(time.Second) // ages grow between readings
	defer tick.Stop()

	m := newModel(from.name(), time.Now())
	m.interval = interval
	m.take(first)
	m.width, m.height = screen.Size()
	for {
		paint(screen, m.view())
		var event any
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
			return nil
		case event = <-news:
		case event = <-tick.C:
		case input, open := <-events:
			if !open && ctx.Err() != nil {
				return nil
			}
			if !open {
				return errors.New("the terminal is gone")
			}
			if _, failed := input.(*tcell.EventError); failed {
				return fmt.Errorf("the terminal cannot be read: %w", input.(*tcell.EventError))
			}
			event = translate(screen, input)
		}
		if c, crashed := event.(crash); crashed {
			panic(c.String())
		}
		if m.update(event) {
			return nil
		}
	}
}

// translate returns what an event of the terminal means to the model.
func translate(screen tcell.Screen, event tcell.Event) any {
	switch event := event.(type) {
	case *tcell.EventResize:
		screen.Sync()
		width, height := event.Size()
		return size{width, height}
	case *tcell.EventKey:
		if event.Key() == tcell.KeyCtrlL {
			screen.Sync()
		}
		if event.Key() == tcell.KeyRune {
			return runes[event.Rune()]
		}
		return keys[event.Key()]
	}
	return nil
}

var runes = map[rune]key{'q': keyQuit, 'Q': keyQuit, 'p': keyPause, ' ': keyPause, '?': keyHelp, 'h': keyHelp,
	'1': keyPane1, '2': keyPane2, '3': keyPane3, '4': keyPane4, 'k': keyUp, 'j': keyDown, 'g': keyTop, 'G': keyEnd}

var keys = map[tcell.Key]key{tcell.KeyCtrlC: keyQuit, tcell.KeyEscape: keyClose, tcell.KeyTab: keyNext,
	tcell.KeyBacktab: keyBack, tcell.KeyRight: keyNext, tcell.KeyLeft: keyBack, tcell.KeyUp: keyUp,
	tcell.KeyDown: keyDown, tcell.KeyPgUp: keyPageUp, tcell.KeyPgDn: keyPageDown, tcell.KeyHome: keyTop,
	tcell.KeyEnd: keyEnd}

// looks are the styles on a terminal. Without colours (NO_COLOR) bold and reverse remain.
var looks = [...]tcell.Style{
	plain: tcell.StyleDefault,
	dim:   tcell.StyleDefault.Dim(true),
	bold:  tcell.StyleDefault.Bold(true),
	good:  tcell.StyleDefault.Foreground(tcell.ColorGreen),
	warn:  tcell.StyleDefault.Foreground(tcell.ColorOlive).Bold(true),
	bad:   tcell.StyleDefault.Foreground(tcell.ColorMaroon).Bold(true),
	title: tcell.StyleDefault.Bold(true).Underline(true),
	band:  tcell.StyleDefault.Reverse(true),
}

// paint puts rows on the screen.
func paint(screen tcell.Screen, rows []row) {
	screen.Clear()
	for y, r := range rows {
		x := 0
		for _, s := range r {
			text, state := s.text, -1
			for text != "" {
				var cluster string
				var w int
				cluster, text, w, state = uniseg.FirstGraphemeClusterInString(text, state)
				points := []rune(cluster)
				screen.SetContent(x, y, points[0], points[1:], looks[s.style])
				x += w
			}
		}
	}
	screen.Show()
}
