//go:build prometheus && linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"entropipe/ops/board"
)

// cause is what an alert is about: it fires for it and clears without it.
type cause struct {
	alerts []string
	play   func(t *testing.T, p *scraper, alerts []string)
}

var causes = map[string]cause{
	"killed process": {[]string{"EntropipeDown"}, killedProcess},
	"stopped broker": {[]string{"EntropipeNotReady"}, stoppedBroker},
	"full disk": {[]string{"EntropipeDiskNearlyFull", "EntropipeNotReady", "EntropipeBatchOld", "EntropipeLag"},
		fullDisk},
	"poison messages":     {[]string{"EntropipeRejects"}, poisonMessages},
	"silent producer":     {[]string{"EntropipeNoFrames"}, silentProducer},
	"heavy frames":        {[]string{"EntropipeFrameBudget"}, heavyFrames},
	"stuck partition":     {[]string{"EntropipePartitionStuck"}, stuckPartition},
	"slow store":          {[]string{"EntropipeSlowCommits"}, slowStore},
	"other configuration": {[]string{"EntropipeForeignConfiguration"}, otherConfiguration},
}

// Every alert fires for its real cause, in a real Prometheus, and clears when the cause
// is removed.
func TestAlertsOfRealCauses(t *testing.T) {
	t.Parallel()
	p := startPrometheus(t)
	covered := map[string]bool{}
	t.Run("causes", func(t *testing.T) {
		for name, c := range causes {
			for _, a := range c.alerts {
				covered[a] = true
			}
			t.Run(name, func(t *testing.T) { t.Parallel(); c.play(t, p, c.alerts) })
		}
	})
	for _, a := range board.Alerts(hasty) {
		if !covered[a.Name] {
			t.Errorf("no cause fires %s", a.Name)
		}
	}
}

// feeds starts a producer of small frames, and waits for its topic.
func feeds(t *testing.T, dir, brokers, topic string, more ...string) *process {
	t.Helper()
	p := launch(t, dir, spread(brokers, topic, "a", append([]string{"--rate", "20hz"}, more...)...)...)
	waitFor(t, "the topic", func() bool { return sent(t, brokers, topic) > 0 })
	return p
}

func killedProcess(t *testing.T, p *scraper, alerts []string) {
	brokers, dir := startBroker(t), t.TempDir()
	feeds(t, dir, brokers, "killed")
	r, process := watched(t, p, dir, brokers, "killed")
	process.clears(t, alerts...)
	r.killed()
	process.fires(t, alerts...)
	launch(t, dir, "run", "--brokers", brokers, "--topic", "killed", "--out", "out", "--listen", process.value)
	process.clears(t, alerts...)
}

func stoppedBroker(t *testing.T, p *scraper, alerts []string) {
	dir, address := t.TempDir(), ownAddress(t)
	b := brokerProcess(t, dir, address)
	must(t, dir, spread(address, "stopped", "a", "--frames", "30", "--rate", "max")...)
	_, process := watched(t, p, dir, address, "stopped")
	process.clears(t, alerts...)
	b.killed()
	process.fires(t, alerts...)
	brokerProcess(t, dir, address)
	process.clears(t, alerts...)
}

