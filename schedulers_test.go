//go:build unix

package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// archiveOf writes drives of scans into dir/archive.
func archiveOf(t *testing.T, dir string, drives, scans, points int) {
	t.Helper()
	for d := range drives {
		files := map[string]string{}
		for i := range scans {
			files[padded(i)+".bin"] = string(scan(points, i))
		}
		writeFiles(t, filepath.Join(dir, "archive", "drive-"+padded(d)), 0o666, files)
	}
}

func padded(n int) string {
	digits := strconv.Itoa(n)
	return strings.Repeat("0", 10-len(digits)) + digits
}

// podArgs are the arguments of the manifest's container, with folders of dir in place of its
// mounts.
func podArgs(t *testing.T, spec jobSpec, dir string) []string {
	t.Helper()
	container := spec.Template.Spec.Containers[0]
	if !slices.Equal(container.Command, []string{"entropipe"}) {
		t.Fatalf("the container runs %q", container.Command)
	}
	var args []string
	for _, arg := range container.Args {
		for _, mount := range container.Mounts {
			arg = strings.ReplaceAll(arg, mount.Path, filepath.Join(dir, filepath.Base(mount.Path)))
		}
		args = append(args, arg)
	}
	return args
}

// Law: under a Job, a shard that SIGTERM interrupts exits 75, is started again and goes on, and
// every frame is in the tables once. So it is when pods of one index overlap, frozen ones too.
func TestJobDoesEachShardOnce(t *testing.T) {
	t.Parallel()
	for round := 1; !interruptedJob(t); round++ {
		if round == 6 {
			t.Fatalf("in %d rounds the events found no pods in the middle of their work", round)
		}
	}
}

// interruptedJob runs a Job to its end while things happen to its pods, and checks its output.
// It returns whether all of them happened: a pod may be done before this process, on a busy
// machine, sees its first commit.
func interruptedJob(t *testing.T) bool {
	t.Helper()
	// Work takes much longer than a commit: a pod that has committed something is not done with
	// the rest, which it would only commit after a signal.
	const drives, scans, points = 18, 8, 12000
	spec, dir := readJob(t), t.TempDir()
	archiveOf(t, dir, drives, scans, points)
	out := filepath.Join(dir, "output")
	args := append(podArgs(t, spec, dir), "--roll-records=1", "--workers=1", "--ops=delaunay2d")
	c := newController(t, spec, func(index int) *process {
		return launchWith(t, dir, []string{"JOB_COMPLETION_INDEX=" + strconv.Itoa(index)}, args...)
	})
	frozen := map[int]*pod{}
	// What happens to pods that have committed something and are not done, one after the other.
	// The last one happens to all until one is interrupted before its end.
	events := []func(p *pod){
		func(p *pod) { p.disrupted = true; p.process.cmd.Process.Kill() }, // its node is lost
		func(p *pod) { // its node is cut off: it stands still while another pod does its work
			p.process.signal(syscall.SIGSTOP)
			frozen[p.index] = p
			c.add(p.index)
		},
		func(p *pod) { c.add(p.index) },                                        // two from now on
		func(p *pod) { p.disrupted = true; p.process.signal(syscall.SIGTERM) }, // its node is drained
		func(p *pod) { p.process.signal(syscall.SIGTERM) },                     // it is deleted
	}
	happened := map[int]bool{} // by index
	c.run(func() {
		for _, p := range slices.Clone(c.running) {
			if len(events) > 0 && !happened[p.index] && commitsOf(t, out, spec.Completions, p.index) > 0 {
				happened[p.index] = true
				events[0](p)
				if len(events) > 1 || slices.Contains(slices.Concat(slices.Collect(maps.Values(c.statuses))...), 75) {
					events = events[1:]
				}
			}
		}
		for index, p := range frozen {
			if c.succeeded[index] {
				p.process.signal(syscall.SIGCONT)
				delete(frozen, index)
			}
		}
	})
	if len(c.failed) > 0 || len(c.failures) > 0 || len(c.succeeded) != spec.Completions {
		t.Errorf("succeeded %v, failed %v, exit statuses %v", c.succeeded, c.failed, c.statuses)
	}
	holds(t, out, drives*scans)
	return len(events) <= 1 && len(c.ignored) >= 2 // one event is left over; shards were interrupted
}

