package cmd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// configurationSchema returns what validate --schema prints, compiled.
func configurationSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(runs(t, 0, "validate", "--schema")))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("entropipe.schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("entropipe.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if schema.DraftVersion != 2020 {
		t.Errorf("the schema is of draft %d", schema.DraftVersion)
	}
	return schema
}

// runs runs a command line that must end with a status, and returns what it prints.
func runs(t *testing.T, status int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if got := Main(args, &stdout, &stderr); got != status {
		t.Fatalf("%q: status %d, want %d: %s", args, got, status, stderr.String())
	}
	return stdout.String()
}

// accepts returns why the schema refuses a file, nil if it does not.
func accepts(schema *jsonschema.Schema, text string) error {
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return err
	}
	return schema.Validate(v)
}

// What run prints, the examples of init, and every file of the scripts that validate
// accepts are valid by the schema.
func TestSchemaAcceptsWhatTheReaderAccepts(t *testing.T) {
	schema := configurationSchema(t)
	texts := map[string]string{
		"printed":     runs(t, 0, "run", "--print-config"),
		"commented":   runs(t, 0, "run", "--print-config", "--commented", "--ops", "hull2d", "--max-rejects", "5%"),
		"init":        runs(t, 0, "init", "-"),
		"init tokens": runs(t, 0, "init", "-", "--tokens"),
		"forms": "topic: a, b\nroll-bytes: 1.5GiB\nmemory: 900 KB\nroll-age: 1m30.5s\nretry-for: 90\nworkers: \"2\"\n" +
			"max-rejects: 5\ntables: hulls,maxima\nout: a b\ngroup: ${UNSET:x}\nroll-records: ${UNSET:7}\npprof: " +
			"${UNSET:true}\n",
	}
	scripts, err := filepath.Glob("../testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		archive, err := txtar.ParseFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.Files {
			if strings.HasSuffix(file.Name, ".yaml") {
				texts[script+" "+file.Name] = string(file.Data)
			}
		}
	}
	accepted := 0
	for name, text := range texts {
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		if status := Main([]string{"validate", file}, &stdout, &stderr); status != 0 {
			if !strings.HasPrefix(name, "../testdata") {
				t.Errorf("%s: validate ends with status %d: %s", name, status, stderr.String())
			}
			continue
		}
		accepted++
		if err := accepts(schema, text); err != nil {
			t.Errorf("%s: the reader accepts it, the schema does not: %v\n%s", name, err, text)
		}
	}
	if accepted < 6 {
		t.Errorf("only %d files are accepted", accepted)
	}
}

func TestSchemaRefusesWhatTheReaderRefuses(t *testing.T) {
	schema := configurationSchema(t)
	for _, text := range []string{"topics: a", "config: x", "help: true", "print-config: true", "connect: true",
		"from: latset", "stage: of",
		"tables: [hulls, hull]", "tables: hulls,hull", "ops: [hull2d, 5]", "roll-age: soon", "roll-age: -5s",
		"roll-age: -5", "roll-bytes: 5 parsecs",
		"roll-bytes: -1", "roll-bytes: 1.5", "out: 7", "out: true", "out: [a]", "out: {a: b}", "out:", "pprof: 1",
		"pprof: \"yes\"", "workers: many",
		"workers: 1.5", "workers: true", "ladder: x", "topic: []", "topic: [a, \"\"]", "topic: [[a]]",
		"max-rejects: many", "max-rejects: [1]",
		"sasl: md5", "sasl-password: 5", "- out", "out"} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		runs(t, 78, "validate", file)
		if err := accepts(schema, text); err == nil {
			t.Errorf("%q: the reader refuses it, the schema does not", text)
		}
	}
}

// init never replaces a file unless told to, and its examples pass validate.
func TestInitWritesAnExample(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"init"}, {"init", "tokens.yaml", "--tokens"}} {
		file := "entropipe.yaml"
		if len(args) > 1 {
			file = args[1]
		}
		if text := runs(t, 0, args...); !strings.Contains(text, "entropipe validate "+file) ||
			!strings.Contains(text, "entropipe run "+file) {
			t.Errorf("%q says %q", args, text)
		}
		written, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(written, []byte("# yaml-language-server: $schema=entropipe.schema.json\n")) {
			t.Errorf("%s opens with %.80q", file, written)
		}
		runs(t, 0, "validate", file)
		if err := os.WriteFile(file, []byte("out: mine\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		runs(t, 2, args...)
		if kept, err := os.ReadFile(file); err != nil || string(kept) != "out: mine\n" {
			t.Errorf("%q: init changed the file to %q, %v", args, kept, err)
		}
		runs(t, 0, append(args, "--force")...)
		if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, written) {
			t.Errorf("%q --force: %q, %v", args, again, err)
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) != 2 {
		t.Errorf("init left %v, %v", fmt.Sprint(entries), err)
	}
}

func TestSchemaAndCommentsNeedTheirPartners(t *testing.T) {
	runs(t, 2, "validate")
	runs(t, 2, "run", "--commented")
}
