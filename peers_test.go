package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"entropipe/ops/live"
)

// Two processes of an output see each other with the addresses of their pages, and which
// partitions the other one reads. One that is killed disappears.
func TestProcessesOfAnOutputSeeEachOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broker := startBroker(t)
	must(t, dir, spread(broker, "points", "drive", "--frames", "20", "--rate", "max")...)
	page := func(more ...string) (*process, string) {
		p := launch(t, dir, fast(broker, "points", append([]string{"--out", "out", "--listen", "127.0.0.1:0"},
			more...)...)...)
		return p, p.until(`page=(http://127\.0\.0\.1:\d+/)`)[1]
	}
	one, first := page()
	becomesReady(t, strings.TrimSuffix(first, "/"))
	two, second := page()
	var state live.State
	sees := func(page, peer string) func() bool {
		return func() bool {
			state = stateOf(t, page)
			if len(state.Peers) != 1 || state.Peers[0].URL != peer || state.PeersNote != "" ||
				len(state.Lag.Elsewhere) != state.Peers[0].Partitions || len(state.Lag.Elsewhere) == 0 ||
				len(state.Lag.Partitions) == 0 {
				return false
			}
			for _, e := range state.Lag.Elsewhere {
				host, _, _ := strings.Cut(state.Lag.Partitions[0].Owner, ", process ")
				if e.URL != peer || e.Records != nil && *e.Records != 0 || e.Owner != owner(host, one) &&
					e.Owner != owner(host, two) {
					return false
				}
			}
			return true
		}
	}
	waitFor(t, "the first process sees the second one", sees(first, second))
	all := len(state.Lag.Elsewhere) + len(state.Lag.Partitions)
	waitFor(t, "the second process sees the first one", sees(second, first))
	if n := len(state.Lag.Elsewhere) + len(state.Lag.Partitions); n != all {
		t.Errorf("%d partitions on one page, %d on the other", n, all)
	}
	two.killed()
	waitFor(t, "the killed process disappears", func() bool {
		state = stateOf(t, first)
		return len(state.Peers) == 0 && state.PeersNote == "" && len(state.Lag.Elsewhere) == 0 &&
			len(state.Lag.Partitions) == all
	})
}

// owner is the name of a process on the page.
func owner(host string, p *process) string {
	return fmt.Sprintf("%s, process %d", host, p.cmd.Process.Pid)
}

// stateOf asks a process for its numbers; zero if it does not answer.
func stateOf(t *testing.T, page string) (s live.State) {
	t.Helper()
	r, err := http.Get(page + "api/state")
	if err != nil {
		return s
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		t.Error(err)
	}
	return s
}