// commitsOf counts the commits of the lanes of a shard.
func commitsOf(t *testing.T, out string, shards, index int) (commits int) {
	t.Helper()
	lanes, err := filepath.Glob(filepath.Join(out, "_commits", "topics", "*", "*", ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, lane := range lanes {
		if number, err := strconv.Atoi(filepath.Base(lane)); err == nil && number%shards == index {
			files, err := filepath.Glob(filepath.Join(lane, "[0-9]*.json"))
			if err != nil {
				t.Fatal(err)
			}
			commits += len(files)
		}
	}
	return commits
}

// The commands of the page for xargs and GNU parallel run as they are typed there.
func TestParallelPageRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	t.Parallel()
	const drives, scans = 5, 4
	ran := 0
	for _, block := range readMarkdown(t, "docs/schedulers/parallel.md").blocks {
		if block.language != "sh" {
			continue
		}
		var lacks string
		for _, program := range []string{"sh", "seq", "xargs", "parallel"} {
			if _, err := exec.LookPath(program); err != nil && strings.Contains(block.text, program+" ") {
				lacks = program
			}
		}
		if lacks != "" {
			t.Logf("line %d: there is no %s here", block.line, lacks)
			continue
		}
		dir := t.TempDir()
		archiveOf(t, dir, drives, scans, 300)
		for range 2 { // all is done the second time
			cmd := exec.Command("sh", "-ec", block.text)
			cmd.Dir, cmd.WaitDelay = dir, patience
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("docs/schedulers/parallel.md:%d: %v\n%s", block.line, err, said)
			}
			holds(t, filepath.Join(dir, "clouds"), drives*scans)
		}
		ran++
	}
	if ran == 0 {
		t.Skip("no shell with seq and xargs")
	}
}

// sbatch runs the tasks of an array one after the other, again while they ask for it. scontrol
// notes that they do.
const (
	sbatch = `#!/bin/sh
array=${1#--array=0-}
shift 2 # --time too
export SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_COUNT=$((${array%\%*} + 1)) SLURM_CPUS_PER_TASK=1
SLURM_ARRAY_TASK_ID=0
while [ "$SLURM_ARRAY_TASK_ID" -lt "$SLURM_ARRAY_TASK_COUNT" ]; do
	export SLURM_ARRAY_TASK_ID
	rm -f requeued
	sh "$@"
	status=$?
	echo "$SLURM_ARRAY_TASK_ID $status" >>statuses
	[ -e requeued ] || [ "$status" -eq 0 ] || exit "$status"
	[ -e requeued ] || SLURM_ARRAY_TASK_ID=$((SLURM_ARRAY_TASK_ID + 1))
done
`
	scontrol = `#!/bin/sh
[ "$*" = "requeue 7_$SLURM_ARRAY_TASK_ID" ] && touch requeued
`
	// The program as it stops at the time's end: the first task gets its signal from Slurm.
	slowly = `#!/bin/sh
[ ! -e slow ] || [ "$SLURM_ARRAY_TASK_ID" -ne 1 ] || {
	rm slow
	trap 'sleep 0.2; exit 75' TERM
	kill -TERM "$PPID"
	while :; do sleep 0.05; done
}
exec entropipe "$@"
`
)

// The command of the page for Slurm does every shard, the one that is interrupted again.
func TestSlurmPageRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	t.Parallel()
	program, err := exec.LookPath("entropipe")
	if err != nil {
		t.Fatal(err)
	}
	const drives, scans = 3, 4
	dir := t.TempDir()
	archiveOf(t, dir, drives, scans, 300)
	writeFiles(t, filepath.Join(dir, "bin"), 0o777, map[string]string{"sbatch": sbatch, "scontrol": scontrol,
		"entropipe": strings.ReplaceAll(slowly, "exec entropipe", "exec "+program)})
	writeFiles(t, filepath.Join(dir, "deploy", "backfill"), 0o777, map[string]string{
		"slurm.sh": readAll(t, "deploy/backfill/slurm.sh"), "../../slow": ""})
	block := firstCommands(t, "docs/schedulers/slurm.md")
	cmd := exec.Command("sh", "-ec", block.text)
	cmd.Dir, cmd.WaitDelay = dir, patience
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("docs/schedulers/slurm.md:%d: %v\n%s", block.line, err, said)
	}
	want := "0 0\n1 75\n"
	for shard := 1; shard < 16; shard++ {
		want += strconv.Itoa(shard) + " 0\n"
	}
	if got := readAll(t, dir, "statuses"); got != want {
		t.Errorf("shards and exit statuses:\n%s", got)
	}
	holds(t, filepath.Join(dir, "clouds"), drives*scans)
}

// kubectl checks what it is given as far as one can without a cluster.
const kubectl = `#!/bin/sh
echo "$*" >>typed
case "$1 $2" in
"create -f") test -s "$3" ;;
"wait --for=condition=complete" | "get job") ;;
*) echo "the page types: kubectl $*" >&2; exit 1 ;;
esac
`

// The page for Kubernetes names files that are there, and the Job by its name.
func TestKubernetesPage(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skipf("no shell: %v", err)
	}
	dir := t.TempDir()
	writeFiles(t, dir, 0o777, map[string]string{"kubectl": kubectl})
	writeFiles(t, filepath.Join(dir, "deploy", "backfill"), 0o666, map[string]string{"job.yaml": readAll(t, jobFile)})
	block := firstCommands(t, "docs/schedulers/kubernetes.md")
	cmd := exec.Command(shell, "-ec", block.text)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")}
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("docs/schedulers/kubernetes.md:%d: %v\n%s", block.line, err, said)
	}
	typed := readAll(t, dir, "typed")
	if !strings.Contains(typed, "job.yaml") || !strings.Contains(typed, "job/backfill") {
		t.Errorf("typed was:\n%s", typed)
	}
}
