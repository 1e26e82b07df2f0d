package config

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
)

// sampleGrammar has a flag of every kind that the commands use.
type sampleGrammar struct {
	Run struct {
		Config   string        `arg:"" optional:"" type:"path"`
		Topic    []string      `default:"points"`
		Tables   []string      `enum:"hulls,maxima,triangles"`
		Out      string        `default:"./out"`
		From     string        `enum:"earliest,latest" default:"earliest"`
		RollSize value.Size    `default:"256MiB"`
		RollAge  time.Duration `default:"60s"`
		Workers  int           `default:"0"`
		Shards   uint          `default:"1"`
		Share    float64       `default:"0.5"`
		Progress bool
	} `cmd:""`
	Check struct {
		Config  string `arg:"" type:"path" keys:"run"`
		Out     string
		Connect bool
	} `cmd:""`
	Show struct {
		File string `arg:""`
	} `cmd:""`
	LogLevel string `enum:"debug,info" default:"info"`
}

// load parses args with the configuration file text and returns the grammar.
func load(t testing.TB, text string, args ...string) (*sampleGrammar, *kong.Kong, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g := new(sampleGrammar)
	k, err := NewParser(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Parse(k, append([]string{"run", file}, args...))
	var config *mistake.Config
	if errors.As(err, &config) { // the same text on every machine
		for i := range config.Problems {
			config.Problems[i].File = strings.ReplaceAll(config.Problems[i].File, file, "c.yaml")
		}
	}
	return g, k, err
}

func TestBrokenFileNamesEveryProblemAndItsPlace(t *testing.T) {
	t.Setenv("SET", "ten")
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "roll-aeg: 5s",
			`c.yaml:1:1: roll-aeg: unknown key; expected a flag of entropipe run; did you mean "roll-age"?`},
		{"unknown key, habits", "roll_age: 5s\n--out: x\nTopic: a", `
c.yaml:1:1: roll_age: unknown key; expected a flag of entropipe run; did you mean "roll-age"?
c.yaml:2:1: --out: unknown key; expected a flag of entropipe run; did you mean "out"?
c.yaml:3:1: Topic: unknown key; expected a flag of entropipe run; did you mean "topic"?`},
		{"unknown key, nothing near", "colour: red",
			`c.yaml:1:1: colour: unknown key; expected a flag of entropipe run`},
		{"keys that ask for something", "help: true",
			`c.yaml:1:1: help: unknown key; expected a flag of entropipe run`},
		{"the file's own key", "config: x", `c.yaml:1:1: config: unknown key; expected a flag of entropipe run`},
		{"hostile key", "\"a\\nb: c\": 1\n5: x\n", `
c.yaml:1:1: "a\nb: c": unknown key; expected a flag of entropipe run
c.yaml:2:1: 5: unknown key; expected a flag of entropipe run`},
		{"set twice", "out: a\nfrom: latest\nout: b", `c.yaml:3:1: out: set twice, first in line 1`},
		{"enum", "from: latset",
			`c.yaml:1:7: from: "latset" is not allowed; expected one of earliest, latest; did you mean "latest"?`},
		{"enum in a list", "tables: [hulls, hull]\n",
			`c.yaml:1:17: tables[1]: "hull" is not allowed; expected one of hulls, maxima, triangles; did you mean "hulls"?`},
		{"enum in a string", "tables: hulls,points",
			`c.yaml:1:9: tables[1]: "points" is not allowed; expected one of hulls, maxima, triangles`},
		{"durations", "roll-age: soon",
			`c.yaml:1:11: roll-age: "soon" is not a duration; expected a duration such as 90s, 1m30s or 0`},
		{"negative duration", "roll-age: -5s",
			`c.yaml:1:11: roll-age: "-5s" is negative; expected a duration such as 90s, 1m30s or 0`},
		{"sizes", "roll-size: 5 parsecs",
			`c.yaml:1:12: roll-size: "5 parsecs" is not a size; expected a size such as 256MiB, 900KB or 1048576`},
		{"negative size", "roll-size: -1",
			`c.yaml:1:12: roll-size: "-1" is negative; expected a size such as 256MiB, 900KB or 1048576`},
		{"size as fraction", "roll-size: 1.5",
			`c.yaml:1:12: roll-size: "1.5" is not a whole number of bytes; expected a size such as 256MiB, 900KB or 1048576`},
		{"huge size", "roll-size: 9000000TiB",
			`c.yaml:1:12: roll-size: "9000000TiB" is too large; expected a size such as 256MiB, 900KB or 1048576`},
		{"number for a string", "out: 007", `c.yaml:1:6: out: the number 007; expected a string: write "007"`},
		{"boolean for a string", "out: true", `c.yaml:1:6: out: the boolean true; expected a string: write "true"`},
		{"string for a boolean", "progress: yes", `c.yaml:1:11: progress: the string "yes"; expected true or false`},
		{"number for a boolean", "progress: 1", `c.yaml:1:11: progress: the number 1; expected true or false`},
		{"string for a number", "workers: many", `c.yaml:1:10: workers: "many" does not fit; expected a whole number`},
		{"fraction for a whole number", "workers: 1.5",
			`c.yaml:1:10: workers: "1.5" does not fit; expected a whole number`},
		{"too large a number", "workers: 99999999999999999999",
			`c.yaml:1:10: workers: "99999999999999999999" does not fit; expected a whole number`},
		{"negative count", "shards: -1", `c.yaml:1:9: shards: "-1" does not fit; expected a whole number, 0 or more`},
		{"no value", "out:\nfrom: ~", `
c.yaml:1:5: out: no value; expected a string
c.yaml:2:7: from: no value; expected one of earliest, latest`},
		{"list for a scalar", "out: [a]", `c.yaml:1:6: out: a list; expected a string`},
		{"mapping for a scalar", "out:\n  dir: a", `c.yaml:2:3: out: a mapping; expected a string`},
		{"mapping for a list", "topic: {a: b}",
			`c.yaml:1:8: topic: a mapping; expected a list, or a comma-separated string, of strings`},
		{"list in a list", "topic:\n  - a\n  - [b]", `c.yaml:3:5: topic[1]: a list; expected a string`},
		{"number in a list", "topic: [1]", `c.yaml:1:9: topic[0]: the number 1; expected a string: write "1"`},
		{"empty list", "topic: []",
			`c.yaml:1:8: topic: an empty list; expected a list, or a comma-separated string, of strings`},
		{"empty element", "topic: a,,b", `c.yaml:1:8: topic[1]: an empty element; expected a string`},
		{"list at the top", "- out: a",
			`c.yaml:1:1: a list at the top; expected a mapping of flags of entropipe run to values`},
		{"text at the top", "out",
			`c.yaml:1:1: a string at the top; expected a mapping of flags of entropipe run to values`},
		{"several documents", "out: a\n---\nout: b", `c.yaml:3:1: another document; expected one document a file`},
		{"tab", "topic:\n\t- a", `c.yaml:2:1: a tab in the indentation; expected spaces`},
		{"NUL", "out: a\x00b", `c.yaml:1:7: a NUL byte; expected text`},
		{"Latin-1", "out: \xe9", `c.yaml:1:1: not UTF-8; expected text in UTF-8`},
		{"unknown alias", "out: *a", `c.yaml:1:6: out: an alias of an unknown anchor; expected a string`},
		{"tag", "out: !!str 5", `c.yaml:1:6: out: a tag; expected a string`},
		{"merge key", "<<: {out: a}", `c.yaml:1:1: <<: unknown key; expected a flag of entropipe run`},
		{"unset variable", "out: ${UNSET_VARIABLE}",
			`c.yaml:1:6: out: variable UNSET_VARIABLE is not set; expected it to be set, or a default: ${UNSET_VARIABLE:…}`},
		{"bad variable", `out: "${a b}"`,
			`c.yaml:1:6: out: "a b" is no name of a variable; expected ${VARIABLE} or ${VARIABLE:default}, or $${ for the characters`},
		{"open variable", `out: "${SET"`,
			`c.yaml:1:6: out: ${ without }; expected ${VARIABLE} or ${VARIABLE:default}, or $${ for the characters`},
		{"variable of a wrong type", "workers: ${SET}",
			`c.yaml:1:10: workers: "ten" does not fit; expected a whole number`},
		{"all at once, in order", "workers: x\nfrom: y\nroll-siz: 1\nlog-level: warn\nout: a\nout: b", `
c.yaml:1:10: workers: "x" does not fit; expected a whole number
c.yaml:2:7: from: "y" is not allowed; expected one of earliest, latest
c.yaml:3:1: roll-siz: unknown key; expected a flag of entropipe run; did you mean "roll-size"?
c.yaml:4:12: log-level: "warn" is not allowed; expected one of debug, info
c.yaml:6:1: out: set twice, first in line 5`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := load(t, c.text)
			var config *mistake.Config
			if !errors.As(err, &config) {
				t.Fatalf("%q: got %v, want a *ConfigError", c.text, err)
			}
			if diff := cmp.Diff(strings.TrimSpace(c.want), err.Error()); diff != "" {
				t.Errorf("%q (-want +got):\n%s", c.text, diff)
			}
		})
	}
}

