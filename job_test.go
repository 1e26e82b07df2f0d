//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// A Job controller of Kubernetes, as far as a Job by index goes: it starts pods, here
// processes, and does with those that end what the failure policy of the manifest says.

const jobFile = "deploy/backfill/job.yaml"

// jobSpec is what the controller reads of a manifest.
type jobSpec struct {
	Completions          int    `yaml:"completions"`
	Parallelism          int    `yaml:"parallelism"`
	BackoffLimitPerIndex int    `yaml:"backoffLimitPerIndex"`
	MaxFailedIndexes     int    `yaml:"maxFailedIndexes"`
	PodReplacementPolicy string `yaml:"podReplacementPolicy"`
	PodFailurePolicy     struct {
		Rules []jobRule `yaml:"rules"`
	} `yaml:"podFailurePolicy"`
	Template struct {
		Spec struct {
			Grace      int `yaml:"terminationGracePeriodSeconds"`
			Containers []struct {
				Name    string   `yaml:"name"`
				Command []string `yaml:"command"`
				Args    []string `yaml:"args"`
				Mounts  []struct {
					Path     string `yaml:"mountPath"`
					ReadOnly bool   `yaml:"readOnly"`
				} `yaml:"volumeMounts"`
			} `yaml:"containers"`
		} `yaml:"spec"`
	} `yaml:"template"`
}

type jobRule struct {
	Action      string `yaml:"action"`
	OnExitCodes struct {
		ContainerName string `yaml:"containerName"`
		Operator      string `yaml:"operator"`
		Values        []int  `yaml:"values"`
	} `yaml:"onExitCodes"`
	OnPodConditions []struct {
		Type   string `yaml:"type"`
		Status string `yaml:"status"`
	} `yaml:"onPodConditions"`
}

func readJob(t *testing.T) jobSpec {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(jobFile))
	if err != nil {
		t.Fatal(err)
	}
	var job struct {
		Spec jobSpec `yaml:"spec"`
	}
	if err := yaml.Unmarshal(text, &job); err != nil {
		t.Fatalf("%s: %v", jobFile, err)
	}
	return job.Spec
}

// action is what becomes of a pod that ended with a status other than 0: the action of the
// first rule that fits, Count without one.
func (s *jobSpec) action(status int, disrupted bool) string {
	for _, r := range s.PodFailurePolicy.Rules {
		in := slices.Contains(r.OnExitCodes.Values, status)
		switch {
		case r.OnExitCodes.Operator == "In" && in, r.OnExitCodes.Operator == "NotIn" && !in:
			return r.Action
		}
		for _, c := range r.OnPodConditions {
			if disrupted && c.Type == "DisruptionTarget" && c.Status == "True" {
				return r.Action
			}
		}
	}
	return "Count"
}

// The policy of the manifest, by exit status.
func TestJobPolicy(t *testing.T) {
	t.Parallel()
	job := readJob(t)
	for _, c := range []struct {
		status    int
		disrupted bool
		want      string
	}{
		{75, false, "Ignore"}, {75, true, "Ignore"}, // interrupted: tried again, and counted as nothing
		{2, false, "FailIndex"}, {78, false, "FailIndex"}, {78, true, "FailIndex"},
		{1, false, "Count"}, {1, true, "Ignore"}, {130, false, "Count"},
		{137, false, "Count"}, {137, true, "Ignore"}, {143, true, "Ignore"}, // out of memory; evicted and killed
	} {
		if got := job.action(c.status, c.disrupted); got != c.want {
			t.Errorf("exit status %d, disrupted %t: %s, want %s", c.status, c.disrupted, got, c.want)
		}
	}
	container := job.Template.Spec.Containers[0]
	if job.PodReplacementPolicy != "Failed" || job.Template.Spec.Grace < 60 || job.BackoffLimitPerIndex < 1 ||
		job.MaxFailedIndexes < job.Completions {
		t.Errorf("replacement, grace or limits of %+v", job)
	}
	if !slices.Contains(container.Args, "--shards="+strconv.Itoa(job.Completions)) {
		t.Errorf("completions is %d, and the command is %q", job.Completions, container.Args)
	}
	for _, m := range container.Mounts {
		if m.ReadOnly != (m.Path == "/archive") {
			t.Errorf("%s is read-only: %t", m.Path, m.ReadOnly)
		}
	}
}

// pod is a process that works on an index.
type pod struct {
	index     int
	disrupted bool // it has the condition DisruptionTarget
	process   *process
}

