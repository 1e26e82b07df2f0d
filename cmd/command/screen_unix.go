//go:build unix

package command

import (
	"os"

	"golang.org/x/sys/unix"
)

// IsTerminal reports whether f is a terminal; other devices such as /dev/null are not.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// columns returns the width of the terminal f, or usualWidth if f reports none.
func columns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return usualWidth
	}
	return max(int(size.Col), leastWidth)
}
