package main

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"entropipe/algos/vector"
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
out: gs://bucket/prefix
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
c.yaml:14:6: out: gs://bucket/prefix: want a folder or s3://BUCKET/PREFIX, not gs
c.yaml:15:6: ops: none: it stands alone
c.yaml:16:8: stage: "fast" is not allowed; expected one of off, seed, prune, perturb, denoise
c.yaml:17:9: ladder: 2: want a share of the softmax, at least 0 and below 1
ENTROPIPE_MAX_NEW: "many" does not fit; expected a whole number
ENTROPIPE_TOP_K: 0: want 1 to 1000
`
	for _, verb := range []string{"run", "validate"} {
		var stdout, stderr bytes.Buffer
		if status := cmd.Main([]string{verb, "c.yaml"}, &stdout, &stderr); status != command.ExitConfig ||
			stderr.String() != want || stdout.Len() > 0 {
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
		{"workers: -3", "", "--roll-records=0", command.ExitConfig,
			"c.yaml:1:10: workers: -3: want 0 to 4096\n--roll-records 0: want 1 to 1125899906842624\n"},
		{"a: &n -3\nworkers: *n", "", "", command.ExitConfig, "c.yaml:1:1: a: unknown key"},
		{"stage: seed", "", "", command.ExitConfig, "c.yaml:1:8: stage: seed needs --model\n"},
		{"model: x", "", "--stage off", command.ExitConfig, "c.yaml:1:8: model: x: --stage says what to do with it\n"},
		{"mask: x\ntask: logits", "", "", command.ExitConfig,
			"c.yaml:1:7: mask: x needs --lm, the model whose attention it is for\nc.yaml:2:7: task: logits needs --lm"},
		{"sasl-user: ann", "", "", command.ExitConfig,
			"c.yaml:1:12: sasl-user: --sasl-user, --sasl-password, --sasl-password-file need --sasl"},
		{"tls-cert: x.pem", "", "", command.ExitConfig,
			"c.yaml:1:11: tls-cert: --tls-cert, --tls-key: want both or none\n"},
		{"tls-ca: nowhere.pem", "", "", command.ExitConfig, "c.yaml:1:9: tls-ca: TLS: open nowhere.pem"},
		{"stage: seed\nmodel: nowhere.safetensors\nout: out", "", "", command.ExitConfig,
			"c.yaml:2:8: model: open nowhere.safetensors"},
		{"lm: nowhere\nout: out", "", "", command.ExitConfig, "c.yaml:1:5: lm: "},
		{"", "", "--workers=-3 --roll-records=0", command.ExitUsage,
			"entropipe: --workers -3: want 0 to 4096\n--roll-records 0: want 1 to 1125899906842624\n"},
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
			t.Errorf("%q %q %q: status %d, want %d and %q:\n%s", c.file, c.env, c.args, status,
				c.status, c.want, &stderr)
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

func TestConfigErrorEndsWithStatus78(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("roll-aeg: 5s\nworkers: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"run", "validate"} {
		var out, errs bytes.Buffer
		status := cmd.Main([]string{verb, file}, &out, &errs)
		want := file + ":1:1: roll-aeg: unknown key; expected a flag of entropipe run; did you mean \"roll-age\"?\n" +
			file + ":2:10: workers: \"x\" does not fit; expected a whole number\n"
		if status != command.ExitConfig || errs.String() != want || out.Len() > 0 {
			t.Errorf("%s: status %d, %q, %q; want %q", verb, status, &out, &errs, want)
		}
	}
}

// The real grammar: what run prints is a file of run, and validate takes it.
func TestPrintedConfigIsAFile(t *testing.T) {
	var printed, again, errs bytes.Buffer
	args := []string{"run", "--print-config", "--topic", "lidar,drone", "--roll-age", "0", "--memory", "900MB",
		"--out", "a b/${X}"}
	if status := cmd.Main(args, &printed, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, printed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if status := cmd.Main([]string{"run", file, "--print-config"}, &again, &errs); status != 0 ||
		again.String() != printed.String() {
		t.Errorf("status %d: %s\nprinted\n%sthen\n%s", status, &errs, &printed, &again)
	}
	if status := cmd.Main([]string{"validate", file}, io.Discard, &errs); status != 0 {
		t.Errorf("validate: status %d: %s\n%s", status, &errs, &printed)
	}
}

// Law: whatever is wrong with it and wherever it stands, no output shows a
// password. Each half of it is looked for, since commas and slashes divide values.
func TestNoOutputShowsAPassword(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	file := func(name, text string) string {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	login := " --sasl scram-sha-512 --sasl-user ann"
	type attempt struct {
		args   []string
		env    string // NAME=value
		status int
		want   string
	}
	var attempts []attempt
	// A URL with a user, of every verb that takes brokers, by flag, variable and file.
	for _, broker := range []string{"sasl://ann:hun%ter2@kafka1:9092", "ann:hun,ter2@kafka1", "sasl://hun/ter2@kafka1",
		"kafka1:9092,sasl://ann:hun@ter2@kafka2"} {
		for _, verb := range []string{"run", "run --print-config", "produce synthetic", "produce quickdraw x.ndjson",
			"produce tokens x.txt", "produce kitti .", "info points"} {
			args := strings.Fields(verb)
			attempts = append(attempts, attempt{append(args, "--brokers", broker), "", 2, "no URL"},
				attempt{args, "ENTROPIPE_BROKERS=" + broker, 78, "ENTROPIPE_BROKERS: want HOST"})
		}
		name := file(fmt.Sprintf("brokers-%d.yaml", len(attempts)),
			"topic: points\nbrokers: '"+broker+"'\nworkers: x\n")
		list := file(fmt.Sprintf("list-%d.yaml", len(attempts)), "brokers:\n  - kafka1\n  - \""+broker+"\"\n")
		for _, verb := range []string{"run", "validate"} {
			attempts = append(attempts, attempt{[]string{verb, name}, "", 78, name + ":2:10: brokers: want HOST"},
				attempt{[]string{verb, list}, "", 78, list + ":2:3: brokers: want HOST"})
		}
		for _, url := range []string{"kafka://" + strings.TrimPrefix(broker, "sasl://") + "/points",
			"KAFKA://ann:hun ter2@kafka1/points", "kafka://ann:hunter2@kafka1:port/points",
			"kafka://ann:hun#ter2@kafka1:9092/points"} {
			attempts = append(attempts, attempt{[]string{"info", url}, "", 2, "kafka://HOST"},
				attempt{[]string{"train", url, "--out", "m.safetensors"}, "", 2, "kafka://HOST"})
		}
	}
	// Passwords that SASLprep refuses, in a variable, a file of its own, and YAML.
	for i, password := range []string{"hun\nter2", "hunter2\u0378", "hun\x01ter2"} {
		quoted := strings.NewReplacer("\n", `\n`, "\u0378", `\u0378`, "\x01", `\x01`).Replace(password)
		config := file(fmt.Sprintf("password-%d.yaml", i),
			"sasl: scram-sha-256\nsasl-user: ann\nsasl-password: \""+quoted+"\"\n")
		secret := file(fmt.Sprintf("password-%d", i), password+"\n")
		for _, verb := range []string{"run", "produce synthetic", "info points"} {
			args := strings.Fields(verb + login)
			attempts = append(attempts, attempt{args, "ENTROPIPE_SASL_PASSWORD=" + password, 78,
				"ENTROPIPE_SASL_PASSWORD: --sasl: SCRAM-SHA-512 cannot use the password"},
				attempt{append(args, "--sasl-password", password), "", 2, "cannot use the password"},
				attempt{append(args, "--sasl-password-file", secret), "", 2, "cannot use the password"})
		}
		for _, verb := range []string{"run", "validate"} {
			attempts = append(attempts, attempt{[]string{verb, config}, "", 78,
				config + ":3:16: sasl-password: --sasl: SCRAM-SHA-256 cannot use the password"})
		}
	}
	// Slips of YAML beside a password.
	for i, text := range []string{"sasl-password:hunter2", "{sasl-password:hunter2}", "sasl-password: hunter2: ter2",
		"sasl-password: [hunter2]", "sasl-password: 'hunter2", "sasl-password: \"hunter2",
		"sasl-password: a${hunter2}", "sasl-password: ${hun ter2}", "brokers: ${x}${hunter2",
		"sasl-password: {hunter2: ter2}", "sasl_password: hunter2", "sasl-password: &hunter2",
		"sasl-password: *hunter2", "sasl-password: !hunter2 x",
		"sasl-password=hunter2: 1", "? sasl-password hunter2\n: x", "sasl-password: 1\nsasl-password-hunter2: x",
		"brokers: sasl://ann:${hunter2}@kafka1", "kafka://ann:hunter2@kafka1: x", "ann:hunter2@kafka1: x"} {
		attempts = append(attempts, attempt{[]string{"validate",
			file(fmt.Sprintf("slip-%d.yaml", i), "topic: points\n"+text+"\nworkers: x\n")}, "", 78, ".yaml:"})
	}
	for _, slip := range []string{"run --sasl-passwort=hunter2", "run --sasl-password-fil=hunter2",
		"run a.yaml kafka://ann:hunter2@kafka1", "run --out s3://ann:hunter2@bucket",
		"verify s3://ann:hunter2@bucket/x", "run kafka://ann:hunter2@kafka1",
		"info https://ann:hunter2@bucket/x", "export s3://ann:hunter2@bucket/x -o x.svg",
		"produce kitti s3://ann:hunter2@bucket/x --brokers 127.0.0.1:1",
		"run --sasl-password-file ./ --sasl-password hunter2" + login} {
		attempts = append(attempts, attempt{strings.Fields(slip), "", -1, ""})
	}
	for _, a := range attempts {
		name, value, _ := strings.Cut(a.env, "=")
		if name != "" {
			t.Setenv(name, value)
		}
		var stdout, stderr bytes.Buffer
		status := cmd.Main(a.args, &stdout, &stderr)
		if name != "" {
			os.Unsetenv(name)
		}
		all := stdout.String() + stderr.String()
		if a.status >= 0 && status != a.status || status == 0 || !strings.Contains(all, a.want) {
			t.Errorf("%q %q: status %d, want %d and %q:\n%s", a.args, a.env, status, a.status, a.want, all)
		}
		if strings.Contains(all, "hun") || strings.Contains(all, "ter2") {
			t.Errorf("%q %q shows the password:\n%s", a.args, a.env, all)
		}
	}
}

// The flags of TLS and SASL reach every connection of every command, the password
// by its variable, and no output shows it.
func TestSecureBrokers(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	web.Close()
	dir := t.TempDir()
	ca, out := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "out")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	const password = "8461739205" // which YAML takes for a number
	number := filepath.Join(dir, "number.yaml")
	if err := os.WriteFile(number, []byte("sasl-password: "+password), 0o600); err != nil {
		t.Fatal(err)
	}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(&tls.Config{Certificates: web.TLS.Certificates}),
		kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "ann", password))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1)) // run sets one, and this is not its process
	t.Setenv("ENTROPIPE_BROKERS", broker.ListenAddrs()[0])
	t.Setenv("ENTROPIPE_SASL_PASSWORD", password)
	secret := filepath.Join(dir, "password") // as Kubernetes mounts it, with the line end of who made it
	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	login := []string{"--tls-ca", ca, "--sasl", "scram-sha-512", "--sasl-user", "ann"}
	config := filepath.Join(dir, "run.yaml")
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"produce", "synthetic", "--kind", "sketch", "--frames", "30", "--rate", "max"}, 0, "30 frames"},
		{[]string{"info", "points"}, 0, "points"},
		{[]string{"run", "--out", out, "--until-end", "--publish", "survivors", "--for", "hull2d", "--log-level",
			"debug"}, 0, "msg=done frames=30"},
		{[]string{"run", "--topic", "survivors", "--out", out + "2", "--until-end"}, 0, "msg=done frames=30"},
		{[]string{"train", "kafka://" + broker.ListenAddrs()[0] + "/points", "--steps", "1", "--frames", "10", "--out",
			filepath.Join(dir, "model.safetensors")}, 0, "model.safetensors"},
		{[]string{"run", "--out", out, "--print-config"}, 0, `sasl-password: "${ENTROPIPE_SASL_PASSWORD}"`},
		{[]string{"validate", config, "--connect"}, 0, "partitions"},
		{[]string{"run", "--out", out, "--until-end", "--sasl-password", "another"}, 1, "--sasl-password"},
		{[]string{"validate", number}, 78, "a string: write it in quotes"},
		{[]string{"run", "--out", out, "--until-end", "--tls-cert", filepath.Join(dir, "nowhere.pem"), "--tls-key", ca},
			2, "nowhere.pem"},
		{[]string{"run", "--out", out, "--until-end", "--tls-cert", ca}, 2, "--tls-key"},
		{[]string{"info", "points", "--sasl-password-file", secret}, 2, "want one of them"},
		{[]string{"unset"}, 0, ""}, // from here on the file has the password
		{[]string{"info", "points", "--sasl-password-file", secret}, 0, "points"},
		{[]string{"run", "--out", out + "3", "--until-end", "--sasl-password-file", secret}, 0, "msg=done frames=30"},
		{[]string{"info", "points", "--sasl-password-file", secret + "2"}, 2, "password2"},
		{[]string{"info", "points", "--sasl-password", password + "\n"}, 2, "its character 11 is a line end"},
	} {
		if c.args[0] == "unset" {
			os.Unsetenv("ENTROPIPE_SASL_PASSWORD")
			continue
		}
		var stdout, stderr bytes.Buffer
		args := c.args
		if args[0] != "validate" { // the file has them
			args = slices.Concat(args, login)
		}
		status := cmd.Main(args, &stdout, &stderr)
		all := stdout.String() + stderr.String()
		if status != c.status || !strings.Contains(all, c.want) || strings.Contains(all, password) {
			t.Errorf("%q: status %d, want %d and %q, without the password:\n%s", args, status, c.status, c.want, all)
		}
		if slices.Contains(args, "--print-config") {
			if err := os.WriteFile(config, stdout.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A topic must take the frames that are sent, and run too; that the topic would
// take larger ones is worth a word, but no mistake.
func TestSizesOfFramesAndTopics(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir() // its topics take 16 MiB
	must(t, dir, "produce", "synthetic", "--frames", "3", "--points", "100", "--rate", "max", "--brokers", brokers)
	config := filepath.Join(dir, "run.yaml")
	if err := os.WriteFile(config, []byte("brokers: "+brokers+"\nout: "+filepath.Join(dir, "out")+"\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		max, frames string
		status      int
		want        string
	}{
		{"16MiB", "16MiB", 0, "3 records, messages of up to 16 MiB\n"},
		{"4MiB", "2MiB", 0, "messages of up to 16 MiB, of which those above --max-frame-bytes 4MiB become rejects\n"},
		{"4MiB", "5MiB", command.ExitRuntime, "frames of 5MiB would become rejects: --max-frame-bytes is 4MiB"},
		{"64MiB", "17MiB", 0, "messages of up to 16 MiB; frames of 17MiB come in chunks"},
	} {
		var stdout, stderr bytes.Buffer
		status := cmd.Main([]string{"validate", config, "--connect", "--max-frame-bytes", c.max, "--frame-bytes",
			c.frames}, &stdout, &stderr)
		if all := stdout.String() + stderr.String(); status != c.status || !strings.Contains(all, c.want) {
			t.Errorf("row %d: exit status %d, want %d and %q:\n%s", i, status, c.status, c.want, all)
		}
	}
}

// What is sent to is looked at, too: a topic that is not there is made at the start.
func TestValidateKnowsWhereMessagesGo(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	must(t, dir, "produce", "synthetic", "--frames", "3", "--points", "100", "--rate", "max", "--brokers", brokers)
	config := filepath.Join(dir, "run.yaml")
	if err := os.WriteFile(config, []byte("brokers: "+brokers+"\nout: "+filepath.Join(dir, "out")+
		"\ndead-letter: dead\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ok   topic dead, sent to: not there yet: the start makes it\n",
		"ok   topic dead, sent to: 4 partitions, messages of up to 16 MiB; larger ones go in chunks\n"} {
		if got := must(t, dir, "validate", config, "--connect"); !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
		must(t, dir, "run", config, "--until-end")
	}
	if err := os.WriteFile(config, []byte("brokers: "+brokers+"\ndead-letter: points\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	r := launch(t, dir, "validate", config)
	r.exits(command.ExitConfig, patience)
	r.says(`run.yaml:2:14: dead-letter: points: this topic is read`)
}

func TestBenchRefusesWhatItCannotTime(t *testing.T) {
	defer vector.Limit(vector.Portable)()
	for _, c := range []struct{ args, want string }{
		{"--level avx512", "--level avx512: this processor has portable"},
		{"--ops maxima3d --dist square", "these distributions are flat"},
		{"--workers=-1", "--workers -1: want 0 to 4096"},
		{"--sizes 0", `"0" is not a number of points; expected 1 to 1e8`},
		{"--sizes 1.5", `"1.5" is not a number of points`},
		{"--sizes 1e9", `"1e9" is not a number of points`},
		{"--sizes NaN", `"NaN" is not a number of points`},
		{"--dist squares", `--dist must be one of`},
		{"--kitti /nowhere", `/nowhere`},
	} {
		var stdout, stderr bytes.Buffer
		status := cmd.Main(append([]string{"bench"}, strings.Fields(c.args)...), &stdout, &stderr)
		if status != command.ExitUsage || !strings.Contains(stderr.String(), c.want) || stdout.Len() > 0 {
			t.Errorf("%s: status %d, %q, want %d and %q", c.args, status, stderr.String(), command.ExitUsage, c.want)
		}
	}
}

func TestBenchHelpShowsExamplesAndDefaults(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status := cmd.Main([]string{"bench", "--help"}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	for _, want := range []string{"Examples:", "50,1e3,1e4,1e5,1e6)", "--min-time=150ms", "hull3d", "--level"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout.String())
		}
	}
}
