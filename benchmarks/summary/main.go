// Command summary computes the headline ratios of benchmarks/results from the
// newest committed records and writes them as one table: to
// benchmarks/results/summary.md, and into README.md between two marker lines if
// README.md has these. It measures nothing.
//
// A headline is one ratio for users, at most eight in all; every other figure
// stands on the page of its own benchmark alone.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
)

type cli struct {
	Results string `placeholder:"DIR" help:"Folder of the records and of summary.md (benchmarks/results)."`
	Readme  string `placeholder:"FILE" help:"File that gets the table between its markers (README.md of the module)."`
}

func main() {
	var c cli
	kong.Parse(&c, kong.Name("summary"), kong.Description("Writes the headline ratios from the newest records."))
	if err := c.run(); err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(1)
	}
}

// The lines around the table.
const (
	beginMarker = "<!-- summary:begin -->"
	endMarker   = "<!-- summary:end -->"
)

func (c *cli) run() error {
	results, err := rig.ResultsFolder(c.Results, rig.FullRun)
	if err != nil {
		return err
	}
	root, err := rig.Root()
	if err != nil {
		return err
	}
	if c.Readme == "" {
		c.Readme = filepath.Join(root, "README.md")
	}
	lines, err := summary(results)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(c.Readme)
	if err != nil {
		return err
	}
	if replaced, ok := replaceBlock(string(text), columns.Markdown(lines)); ok {
		if err := rig.WritePage(c.Readme, replaced); err != nil {
			return err
		}
	}
	return rig.WritePage(filepath.Join(results, "summary.md"), page(lines))
}

// page returns summary.md: the table of README.md, and where its lines come from.
func page(lines []headline) string {
	return `# Headline ratios

` + "`go run ./benchmarks/summary`" + ` computes this page from the newest records of this
folder, and copies the first table into README.md. The command in a line measures its records again.

A ratio is the peer's time over ours, so above 1 ours is faster: the geometric mean over the inputs, with the least and
the largest. Geometry is float64, one thread on both sides. The line of Kafka is a quotient of rates, ours over that of
a loop that fetches the same topic, by the medians of the rounds of one run, with the least and the largest round; its
operators are hull2d and maxima3d. That of points as rows leaves starts out, and has the median of the rounds of one run
with the least and the largest. Encoders have the shapes of MiniLM and BERT-base.

` + beginMarker + "\n" + columns.Markdown(lines) + endMarker + "\n\n" + origins.Markdown(lines)
}

// block returns the text between the markers. It reports false where there are
// no markers.
func block(text string) (string, bool) {
	_, rest, found := strings.Cut(text, beginMarker+"\n")
	if !found {
		return "", false
	}
	inside, _, found := strings.Cut(rest, endMarker)
	return inside, found
}

// replaceBlock returns the text with another table between the markers. It
// reports false where there are no markers.
func replaceBlock(text, table string) (string, bool) {
	inside, found := block(text)
	if !found {
		return text, false
	}
	return strings.Replace(text, beginMarker+"\n"+inside+endMarker, beginMarker+"\n"+table+endMarker, 1), true
}

// most is the largest number of headlines.
const most = 8

// summary returns the headlines.
func summary(results string) (lines []headline, err error) {
	for _, compute := range headlines {
		h, err := compute(results)
		if err != nil {
			return nil, err
		}
		lines = append(lines, h...)
	}
	if len(lines) > most {
		return nil, fmt.Errorf("the summary has %d ratios, more than %d", len(lines), most)
	}
	if len(lines) == 0 {
		return nil, errors.New("the summary has no ratio")
	}
	return lines, nil
}
