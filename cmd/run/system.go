package run

import "fmt"

// checkSystem returns an error if a system's file systems do not keep what an output rests
// on: names that appear by a link or a rename, at once and for good.
func checkSystem(system string) error {
	if system != "windows" {
		return nil
	}
	return fmt.Errorf("outputs are not supported on %s, whose folders cannot be synced to disk: run and demo need "+
		"Linux or macOS, such as WSL 2; the other commands work here", system)
}
