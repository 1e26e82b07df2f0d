package produce

import (
	"errors"
	"math"

	"entropipe/cmd/command"
	"entropipe/cmd/config/value"
	"entropipe/cmd/produce/source"
)

// cloudFlags are common to the formats whose files hold one cloud each.
type cloudFlags struct {
	MaxFrameBytes value.Size `default:"64MiB"`
	producerFlags `embed:""`
}

type producePCD struct {
	source.PCD `embed:""`
	cloudFlags `embed:""`
}

type producePLY struct {
	source.PLY `embed:""`
	cloudFlags `embed:""`
}

type produceLAS struct {
	source.LAS `embed:""`
	cloudFlags `embed:""`
}

// Run checks the flags and runs the command.
func (c *producePCD) Run(e *command.Env) error { return c.send(e, &c.PCD) }

// Run checks the flags and runs the command.
func (c *producePLY) Run(e *command.Env) error { return c.send(e, &c.PLY) }

// Run checks the flags and runs the command.
func (c *produceLAS) Run(e *command.Env) error { return c.send(e, &c.LAS) }

func (c *cloudFlags) send(e *command.Env, from source.Source) error {
	if err := errors.Join(c.Check(), from.Check(), c.checkSources(from)); err != nil {
		return err
	}
	defer c.Bucket.Reading(e.Ctx, readAhead)()
	src, err := from.Open(source.Options{Rate: c.Rate, MaxFrameBytes: int64(c.MaxFrameBytes), Log: e.Log})
	if err != nil {
		return err
	}
	return c.produce(e, src)
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *cloudFlags) Check() error {
	if err := command.CheckAmount("max-frame-bytes", c.MaxFrameBytes, 1, math.MaxInt32); err != nil {
		return err
	}
	return c.producerFlags.Check()
}

// HelpLines describes the flag of files of clouds that is not the source's.
func (cloudFlags) HelpLines() map[string]string {
	return map[string]string{
		"max-frame-bytes": "Size limit of a file, unpacked; the columns of its cloud may take four times as much.",
	}
}

// Help opens the help of produce pcd.
func (producePCD) Help() string {
	return `PATH is a .pcd file, or a folder of them: ascii, binary or binary_compressed. A folder is a
sequence. Numbers and times come from the names of files, if these are numbers and times.

Examples:
  entropipe produce pcd scans/ --rate 10hz
  entropipe produce pcd site.pcd.gz --rate max --sequence site`
}

// Help opens the help of produce ply.
func (producePLY) Help() string {
	return `PATH is a .ply file, or a folder of them: ascii or binary. The element vertex is sent; faces
and other elements are not.

Examples:
  entropipe produce ply scans/ --rate 10hz
  entropipe produce ply bunny.ply --rate max`
}

// Help opens the help of produce las.
func (produceLAS) Help() string {
	return `PATH is a .las file, or a folder of them: LAS 1.0 to 1.4, point formats 0 to 10. LAZ and COPC
are refused: pdal translate in.laz out.las converts them.

Examples:
  entropipe produce las tile.las --rate max --max-message-bytes 256MiB
  entropipe produce las survey/ --rate max --max-frame-bytes 1GiB --skip-bad`
}
