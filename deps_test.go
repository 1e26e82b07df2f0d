package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// importPolicy is the text of the import rule, which ARCHITECTURE.md holds and
// explains. A line has four columns: packages, packages of ours that they import,
// modules, and further modules of their tests.
//
// So algos know nothing of Kafka, Arrow, files or metrics; Arrow stays in
// schemas, kafka-go in ingest, parquet-go where tables are written and read, behind
// schemas/codec/parquetfile, and Prometheus in ops, which counts the numbers that
// stages return, and where cmd makes the registry; the commit protocol in sinks knows
// no Parquet. Of the commands only backfill, demo, produce and validate use those of run.
// algos/geomtest, ops/leaktest, cmd/terminaltest, sinks/internal/batches and sinktest serve
// tests and benchmarks; and nothing imports benchmarks.
func importPolicy(t *testing.T) string {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Import rule\n")
	if !found {
		t.Fatal("ARCHITECTURE.md has no import rule")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	_, block, opened := strings.Cut(section, "\n```text\n")
	block, _, closed := strings.Cut(block, "\n```\n")
	if !opened || !closed {
		t.Fatal("the import rule of ARCHITECTURE.md has no block of text")
	}
	return block
}

// moduleNames are the short names of the policy.
var moduleNames = map[string]string{
	"arrow":        "github.com/apache/arrow/go/v15",
	"brotli":       "github.com/andybalholm/brotli",
	"cdproto":      "github.com/chromedp/cdproto",
	"chromedp":     "github.com/chromedp/chromedp",
	"compress":     "github.com/klauspost/compress",
	"cpuid":        "github.com/klauspost/cpuid/v2",
	"protobuf":     "google.golang.org/protobuf",
	"sqlite":       "modernc.org/sqlite",
	"flatbuffers":  "github.com/google/flatbuffers",
	"franz-go":     "github.com/twmb/franz-go",
	"goleak":       "go.uber.org/goleak",
	"kafka-go":     "github.com/segmentio/kafka-go",
	"kong":         "github.com/alecthomas/kong",
	"kfake":        "github.com/twmb/franz-go/pkg/kfake",
	"kmsg":         "github.com/twmb/franz-go/pkg/kmsg",
	"lz4":          "github.com/pierrec/lz4/v4",
	"gofakes3":     "github.com/johannesboyne/gofakes3",
	"minio-go":     "github.com/minio/minio-go/v7",
	"orb":          "github.com/paulmach/orb",
	"parquet-go":   "github.com/parquet-go/parquet-go",
	"prometheus":   "github.com/prometheus/client_golang",
	"purego":       "github.com/ebitengine/purego",
	"rapid":        "pgregory.net/rapid",
	"regexp2":      "github.com/dlclark/regexp2",
	"client_model": "github.com/prometheus/client_model",
	"tcell":        "github.com/gdamore/tcell/v2",
	"uniseg":       "github.com/rivo/uniseg",
	"websocket":    "github.com/coder/websocket",
	"x/image":      "golang.org/x/image",
	"x/sys":        "golang.org/x/sys",
	"x/text":       "golang.org/x/text",
	"yaml":         "github.com/goccy/go-yaml",
}

// testModules serve the tests of every package.
var testModules = []string{"pgregory.net/rapid", "github.com/google/go-cmp", "go.uber.org/goleak",
	"github.com/rogpeppe/go-internal",
	"github.com/santhosh-tekuri/jsonschema/v6"}

// topFolders are the folders of the repository; another one needs a reason
// in ARCHITECTURE.md, and a place here.
var topFolders = []string{"algos", "benchmarks", "cmd", "deploy", "docs", "ingest", "models", "ops", "preprocess",
	"schemas", "sinks", "sparse"}

const ownModule = "entropipe"

func TestImportPolicy(t *testing.T) {
	for _, violation := range checkTree(t, os.DirFS(".")) {
		t.Error(violation)
	}
}

// A check that cannot fail is a defect: every rule meets a file that breaks it.
func TestImportPolicyFindsEveryKindOfViolation(t *testing.T) {
	for _, c := range []struct{ file, source, want string }{
		{"algos/hull/a.go", `package hull; import "entropipe/schemas"`,
			"algos/hull/a.go imports entropipe/schemas, which the policy's line 3 (algos/entropy"},
		{"algos/hull/a.go", `package hull; import "entropipe/algos/maxima"`, "line 3"},
		{"algos/hull/a.go", `package hull; import "entropipe/algos/geomtest"`, "line 3"},
		{"algos/hull/a.go", `package hull; import "github.com/segmentio/kafka-go"`, "line 3"},
		{"algos/hull/a_test.go", `package hull; import "github.com/segmentio/kafka-go"`, "line 3"},
		{"algos/hull/tagged.go", "//go:build never\n\npackage hull; import _ " +
			"\"github.com/prometheus/client_golang/prometheus\"", "line 3"},
		{"algos/geom/a.go", `package geom; import "entropipe/algos/exact"`, "line 2"},
		{"algos/exact/a.go", `package exact; import "C"`, `imports "C"`},
		{"algos/exact/a_test.go", `package exact; import "C"`, `imports "C"`},
		{"schemas/codec/parquetfile/a.go", `package parquetfile; import "entropipe/schemas"`, "line 7"},
		{"schemas/a.go", `package schemas; import "entropipe/algos/hull"`, "line 8"},
		{"sinks/a.go", `package sinks; import "github.com/prometheus/client_golang/prometheus"`, "line 20"},
		{"sinks/a.go", `package sinks; import "github.com/apache/arrow/go/v15/arrow"`, "line 20"},
		{"sinks/a.go", `package sinks; import "github.com/parquet-go/parquet-go"`, "line 20"},
		{"sinks/a.go", `package sinks; import "entropipe/sinks/tables"`, "line 20"},
		{"sinks/a.go", `package sinks; import "entropipe/sinks/internal/sinktest"`, "line 20"},
		{"sinks/a.go", `package sinks; import "entropipe/ingest"`, "line 20"},
		{"sinks/record/a.go", `package record; import "entropipe/sinks"`, "line 17"},
		{"sinks/tables/a.go", `package tables; import "entropipe/sinks/read"`, "line 21"},
		{"ingest/a.go", `package ingest; import "github.com/parquet-go/parquet-go"`, "line 12"},
		{"ingest/a.go", `package ingest; import "entropipe/ops/pipeline"`, "line 12"},
		{"ingest/a.go", `package ingest; import "github.com/segmentio/kafka-gopher"`, "line 12"},
		{"ops/pipeline/a.go", `package pipeline; import "entropipe/ingest"`, "line 10"},
		{"preprocess/a.go", `package preprocess; import "entropipe/sparse"`, "line 6"},
		{"models/mat/a.go", `package mat; import "entropipe/algos/geom"`, "line 4"},
		{"sinks/a_test.go", `package sinks; import "entropipe/benchmarks/e2e"`, "line 20"},
		{"a.go", `package main; import "entropipe/benchmarks/e2e"`, "line 37"},
		{"cmd/export/a.go", `package export; import "entropipe/cmd/run"`, "line 31"},
		{"cmd/run/a.go", `package run; import "entropipe/cmd/demo"`, "line 32"},
		{"sinks/gcs/a.go", `package gcs`, "sinks/gcs: no line of the policy names this package"},
		{"util/a.go", `package util`, "util: a top-level folder that the tree does not have"},
		{"web/a.md", `text`, "web: a top-level folder that the tree does not have"},
		{"sinks/a.go", `package sinks; import`, "sinks/a.go:"},
	} {
		got := checkTree(t, fstest.MapFS{c.file: {Data: []byte(c.source)}})
		if !strings.Contains(strings.Join(got, "\n"), c.want) {
			t.Errorf("%s: %q: got %q, want a line with %q", c.file, c.source, got, c.want)
		}
	}
}

func TestImportPolicyAllowsWhatItNames(t *testing.T) {
	tree := fstest.MapFS{}
	for file, source := range map[string]string{
		"a.go":                                   `package main; import ("os"; "entropipe/cmd")`,
		"algos/hull/a.go":                        `package hull; import ("math"; "entropipe/algos/geom"; "entropipe/algos/internal/kernel")`,
		"algos/hull/a_test.go":                   `package hull_test; import ("entropipe/algos/geomtest"; "entropipe/algos/delaunay"; "pgregory.net/rapid")`,
		"ingest/a.go":                            `package ingest; import "github.com/segmentio/kafka-go/protocol/fetch"`,
		"preprocess/train/a.go":                  `package train; import "entropipe/preprocess"`,
		"benchmarks/e2e/a.go":                    `package e2e; import ("entropipe/algos/geomtest"; "github.com/segmentio/kafka-go")`,
		"sinks/testdata/broken.go":               `not Go`,
		".ci/kafka/pom.xml":                      `text`,
		"entropipe-out/hulls/x.go":               `not Go`,
		".gitignore":                             "/entropipe-out/\n",
		"algos/internal/kernel/a.go":             `package kernel; import "golang.org/x/sys/cpu"`,
		"algos/internal/kernel/gen/go.mod":       `module gen`,
		"algos/internal/kernel/gen/hull/main.go": `package main; import "github.com/mmcloughlin/avo/build"`,
		"schemas/docs/tables.md":                 `text`,
		"models/data/model.bin":                  `data`,
		"ops/pipeline/a_test.go":                 `package pipeline; import "github.com/prometheus/client_golang/prometheus/testutil"`,
		"ops/pipeline/pipeline.go":               `package pipeline; import "entropipe/ops/metrics"`,
		"ops/metrics/metrics.go":                 `package metrics; import "entropipe/schemas"`,
		"algos/geomtest/geomtest.go":             `package geomtest; import ("testing"; "pgregory.net/rapid"; "entropipe/algos/geom")`,
		"ingest/broker/broker_test.go":           `package broker; import "github.com/segmentio/kafka-go"`,
	} {
		tree[file] = &fstest.MapFile{Data: []byte(source)}
	}
	if got := checkTree(t, tree); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

// policyLine is a line of the import rule.
type policyLine struct {
	number         int
	text           string
	packages       []string
	ours           []string // of the third column "earlier" and "any" resolved
	modules, tests []string
}

func parsePolicy(t *testing.T) []policyLine {
	var lines []policyLine
	var earlier []string
	for text := range strings.Lines(importPolicy(t)) {
		columns := strings.Split(strings.TrimSpace(text), "|")
		if len(columns) != 4 {
			t.Fatalf("policy: %q has %d columns, want 4", text, len(columns))
		}
		l := policyLine{number: len(lines) + 1, text: strings.Join(strings.Fields(text), " "),
			packages: strings.Fields(columns[0]), ours: strings.Fields(columns[1])}
		switch columns[1] = strings.TrimSpace(columns[1]); columns[1] {
		case "earlier":
			l.ours = slices.Clone(earlier)
		case "any":
			l.ours = []string{"..."}
		}
		l.modules = modulePaths(t, columns[2])
		l.tests = slices.Concat(l.modules, modulePaths(t, columns[3]), testModules)
		earlier = append(earlier, l.packages...)
		lines = append(lines, l)
	}
	return lines
}

func modulePaths(t *testing.T, column string) []string {
	var paths []string
	for _, name := range strings.Fields(column) {
		switch full, short := moduleNames[name]; {
		case short:
			name = full
		case name == "any":
			name = "..."
		case !strings.Contains(name, "."):
			t.Fatalf("policy: no module is called %s", name)
		}
		paths = append(paths, name)
	}
	return paths
}

// checkTree returns the violations of the policy in a tree of source files,
// with all their build tags.
func checkTree(t *testing.T, tree fs.FS) []string {
	lines := parsePolicy(t)
	violations := checkFolders(tree)
	ignored := ignoredFolders(tree)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (entry.Name() == "testdata" ||
			strings.ContainsAny(entry.Name()[:1], "._") || slices.Contains(ignored, name)):
			return fs.SkipDir
		case entry.IsDir() && name != "." && exists(tree, name+"/go.mod"): // a module of its own
			return fs.SkipDir
		case !entry.IsDir() && path.Ext(name) == ".go":
			violations = append(violations, checkFile(lines, tree, name)...)
		}
		return nil
	})
	if err != nil {
		violations = append(violations, err.Error())
	}
	return violations
}

