package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"entropipe/cmd/config"
	"entropipe/cmd/config/value"
)

// One line end behind a password in a variable or a file is no part of it.
func TestLineEndIsNoPartOfAPassword(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"block.yaml": "sasl-password: |\n  hunter2\n",
		"quoted.yaml": "sasl-password: \"hunter2\\r\\n\"\n", "variable.yaml": "sasl-password: ${PASSWORD_OF_KAFKA}\n"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PASSWORD_OF_KAFKA", "hunter2\n")
		if got := parsedPassword(t, "run", file); got != "hunter2" {
			t.Errorf("%s: the password is %q", name, string(got))
		}
	}
	t.Setenv("ENTROPIPE_SASL_PASSWORD", "hunter2\n")
	if got := parsedPassword(t, "run"); got != "hunter2" {
		t.Errorf("of the variable: %q", string(got))
	}
	if got := parsedPassword(t, "run", "--sasl-password", "hunter2\n"); got != "hunter2\n" {
		t.Errorf("of the command line: %q, which a shell would have trimmed", string(got))
	}
}

func parsedPassword(t *testing.T, args ...string) value.Secret {
	t.Helper()
	var c cli
	k, err := config.NewParser(&c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.Parse(k, args); err != nil {
		t.Fatal(err)
	}
	return c.Run.Source.Security.Password
}
