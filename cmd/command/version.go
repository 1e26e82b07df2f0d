package command

import (
	"fmt"
	"runtime"

	"entropipe/ops/metrics"
)

// VersionString names release, revision and toolchain.
func VersionString() string {
	return fmt.Sprintf("%s (%s, %s %s/%s)", Version, metrics.Revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Version names the release; the revision comes from the build.
const Version = "0.1.0"
