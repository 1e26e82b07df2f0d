package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/cmd"
)

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
	for _, broker := range []string{"sasl://ann:hun%ter2@kafka1:9092", "ann:hun,ter2@kafka1", "sasl://hun/ter2@kafka1", "kafka1:9092,sasl://ann:hun@ter2@kafka2"} {
		for _, verb := range []string{"run", "run --print-config", "produce synthetic", "produce quickdraw x.ndjson", "produce tokens x.txt", "produce kitti .", "info points"} {
			args := strings.Fields(verb)
			attempts = append(attempts, attempt{append(args, "--brokers", broker), "", 2, "no URL"}, attempt{args, "ENTROPIPE_BROKERS=" + broker, 78, "ENTROPIPE_BROKERS: want HOST"})
		}
		name := file(fmt.Sprintf("brokers-%d.yaml", len(attempts)), "topic: points\nbrokers: '"+broker+"'\nworkers: x\n")
		list := file(fmt.Sprintf("list-%d.yaml", len(attempts)), "brokers:\n  - kafka1\n  - \""+broker+"\"\n")
		for _, verb := range []string{"run", "validate"} {
			attempts = append(attempts, attempt{[]string{verb, name}, "", 78, name + ":2:10: brokers: want HOST"}, attempt{[]string{verb, list}, "", 78, list + ":2:3: brokers: want HOST"})
		}
		for _, url := range []string{"kafka://" + strings.TrimPrefix(broker, "sasl://") + "/points", "KAFKA://ann:hun ter2@kafka1/points", "kafka://ann:hunter2@kafka1:port/points", "kafka://ann:hun#ter2@kafka1:9092/points"} {
			attempts = append(attempts, attempt{[]string{"info", url}, "", 2, "kafka://HOST"}, attempt{[]string{"train", url, "--out", "m.safetensors"}, "", 2, "kafka://HOST"})
		}
	}
	// Passwords that SASLprep refuses, in a variable, a file of its own, and YAML.
	for i, password := range []string{"hun\nter2", "hunter2\u0378", "hun\x01ter2"} {
		quoted := strings.NewReplacer("\n", `\n`, "\u0378", `\u0378`, "\x01", `\x01`).Replace(password)
		config := file(fmt.Sprintf("password-%d.yaml", i), "sasl: scram-sha-256\nsasl-user: ann\nsasl-password: \""+quoted+"\"\n")
		secret := file(fmt.Sprintf("password-%d", i), password+"\n")
		for _, verb := range []string{"run", "produce synthetic", "info points"} {
			args := strings.Fields(verb + login)
			attempts = append(attempts, attempt{args, "ENTROPIPE_SASL_PASSWORD=" + password, 78, "ENTROPIPE_SASL_PASSWORD: --sasl: SCRAM-SHA-512 cannot use the password"},
				attempt{append(args, "--sasl-password", password), "", 2, "cannot use the password"},
				attempt{append(args, "--sasl-password-file", secret), "", 2, "cannot use the password"})
		}
		for _, verb := range []string{"run", "validate"} {
			attempts = append(attempts, attempt{[]string{verb, config}, "", 78, config + ":3:16: sasl-password: --sasl: SCRAM-SHA-256 cannot use the password"})
		}
	}
	// Slips of YAML beside a password.
	for i, text := range []string{"sasl-password:hunter2", "{sasl-password:hunter2}", "sasl-password: hunter2: ter2", "sasl-password: [hunter2]", "sasl-password: 'hunter2", "sasl-password: \"hunter2",
		"sasl-password: a${hunter2}", "sasl-password: ${hun ter2}", "brokers: ${x}${hunter2", "sasl-password: {hunter2: ter2}", "sasl_password: hunter2", "sasl-password: &hunter2", "sasl-password: *hunter2", "sasl-password: !hunter2 x",
		"sasl-password=hunter2: 1", "? sasl-password hunter2\n: x", "sasl-password: 1\nsasl-password-hunter2: x", "brokers: sasl://ann:${hunter2}@kafka1", "kafka://ann:hunter2@kafka1: x", "ann:hunter2@kafka1: x"} {
		attempts = append(attempts, attempt{[]string{"validate", file(fmt.Sprintf("slip-%d.yaml", i), "topic: points\n"+text+"\nworkers: x\n")}, "", 78, ".yaml:"})
	}
	for _, slip := range []string{"run --sasl-passwort=hunter2", "run --sasl-password-fil=hunter2", "run a.yaml kafka://ann:hunter2@kafka1", "run --out s3://ann:hunter2@bucket", "verify s3://ann:hunter2@bucket/x", "run kafka://ann:hunter2@kafka1",
		"info https://ann:hunter2@bucket/x", "export s3://ann:hunter2@bucket/x -o x.svg", "produce kitti s3://ann:hunter2@bucket/x --brokers 127.0.0.1:1", "run --sasl-password-file ./ --sasl-password hunter2" + login} {
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
