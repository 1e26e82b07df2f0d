//go:build unix

package command

import (
	"os"

	"golang.org/x/sys/unix"
)

// IsTerminal tells whether f is a terminal, and not another device such as
// /dev/null.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// columns returns the width of the terminal f, usualWidth if f does not tell.
func columns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return usualWidth
	}
	return max(int(size.Col), leastWidth)
}