func exists(tree fs.FS, name string) bool {
	_, err := fs.Stat(tree, name)
	return err == nil
}

func checkFolders(tree fs.FS) []string {
	var violations []string
	entries, err := fs.ReadDir(tree, ".")
	if err != nil {
		return []string{err.Error()}
	}
	allowed := append(ignoredFolders(tree), topFolders...)
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] != '.' && e.Name() != "testdata" && !slices.Contains(allowed, e.Name()) {
			violations = append(violations, fmt.Sprintf("%s: a top-level folder that the tree does not have: %s",
				e.Name(), strings.Join(topFolders, " ")))
		}
	}
	return violations
}

// ignoredFolders returns the folders that .gitignore names from the root on: outputs of
// commands that were tried here.
func ignoredFolders(tree fs.FS) []string {
	var folders []string
	text, _ := fs.ReadFile(tree, ".gitignore")
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "/") {
			pattern := strings.Trim(line, "/")
			there, _ := fs.Glob(tree, pattern) // the folders that a pattern with * names
			folders = append(append(folders, pattern), there...)
		}
	}
	return folders
}

func checkFile(lines []policyLine, tree fs.FS, name string) []string {
	source, err := fs.ReadFile(tree, name)
	if err != nil {
		return []string{err.Error()}
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
	if err != nil {
		return []string{err.Error()}
	}
	folder := path.Dir(name)
	i := slices.IndexFunc(lines, func(l policyLine) bool { return matches(l.packages, folder) })
	if i < 0 {
		return []string{folder + ": no line of the policy names this package"}
	}
	var violations []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			violations = append(violations, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		if imported == "C" {
			violations = append(violations,
				fmt.Sprintf(`%s imports "C", which nothing may: the program is built without cgo`, name))
			continue
		}
		if !lines[i].allows(folder, imported, strings.HasSuffix(name, "_test.go")) {
			violations = append(violations, fmt.Sprintf("%s imports %s, which the policy's line %d (%s) does not allow",
				name, imported, lines[i].number, lines[i].text))
		}
	}
	return violations
}

// allows says whether a file of folder may import what is imported.
func (l policyLine) allows(folder, imported string, test bool) bool {
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case first == ownModule:
		target := strings.TrimPrefix(strings.TrimPrefix(imported, ownModule), "/")
		if target == folder { // an external test
			return test
		}
		if test && !matches([]string{"benchmarks/..."}, target) {
			return true
		}
		return matches(l.ours, target) || l.oneTree(folder, target)
	case !strings.Contains(first, "."):
		return true // standard library
	case test:
		return covers(l.tests, imported)
	}
	return covers(l.modules, imported)
}

