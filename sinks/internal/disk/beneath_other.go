//go:build !linux

package disk

import "os"

// openBeneath returns nil: os.Root opens files here.
func openBeneath(*os.File, string, int) *os.File { return nil }
