package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"entropipe/cmd/command"
	"entropipe/ingest"
	"entropipe/schemas"
)

// recordings writes two sequences of clouds, and drawings.
func recordings(t *testing.T, rng *rand.Rand) string {
	dir := t.TempDir()
	file := func(text string, elem ...string) {
		path := filepath.Join(append([]string{dir}, elem...)...)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666))
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"first", "second"} {
		for i := range 20 + rng.IntN(20) {
			var points strings.Builder
			n := 20 + rng.IntN(100)
			for range n {
				fmt.Fprintf(&points, "%g %g %g\n", rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64())
			}
			file(fmt.Sprintf("VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH %d\nDATA ascii\n%s", n, &points),
				"clouds", name, fmt.Sprintf("%d.pcd", i))
		}
	}
	var drawings strings.Builder
	for i := range 400 {
		fmt.Fprintf(&drawings, `{"word":"cow","key_id":"%d","recognized":true,"timestamp":"2017-03-01 12:00:%02d.5 UTC",`+
			`"drawing":[[[%d,1,2],[0,5,%d]]]}`+"\n", i+1, i%60, rng.IntN(200), rng.IntN(200))
	}
	file(drawings.String(), "cow.ndjson")
	return dir
}

// keyed returns the messages of a topic by their keys, in their order; those without a key
// sorted.
func keyed(t *testing.T, brokers, topic string) map[string][]string {
	t.Helper()
	found, err := ingest.Describe(t.Context(), []string{brokers}, ingest.Security{}, topic)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ingest.NewConsumer(ingest.Config{Brokers: []string{brokers}, Topics: []string{topic}, Group: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	messages := map[string][]string{}
	for _, p := range found.Partitions {
		if _, err := c.Read(t.Context(), topic, p.ID, p.Start, p.End, func(m *schemas.Message) error {
			messages[string(m.Key)] = append(messages[string(m.Key)], fmt.Sprintf("%s %x", m.Headers,
				sha256.Sum256(m.Value)))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(messages[""])
	return messages
}

// settled waits until the broker has done what a killed process has asked for, and returns
// the number of records.
func settled(t *testing.T, brokers, topic string) int64 {
	t.Helper()
	n := sent(t, brokers, topic)
	for quiet := 0; quiet < 8; quiet++ {
		time.Sleep(10 * time.Millisecond)
		if now := sent(t, brokers, topic); now != n {
			n, quiet = now, 0
		}
	}
	return n
}

// A producer that is killed at any moments, and resumed until it ends, leaves what one that
// was never interrupted leaves: each message once, those of a key in their order.
func TestProduceIsResumedAfterKills(t *testing.T) {
	var between atomic.Int64
	t.Cleanup(func() {
		if between.Load() == 0 && !t.Failed() {
			t.Error("no producer was killed between its first message and its last")
		}
	})
	for seed, c := range []struct{ source, more, rate string }{
		{"files clouds", "--jobs 4", "200hz"},
		{"files clouds", "--jobs 3 --key frame --compression zstd", "200hz"},
		{"files clouds", "--key none --loop 2", "300hz"},
		{"files clouds", "--loop 4 --jobs 2", "400hz"},
		{"files clouds", "--jobs 4 --loop 8", "max"},
		{"quickdraw cow.ndjson", "--pack 7 --loop 3", "5000hz"},
		{"quickdraw cow.ndjson", "--pack 3 --key none", "1000hz"},
	} {
		t.Run(fmt.Sprintf("%s %s %s", c.source, c.more, c.rate), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(uint64(seed), 5))
			dir, brokers := recordings(t, rng), startBroker(t)
			produce := func(topic string, more ...string) []string {
				args := append([]string{"produce"}, strings.Fields(c.source)...)
				args = append(append(args, strings.Fields(c.more)...), "--brokers", brokers, "--topic", topic)
				return append(args, more...)
			}
			must(t, dir, produce("whole", "--rate", strings.Replace(c.rate, "hz", "0hz", 1))...)
			want := keyed(t, brokers, "whole")
			total := sent(t, brokers, "whole")
			kills := 0
			for {
				before := settled(t, brokers, "killed")
				p := launch(t, dir, produce("killed", "--rate", c.rate, "--resume=or-start")...)
				if kills < 4 {
					at := before + 1 + rng.Int64N(max(1, total/4))
					waitFor(t, "the producer sends or ends", func() bool {
						select {
						case <-p.done:
							return true
						default:
							return sent(t, brokers, "killed") >= at
						}
					})
					time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
					p.killed()
				} else {
					<-p.done
				}
				if p.cmd.ProcessState.Success() {
					break
				}
				if kills++; kills > 5 {
					t.Fatalf("it does not end: %s", p.log())
				}
				if n := settled(t, brokers, "killed"); n > 0 && n < total {
					between.Add(1)
				}
			}
			got := keyed(t, brokers, "killed")
			if n := sent(t, brokers, "killed"); n != total || !maps.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%d messages of %d after %d kills", n, total, kills)
				for key := range want {
					if !slices.Equal(got[key], want[key]) {
						t.Errorf("key %q: %d messages of %d", key, len(got[key]), len(want[key]))
					}
				}
			}
		})
	}
}

func TestTextsAreNotResumed(t *testing.T) {
	status, _, stderr := runCommand(t, "produce", "tokens", writeText(t, "a.txt", "words"), "--resume")
	if status != command.ExitUsage || !strings.Contains(stderr, "texts have no order to continue") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}
