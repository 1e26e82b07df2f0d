package produce

import (
	"entropipe/cmd/command"
	"entropipe/ingest/replay"
)

// tableFlags are common to the formats of tables.
type tableFlags struct {
	Paths         []string `arg:"" type:"path"`
	X             string   `placeholder:"COLUMN" group:"Columns"`
	Y             string   `placeholder:"COLUMN" group:"Columns"`
	Z             string   `placeholder:"COLUMN" group:"Columns"`
	Intensity     string   `placeholder:"COLUMN" group:"Columns"`
	SkipBad       bool
	producerFlags `embed:""`
}

type (
	produceCSV struct {
		tableFlags `embed:""`
	}
	produceParquet struct {
		tableFlags `embed:""`
	}
	produceArrow struct {
		tableFlags `embed:""`
	}
)

// Run checks the flags and runs the command.
func (c *produceCSV) Run(e *command.Env) error { return c.send(e, replay.FormatCSV) }

// Run checks the flags and runs the command.
func (c *produceParquet) Run(e *command.Env) error { return c.send(e, replay.FormatParquet) }

// Run checks the flags and runs the command.
func (c *produceArrow) Run(e *command.Env) error { return c.send(e, replay.FormatArrow) }

// send checks the flags and sends tables of a format.
func (c *tableFlags) send(e *command.Env, format string) error {
	if err := c.Check(); err != nil {
		return err
	}
	src, err := replay.Table{Paths: c.Paths, Format: format, SkipBad: c.SkipBad, Log: e.Log,
		Columns: replay.Columns{X: c.X, Y: c.Y, Z: c.Z, Intensity: c.Intensity}}.Open()
	if err != nil {
		return err
	}
	return c.produce(e, src)
}

// HelpLines describes the arguments and flags of tables.
func (tableFlags) HelpLines() map[string]string {
	return map[string]string{
		"paths":     "Files, a cloud each, and folders of files.",
		"x":         "Column that holds x, instead of the one of that name.",
		"y":         "Column that holds y, instead of the one of that name.",
		"z":         "Column that holds z, instead of the one of that name.",
		"intensity": "Column that holds the intensity, instead of the one of that name.",
		"skip-bad":  "Skip and count files that cannot be read, instead of stopping.",
	}
}

// Help opens the help of produce csv.
func (produceCSV) Help() string {
	return `A file is a cloud, a line a point. Values stand between commas, semicolons, tabs or blanks.
The first line holds the names of the columns, or the columns are x, y, z, intensity.

Examples:
  entropipe produce csv scans/ --rate max
  entropipe produce csv survey.csv --x easting --y northing --z height`
}

// Help opens the help of produce parquet.
func (produceParquet) Help() string {
	return `A file is a cloud, a row a point. Coordinates of float64 are sent as they are.

Examples:
  entropipe produce parquet scans/ --rate max
  entropipe produce parquet survey.parquet --x easting --y northing --z height`
}

// Help opens the help of produce arrow.
func (produceArrow) Help() string {
	return `A file, in Arrow's stream or file format (Feather V2), is a cloud; a row is a point.

Examples:
  entropipe produce arrow scans/ --rate max
  entropipe produce arrow survey.feather --x easting --y northing --z height`
}
