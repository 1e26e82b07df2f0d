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
	Readme  string `placeholder:"FILE" help:"File whose lines between the markers are replaced, if it has them (README.md of the module)."`
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
	table, err := summary(results)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(c.Readme)
	if err != nil {
		return err
	}
	if replaced, ok := replaceBlock(string(text), table); ok {
		if err := rig.WritePage(c.Readme, replaced); err != nil {
			return err
		}
	}
	return rig.WritePage(filepath.Join(results, "summary.md"), page(table))
}

// page returns summary.md around the table.
func page(table string) string {
	return `# Headline ratios

` + "`go run ./benchmarks/summary`" + ` computes this table from the newest records of this folder, and copies it into README.md. A ratio is the peer's time over
ours, so above 1 ours is faster. Where a ratio covers several inputs it is their geometric mean, with the least and the largest in brackets. The share
of the raw fetch is a quotient of rates, medians of the rounds of one run, with the least and the largest round. The command in a line measures its
records again.

` + beginMarker + "\n" + table + endMarker + "\n"
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

// summary returns the table of the headlines.
func summary(results string) (string, error) {
	var lines []headline
	for _, compute := range headlines {
		h, err := compute(results)
		if err != nil {
			return "", err
		}
		lines = append(lines, h...)
	}
	if len(lines) > most {
		return "", fmt.Errorf("the summary has %d ratios, more than %d", len(lines), most)
	}
	if len(lines) == 0 {
		return "", errors.New("the summary has no ratio")
	}
	return columns.Markdown(lines), nil
}
