package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	failureTest = regexp.MustCompile("`(Test\\w+)` in (`[a-z0-9/]+`|the root)")
	failureLink = regexp.MustCompile(`https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+`)
)

// testsOf returns the names of the test functions of a folder.
func testsOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(folder), "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("no tests in %s: %v", folder, err)
	}
	names := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range parsed.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}

// Every row of the page of failures has a link to where the failure is told, and names a test
// that exists.
func TestFailuresOfOthersHaveTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "## Failures of others")
	section, _, _ := strings.Cut(rest, "\n## ")
	if !found {
		t.Fatal("the page has no section of failures")
	}
	folders := map[string]map[string]bool{}
	rows := 0
	for _, line := range strings.Split(section, "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| what failed") {
			continue
		}
		rows++
		if cells := strings.Count(line, " | "); cells != 2 {
			t.Errorf("%d cells in the row %q", cells+1, line)
		}
		if !failureLink.MatchString(line) {
			t.Errorf("no link to an issue in the row %q", line)
		}
		tests := failureTest.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("no test in the row %q", line)
		}
		for _, test := range tests {
			folder := strings.Trim(test[2], "`")
			if folder == "the root" {
				folder = "."
			}
			if folders[folder] == nil {
				folders[folder] = testsOf(t, folder)
			}
			if !folders[folder][test[1]] {
				t.Errorf("%s has no %s", test[2], test[1])
			}
		}
	}
	if rows < 10 {
		t.Errorf("%d rows", rows)
	}
	if names := testsOf(t, "."); !names["TestFailuresOfOthersHaveTests"] || names["TestNone"] {
		t.Errorf("the tests of this folder are %v", names)
	}
}

// wallClock are the files that read the wall clock as a number or in UTC, with what a step of
// it does there. Everything else takes differences of time.Now, which no step changes.
var wallClock = map[string]string{
	"sinks/commit.go":              "created, of a manifest: shown, and compared by --strict-config",
	"sinks/resume.go":              "created, of a base: shown",
	"sinks/sinks.go":               "created, of an output: shown",
	"sinks/topic.go":               "created, of an accepted topic: shown",
	"sinks/adopt.go":               "created, of an adopted manifest: shown",
	"sinks/compact/vacuum.go":      "created, of a retired commit: shown",
	"sinks/s3/probe.go":            "bytes of the objects that a probe writes",
	"sinks/s3/s3test/s3test.go":    "what a server of tests answers",
	"ingest/backfill/paths.go":     "created, of a plan: shown",
	"ops/foxglove/foxglove.go":     "the name of a session",
	"ops/live/scene.go":            "shown",
	"ops/web/encode.go":            "shown",
	"ops/web/hub.go":               "the name of a process for pages that come back",
	"ops/web/routes.go":            "whether somebody has just asked for numbers: they are computed longer",
	"ops/pipeline/tokens_scene.go": "shown",
}

// Law: in what commits, reads and serves, no code makes a number of the wall clock but those
// files, where a step is known to do no harm.
func TestReadersOfTheWallClock(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(`time\.Now\(\)\.(Unix\w*|UTC|Round|Truncate|Format)\(`)
	seen := map[string]bool{}
	eachGoFile(t, func(name string, source []byte) {
		folder, _, _ := strings.Cut(name, "/")
		if strings.HasSuffix(name, "_test.go") || folder != "sinks" && folder != "ingest" && folder != "ops" ||
			!pattern.Match(source) {
			return
		}
		if seen[name] = true; wallClock[name] == "" {
			t.Errorf("%s: %s: a step of the clock changes it", name, pattern.Find(source))
		}
	})
	for name := range wallClock {
		if !seen[name] {
			t.Errorf("%s does not read the wall clock any more", name)
		}
	}
}
