package flags

import (
	"slices"
	"strings"
	"testing"

	"entropipe/cmd/config"
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
		var grammar struct {
			Run Flags `cmd:""`
		}
		parser, err := config.NewParser(&grammar, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := config.Parse(parser, append([]string{"run"}, strings.Fields(c.args)...)); err != nil {
			t.Fatalf("%s: %v", c.args, err)
		}
		flags, want := grammar.Run.Idle(config.Differs(parser, &grammar.Run))
		if got := strings.Join(flags, " "); got != c.want || len(want) != len(flags) {
			t.Errorf("run %s: %q do nothing, want %q", c.args, got, c.want)
		}
		for i, other := range want {
			flag, _, _ := strings.Cut(strings.TrimPrefix(other, "--"), " ")
			if _, there := config.KeysOf(config.NodeOf(parser.Model.Node, &grammar.Run))[flag]; !there {
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