// The words of syntax errors are the parser's; place and form are ours.
func TestSyntaxErrorHasItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"out: [a\nfrom: latest\n":      "c.yaml:2:1: ",
		"? [a]\n: b\n":                 "c.yaml:",
		"out: \"a\n":                   "c.yaml:1:6: ",
		"topic:\n  - a\n b: c\n":       "c.yaml:3:2: ",
		"out: a: b\n":                  "c.yaml:1:",
		strings.Repeat("[", 2000):      "c.yaml:1:1: more than 1000 brackets",
		"%YAML 1.2\n%TAG ! x\n--- {a}": "c.yaml:",
	} {
		_, _, err := load(t, text)
		var config *mistake.Config
		if !errors.As(err, &config) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: got %v, want one line that begins with %q", text, err, want)
		}
	}
}

func TestFileThatIsNoFileIsOneClearLine(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, bytes.Repeat([]byte("#"), maxConfigBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir + "/none.yaml": "none.yaml: cannot be read: no such file or directory; expected a YAML file of flags",
		dir:                ": is a directory, not a regular file; expected a YAML file of flags",
		large:              "large: is larger than 64KiB; expected a YAML file of flags",
		"/dev/zero":        "/dev/zero: is a device, not a regular file; expected a YAML file of flags",
	} {
		k, err := NewParser(new(sampleGrammar), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Parse(k, []string{"run", path})
		var config *mistake.Config
		if !errors.As(err, &config) || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line that ends in %q", path, err, want)
		}
	}
}

func TestFileIsShownAsWrittenInTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("c.yaml", []byte("a: b"), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := NewParser(new(sampleGrammar), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Parse(k, []string{"run", "c.yaml"}); err == nil || !strings.HasPrefix(err.Error(), "c.yaml:1:1: ") {
		t.Errorf("got %v", err)
	}
}

func TestFileSetsFlags(t *testing.T) {
	t.Setenv("SET", "a,b")
	t.Setenv("COUNT", "3")
	for _, c := range []struct {
		name, text string
		got        func(*sampleGrammar) any
		want       any
	}{
		{"empty", "", func(g *sampleGrammar) any { return g.Run.Out }, "./out"},
		{"comments only", "# nothing\n\n  # here\n", func(g *sampleGrammar) any { return g.Run.Out }, "./out"},
		{"explicit null", "~", func(g *sampleGrammar) any { return g.Run.Out }, "./out"},
		{"empty mapping", "{}", func(g *sampleGrammar) any { return g.Run.Out }, "./out"},
		{"comment, then a document mark", "# mine\n---\nout: x\n...\n", func(g *sampleGrammar) any { return g.Run.Out },
			"x"},
		{"byte order mark, CRLF", "\ufeffout: x\r\nfrom: latest\r\n",
			func(g *sampleGrammar) any { return g.Run.Out + g.Run.From }, "xlatest"},
		{"flow mapping", "{out: x, workers: 2}",
			func(g *sampleGrammar) any { return fmt.Sprint(g.Run.Out, g.Run.Workers) }, "x2"},
		{"list", "topic: [a, 'b c', \"d\"]", func(g *sampleGrammar) any { return g.Run.Topic },
			[]string{"a", "b c", "d"}},
		{"block list", "topic:\n- a\n- b", func(g *sampleGrammar) any { return g.Run.Topic }, []string{"a", "b"}},
		{"comma in an element of a list", "topic: ['a,b']", func(g *sampleGrammar) any { return g.Run.Topic },
			[]string{"a,b"}},
		{"comma string", "topic: a, b", func(g *sampleGrammar) any { return g.Run.Topic }, []string{"a", "b"}},
		{"no tables", "tables: []", func(g *sampleGrammar) any { return g.Run.Tables }, []string(nil)},
		{"size", "roll-size: 1.5KiB", func(g *sampleGrammar) any { return g.Run.RollSize }, value.Size(1536)},
		{"plain size", "roll-size: 1000", func(g *sampleGrammar) any { return g.Run.RollSize }, value.Size(1000)},
		{"duration", "roll-age: 1m30s", func(g *sampleGrammar) any { return g.Run.RollAge }, 90 * time.Second},
		{"seconds", "roll-age: 1.5", func(g *sampleGrammar) any { return g.Run.RollAge }, 1500 * time.Millisecond},
		{"no age", "roll-age: 0", func(g *sampleGrammar) any { return g.Run.RollAge }, time.Duration(0)},
		{"numbers", "workers: 0x10\nshare: 1e-3",
			func(g *sampleGrammar) any { return fmt.Sprint(g.Run.Workers, g.Run.Share) }, "16 0.001"},
		{"boolean", "progress: true", func(g *sampleGrammar) any { return g.Run.Progress }, true},
		{"flag of the program", "log-level: debug", func(g *sampleGrammar) any { return g.LogLevel }, "debug"},
		{"anchor and alias", "out: &a x\ntopic: [*a, *a]", func(g *sampleGrammar) any { return g.Run.Topic },
			[]string{"x", "x"}},
		{"off is a string", "out: off", func(g *sampleGrammar) any { return g.Run.Out }, "off"},
		{"quoted number is a string", "out: '5'", func(g *sampleGrammar) any { return g.Run.Out }, "5"},
		{"block text", "out: |-\n  x\n", func(g *sampleGrammar) any { return g.Run.Out }, "x"},
		{"variable", "topic: ${SET}", func(g *sampleGrammar) any { return g.Run.Topic }, []string{"a", "b"}},
		{"variable in an element", "topic: ['${SET}']", func(g *sampleGrammar) any { return g.Run.Topic },
			[]string{"a,b"}},
		{"variable as a number", "workers: ${COUNT}", func(g *sampleGrammar) any { return g.Run.Workers }, 3},
		{"default of a variable", "out: s3://${UNSET_VARIABLE:bucket}/${UNSET_VARIABLE:}x",
			func(g *sampleGrammar) any { return g.Run.Out }, "s3://bucket/x"},
		{"boolean by default of a variable", "progress: ${UNSET_VARIABLE:true}",
			func(g *sampleGrammar) any { return g.Run.Progress }, true},
		{"escaped", "out: $${SET}$", func(g *sampleGrammar) any { return g.Run.Out }, "${SET}$"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _, err := load(t, c.text)
			if err != nil {
				t.Fatalf("%q: %v", c.text, err)
			}
			if diff := cmp.Diff(c.want, c.got(g)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", c.text, diff)
			}
		})
	}
}

