package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Disks that refuse. A mode of 0555 means nothing to root, and writing until
// this machine's disk is full is no test, so small file systems are mounted.

// mounted returns a folder on a file system of its own, of a size.
func mounted(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no small file system can be mounted here, as root can: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk, dir := mounted(t, "2m"), t.TempDir()
	out, brokers := filepath.Join(disk, "out"), startBroker(t)
	const n = 60
	must(t, dir, "produce", "synthetic", "--frames", strconv.Itoa(n), "--points", "6000", "--rate", "max",
		"--brokers", brokers)
	run := []string{"run", "--brokers", brokers, "--out", out, "--until-end", "--roll-records", "5", "--retry-for", "0"}
	full := launch(t, dir, run...)
	full.exits(1, patience)
	full.says(`^entropipe: points/\d.*: no space left on device$`)
	if got := committed(verified(t, out)); got == 0 || got >= n {
		t.Fatalf("%d of %d records are committed: the disk was not full in the middle", got, n)
	}
	again := launch(t, dir, run...)
	again.exits(1, patience)
	again.says(`no space left on device$`)
	verified(t, out)

	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	must(t, dir, run...)
	holds(t, out, n)
	if left, err := os.ReadDir(filepath.Join(out, "_staging")); err != nil || len(left) > 0 {
		t.Errorf("%d folders are left in _staging; %v", len(left), err)
	}
	must(t, dir, "verify", out)
}

// full from the first byte on: not even an output can be made.
func TestDiskWithoutRoomForAnOutput(t *testing.T) {
	t.Parallel()
	disk, brokers := mounted(t, "64k"), startBroker(t)
	must(t, t.TempDir(), spread(brokers, "points", "a", "--frames", "1", "--rate", "max")...)
	if err := os.WriteFile(filepath.Join(disk, "fill"), make([]byte, 100*4096),
		0o666); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	r := launch(t, t.TempDir(), "run", "--brokers", brokers, "--out", filepath.Join(disk, "out"), "--until-end")
	r.exits(1, patience)
	r.says(`^entropipe: .*no space left on device$`)
	d := launch(t, t.TempDir(), "demo", "--out", filepath.Join(disk, "demo"), "--frames", "1", "--listen", "off")
	d.exits(1, patience)
	d.says(`^entropipe: .*no space left on device`)
}

func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	disk, dir, brokers := mounted(t, "64m"), t.TempDir(), startBroker(t)
	out := filepath.Join(disk, "out")
	must(t, dir, spread(brokers, "points", "a", "--frames", "4", "--rate", "max")...)
	run := []string{"run", "--brokers", brokers, "--out", out, "--until-end"}
	must(t, dir, run...)
	must(t, dir, spread(brokers, "points", "a", "--frames", "4", "--rate", "max")...)
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	r := launch(t, dir, run...)
	r.exits(1, patience)
	r.says(`^entropipe: --out: output folder: .*_staging cannot be written: read-only file system$`)
	if log := r.log(); strings.Contains(log, "assigned") {
		t.Errorf("records were read before the disk was found read-only:\n%s", log)
	}
	fresh := launch(t, dir, "run", "--brokers", brokers, "--out", filepath.Join(disk, "fresh"), "--until-end")
	fresh.exits(1, patience)
	fresh.says(`^entropipe: --out: .*read-only file system$`)

	// What is there can be looked at, and what is wrong is found before.
	must(t, dir, "verify", out)
	must(t, dir, "info", out)
	file := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "out: %s\nbrokers: %s\n", out, brokers), 0o666); err != nil {
		t.Fatal(err)
	}
	v := launch(t, dir, "validate", file, "--connect")
	v.exits(1, patience)
	v.until(`^FAIL output .*read-only file system$`)
	holds(t, out, 4)

	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	must(t, dir, run...)
	holds(t, out, 8)
}

// resized changes the size of a file system that mounted has made.
func resized(t *testing.T, disk, options string, flags uintptr) {
	t.Helper()
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|flags, options); err != nil {
		t.Fatal(err)
	}
}