// A file that is not ours fills the disk below the output.
func fullDisk(t *testing.T, p *scraper, alerts []string) {
	disk, dir, brokers := mounted(t, "64m"), t.TempDir(), startBroker(t)
	feeds(t, dir, brokers, "full")
	_, process := watched(t, p, dir, brokers, "full", "--out", filepath.Join(disk, "out"))
	process.clears(t, alerts...)
	ballast, err := os.Create(filepath.Join(disk, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer ballast.Close()
	for block := make([]byte, 1<<16); err == nil; {
		_, err = ballast.Write(block)
	}
	process.fires(t, alerts...)
	if err := os.Remove(ballast.Name()); err != nil {
		t.Fatal(err)
	}
	if err := ballast.Close(); err != nil {
		t.Fatal(err)
	}
	process.clears(t, alerts...)
}

func poisonMessages(t *testing.T, p *scraper, alerts []string) {
	brokers, dir := startBroker(t), t.TempDir()
	feeds(t, dir, brokers, "poison")
	watched(t, p, dir, brokers, "poison")
	topic := &subject{p, "source", "poison"}
	topic.clears(t, alerts...)
	waitFor(t, "an alert about rejects", func() bool {
		sendBad(t, brokers, "poison", 3)
		time.Sleep(200 * time.Millisecond)
		return p.firing(t, alerts[0], topic.label, topic.value)
	})
	topic.clears(t, alerts...)
}

func silentProducer(t *testing.T, p *scraper, alerts []string) {
	brokers, dir := startBroker(t), t.TempDir()
	producer := feeds(t, dir, brokers, "silent")
	watched(t, p, dir, brokers, "silent")
	topic := &subject{p, "source", "silent"}
	topic.clears(t, alerts...)
	stopProducer(t, producer)
	topic.fires(t, alerts...)
	feeds(t, dir, brokers, "silent")
	topic.clears(t, alerts...)
}

// Frames of so many points that a triangulation takes longer than a tenth of a second.
func heavyFrames(t *testing.T, p *scraper, alerts []string) {
	brokers, dir := startBroker(t), t.TempDir()
	feeds(t, dir, brokers, "heavy")
	_, process := watched(t, p, dir, brokers, "heavy", "--ops", "delaunay2d")
	process.clears(t, alerts...)
	heavy := launch(t, dir, "produce", "synthetic", "--points", "300000", "--brokers", brokers, "--topic", "heavy",
		"--sequence", "b", "--rate", "2hz")
	process.fires(t, alerts...)
	stopProducer(t, heavy)
	process.clears(t, alerts...)
}

// Two runs share the partitions of an output, one with other operators.
func otherConfiguration(t *testing.T, p *scraper, alerts []string) {
	brokers, dir := startBroker(t), t.TempDir()
	for _, name := range []string{"b", "e"} {
		feeds(t, dir, brokers, "foreign", "--sequence", name)
	}
	_, process := watched(t, p, dir, brokers, "foreign", "--ops", "hull2d")
	process.label = "topic"
	process.value = "foreign"
	process.clears(t, alerts...)
	other := launch(t, dir, "run", "--brokers", brokers, "--topic", "foreign", "--out", "out", "--roll-age", "1s",
		"--session-timeout", "6s", "--ops", "maxima3d", "--listen", "off")
	process.fires(t, alerts...)
	other.signal(syscall.SIGTERM)
	other.exits(0, patience)
	process.clears(t, alerts...)
}

// A worker that does not finish the first record of a partition holds all of it, and no
// other.
func stuckPartition(t *testing.T, p *scraper, alerts []string) {
	brokers, dir := startBroker(t), t.TempDir()
	feeds(t, dir, brokers, "stuck")
	bench := startBench(t, brokers, "stuck", filepath.Join(dir, "out"))
	p.scrapes(t, bench.address)
	process := &subject{p, "instance", bench.address}
	process.clears(t, alerts...)
	bench.hold()
	process.fires(t, alerts...)
	bench.release()
	process.clears(t, alerts...)
}

// Each file of a commit takes longer than it should, as on a busy disk.
func slowStore(t *testing.T, p *scraper, alerts []string) {
	brokers, dir := startBroker(t), t.TempDir()
	feeds(t, dir, brokers, "slow")
	bench := startBench(t, brokers, "slow", filepath.Join(dir, "out"))
	p.scrapes(t, bench.address)
	process := &subject{p, "instance", bench.address}
	process.clears(t, alerts...)
	bench.delay.Store(int64(400 * time.Millisecond))
	process.fires(t, alerts...)
	bench.delay.Store(0)
	process.clears(t, alerts...)
	if err := bench.stop(); err != nil {
		t.Error(fmt.Errorf("the run on the slow store: %w", err))
	}
}
