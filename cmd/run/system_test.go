package run

import (
	"runtime"
	"strings"
	"testing"
)

// Only a system that cannot hold an output is refused, with what works instead.
func TestSystemsOfOutputs(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "freebsd"} {
		if err := checkSystem(system); err != nil {
			t.Errorf("%s: %v", system, err)
		}
	}
	if err := checkSystem("windows"); err == nil || !strings.Contains(err.Error(), "not supported on windows") ||
		!strings.Contains(err.Error(), "WSL") {
		t.Errorf("windows: %v", err)
	}
	if err := checkSystem(runtime.GOOS); runtime.GOOS != "windows" && err != nil {
		t.Error(err)
	}
}
