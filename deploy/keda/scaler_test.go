package keda

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
	"sigs.k8s.io/yaml"
)

const (
	patience   = 5 * time.Minute
	partitions = 4
)

// scaledObject decodes the manifest strictly.
func scaledObject(t *testing.T) *v1alpha1.ScaledObject {
	t.Helper()
	text, err := os.ReadFile("../run/keda/scaledobject.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var so v1alpha1.ScaledObject
	if err := yaml.UnmarshalStrict(text, &so); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(bytes.Replace(text, []byte("minReplicaCount"), []byte("minReplicas"), 1),
		&v1alpha1.ScaledObject{}); err == nil {
		t.Error("minReplicas is taken for a field")
	}
	return &so
}

// KEDA's own checks of the object pass.
func TestScaledObjectIsOneThatKedaTakes(t *testing.T) {
	so := scaledObject(t)
	if err := v1alpha1.CheckReplicaCountBoundsAreValid(so); err != nil {
		t.Error(err)
	}
	if err := v1alpha1.CheckFallbackValid(so); err != nil {
		t.Error(err)
	}
	if err := v1alpha1.ValidateTriggers(so.Spec.Triggers); err != nil {
		t.Error(err)
	}
}

// cluster is an embedded broker and what is started beside it.
type cluster struct {
	t        *testing.T
	program  string
	dir      string
	brokers  string
	embedded bool   // the brokers are the program's own
	name     string // name of topic and group
}

// process is a running program.
type process struct {
	c    *exec.Cmd
	mu   sync.Mutex
	text bytes.Buffer
	done chan struct{}
}

func (p *process) log() string { p.mu.Lock(); defer p.mu.Unlock(); return p.text.String() }

func begin(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir()}
	if c.program = os.Getenv("ENTROPIPE_PROGRAM"); c.program == "" {
		c.program = filepath.Join(c.dir, "entropipe")
		build := exec.Command("go", "build", "-o", c.program, ".")
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	if c.brokers = os.Getenv("ENTROPIPE_KAFKA"); c.brokers == "" {
		b := c.start("broker", "--listen", "127.0.0.1:0", "--data", filepath.Join(c.dir, "broker"), "--partitions",
			strconv.Itoa(partitions))
		c.brokers, c.embedded = c.says(b, `(127\.0\.0\.1:\d+)`), true
	}
	c.name = fmt.Sprint("keda-", time.Now().UnixNano())
	return c
}

// start starts a command in the folder of the test.
func (c *cluster) start(args ...string) *process {
	c.t.Helper()
	p := &process{c: exec.Command(c.program, args...), done: make(chan struct{})}
	p.c.Dir = c.dir
	r, w, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	p.c.Stdout, p.c.Stderr = w, w
	if err := p.c.Start(); err != nil {
		c.t.Fatal(err)
	}
	w.Close()
	go func() {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			p.mu.Lock()
			fmt.Fprintln(&p.text, lines.Text())
			p.mu.Unlock()
		}
		p.c.Wait() // its status is looked at by stop
		close(p.done)
	}()
	c.t.Cleanup(func() { p.c.Process.Kill(); <-p.done })
	return p
}

// says waits for a line that matches and returns its first group.
func (c *cluster) says(p *process, pattern string) string {
	c.t.Helper()
	want := regexp.MustCompile(pattern)
	var found []string
	c.until("a line "+pattern, func() bool { found = want.FindStringSubmatch(p.log()); return found != nil })
	return found[1]
}

func (c *cluster) until(what string, ok func() bool) {
	c.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("never: %s", what)
		}
	}
}

// stop ends a process as Kubernetes does.
func (c *cluster) stop(p *process) {
	c.t.Helper()
	p.c.Process.Signal(syscall.SIGTERM) // one that has ended is looked at below
	<-p.done
	if code := p.c.ProcessState.ExitCode(); code != 0 {
		c.t.Fatalf("status %d:\n%s", code, p.log())
	}
}

// produce sends frames to all partitions.
func (c *cluster) produce(frames int, rate string) {
	c.t.Helper()
	for i := range partitions {
		p := c.start("produce", "synthetic", "--points", "100", "--brokers", c.brokers, "--topic", c.name,
			"--sequence", fmt.Sprint("s", i), "--frames", strconv.Itoa(frames/partitions), "--rate", rate)
		<-p.done
		if code := p.c.ProcessState.ExitCode(); code != 0 {
			c.t.Fatalf("produce: status %d:\n%s", code, p.log())
		}
	}
}

// worker starts run as a pod of the StatefulSet does.
func (c *cluster) worker(pod int) *process {
	return c.start("run", "--brokers", c.brokers, "--topic", c.name, "--group", c.name, "--out", "out",
		"--group-instance", fmt.Sprint("entropipe-", pod), "--session-timeout", "10s", "--roll-age", "2s",
		"--ops", "hull2d")
}

