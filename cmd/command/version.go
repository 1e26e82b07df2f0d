package command

import (
	"fmt"
	"runtime"

	"entropipe/ops/metrics"
)

// VersionString returns release, revision, toolchain and platform.
func VersionString() string {
	return fmt.Sprintf("%s (%s, %s %s/%s)", Version, metrics.Revision(), runtime.Version(),
		runtime.GOOS, runtime.GOARCH)
}

// Version is the release. The revision comes from the build.
const Version = "0.1.0"
