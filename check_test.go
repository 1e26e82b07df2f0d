package main

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Law: a flag that does nothing without another is named, once it has another
// value than its default, and no other flag is. A file that prints everything in
// effect names none.
func TestFlagsThatDoNothingAreNamed(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", ""},
		{"--max-new 32 --audit-every 1000 --on-foreign go-on --pprof=false", ""},
		{"--pprof", "pprof"},
		{"--pprof --listen 127.0.0.1:0", ""},
		{"--truncate --token-budget 5 --device cuda", "device token-budget truncate"},
		{"--truncate --token-budget 5 --device cuda --lm builtin:bytes", ""},
		{"--lm builtin:bytes --max-new 5 --top-k 7", "max-new top-k"},
		{"--lm builtin:bytes --task generate --max-new 5 --top-k 7", "top-k"},
		{"--lm builtin:bytes --task logits --max-new 5 --top-k 7", "max-new"},
		{"--lm builtin:bytes --mask-use always --audit-every 0", "mask-use audit-every"},
		{"--lm builtin:bytes --mask m --mask-use always --audit-every 0", ""},
		{"--entropy-every 7", "entropy-every"},
		{"--entropy-every 7 --tables hulls,entropy", ""},
		{"--on-foreign stop", "on-foreign"},
		{"--on-foreign stop --stage seed --model builtin:lidar", ""},
	} {
		var grammar cli
		parser, err := newParser(&grammar)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(parser, append([]string{"run"}, strings.Fields(c.args)...)); err != nil {
			t.Fatalf("%s: %v", c.args, err)
		}
		flags, want := grammar.Run.idle(differs(parser, &grammar.Run))
		if got := strings.Join(flags, " "); got != c.want || len(want) != len(flags) {
			t.Errorf("run %s: %q do nothing, want %q", c.args, got, c.want)
		}
		for i, other := range want {
			flag, _, _ := strings.Cut(strings.TrimPrefix(other, "--"), " ")
			if _, there := keysOf(nodeOf(parser.Model.Node, &grammar.Run))[flag]; !there {
				t.Errorf("--%s wants %s, and there is no such flag", flags[i], other)
			}
		}
	}
}

// Law: folders are dataset, dataset and what follows it in the order, each once.
func TestFoldersStandInTheirOrder(t *testing.T) {
	legal := []string{"dataset", "dataset,sequence", "dataset,date", "dataset,sequence,date"}
	keys := []string{"dataset", "sequence", "date"}
	all := slices.Clone(keys)
	for range 3 {
		for _, some := range slices.Clone(all) {
			for _, key := range keys {
				all = append(all, some+","+key)
			}
		}
	}
	for _, by := range all {
		if err := checkPartitionBy(strings.Split(by, ",")); (err == nil) != slices.Contains(legal, by) {
			t.Errorf("--partition-by %s: %v", by, err)
		}
	}
}

// Law: the time that is left is what remains at the speed since the start of this
// run, and nothing is said where it is not known.
func TestTimeLeft(t *testing.T) {
	for _, c := range []struct {
		begin, done, total int64
		after              time.Duration
		want               string
	}{
		{0, 10, 100, 10 * time.Second, ", 1m30s left"},
		{50, 60, 100, 10 * time.Second, ", 40s left"}, // of a training that was resumed
		{0, 50, 100, 59 * time.Second, ", 59s left"},
		{0, 50, 100, 184 * time.Second, ", 3m left"},
		{0, 1, 121, time.Minute, ", 2h0m left"},
		{0, 1, 61, 65 * time.Second, ", 1h5m left"},
		{0, 0, 100, time.Minute, ""},
		{7, 7, 100, time.Minute, ""},
		{0, 100, 100, time.Minute, ""},
		{0, 101, 100, time.Minute, ""},
		{0, 10, 0, time.Minute, ""},
		{0, 1, 1 << 62, time.Hour, ""},
		{0, 10, 100, time.Millisecond, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			done := c.begin
			left := newTimeLeft(func() (int64, string) { return done, "" }, c.total)
			time.Sleep(c.after)
			if got := left.text(c.done); got != c.want {
				t.Errorf("%+v: %q", c, got)
			}
		})
	}
}

// Law: an address to serve on has a port that there can be.
func TestAddressesToServeOn(t *testing.T) {
	for address, want := range map[string]bool{"off": true, "127.0.0.1:0": true, ":8421": true, "[::1]:65535": true, "localhost:http": true,
		"127.0.0.1:65536": false, "127.0.0.1:99999999999999999999": false, "8421": false, "": false, "127.0.0.1": false} {
		if err := checkListen(address); (err == nil) != want {
			t.Errorf("--listen %s: %v", address, err)
		}
	}
}
