package source

import (
	"fmt"

	"entropipe/cmd/mistake"
	"entropipe/ingest/replay"
)

// Files is whatever lies at some paths.
type Files struct {
	Paths   []string `arg:"" name:"path"`
	Format  string   `enum:"${formats}" default:"auto" group:"Input"`
	Topics  []string `placeholder:"TOPIC" group:"Input" setting:"yes"`
	Time    string   `enum:"header,log,publish" default:"header" group:"Input" setting:"yes"`
	SkipBad bool     `group:"Input"`

	Lasers    []string `placeholder:"LASER" group:"Input" more:"yes" setting:"yes"`
	Returns   []int    `placeholder:"N" group:"Input" more:"yes" setting:"yes"`
	PerLaser  bool     `group:"Input" more:"yes" setting:"yes"`
	X         string   `placeholder:"COLUMN" group:"Input" more:"yes" setting:"yes"`
	Y         string   `placeholder:"COLUMN" group:"Input" more:"yes" setting:"yes"`
	Z         string   `placeholder:"COLUMN" group:"Input" more:"yes" setting:"yes"`
	Intensity string   `placeholder:"COLUMN" group:"Input" more:"yes" setting:"yes"`
	GroupBy   []string `placeholder:"COLUMN" group:"Input" more:"yes" setting:"yes"`
}

// Variables are the names of the formats.
func (Files) Variables() map[string]string {
	formats := "auto"
	for _, name := range replay.Formats() {
		formats += "," + name
	}
	return map[string]string{"formats": formats}
}

// Check finds nothing: the files decide.
func (c *Files) Check() error { return nil }

func (c *Files) replay(o Options) replay.Files {
	in := replay.Files{Paths: c.Paths, Topics: c.Topics, Time: c.Time, Lasers: c.Lasers, Returns: c.Returns,
		PerLaser: c.PerLaser, Columns: replay.Columns{X: c.X, Y: c.Y, Z: c.Z, Intensity: c.Intensity},
		GroupBy: c.GroupBy,
		SkipBad: c.SkipBad, MaxFrameBytes: o.MaxFrameBytes, Pack: o.Rate.Pack(0), First: o.First, Log: o.Log}
	if c.Format != "auto" {
		in.Format = c.Format
	}
	return in
}

// Open finds the inputs.
func (c *Files) Open(o Options) (replay.Source, error) {
	src, err := c.replay(o).Open()
	if err != nil {
		return nil, err // without a type
	}
	return src, nil
}

// OneName is the mistake of a --sequence that would give one name to several inputs.
func OneName(sequence string, inputs int) error {
	return mistake.About(fmt.Sprintf("--sequence %s would give one name to %d inputs, whose frames have the same "+
		"numbers; name one input", sequence, inputs), "sequence")
}

// HelpLines describes the arguments and flags.
func (Files) HelpLines() map[string]string {
	return map[string]string{
		"path":      "Files, folders or patterns, also s3://BUCKET/PREFIX.",
		"format":    "Format of the files; auto: by their content.",
		"topics":    "Topics of recordings to read, instead of all that hold point clouds.",
		"time":      "Time of a frame in a recording: of its header (log time where that is 0), log or publish.",
		"lasers":    "Lasers of Waymo to read: top, front, side_left, side_right, rear; default: all.",
		"returns":   "Returns of Waymo to read: 1, 2; default: both.",
		"per-laser": "Take each laser of Waymo as a frame of its own.",
		"x":         "Column of a table that holds x, such as easting.",
		"y":         "Column of a table that holds y.",
		"z":         "Column of a table that holds z.",
		"intensity": "Column of a table that holds the intensity.",
		"group-by":  "Columns of a Parquet table whose equal values make rows one cloud; or file; or row-group.",
		"skip-bad":  "Skip and count files and frames that cannot be read, instead of stopping.",
	}
}
