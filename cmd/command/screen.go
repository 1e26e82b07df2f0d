package command

import (
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"
)

// Screen is stderr. On a terminal its last line may be a bar, which is drawn repeatedly;
// other text, such as the log, appears above the bar. Besides line ends the only control
// character in use is the carriage return, which every terminal supports. Methods may be
// called concurrently.
//
// The module vbauerster/mpb does not serve: its bar of a known total ends only when all
// work is done, which interrupted work never is, and it draws over log lines that are
// written between its frames.
type Screen struct {
	mu    sync.Mutex
	w     io.Writer
	width func() int // returns the columns of the terminal; nil: no bars on w
	line  string     // the bar on the terminal; "": none
}

// NewScreen returns a Screen on w. Bars need a terminal; one without carriage returns
// (TERM=dumb, or unset) gets none.
func NewScreen(w io.Writer) *Screen {
	s := &Screen{w: w}
	if f, ok := w.(*os.File); ok && IsTerminal(f) && !IsDumb() {
		s.width = func() int { return columns(f) }
	}
	return s
}

// Bars reports whether a bar can be drawn: whether it is on a terminal.
func (s *Screen) Bars() bool { return s.width != nil }

// IsDumb reports whether the terminal knows no control characters: TERM=dumb, or unset.
func IsDumb() bool { return isDumb(os.Getenv("TERM")) }

func isDumb(term string) bool {
	return term == "dumb" || term == "" && runtime.GOOS != "windows" // Windows does not set TERM
}

// Write writes text, above the bar if there is one.
func (s *Screen) Write(text []byte) (int, error) {
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

// draw makes line the bar, cut to the width of the terminal. It blanks the rest of the
// row, where a longer bar or typed characters may stand, and writes the line once more, so
// that the cursor ends behind it.
func (s *Screen) draw(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	width := s.width() - 1 // a full row would begin another
	s.line = cut(line, width-typed)
	io.WriteString(s.w, "\r"+s.line+strings.Repeat(" ", width-utf8.RuneCountInString(s.line))+"\r"+s.line)
}

// typed is the number of columns that the terminal itself writes behind the bar for ^C.
const typed = 2

// leave ends the bar and leaves its last state on the terminal.
func (s *Screen) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

// Abandon ends the bar for a process that exits at once: it does not wait for a writer
// that is blocked on the terminal.
func (s *Screen) Abandon() {
	if s.mu.TryLock() {
		defer s.mu.Unlock()
		s.end()
	}
}

// end is leave with the lock held.
func (s *Screen) end() {
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

// usualWidth is the assumed number of columns of a terminal that reports none, as some in
// containers do.
const usualWidth = 80

// leastWidth is the narrowest window that a bar is drawn for.
const leastWidth = 8
