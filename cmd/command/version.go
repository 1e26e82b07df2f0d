package command

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"entropipe/algos/vector"
)

// Version is the release. The revision comes from the build.
const Version = "0.1.0"

// Build says which program this is.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // commit that was built; "unknown" without a record of it
	Modified bool   `json:"modified"` // the tree differed from the commit
	Time     string `json:"time"`     // of the commit, RFC 3339; "" if it is unknown
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Level    string `json:"level"` // vector units that the operators use on this machine
}

// Built describes this program.
func Built() Build {
	b := Build{Version: Version, Revision: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Level: vector.Best().String()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// Date returns the day of the commit, YYYY-MM-DD, or "" if it is unknown.
func (b Build) Date() string {
	if len(b.Time) < len("2006-01-02") {
		return ""
	}
	return b.Time[:len("2006-01-02")]
}

// String returns the line of the command version.
func (b Build) String() string { return "entropipe " + b.text() + "\n" }

func (b Build) text() string {
	revision := b.Revision
	if b.Modified {
		revision += "+modified"
	}
	return fmt.Sprintf("%s (%s, %s %s/%s)", b.Version, revision, b.Go, b.OS, b.Arch)
}

// VersionString returns release, revision, toolchain and platform.
func VersionString() string { return Built().text() }