// oneTree says whether both packages stand below the same p/... of the line.
func (l policyLine) oneTree(a, b string) bool {
	return slices.ContainsFunc(l.packages, func(p string) bool {
		return strings.HasSuffix(p, "/...") && matches([]string{p}, a) && matches([]string{p}, b)
	})
}

// matches says whether a pattern, p or p/..., fits a package.
func matches(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, tree := strings.CutSuffix(p, "/...")
		return p == "..." || p == pkg || tree && (pkg == below || strings.HasPrefix(pkg, below+"/"))
	})
}

// covers says whether a module holds the imported package.
func covers(modules []string, imported string) bool {
	return slices.ContainsFunc(modules, func(m string) bool {
		return m == "..." || m == imported || strings.HasPrefix(imported, m+"/")
	})
}

// parquetOpeners are the functions of parquet-go that trust a file. What the
// program opens goes through schemas/codec/parquetfile; benchmarks and tests
// read what the program wrote.
var parquetOpeners = regexp.MustCompile(
	`\bparquet\.(OpenFile|NewReader|NewGenericReader|NewRowGroupReader|Read|ReadFile)\b`)

// A reader of Parquet that goes around the checks would take all memory at one
// wrong byte.
func TestParquetIsOpenedInOnePlace(t *testing.T) {
	opened := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") ||
			strings.HasPrefix(name, "benchmarks/") ||
			strings.HasPrefix(name, "sinks/internal/") {
			return err
		}
		source, err := os.ReadFile(name)
		if err != nil || !parquetOpeners.Match(source) {
			return err
		}
		if path.Dir(name) != "schemas/codec/parquetfile" {
			t.Errorf("%s opens a Parquet file by parquet-go, not by parquetfile.Open", name)
		}
		opened++
		return nil
	})
	if err != nil || opened == 0 {
		t.Errorf("%d files open Parquet files, %v", opened, err)
	}
}
