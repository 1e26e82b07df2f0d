package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/cmd"
	"entropipe/cmd/command"
)

// Law: values out of range come all at once with those of the wrong type, each
// with its file, line and column, or its variable.
func TestMistakesOfAFileComeAtOnceWithTheirPlaces(t *testing.T) {
	t.Chdir(t.TempDir())
	text := `workers: -3
roll-age: -5s
partition-by: [date, dataset]
listen: 127.0.0.1
topic:
  - points
  - ../etc
entropy-every: -1
roll-records: 0
memory: 1KiB
max-frame-bytes: 2GiB
session-timeout: 1ms
brokers: ['kafka1:x']
out: s3://bucket/prefix
ops: [none, hull2d]
stage: fast
ladder: 2
`
	if err := os.WriteFile("c.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ENTROPIPE_TOP_K", "0")
	t.Setenv("ENTROPIPE_MAX_NEW", "many")
	want := `c.yaml:1:10: workers: -3: want 0 to 4096
c.yaml:2:11: roll-age: "-5s" is negative; expected a duration such as 90s, 1m30s or 0
c.yaml:3:15: partition-by: date,dataset: want dataset[,sequence][,date]
c.yaml:4:9: listen: 127.0.0.1: want HOST:PORT or off
c.yaml:7:5: topic[1]: "../etc" is no name of a topic: want letters, digits, dot, _ and -
c.yaml:8:16: entropy-every: -1: want 0 to 1099511627776
c.yaml:9:15: roll-records: 0: want 1 to 1125899906842624
c.yaml:10:9: memory: 1KiB: want 64KiB to 1024TiB
c.yaml:11:18: max-frame-bytes: 2GiB: want 1 to 1GiB
c.yaml:12:18: session-timeout: 1ms: want 100ms to 24h0m0s
c.yaml:13:10: brokers: "kafka1:x": want HOST or HOST:PORT
c.yaml:14:6: out: s3://bucket/prefix: this version writes to folders, not to s3
c.yaml:15:6: ops: none: it stands alone
c.yaml:16:8: stage: "fast" is not allowed; expected one of off, seed, prune, perturb, denoise
c.yaml:17:9: ladder: 2: want a share of the softmax, at least 0 and below 1
ENTROPIPE_MAX_NEW: "many" does not fit; expected a whole number
ENTROPIPE_TOP_K: 0: want 1 to 1000
`
	for _, verb := range []string{"run", "validate"} {
		var stdout, stderr bytes.Buffer
		if status := cmd.Main([]string{verb, "c.yaml"}, &stdout, &stderr); status != command.ExitConfig || stderr.String() != want || stdout.Len() > 0 {
			t.Errorf("%s: status %d, %s\n%swant\n%s", verb, status, &stdout, &stderr, want)
		}
	}
}

