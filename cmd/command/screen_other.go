//go:build !unix

package command

import "os"

// IsTerminal reports whether f is a character device, as terminals are.
func IsTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// columns returns the usual width of a terminal.
func columns(*os.File) int { return usualWidth }
