package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/models/atomicfile"
	"entropipe/models/plainfile"
)

// Card describes a model for its users, in addition to the file's metadata, after
// Mitchell et al., "Model Cards for Model Reporting" (2019).
type Card struct {
	Title   string     `json:"title"`
	Purpose string     `json:"purpose"` // use and users of the model, a paragraph
	Data    []CardData `json:"data"`
	Metrics []Metric   `json:"metrics"`
	Limits  []string   `json:"limits"` // uses that the model is unfit for, a sentence each
}

// CardData is a data set that a model was trained, calibrated or judged on.
type CardData struct {
	Name   string `json:"name"`
	Use    string `json:"use"` // training, calibration, judging
	Frames int    `json:"frames"`
	Points int64  `json:"points"`
}

// Metric is a measurement of the model.
type Metric struct {
	Name  string  `json:"name"`
	On    string  `json:"on"` // a CardData's name
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // empty for a number without unit
}

// cardFile is the JSON form of a card, with the model's metadata.
type cardFile struct {
	Format     string            `json:"format"`
	File       string            `json:"file"`
	SHA256     string            `json:"sha256"`
	Metadata   map[string]string `json:"metadata"`
	Parameters int               `json:"parameters"`
	Card
}

// CardFormat is the format of a card's JSON form.
const CardFormat = "entropynet-card/1"

// CardPaths returns the paths of the two cards of a model's file, one in Markdown and
// one in JSON: the path without .safetensors, plus .card.md and .card.json.
func CardPaths(model string) (markdown, json string) {
	base := strings.TrimSuffix(model, ".safetensors")
	return base + ".card.md", base + ".card.json"
}

// Write writes both forms of the card of m beside the model's file. m must have been
// read from that file or written to it; Write fails if m.SHA256 is empty or a metric
// is not finite. Equal cards have equal files.
func (c *Card) Write(model string, m *EntropyNet) error {
	if m.SHA256 == "" {
		return fmt.Errorf("%s: the card needs the hash of the model's file, which has not been written", model)
	}
	for _, metric := range c.Metrics {
		if math.IsNaN(metric.Value) || math.IsInf(metric.Value, 0) {
			return fmt.Errorf("%s: metric %q is %v, not a finite number", model, metric.Name, metric.Value)
		}
	}
	f := cardFile{CardFormat, filepath.Base(model), m.SHA256, m.Meta.strings(), m.Parameters(), *c}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return err
	}
	markdown, asJSON := CardPaths(model)
	return errors.Join(writeText(markdown, f.markdown(m)), writeText(asJSON, text.String()))
}

func writeText(path, text string) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// markdown returns the card in Markdown.
func (f *cardFile) markdown(m *EntropyNet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", cell(f.Title), f.Purpose)
	b.WriteString("| | |\n|---|---|\n")
	fmt.Fprintf(&b, "| file | `%s` |\n| SHA-256 | `%s` |\n| values | %d |\n", f.File, f.SHA256, f.Parameters)
	for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		if key != "command" {
			fmt.Fprintf(&b, "| %s | %s |\n", strings.ReplaceAll(key, "_", " "), cell(f.Metadata[key]))
		}
	}
	if m.Meta.Command != "" {
		fmt.Fprintf(&b, "\nMade by\n\n    %s\n", strings.ReplaceAll(m.Meta.Command, "\n", "\n    "))
	}
	if len(f.Data) > 0 {
		b.WriteString("\n## Data\n\n| data | use | frames | points |\n|---|---|---:|---:|\n")
		for _, d := range f.Data {
			fmt.Fprintf(&b, "| %s | %s | %d | %d |\n", cell(d.Name), cell(d.Use), d.Frames, d.Points)
		}
	}
	if len(f.Metrics) > 0 {
		b.WriteString("\n## Metrics\n\n| metric | on | value |\n|---|---|---:|\n")
		for _, v := range f.Metrics {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(v.Name), cell(v.On), cell(v.text()))
		}
	}
	if len(f.Limits) > 0 {
		b.WriteString("\n## Limits\n\n")
		for _, limit := range f.Limits {
			fmt.Fprintf(&b, "* %s\n", cell(limit))
		}
	}
	return b.String()
}

func (v Metric) text() string { return strings.TrimSpace(fmt.Sprintf("%.6g %s", v.Value, v.Unit)) }

// cell returns s escaped for a cell of a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ").Replace(s)
}

// readCard returns the card beside a model's file, or nil if there is none or if its
// hash is that of another file.
func readCard(model, sha256 string) *Card {
	_, path := CardPaths(model)
	r, err := plainfile.Open(path)
	if err != nil {
		return nil
	}
	defer r.Close()
	return parseCard(r, sha256)
}

// parseCard returns the card in r, or nil if it is not the card of the file with this
// hash.
func parseCard(r io.Reader, sha256 string) *Card {
	var f cardFile
	const maxCard = 1 << 20
	if err := json.NewDecoder(io.LimitReader(r, maxCard)).Decode(&f); err != nil || f.Format != CardFormat ||
		f.SHA256 != sha256 {
		return nil
	}
	return &f.Card
}
