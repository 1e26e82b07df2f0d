package models

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"entropipe/models/safetensors"
)

// Description is the result of Describe. Format, SHA256 and Card are empty for a file
// of another format.
type Description struct {
	File     string              `json:"file"`
	Format   string              `json:"format,omitempty"` // entropynet/1
	SHA256   string              `json:"sha256,omitempty"`
	Values   int64               `json:"values"`
	Metadata map[string]string   `json:"metadata"`
	Card     *Card               `json:"card,omitempty"` // if it stands beside the file
	Tensors  []TensorDescription `json:"tensors"`        // by name
}

// TensorDescription is the name, type and shape of a tensor.
type TensorDescription struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
}

// Describe returns the contents of a safetensors file, of the files of an index, or of
// a shipped model (builtin:lidar). Describe reads and validates a model; of other files
// it reads the headers alone.
func Describe(name string) (*Description, error) {
	if strings.HasPrefix(name, builtin) {
		return describeShipped(name)
	}
	set, err := safetensors.OpenSet(name)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	d := newDescription(filepath.Base(name), set.Metadata(), set.Tensors())
	if d.Metadata["format"] != Format {
		return d, nil
	}
	m, err := ReadEntropyNet(name)
	if err != nil {
		return nil, err
	}
	if m.Parameters() != int(d.Values) {
		return nil, errors.New(name + ": changed while it was read")
	}
	d.Format, d.SHA256, d.Card = Format, m.SHA256, readCard(name, m.SHA256)
	return d, nil
}

func describeShipped(name string) (*Description, error) {
	data, err := readShipped(name)
	if err != nil {
		return nil, err
	}
	f, err := safetensors.New(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	m, err := ParseEntropyNet(name, data)
	if err != nil {
		return nil, err
	}
	d := newDescription(name, f.Metadata(), f.Tensors())
	d.Format, d.SHA256 = Format, m.SHA256
	_, card := CardPaths("data/" + strings.TrimPrefix(name, builtin))
	if r, err := shipped.Open(card); err == nil {
		d.Card = parseCard(r, m.SHA256)
	}
	return d, nil
}

func newDescription(file string, metadata map[string]string, tensors []safetensors.Tensor) *Description {
	d := &Description{File: file, Metadata: metadata, Tensors: []TensorDescription{}}
	for _, t := range tensors {
		d.Values += int64(t.Len())
		d.Tensors = append(d.Tensors, TensorDescription{t.Name, string(t.DType), t.Shape})
	}
	return d
}

// String returns the description as lines of text for a terminal.
func (d *Description) String() string {
	var b strings.Builder
	if d.Format == Format {
		fmt.Fprintf(&b, "%s: a %s model of %d values for %s, points of %s dimensions\n", d.File, d.Metadata["mode"],
			d.Values, d.Metadata["ops"], d.Metadata["dims"])
		fmt.Fprintf(&b, "  sha256: %s\n", d.SHA256)
	} else {
		fmt.Fprintf(&b, "%s: %d tensors of %d values\n", d.File, len(d.Tensors), d.Values)
	}
	keys := slices.Sorted(maps.Keys(d.Metadata))
	for _, key := range keys[:min(len(keys), shownKeys)] {
		if d.Format != Format || !slices.Contains([]string{"mode", "ops", "dims", "format"}, key) {
			fmt.Fprintf(&b, "  %s: %s\n", plain(Cut(key, shownName)), plain(Cut(d.Metadata[key], shownText)))
		}
	}
	sayLeftOut(&b, len(keys)-shownKeys, "metadata")
	if d.Card != nil {
		d.Card.describe(&b)
	}
	for _, t := range d.Tensors[:min(len(d.Tensors), shownTensors)] { // last, since they may be many
		fmt.Fprintf(&b, "  tensor %s: %s %v\n", plain(Cut(t.Name, shownName)), t.DType, t.Shape)
	}
	sayLeftOut(&b, len(d.Tensors)-shownTensors, "tensors")
	return b.String()
}

// Limits of String, since a file may hold anything. The JSON form has no limits.
const (
	shownTensors = 2000
	shownKeys    = 200
	shownName    = 500  // bytes
	shownText    = 4000 // bytes of a value
)

func sayLeftOut(b *strings.Builder, n int, what string) {
	if n > 0 {
		fmt.Fprintf(b, "  and %d more %s; --json has them all\n", n, what)
	}
}

// Cut returns s if it has at most most bytes, or else its first characters within most
// bytes and the number of bytes that were cut.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return fmt.Sprintf("%s… (and %d more bytes; --json has them all)", s[:most], len(s)-most)
}

// describe writes the card's lines of a description.
func (c *Card) describe(b *strings.Builder) {
	fmt.Fprintf(b, "  %s. %s\n", plain(c.Title), plain(c.Purpose))
	for _, data := range c.Data {
		fmt.Fprintf(b, "  %s: %s, %d frames, %d points\n", plain(data.Use), plain(data.Name), data.Frames, data.Points)
	}
	for _, v := range c.Metrics {
		fmt.Fprintf(b, "  %s on %s: %s\n", plain(v.Name), plain(v.On), plain(v.text()))
	}
	for _, limit := range c.Limits {
		fmt.Fprintf(b, "  %s\n", plain(limit))
	}
}

// plain returns s, quoted if it holds an unprintable character, such as a line feed or
// a terminal's escape.
func plain(s string) string {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}
