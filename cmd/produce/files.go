package produce

import (
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/alecthomas/kong"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/ingest/replay"
)

// produceFiles sends whatever lies at some paths. It is what produce does when its first
// argument is no source's name.
type produceFiles struct {
	Paths   []string `arg:"" name:"path"`
	Format  string   `enum:"${formats}" default:"auto" group:"Input"`
	Topics  []string `placeholder:"TOPIC" group:"Input"`
	Time    string   `enum:"header,log,publish" default:"header" group:"Input"`
	SkipBad bool     `group:"Input"`

	Lasers    []string `placeholder:"LASER" group:"Input" more:"yes"`
	Returns   []int    `placeholder:"N" group:"Input" more:"yes"`
	PerLaser  bool     `group:"Input" more:"yes"`
	X         string   `placeholder:"COLUMN" group:"Input" more:"yes"`
	Y         string   `placeholder:"COLUMN" group:"Input" more:"yes"`
	Z         string   `placeholder:"COLUMN" group:"Input" more:"yes"`
	Intensity string   `placeholder:"COLUMN" group:"Input" more:"yes"`

	Jobs int `default:"0" group:"Input" more:"yes"`

	producerFlags `embed:""`
}

// Variables are the names of the formats.
func (produceFiles) Variables() map[string]string {
	formats := "auto"
	for _, name := range replay.Formats() {
		formats += "," + name
	}
	return map[string]string{"formats": formats}
}

// Run checks the flags and runs the command.
func (c *produceFiles) Run(e *command.Env) error {
	if err := errors.Join(c.Check(), command.CheckAmount("jobs", c.Jobs, 0, math.MaxInt16)); err != nil {
		return err
	}
	in := replay.Files{Paths: c.Paths, Topics: c.Topics, Time: c.Time, Lasers: c.Lasers, Returns: c.Returns,
		PerLaser: c.PerLaser, Columns: replay.Columns{X: c.X, Y: c.Y, Z: c.Z, Intensity: c.Intensity},
		SkipBad: c.SkipBad, Pack: c.Rate.Pack(0), Log: e.Log}
	if c.Format != "auto" {
		in.Format = c.Format
	}
	src, err := in.Open()
	if err != nil {
		return err
	}
	if n := len(src.List()); n > 1 && c.Sequence != "" {
		src.Close()
		return mistake.About(fmt.Sprintf("--sequence %s would give one name to %d inputs, whose frames have the same "+
			"numbers; name one input", c.Sequence, n), "sequence")
	}
	if c.jobs = c.Jobs; c.jobs == 0 && c.Rate.Hz(10) == 0 { // at a pace, sequences come one after the other
		c.jobs = runtime.GOMAXPROCS(0)
	}
	return c.produce(e, src)
}

// Help opens the help of produce PATH.
func (produceFiles) Help() string {
	return `Sends what lies at PATH: a file, a folder, or a pattern such as 'scans/*.pcd'. The content
decides the format, also in .gz and .zst; the log says what was found. A folder is the root
of a data set (KITTI, nuScenes, Waymo, Argoverse 2), or its files and those below are taken, in
natural order, grouped by folder and format. The word files may be left out, unless PATH is
a source's name: a folder kitti is ./kitti.

With --key frame or none the order of frames holds within a partition only. --jobs reads inputs
side by side, with --limit one after the other; where there are more jobs than inputs, it
decodes the frames of an input side by side, too, except of Waymo's version 2 and of --per-laser.
Each sequence is sent in its order.

Examples:
  entropipe produce 2011_09_26/2011_09_26_drive_0005_sync drive.mcap
  entropipe produce recordings/ --rate max --jobs 8 --skip-bad
  entropipe produce recordings/ --rate max --resume --brokers kafka1:9092`
}

// HelpLines describes the arguments and flags of produce PATH.
func (produceFiles) HelpLines() map[string]string {
	return map[string]string{
		"path":      "Files, folders or patterns.",
		"format":    "Format of the files; auto: by their content.",
		"topics":    "Topics of recordings to send, instead of all that hold point clouds.",
		"time":      "Time of a frame in a recording: of its header (log time where that is 0), log or publish.",
		"lasers":    "Lasers of Waymo to send: top, front, side_left, side_right, rear; default: all.",
		"returns":   "Returns of Waymo to send: 1, 2; default: both.",
		"per-laser": "Send each laser of Waymo as a frame of its own.",
		"x":         "Column of a table that holds x, such as easting.",
		"y":         "Column of a table that holds y.",
		"z":         "Column of a table that holds z.",
		"intensity": "Column of a table that holds the intensity.",
		"skip-bad":  "Skip and count files and frames that cannot be read, instead of stopping.",
		"jobs":      "Number of frames decoded at a time; 0: one, with --rate max one per processor.",
	}
}

// resumeMode is the value of --resume, which may stand without one.
type resumeMode string

const (
	resumeOnly    resumeMode = "only"
	resumeOrStart resumeMode = "or-start"
)

// IsBool lets the flag stand without a value.
func (resumeMode) IsBool() bool { return true }

// Decode reads the value, if there is one.
func (m *resumeMode) Decode(ctx *kong.DecodeContext) error {
	*m = resumeOnly
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	text := fmt.Sprint(ctx.Scan.Pop().Value)
	switch text {
	case "true", "only":
	case "false", "":
		*m = ""
	case "or-start":
		*m = resumeOrStart
	default:
		return fmt.Errorf("want --resume or --resume=or-start, got %q", text)
	}
	return nil
}
