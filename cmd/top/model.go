package top

import (
	"fmt"
	"time"

	"entropipe/ops/live"
	"entropipe/ops/web"
	"entropipe/sinks/read"
)

// reading is what a source gave at one time: of a process (state), or of an output (out).
// Nobody changes it.
type reading struct {
	at       time.Time
	document any // output of --json

	state   *live.State
	series  *live.Series // this and the next two: nil if the process does not serve them
	rejects []refusal
	files   *web.Files

	out        *read.Summary
	left       int                // manifests that are known and not yet read
	outRates   map[string]float64 // rows a second, by table
	outHistory []float64
}

// failure says that a reading failed, and that the next one follows after wait.
type failure struct {
	at   time.Time
	err  error
	wait time.Duration
}

// crash is a panic of the poller.
type crash struct {
	value any
	stack []byte
}

func (c crash) String() string { return fmt.Sprintf("panic: %v\n\n%s", c.value, c.stack) }

// key is what a key means.
type key int

const (
	keyNone key = iota
	keyQuit
	keyClose // the list of keys
	keyPause
	keyHelp
	keyNext // pane
	keyBack
	keyUp
	keyDown
	keyPageUp
	keyPageDown
	keyTop
	keyEnd
	keyPane1 // and the panes after it
	keyPane2
	keyPane3
	keyPane4
)

// size is a new size of the window, columns and rows.
type size struct{ width, height int }

// model is all that a picture depends on. Only update and take change it.
type model struct {
	name          string
	width, height int
	interval      time.Duration // between readings
	now           time.Time
	shown         *reading // nil: none yet
	lost          *failure // nil: the last reading succeeded
	paused, help  bool
	pane          int // index of panes
	scroll        int // rows of the body above the window
}

func newModel(name string, now time.Time) *model { return &model{name: name, now: now} }

// take makes r what is shown, unless the picture is paused.
func (m *model) take(r *reading) {
	m.lost = nil
	m.now = r.at
	if !m.paused || m.shown == nil {
		m.shown = r
	}
}

// update takes an event: *reading, failure, key, size, or the time. It returns true for the key
// that ends the program.
func (m *model) update(event any) (quit bool) {
	switch event := event.(type) {
	case *reading:
		m.take(event)
	case failure:
		m.now, m.lost = event.at, &event
	case time.Time:
		m.now = event
	case size:
		m.width, m.height = event.width, event.height
	case key:
		quit = m.press(event)
	}
	m.scroll = max(min(m.scroll, len(m.content())-m.room()), 0)
	return quit
}

// room returns the rows of the body that the window shows.
func (m *model) room() int { return max(m.height-len(m.heading())-1, 0) }

func (m *model) press(k key) (quit bool) {
	page := max(m.room(), 1)
	switch k {
	case keyQuit:
		return true
	case keyClose:
		m.help, m.scroll = false, 0
	case keyHelp:
		m.help, m.scroll = !m.help, 0
	case keyPause:
		m.paused = !m.paused
	case keyNext:
		m.choose((m.pane + 1) % len(panes))
	case keyBack:
		m.choose((m.pane + len(panes) - 1) % len(panes))
	case keyUp:
		m.scroll--
	case keyDown:
		m.scroll++
	case keyPageUp:
		m.scroll -= page
	case keyPageDown:
		m.scroll += page
	case keyTop:
		m.scroll = 0
	case keyEnd:
		m.scroll = len(m.content())
	case keyPane1, keyPane2, keyPane3, keyPane4:
		m.choose(int(k - keyPane1))
	}
	return false
}

func (m *model) choose(pane int) { m.pane, m.scroll, m.help = pane, 0, false }

// staleAfter is how much later than expected a reading may come before the numbers count as stale.
const staleAfter = 5 * time.Second

// stale reports whether the process has given no newer numbers although it should have.
func (m *model) stale() bool {
	if m.lost != nil {
		return true
	}
	return !m.paused && m.now.Sub(m.shown.at) > m.interval+staleAfter
}
