package main

import (
	"fmt"
	"runtime"

	"entropipe/ops/metrics"
)

// versionString names release, revision and toolchain.
func versionString() string {
	return fmt.Sprintf("%s (%s, %s %s/%s)", version, metrics.Revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