// scaler is KEDA's, with the manifest's settings and others.
func (c *cluster) scaler(other map[string]string) scalers.Scaler {
	c.t.Helper()
	settings := maps.Clone(scaledObject(c.t).Spec.Triggers[0].Metadata)
	settings["bootstrapServers"], settings["topic"], settings["consumerGroup"] = c.brokers, c.name, c.name
	maps.Copy(settings, other)
	s, err := scalers.NewKafkaScaler(context.Background(), &scalersconfig.ScalerConfig{
		ScalableObjectName: "entropipe", TriggerType: "kafka", TriggerMetadata: settings,
		GlobalHTTPTimeout: 10 * time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

// ask returns lag and activity.
func (c *cluster) ask(s scalers.Scaler) (lag int64, active bool) {
	c.t.Helper()
	lag, active, err := c.try(s)
	if err != nil {
		c.t.Fatalf("the scaler answers %v", err)
	}
	return lag, active
}

// try is ask where the group may be unknown.
func (c *cluster) try(s scalers.Scaler) (lag int64, active bool, err error) {
	values, active, err := s.GetMetricsAndActivity(context.Background(), "lag")
	if err != nil || len(values) != 1 {
		return 0, false, fmt.Errorf("%v, %w", values, err)
	}
	return values[0].Value.Value(), active, nil
}

// KEDA's scaler answers about the lag as docs/schedulers/workers.md says, in each state of a
// group: zero (no commit, and no pods), roll, rebalance, idle.
func TestScalerAnswersInEachState(t *testing.T) {
	c := begin(t)
	with := func(key, value string) map[string]string { return map[string]string{key: value} }
	answer := func(state, settings string, lag int64, active bool) {
		t.Logf("| %s | %s | %d | %v |", state, settings, lag, active)
	}
	exact := func(state, settings string, other map[string]string, wantLag int64, wantActive bool) {
		t.Helper()
		lag, active := c.ask(c.scaler(other))
		answer(state, settings, lag, active)
		if lag != wantLag || active != wantActive {
			t.Errorf("%s, %s: lag %d, active %v; want %d, %v", state, settings, lag, active, wantLag, wantActive)
		}
	}

	c.produce(1400, "max")
	if !c.embedded { // which answers as if an unknown group were an error
		const state = "zero, no commit yet, 1400 records wait"
		exact(state, "as in the manifest", nil, 1400, true)
		exact(state, "offsetResetPolicy: latest", with("offsetResetPolicy", "latest"), partitions, false)
		exact(state, "lagThreshold: 100", with("lagThreshold", "100"), partitions*100, true) // no more pods than that
	}

	plain, excluding := c.scaler(nil), c.scaler(with("excludePersistentLag", "true"))
	first := c.worker(0)
	c.says(first, `msg=(assigned) `)
	c.until("all is committed", func() bool {
		lag, _, err := c.try(plain)
		return err == nil && lag == 0
	})

	// roll: the same records between two commits, seen twice.
	c.until("a lag between two commits that excludePersistentLag hides", func() bool {
		c.produce(partitions*5, "max")
		seen, _ := c.ask(excluding)
		hidden, _ := c.ask(excluding)
		lag, active := c.ask(plain)
		if seen > 0 && hidden == 0 && lag > 0 {
			answer("roll, between two commits", "as in the manifest", lag, active)
			answer("roll, between two commits, second poll", "excludePersistentLag: true", hidden, active)
			return !active // it is below the activation
		}
		return false
	})

	// rebalance: pods come and go while records come; what is asked meanwhile is sane.
	total, most, asked := int64(1400), int64(0), 0
	sane := func() {
		lag, _ := c.ask(plain)
		most, asked = max(most, lag), asked+1
		if lag < 0 || lag > 10_000+total {
			t.Errorf("rebalance: lag %d", lag)
		}
	}
	var others []*process
	assigned := regexp.MustCompile(`msg=assigned .* partitions=`)
	for pod := 1; pod < 4; pod++ {
		others = append(others, c.worker(pod))
		c.produce(100, "max")
		for !assigned.MatchString(others[pod-1].log()) {
			sane()
		}
	}
	answer("rebalance, 1 to 4 pods, largest of "+strconv.Itoa(asked), "as in the manifest", most, false)
	for _, p := range others {
		c.stop(p)
		sane()
	}
	c.produce(100, "max")
	c.until("the pods that are gone are given up", func() bool { sane(); lag, _ := c.ask(plain); return lag == 0 })
	exact("idle", "as in the manifest", nil, 0, false)
	exact("idle", "activationLagThreshold: 0", with("activationLagThreshold", "0"), 0, false)

	c.stop(first)
	c.produce(60, "max")
	exact("zero, 60 records after the last pod", "as in the manifest", nil, 60, false)
	exact("zero, 60 records after the last pod", "activationLagThreshold: 59", with("activationLagThreshold", "59"), 60,
		true)
}
