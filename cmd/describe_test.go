package cmd

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"entropipe/cmd/config"
	"entropipe/cmd/config/describe"
	"entropipe/cmd/config/value"
)

var update = flag.Bool("update", false, "write the files in docs that are made from the grammar")

// The page of the keys and the schema are what the grammar says: go generate ./cmd
// makes them again.
func TestDescribedFiles(t *testing.T) {
	k, _ := grammar(t)
	run := config.CommandNamed(k.Model.Node, "run")
	for name, want := range map[string]string{"configuration.md": describe.Page(run),
		"entropipe.schema.json": string(describe.Schema(run))} {
		file := filepath.Join("..", "docs", name)
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("docs/%s is not current, run go generate ./cmd (-want +got):\n%s", name, diff)
		}
		for key := range config.KeysOf(run) {
			if !strings.Contains(string(got), "`"+key+"`") && !strings.Contains(string(got), `"`+key+`"`) {
				t.Errorf("docs/%s does not have the key %s", name, key)
			}
		}
	}
}

// otherValue returns a value of a key, as YAML, that is not its default.
func otherValue(f *kong.Flag) string {
	if f.Enum != "" {
		allowed := f.EnumSlice()
		for _, text := range allowed {
			if text != f.Default {
				return fmt.Sprintf("%q", text)
			}
		}
	}
	switch t := value.ElementType(f); {
	case t == reflect.TypeFor[value.Size]():
		return "7KiB"
	case t == reflect.TypeFor[time.Duration]():
		return "77s"
	case t == reflect.TypeFor[value.Secret]():
		return `"hunter2"`
	case t.Kind() == reflect.Bool:
		return "true"
	case t.Kind() == reflect.Float64:
		return "0.25"
	case t.Kind() == reflect.Struct:
		return `"7%"`
	case t.Kind() == reflect.String:
		return `"a: #b"`
	}
	return "7"
}

// Law: the commented configuration, read again, has the same values, for every key of
// the grammar, set or not; each key stands there once, below its help line; no secret
// does.
func TestCommentedConfigurationReadsBack(t *testing.T) {
	k, _ := grammar(t)
	var all strings.Builder
	for name, f := range config.KeysOf(config.CommandNamed(k.Model.Node, "run")) {
		fmt.Fprintf(&all, "%s: %s\n", name, otherValue(f))
	}
	t.Setenv("ENTROPIPE_SASL_PASSWORD", "hunter2")
	for name, text := range map[string]string{"defaults": "", "every key": all.String()} {
		first, plain := commentedOf(t, text)
		again, plainAgain := commentedOf(t, first)
		if diff := cmp.Diff(plain, plainAgain); diff != "" || first != again {
			t.Errorf("%s: read again (-first +again):\n%s", name, diff)
		}
		if strings.Contains(first, "hunter2") ||
			!strings.Contains(first, `sasl-password: "${ENTROPIPE_SASL_PASSWORD}"`) {
			t.Errorf("%s: the password is not hidden:\n%s", name, first)
		}
		for key, f := range config.KeysOf(config.CommandNamed(k.Model.Node, "run")) {
			entry := regexp.MustCompile(`(?m)^# ` + regexp.QuoteMeta(f.Help) + `\n# Values: .*\n` + key + `: `)
			if n := len(entry.FindAllString(first, -1)); n != 1 {
				t.Errorf("%s: %s stands there %d times below its help", name, key, n)
			}
		}
	}
}

// commentedOf returns the configuration of a file, with comments and without.
func commentedOf(t *testing.T, text string) (commented, plain string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var c cli
	k, err := config.NewParser(&c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.Parse(k, []string{"run", file}); err != nil {
		t.Fatal(err)
	}
	return describe.Commented(k, &c.Run), config.Effective(k, &c.Run)
}
