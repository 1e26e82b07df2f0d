//go:build !unix

package broker

import "os"

// lockFile does nothing where the system has no flock: two brokers on one
// folder are then the user's to avoid.
func lockFile(*os.File) error { return nil }