// status is the exit status; a signal counts from 128, as containers do.
func (p *pod) status() int {
	if status := p.process.cmd.ProcessState.ExitCode(); status >= 0 {
		return status
	}
	return 128 + int(p.process.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
}

// jobController runs a Job. Its methods are called by one goroutine.
type jobController struct {
	t     *testing.T
	spec  jobSpec
	start func(index int) *process

	running   []*pod
	failures  map[int]int // counted ones, by index
	ignored   map[int]int
	succeeded map[int]bool
	failed    map[int]bool
	statuses  map[int][]int // exit statuses of ended pods, by index
}

func newController(t *testing.T, spec jobSpec, start func(index int) *process) *jobController {
	return &jobController{t: t, spec: spec, start: start, failures: map[int]int{}, ignored: map[int]int{},
		succeeded: map[int]bool{}, failed: map[int]bool{}, statuses: map[int][]int{}}
}

// add starts a pod of an index, also beside one that is there.
func (c *jobController) add(index int) *pod {
	p := &pod{index: index, process: c.start(index)}
	c.running = append(c.running, p)
	return p
}

// of returns the running pod of an index, the newest one of several; nil without any.
func (c *jobController) of(index int) *pod {
	for _, p := range slices.Backward(c.running) {
		if p.index == index {
			return p
		}
	}
	return nil
}

// schedule starts pods of the lowest indexes that lack one.
func (c *jobController) schedule() {
	for index := 0; index < c.spec.Completions && len(c.running) < c.spec.Parallelism; index++ {
		if !c.succeeded[index] && !c.failed[index] && c.of(index) == nil {
			c.add(index)
		}
	}
}

// reap takes the pods that have ended, and returns whether there were any.
func (c *jobController) reap() (any bool) {
	c.running = slices.DeleteFunc(c.running, func(p *pod) bool {
		select {
		case <-p.process.done:
			any = true
			c.ended(p)
			return true
		default:
			return false
		}
	})
	return any
}

func (c *jobController) ended(p *pod) {
	status := p.status()
	c.statuses[p.index] = append(c.statuses[p.index], status)
	if status == 0 {
		c.succeeded[p.index] = true
		return
	}
	switch action := c.spec.action(status, p.disrupted); action {
	case "Ignore":
		c.ignored[p.index]++
	case "FailIndex":
		c.failed[p.index] = true
	case "Count":
		if c.failures[p.index]++; c.failures[p.index] > c.spec.BackoffLimitPerIndex {
			c.failed[p.index] = true
		}
	default:
		c.t.Fatalf("%s: no such action: %s", jobFile, action)
	}
}

// run schedules until all indexes have succeeded or failed and no pod runs. It calls each
// again and again.
func (c *jobController) run(each func()) {
	c.t.Helper()
	deadline := time.Now().Add(patience)
	for len(c.succeeded)+len(c.failed) < c.spec.Completions || len(c.running) > 0 {
		c.schedule()
		each()
		if !c.reap() {
			time.Sleep(5 * time.Millisecond)
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the Job has not ended after %v: succeeded %v, failed %v", patience, c.succeeded, c.failed)
		}
	}
}

// The controller itself, with pods that end as the index says.
func TestJobControllerAppliesThePolicy(t *testing.T) {
	t.Parallel()
	spec := readJob(t)
	spec.Completions, spec.Parallelism, spec.BackoffLimitPerIndex = 5, 2, 2
	dir, tries := t.TempDir(), map[int]int{}
	script := map[int][]string{ // arguments of try after try; the last one repeats
		0: {"version"},
		1: {"run --no-such-flag"},                    // 2: never again
		2: {"verify none"},                           // 1: until the limit
		3: {"verify none", "verify none", "version"}, // as often as the limit allows
		4: {"validate none.yaml", "version"},         // 78
	}
	c := newController(t, spec, func(index int) *process {
		all := script[index]
		args := strings.Fields(all[min(tries[index], len(all)-1)])
		tries[index]++
		return launch(t, dir, args...)
	})
	c.run(func() {})
	want := map[int]string{0: "[0]", 1: "[2]", 2: "[1 1 1]", 3: "[1 1 0]", 4: "[78]"}
	for index, statuses := range want {
		if got := fmt.Sprint(c.statuses[index]); got != statuses {
			t.Errorf("index %d: exit statuses %s, want %s", index, got, statuses)
		}
	}
	if len(c.succeeded) != 2 || len(c.failed) != 3 {
		t.Errorf("succeeded %v, failed %v", c.succeeded, c.failed)
	}
}
