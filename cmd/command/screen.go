package command

import (
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"
)

// screen is stderr. On a terminal its last line may be a bar, which is drawn again
// and again: what is written meanwhile, such as the log, appears above the bar. No
// control sequence is used but the carriage return, which every terminal knows.
// Methods may be called concurrently.
//
// vbauerster/mpb does not serve: its bar of a known total ends only when all work is
// done, which interrupted work never is, and it draws over log lines that are written
// between its frames.
type screen struct {
	mu    sync.Mutex
	w     io.Writer
	width func() int // columns of the terminal; nil: w is none that bars are for
	line  string     // the bar as it stands there; "": none
}

// NewScreen returns a screen on w. A terminal without carriage returns (TERM=dumb,
// or unset) counts as none.
func NewScreen(w io.Writer) *screen {
	s := &screen{w: w}
	if f, ok := w.(*os.File); ok && IsTerminal(f) && !isDumb(os.Getenv("TERM")) {
		s.width = func() int { return columns(f) }
	}
	return s
}

func isDumb(term string) bool {
	return term == "dumb" || term == "" && runtime.GOOS != "windows" // which has no such variable
}

// Write writes text above the bar, if there is one.
func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == "" {
		return s.w.Write(text)
	}
	above := "\r" + strings.Repeat(" ", utf8.RuneCountInString(s.line)+typed) + "\r" + string(text)
	if !strings.HasSuffix(above, "\n") {
		above += "\n"
	}
	if _, err := io.WriteString(s.w, above+s.line); err != nil {
		return 0, err
	}
	return len(text), nil
}

// draw makes line the bar, cut to the width of the terminal. The rest of the row is
// blanked, since there may be more of the last bar, or what was typed; then the line
// is written once more, so that the cursor stands behind it.
func (s *screen) draw(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	width := s.width() - 1 // a full row would begin another
	s.line = cut(line, width-typed)
	io.WriteString(s.w, "\r"+s.line+strings.Repeat(" ", width-utf8.RuneCountInString(s.line))+"\r"+s.line)
}

// typed is how many columns the terminal itself writes behind the bar: ^C.
const typed = 2

// leave lets the bar stand where it is, as it is.
func (s *screen) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

// Abandon is leave for a process that ends at once: it does not wait for a terminal
// that takes nothing.
func (s *screen) Abandon() {
	if s.mu.TryLock() {
		defer s.mu.Unlock()
		s.end()
	}
}

// end is leave with the lock held.
func (s *screen) end() {
	if s.line != "" {
		s.line = ""
		io.WriteString(s.w, "\n")
	}
}

// cut cuts line to n columns, if it is longer. Each rune counts as one column.
func cut(line string, n int) string {
	if runes := []rune(line); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return line
}

// usualWidth is how many columns a terminal has that does not tell: one in a
// container, or of a program that runs another.
const usualWidth = 80

// leastWidth is the narrowest window that a bar is drawn for.
const leastWidth = 8
