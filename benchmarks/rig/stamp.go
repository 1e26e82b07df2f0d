package rig

import (
	"cmp"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"entropipe/algos/vector"
)

// Stamp tells where and when a record was measured, and by which commit.
type Stamp struct {
	Bench  string `json:"bench,omitempty"`  // the command's words after `go run ./benchmarks/`
	Time   string `json:"time,omitempty"`   // RFC 3339, UTC; older records may have the date alone
	Commit string `json:"commit,omitempty"` // 12 digits, and "-dirty" if tracked files differed from the commit
	CPU    string `json:"cpu,omitempty"`
	Cores  int    `json:"cores,omitempty"`
	Go     string `json:"go,omitempty"`
	Vector string `json:"vector,omitempty"` // instruction set of the kernels
}

// commit is asked of Git once a process: a run may add thousands of records.
var commit = sync.OnceValue(Commit)

// Here returns the stamp of a record that bench measures now, on this machine.
// The commit is that of the first call in a process.
func Here(bench string) Stamp {
	return Stamp{
		Bench: bench, Time: time.Now().UTC().Format(time.RFC3339), Commit: commit(),
		CPU: cmp.Or(CPU(), unknown), Cores: runtime.NumCPU(), Go: runtime.Version(), Vector: vector.Best().String(),
	}
}

// Commit returns the commit of the module's working tree, marked "-dirty" if a
// tracked file differs from it that is none of what runs write (benchmarks/results,
// docs/truth), or "unknown" where Git tells none. The go command stamps no commit into
// programs that `go run` builds, so Git is asked.
func Commit() string {
	root, err := Root()
	if err != nil {
		return unknown
	}
	head, err := git(root, "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return unknown
	}
	changed, err := git(root, "status", "--porcelain", "--untracked-files=no", "--", ".",
		":(exclude)benchmarks/results", ":(exclude)docs/truth")
	if err != nil {
		return unknown
	}
	if changed != "" {
		head += "-dirty"
	}
	return head
}

const unknown = "unknown"

// git runs Git in root, also where another user owns the checkout.
func git(root string, args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-c", "safe.directory=*", "-C", root}, args...)...).Output()
	return strings.TrimSpace(string(out)), err
}

// notRecorded stands on pages for what older records lack.
const notRecorded = "not recorded"

// Date returns the day of the record as YYYY-MM-DD, or "not recorded".
func (s Stamp) Date() string {
	if len(s.Time) < len(time.DateOnly) {
		return notRecorded
	}
	return s.Time[:len(time.DateOnly)]
}

// Machine returns the processor's name, or "not recorded".
func (s Stamp) Machine() string { return orNotRecorded(s.CPU) }

// Revision returns the commit, or "not recorded".
func (s Stamp) Revision() string { return orNotRecorded(s.Commit) }

func orNotRecorded(text string) string {
	if text == "" {
		return notRecorded
	}
	return text
}

// Origin returns one line for a page: machine, cores, kernels, Go version,
// dates, and commits of its records, each value once.
func Origin(stamps []Stamp) string {
	parts := []string{"CPU " + Each(stamps, Stamp.Machine)}
	if cores := Each(stamps, func(s Stamp) string { return fmt.Sprint(s.Cores) }); cores != "0" && cores != "" {
		parts = append(parts, cores+" cores")
	}
	if kernels := Each(stamps, func(s Stamp) string { return s.Vector }); kernels != "" {
		parts = append(parts, kernels+" kernels")
	}
	if version := Each(stamps, func(s Stamp) string { return s.Go }); version != "" {
		parts = append(parts, version)
	}
	return strings.Join(append(parts, "date "+Each(stamps, Stamp.Date), "commit "+Each(stamps, Stamp.Revision)), ", ")
}

// Each joins the different texts that get returns for the records, in ascending
// order: a page says once what all its records have in common.
func Each[R any](records []R, get func(R) string) string {
	var values []string
	for _, r := range records {
		if v := get(r); v != "" {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return strings.Join(slices.Compact(values), " and ")
}