// A disk that is full for a while delays records and loses none; meanwhile the
// service says that it is not ready, and why.
func TestRunWaitsForRoomOnTheDisk(t *testing.T) {
	t.Parallel()
	disk, dir := mounted(t, "2m"), t.TempDir()
	out, brokers := filepath.Join(disk, "out"), startBroker(t)
	const n = 60
	must(t, dir, "produce", "synthetic", "--frames", strconv.Itoa(n), "--points", "6000", "--rate", "max",
		"--brokers", brokers)
	r := launch(t, dir, "run", "--brokers", brokers, "--out", out, "--until-end", "--roll-records", "5",
		"--listen", "127.0.0.1:0")
	base := strings.TrimSuffix(r.until(`metrics=(http://\S+)`)[1], "/metrics")
	r.until(`level=WARN msg="the output cannot be written, trying again" error=".*no space left on device"`)
	waitFor(t, "a broker to answer", func() bool {
		text, status := get(t, base+"/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "the output cannot be written: ") &&
			strings.Contains(text, "no space left on device")
	})
	if text, status := get(t, base+"/healthz"); status != http.StatusOK {
		t.Errorf("a process that waits lives: %d %s", status, text)
	}
	if got := committed(verified(t, out)); got == 0 || got >= n {
		t.Fatalf("%d of %d records are committed: the disk was not full in the middle", got, n)
	}
	resized(t, disk, "size=64m", 0)
	r.exits(0, patience)
	r.says(`level=INFO msg="the output can be written again" after=`)
	r.says(`msg=done frames=` + strconv.Itoa(n) + ` .*rejects=0 `)
	holds(t, out, n)
	if left, err := os.ReadDir(filepath.Join(out, "_staging")); err != nil || len(left) > 0 {
		t.Errorf("%d folders are left in _staging; %v", len(left), err)
	}
	must(t, dir, "verify", out)
}

// A disk that becomes read-only and writable again, as after a fault of a moment.
// A signal while it is not is an end that is not good, and loses nothing.
func TestServiceOnADiskThatIsReadOnlyForAWhile(t *testing.T) {
	t.Parallel()
	disk, dir, brokers := mounted(t, "64m"), t.TempDir(), startBroker(t)
	out := filepath.Join(disk, "out")
	send := func() { must(t, dir, spread(brokers, "points", "a", "--frames", "20", "--rate", "max")...) }
	service := func() *process {
		return launch(t, dir, "run", "--brokers", brokers, "--out", out, "--roll-records", "5", "--roll-age", "100ms",
			"--ops", "hull2d", "--listen", "127.0.0.1:0")
	}
	send()
	r := service()
	metrics := r.until(`metrics=(http://\S+)`)[1]
	waitFor(t, "the records", func() bool { return reached(t, out) == 20 })
	resized(t, disk, "", syscall.MS_RDONLY)
	send()
	r.until(`level=WARN msg="the output cannot be written, trying again" error=".*read-only file system"`)
	resized(t, disk, "", 0)
	waitFor(t, "the other records", func() bool { return reached(t, out) == 40 })
	holds(t, out, 40)
	refused := func() float64 { return metric(t, metrics, "entropipe_errors_total", `reason="output_unavailable"`) }
	before := refused()
	resized(t, disk, "", syscall.MS_RDONLY)
	send()
	waitFor(t, "a refused commit", func() bool { return refused() > before })
	r.signal(syscall.SIGTERM)
	r.exits(1, patience)
	r.says(`^entropipe: points/\d.*read-only file system`)
	resized(t, disk, "", 0)
	again := service()
	waitFor(t, "all records", func() bool { return reached(t, out) == 60 })
	again.signal(syscall.SIGTERM)
	again.exits(0, patience)
	holds(t, out, 60)
	must(t, dir, "verify", out)
}

// A broker on a full disk says so, once a minute, and a producer goes on when there
// is room: what was acknowledged is there, also after kill -9.
func TestBrokerOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk, dir := mounted(t, "1m"), t.TempDir()
	address := ownAddress(t)
	broker := func() *process {
		b := launch(t, dir, "broker", "--listen", address, "--data", filepath.Join(disk, "log"), "--partitions", "1")
		b.until("^" + regexp.QuoteMeta(address) + "$")
		return b
	}
	b := broker()
	const n = 60
	p := launch(t, dir, "produce", "synthetic", "--frames", strconv.Itoa(n), "--points", "6000", "--rate", "max",
		"--brokers", address, "--compression", "none")
	b.until(`level=WARN msg="the broker cannot write its folder: .*no space left on device`)
	p.until(`brokers do not take messages; trying again`)
	resized(t, disk, "size=64m", 0)
	p.exits(0, patience)
	there := sent(t, address, "points")
	if there < n {
		t.Fatalf("%d records are there, %d were acknowledged", there, n)
	}
	b.killed()
	broker()
	if got := sent(t, address, "points"); got != there {
		t.Errorf("%d records after a restart, want %d", got, there)
	}
	out := filepath.Join(dir, "out")
	must(t, dir, "run", "--brokers", address, "--until-end", "--out", out, "--ops", "hull2d")
	if got := committed(verified(t, out)); got != there {
		t.Errorf("%d records are read, want %d", got, there)
	}
}

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
