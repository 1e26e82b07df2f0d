package produce

import (
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/alecthomas/kong"

	"entropipe/cmd/command"
	"entropipe/cmd/produce/source"
)

// produceFiles sends whatever lies at some paths. It is what produce does when its first
// argument is no source's name.
type produceFiles struct {
	source.Files `embed:""`

	Jobs int `default:"0" group:"Input" more:"yes"`

	producerFlags `embed:""`
}

// Run checks the flags and runs the command.
func (c *produceFiles) Run(e *command.Env) error {
	err := errors.Join(c.Check(), c.checkSources(&c.Files), command.CheckAmount("jobs", c.Jobs, 0, math.MaxInt16))
	if err != nil {
		return err
	}
	defer c.Bucket.Reading(e.Ctx, readAhead)()
	src, err := c.Files.Open(source.Options{Rate: c.Rate, Log: e.Log})
	if err != nil {
		return err
	}
	if c.jobs = c.Jobs; c.jobs == 0 && c.Rate.Hz(10) == 0 { // at a pace, sequences come one after the other
		c.jobs = runtime.GOMAXPROCS(0)
	}
	return c.produce(e, src)
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *produceFiles) Check() error { return errors.Join(c.producerFlags.Check(), c.Files.Check()) }

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
  entropipe produce s3://archive/recordings --rate max --jobs 8 --skip-bad
  entropipe produce recordings/ --rate max --resume --brokers kafka1:9092`
}

// HelpLines describes the flag of produce PATH that is not the source's.
func (produceFiles) HelpLines() map[string]string {
	return map[string]string{
		"jobs": "Number of frames decoded at a time; 0: one, with --rate max one per processor.",
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
