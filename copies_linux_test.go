package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// groupOf returns the group that a run says it is in.
func groupOf(r *process) string { return r.until(`msg=running .*group=(\S+)`)[1] }

// A copy of an output has the original's name, and so its group. The later of both
// ends with exit status 78 and says what can be done; the original keeps all
// partitions. Each of the two ways out works, and gives the copy all records.
func TestACopiedOutputIsRefused(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	out, copied := filepath.Join(dir, "out"), filepath.Join(dir, "copy")
	must(t, dir, spread(brokers, "points", "a", "--frames", "30", "--rate", "max")...)
	must(t, dir, fast(brokers, "points", "--until-end")...)
	if err := os.CopyFS(copied, os.DirFS(out)); err != nil {
		t.Fatal(err)
	}
	first := launch(t, dir, fast(brokers, "points", "--session-timeout", "6s")...)
	group := groupOf(first)
	first.until(`msg=assigned .* partitions=4$`)
	must(t, dir, spread(brokers, "points", "a", "--frames", "20", "--rate", "max")...)

	copyOf := fast(brokers, "points", "--session-timeout", "6s", "--out", copied)
	second := launch(t, dir, copyOf...)
	second.exits(78, patience)
	second.says(`another copy of this output.*--group NAME`)
	if regexp.MustCompile(`msg=assigned`).MatchString(second.log()) {
		t.Error("the copy was given partitions")
	}
	waitFor(t, "the records in the original", func() bool { return reached(t, out) == 50 })
	if got := groupOf(second); got != group {
		t.Errorf("the copy's group is %s, the original's %s: there was nothing to refuse", got, group)
	}

	must(t, dir, append(copyOf, "--group", "copy", "--until-end")...)
	holds(t, copied, 50)
	if err := os.Remove(filepath.Join(copied, "_commits", "store.json")); err != nil {
		t.Fatal(err)
	}
	must(t, dir, spread(brokers, "points", "b", "--frames", "10", "--rate", "max")...)
	third := launch(t, dir, append(copyOf, "--until-end")...)
	third.exits(0, patience)
	if got := groupOf(third); got == group {
		t.Errorf("without its store.json the copy is still in group %s", got)
	}
	holds(t, copied, 60)
	waitFor(t, "the records in the original", func() bool { return published(t, out, 60) })
	first.signal(syscall.SIGTERM)
	first.exits(0, patience)
	holds(t, out, 60)
}

// An output that was moved, and one that is seen through a mount as containers see
// it, is the same: a second worker there shares the partitions with the first,
// which has been at work under the old name all the time.
func TestAMovedOrMountedOutputRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(t *testing.T, out, there string){
		"moved": func(t *testing.T, out, there string) {
			if err := os.Rename(out, there); err != nil {
				t.Fatal(err)
			}
		},
		"mounted": func(t *testing.T, out, there string) {
			if err := os.Mkdir(there, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mount(out, there, "", syscall.MS_BIND, ""); err != nil {
				t.Skipf("nothing can be mounted here: %v", err)
			}
			t.Cleanup(func() { syscall.Unmount(there, syscall.MNT_DETACH) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers, dir := startBroker(t), t.TempDir()
			out, there := filepath.Join(dir, "out"), filepath.Join(dir, "there")
			must(t, dir, spread(brokers, "points", "a", "--frames", "30", "--rate", "max")...)
			first := launch(t, dir, fast(brokers, "points")...)
			first.until(`msg=assigned .* partitions=4$`)
			waitFor(t, "commits", func() bool { return reached(t, out) == 30 })
			place(t, out, there)
			second := launch(t, dir, fast(brokers, "points", "--out", there)...)
			second.until(`msg=assigned .* partitions=[1-3]$`)
			for _, sequence := range []string{"a", "b", "e"} {
				must(t, dir, spread(brokers, "points", sequence, "--frames", "20", "--rate", "max")...)
			}
			waitFor(t, "the records of both", func() bool { return reached(t, there) == 90 })
			for _, r := range []*process{first, second} {
				r.signal(syscall.SIGTERM)
				r.exits(0, patience)
				if strings.Contains(r.log(), "another") {
					t.Errorf("an alarm:\n%s", r.log())
				}
			}
			holds(t, there, 90)
		})
	}
}