func TestVariableValueIsNeverSyntax(t *testing.T) {
	t.Setenv("EVIL", "x\nfrom: latest # [ { ${HOME}")
	g, _, err := load(t, "out: ${EVIL}")
	if err != nil || g.Run.From != "earliest" || g.Run.Out != os.Getenv("EVIL") {
		t.Errorf("out %q, from %q, %v", g.Run.Out, g.Run.From, err)
	}
}

func TestFlagBeatsVariableBeatsFileBeatsDefault(t *testing.T) {
	for _, c := range []struct {
		variable, file string
		args           []string
		want           string
	}{
		{"", "", nil, "./out"},
		{"", "out: file", nil, "file"},
		{"variable", "", nil, "variable"},
		{"variable", "out: file", nil, "variable"},
		{"variable", "out: file", []string{"--out=flag"}, "flag"},
		{"variable", "out: file", []string{"--out="}, ""},
		{"", "out: file", []string{"--out=./out"}, "./out"}, // the default's text, but given
	} {
		t.Setenv("ENTROPIPE_OUT", c.variable) // an empty variable counts as unset
		g, _, err := load(t, c.file, c.args...)
		if err != nil || g.Run.Out != c.want {
			t.Errorf("variable %q, file %q, %q: got %q, %v; want %q", c.variable, c.file, c.args,
				g.Run.Out, err, c.want)
		}
	}
}