// Law: what a mistake ends with is decided by where its value was set, and a value
// on the command line hides those of file and variable.
func TestMistakesAreWhereValuesWereSet(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		file, env, args string
		status          int
		want            string
	}{
		{"workers: -3", "", "", command.ExitConfig, "c.yaml:1:10: workers: -3: want 0 to 4096\n"},
		{"workers: -3", "", "--workers=-4", command.ExitUsage, "entropipe: --workers -4: want 0 to 4096\n"},
		{"workers: -3", "", "--workers=4 --out= ", command.ExitUsage, "entropipe: --out: no folder given\n"},
		{"workers: -3", "ENTROPIPE_WORKERS=-5", "", command.ExitConfig, "ENTROPIPE_WORKERS: -5: want 0 to 4096\n"},
		{"topic: [a, /]", "ENTROPIPE_TOPIC=a,b,/", "", command.ExitConfig, "ENTROPIPE_TOPIC[2]: \"/\" is no name"},
		{"topic: [a, b, c, /]", "ENTROPIPE_TOPIC=/", "", command.ExitConfig, "ENTROPIPE_TOPIC[0]: \"/\" is no name"},
		{"topic: a,/", "", "", command.ExitConfig, "c.yaml:1:8: topic[1]: \"/\" is no name"},
		{"workers: -3", "", "--roll-records=0", command.ExitConfig, "c.yaml:1:10: workers: -3: want 0 to 4096\n--roll-records 0: want 1 to 1125899906842624\n"},
		{"a: &n -3\nworkers: *n", "", "", command.ExitConfig, "c.yaml:1:1: a: unknown key"},
		{"stage: seed", "", "", command.ExitConfig, "c.yaml:1:8: stage: seed: want a --model\n"},
		{"model: x", "", "--stage off", command.ExitConfig, "c.yaml:1:8: model: x: --stage says what to do with it\n"},
		{"mask: x\ntask: logits", "", "", command.ExitConfig, "c.yaml:1:7: mask: x: want --lm, the model whose attention it is for\nc.yaml:2:7: task: logits: want --lm"},
		{"sasl-user: ann", "", "", command.ExitConfig, "c.yaml:1:12: sasl-user: --sasl-user, --sasl-password, --sasl-password-file: want --sasl"},
		{"tls-cert: x.pem", "", "", command.ExitConfig, "c.yaml:1:11: tls-cert: --tls-cert, --tls-key: want both or none\n"},
		{"tls-ca: nowhere.pem", "", "", command.ExitConfig, "c.yaml:1:9: tls-ca: TLS: open nowhere.pem"},
		{"stage: seed\nmodel: nowhere.safetensors\nout: out", "", "", command.ExitConfig, "c.yaml:2:8: model: open nowhere.safetensors"},
		{"lm: nowhere\nout: out", "", "", command.ExitConfig, "c.yaml:1:5: lm: "},
		{"", "", "--workers=-3 --roll-records=0", command.ExitUsage, "entropipe: --workers -3: want 0 to 4096\n--roll-records 0: want 1 to 1125899906842624\n"},
		{"", "", "--lm nowhere", command.ExitConfig, "lm: "},
	} {
		if err := os.WriteFile("c.yaml", []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		name, value, _ := strings.Cut(c.env, "=")
		if name != "" {
			t.Setenv(name, value)
		}
		args := append([]string{"run", "c.yaml"}, strings.Split(strings.TrimSpace(c.args), " ")...)
		if c.args == "" {
			args = args[:2]
		}
		var stdout, stderr bytes.Buffer
		status := cmd.Main(args, &stdout, &stderr)
		if name != "" {
			os.Unsetenv(name)
		}
		if status != c.status || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%q %q %q: status %d, want %d and %q:\n%s", c.file, c.env, c.args, status, c.status, c.want, &stderr)
		}
		if _, err := os.Stat(filepath.Join("out")); err == nil {
			t.Errorf("%q %q: the mistake left an output", c.file, c.args)
		}
	}
}

// Commands without a file have their variables blamed as well.
func TestMistakesOfVariablesOfOtherCommands(t *testing.T) {
	for _, c := range []struct{ variable, value, args string }{
		{"ENTROPIPE_PARTITIONS", "0", "broker"},
		{"ENTROPIPE_PARTITIONS", "0", "produce synthetic"},
		{"ENTROPIPE_POINTS", "0", "demo"},
		{"ENTROPIPE_SPARSITY", "2", "freeze --lm x --calibrate y --out z"},
		{"ENTROPIPE_STEPS", "0", "train synthetic --out x.safetensors"},
		{"ENTROPIPE_TOKENS", "-1", "freeze --lm x --calibrate y --out z"},
	} {
		t.Setenv(c.variable, c.value)
		var stdout, stderr bytes.Buffer
		status := cmd.Main(strings.Fields(c.args), &stdout, &stderr)
		os.Unsetenv(c.variable)
		if status != command.ExitConfig || !strings.HasPrefix(stderr.String(), c.variable+": "+c.value+": want ") {
			t.Errorf("%s=%s %s: status %d: %s", c.variable, c.value, c.args, status, &stderr)
		}
	}
}
