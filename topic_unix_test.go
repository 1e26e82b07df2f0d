//go:build unix

package main

import (
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// Two processes share the partitions of a topic that is deleted, created and
// filled under them, with more than there was. Both end, and nothing of the new
// topic follows the old one's rows.
func TestTopicMadeAgainUnderTwoProcesses(t *testing.T) {
	t.Parallel()
	for name, freeze := range map[string]bool{"at work": false, "frozen": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBroker(t, func(t *testing.T, brokers string) {
				dir, topic := t.TempDir(), topicOf(t)
				send := func(n int, seed string) {
					must(t, dir, spread(brokers, topic, "a", "--partitions", "4", "--frames", strconv.Itoa(n), "--rate",
						"max", "--seed", seed)...)
					must(t, dir, spread(brokers, topic, "b", "--partitions", "4", "--frames", strconv.Itoa(n), "--rate",
						"max", "--seed", seed)...)
				}
				send(50, "1")
				one := launch(t, dir, fast(brokers, topic)...)
				one.until(`msg=assigned .*partitions=4`)
				two := launch(t, dir, fast(brokers, topic)...)
				two.until(`msg=assigned .*partitions=2`)
				out := filepath.Join(dir, "out")
				waitFor(t, "the records", func() bool { return reached(t, out) >= 100 })
				if freeze {
					one.signal(syscall.SIGSTOP)
					two.signal(syscall.SIGSTOP)
				}
				gone(t, brokers, topic)
				send(90, "99")
				if freeze {
					one.signal(syscall.SIGCONT)
					two.signal(syscall.SIGCONT)
				}
				for _, r := range []*process{one, two} {
					r.exits(1, patience)
					r.says(`^entropipe: ` + topic +
						`(/\d)?: the topic was deleted and created again since this output was written \(its id was \S{22}, now it is \S{22}\); write to a new --out\.`)
				}
				holds(t, out, 100)
				again := launch(t, dir, fast(brokers, topic, "--until-end")...)
				again.exits(1, patience)
				refused := launch(t, dir, fast(brokers, topic, "--until-end", "--accept-topic", topic)...)
				refused.exits(1, patience)
				refused.says(`^entropipe: --accept-topic ` + topic + `: ` + topic +
					`/\d: the record at offset \d+ is not the last one of the output; write to a new --out$`)
				holds(t, out, 100)
			})
		})
	}
}
