package main

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"entropipe/cmd"
)

// The flags of TLS and SASL reach every connection of every command, the password
// by its variable, and no output shows it.
func TestSecureBrokers(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	web.Close()
	dir := t.TempDir()
	ca, out := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "out")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	const password = "8461739205" // which YAML takes for a number
	number := filepath.Join(dir, "number.yaml")
	if err := os.WriteFile(number, []byte("sasl-password: "+password), 0o600); err != nil {
		t.Fatal(err)
	}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(&tls.Config{Certificates: web.TLS.Certificates}), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "ann", password))
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
		{[]string{"run", "--out", out, "--until-end", "--publish", "survivors", "--for", "hull2d", "--log-level", "debug"}, 0, "msg=done frames=30"},
		{[]string{"run", "--topic", "survivors", "--out", out + "2", "--until-end"}, 0, "msg=done frames=30"},
		{[]string{"train", "kafka://" + broker.ListenAddrs()[0] + "/points", "--steps", "1", "--frames", "10", "--out", filepath.Join(dir, "model.safetensors")}, 0, "model.safetensors"},
		{[]string{"run", "--out", out, "--print-config"}, 0, `sasl-password: "${ENTROPIPE_SASL_PASSWORD}"`},
		{[]string{"validate", config, "--connect"}, 0, "partitions"},
		{[]string{"run", "--out", out, "--until-end", "--sasl-password", "another"}, 1, "--sasl-password"},
		{[]string{"validate", number}, 78, "a string: write it in quotes"},
		{[]string{"run", "--out", out, "--until-end", "--tls-cert", filepath.Join(dir, "nowhere.pem"), "--tls-key", ca}, 2, "nowhere.pem"},
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