func TestVariablesOfEveryKind(t *testing.T) {
	for name, value := range map[string]string{"TOPIC": "a, b", "ROLL_SIZE": "1KiB", "ROLL_AGE": "5", "WORKERS": "7",
		"PROGRESS": "true", "LOG_LEVEL": "debug"} {
		t.Setenv("ENTROPIPE_"+name, value)
	}
	g, _, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	want := new(sampleGrammar)
	want.Run.Config, want.Run.Topic, want.Run.Out, want.Run.From = g.Run.Config, []string{"a", "b"}, "./out", "earliest"
	want.Run.RollSize, want.Run.RollAge, want.Run.Workers, want.Run.Shards, want.Run.Share = 1024,
		5*time.Second, 7, 1, 0.5
	want.Run.Progress, want.LogLevel = true, "debug"
	if diff := cmp.Diff(want, g); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBadVariablesJoinTheFilesProblems(t *testing.T) {
	t.Setenv("ENTROPIPE_ROLL_AGE", "soon")
	t.Setenv("ENTROPIPE_TABLES", "hulls,max")
	_, _, err := load(t, "from: x", "--roll-age=1s") // an overridden variable is checked too
	want := `c.yaml:1:7: from: "x" is not allowed; expected one of earliest, latest
ENTROPIPE_ROLL_AGE: "soon" is not a duration; expected a duration such as 90s, 1m30s or 0
ENTROPIPE_TABLES[1]: "max" is not allowed; expected one of hulls, maxima, triangles; did you mean "maxima"?`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestLinesNameTheirSource(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "roll-age: 5s\ntables: [hulls]\nfrom: latest\nout: x\n"
	if err := os.WriteFile("c.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ENTROPIPE_TABLES", "maxima")
	from, g := &Settings{Lookup: os.LookupEnv}, new(sampleGrammar)
	k, err := NewParser(g, from)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(k, []string{"run", "c.yaml", "--out", "y"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"roll-age": "c.yaml:1", "tables": "ENTROPIPE_TABLES", "from": "c.yaml:3", "out": "flag",
		"progress": "default"}
	for _, l := range Lines(k, &g.Run, from) {
		if source, known := want[l.Key]; known && l.Source != source {
			t.Errorf("%s %s comes from %q, want %q", l.Key, l.Value, l.Source, source)
		}
		delete(want, l.Key)
	}
	if len(want) > 0 {
		t.Errorf("no line of %v", want)
	}
	for _, l := range Lines(k, &g.Run, nil) {
		if l.Source != "default" && l.Source != "set" {
			t.Errorf("%s: source %q of nobody", l.Key, l.Source)
		}
	}
}

func TestVariablesOfOtherCommandsDoNotMatter(t *testing.T) {
	t.Setenv("ENTROPIPE_ROLL_AGE", "soon")
	k, err := NewParser(new(sampleGrammar), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(k, []string{"show", "none.yaml"}); err != nil {
		t.Errorf("a variable of run, and a file that is not this command's configuration: %v", err)
	}
}

func TestFileOfAnotherCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	for text, want := range map[string]string{
		"out: x\nprogress: true": "", // progress is a flag of run only
		"connect: true":          ":1:1: connect: unknown key; expected a flag of entropipe run",
		"workers: many":          `:1:10: workers: "many" does not fit; expected a whole number`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		g := new(sampleGrammar)
		k, err := NewParser(g, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Parse(k, []string{"check", file, "--connect"})
		if want == "" && (err != nil || g.Check.Out != "x" || !g.Check.Connect) ||
			want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%q: got %+v, %v; want %q", text, g.Check, err, want)
		}
	}
}

func TestBadCommandLineIsNoConfigError(t *testing.T) {
	for _, args := range [][]string{{"--roll-size=x"}, {"--roll-age=-1s"}, {"--from=x"}, {"--colour"}} {
		_, _, err := load(t, "", args...)
		var config *mistake.Config
		var parsing *kong.ParseError
		if errors.As(err, &config) || !errors.As(err, &parsing) {
			t.Errorf("%q: got %v, want a *kong.ParseError", args, err)
		}
	}
}

func TestEffectiveConfigReadsBackAsItself(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-a-z0-9_.:/${}#'"\\ ,\[\]]{0,12}`),
		rapid.SampledFrom([]string{"", "off", "null", "~", "0x1", "1e3", ".5", "...", "127.0.0.1:9092", "${A}",
			"$${A:b}", "- a", "a: b", "#", "\u2028", "5MiB", "NaN", ".inf", "1_0"}))
	element := text.Filter(func(s string) bool { return strings.TrimSpace(s) != "" })
	rapid.Check(t, func(rt *rapid.T) {
		first, k, err := load(t, "")
		if err != nil {
			rt.Fatal(err)
		}
		r := &first.Run
		r.Out, r.Topic = text.Draw(rt, "out"), rapid.SliceOfN(element, 1, 4).Draw(rt, "topic")
		if n := rapid.IntRange(0, 2).Draw(rt, "tables"); n > 0 {
			r.Tables = []string{"hulls", "maxima"}[:n]
		}
		r.RollSize = value.Size(rapid.Int64Min(0).Draw(rt, "size"))
		r.RollAge = time.Duration(rapid.Int64Min(0).Draw(rt, "age"))
		r.Workers, r.Shards = rapid.Int().Draw(rt, "workers"), rapid.Uint().Draw(rt, "shards")
		r.Share = rapid.Float64Range(0, math.MaxFloat64).Draw(rt, "share") // YAML has no -0
		r.Progress = rapid.Bool().Draw(rt, "progress")
		printed := Effective(k, r)
		second, k2, err := load(t, printed)
		if err != nil {
			rt.Fatalf("%v\n%s", err, printed)
		}
		r.Config = second.Run.Config
		if diff := cmp.Diff(first, second); diff != "" {
			rt.Fatalf("(-first +second):\n%s\n%s", diff, printed)
		}
		if again := Effective(k2, &second.Run); again != printed {
			rt.Fatalf("printed\n%s\nthen\n%s", printed, again)
		}
	})
}

func TestEffectiveConfigText(t *testing.T) {
	g, k, err := load(t, "out: 'a b'\nroll-age: 90\ntopic: [x, 'off', 127.0.0.1:9092]")
	if err != nil {
		t.Fatal(err)
	}
	want := `from: earliest
log-level: info
out: "a b"
progress: false
roll-age: 1m30s
roll-size: 256MiB
shards: 1
share: 0.5
tables: []
topic: [x, "off", "127.0.0.1:9092"]
workers: 0
`
	if diff := cmp.Diff(want, Effective(k, &g.Run)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzConfigFile: no text makes the reader panic, hang or say nothing.
func FuzzConfigFile(f *testing.F) {
	for _, seed := range []string{"out: a\n", "topic: [a, b]\n", "a: &x [*x]\nout: *x", "? [a]\n: b", "out: ${A:b}",
		"--- !!str\n...", "%YAML", "out: |\n  x", "{{{", "\ufeff", "out: !!binary x", "<<: *a"} {
		f.Add([]byte(seed))
	}
	g := new(sampleGrammar)
	k, err := NewParser(g, nil)
	if err != nil {
		f.Fatal(err)
	}
	flags := map[string]*kong.Flag{}
	for _, flag := range k.Model.Children[0].Flags {
		flags[flag.Name] = flag
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		r := fileReader{file: "c.yaml", command: "run", flags: flags,
			lookup: func(string) (string, bool) { return "", false }}
		values := r.parse(text)
		for name, v := range values {
			if flags[name] == nil || v == nil {
				t.Errorf("%q: value %v of %q", text, v, name)
			}
		}
		for _, p := range r.problems {
			if p.What == "" || strings.Contains(p.String(), "\n") {
				t.Errorf("%q: problem %q", text, p)
			}
		}
	})
}

type strayHelp struct {
	Run struct {
		Topic string
	} `cmd:""`
}

func (strayHelp) HelpLines() map[string]string {
	return map[string]string{"run": "Run.", "topic": "Topic."}
}

func TestHelpLineOfNoFlagIsAnError(t *testing.T) {
	if _, err := NewParser(&strayHelp{}, nil); err == nil ||
		!strings.Contains(err.Error(), "help lines of no flag: topic") {
		t.Errorf("got %v, want the name of the line", err)
	}
}

type variableTags struct {
	Run struct {
		variableFlags
	} `cmd:""`
}

type variableFlags struct {
	Kind string `enum:"${kinds}" default:"b" more:"yes"`
}

func (variableFlags) Variables() map[string]string { return map[string]string{"kinds": "a,b"} }

func (variableFlags) HelpLines() map[string]string { return map[string]string{"kind": "Kind of it."} }

// A flag that --help leaves out has its line, is set by its name and by its variable.
func TestFlagWithTheTagMoreWorks(t *testing.T) {
	g := new(variableTags)
	k, err := NewParser(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(k, []string{"run", "--kind", "a"}); err != nil || g.Run.Kind != "a" {
		t.Errorf("got %q, %v", g.Run.Kind, err)
	}
	if _, err := Parse(k, []string{"run", "--kind", "c"}); err == nil {
		t.Error("a value that the variable does not list is taken")
	}
	t.Setenv("ENTROPIPE_KIND", "a")
	if _, err := Parse(k, []string{"run"}); err != nil || g.Run.Kind != "a" {
		t.Errorf("by the variable: got %q, %v", g.Run.Kind, err)
	}
	if help := k.Model.Children[0].Flags[0].Help; help != "Kind of it." {
		t.Errorf("the line is %q", help)
	}
}
