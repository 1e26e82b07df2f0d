package produce

import (
	"entropipe/cmd/command"
	"entropipe/cmd/produce/source"
)

type produceCSV struct {
	source.CSV    `embed:""`
	producerFlags `embed:""`
}

type produceParquet struct {
	source.Parquet `embed:""`
	producerFlags  `embed:""`
}

type produceArrow struct {
	source.Arrow  `embed:""`
	producerFlags `embed:""`
}

// Run checks the flags and runs the command.
func (c *produceCSV) Run(e *command.Env) error { return c.send(e, &c.CSV) }

// Run checks the flags and runs the command.
func (c *produceParquet) Run(e *command.Env) error { return c.send(e, &c.Parquet) }

// Run checks the flags and runs the command.
func (c *produceArrow) Run(e *command.Env) error { return c.send(e, &c.Arrow) }

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
	return `A file is a cloud, a row a point. Coordinates of float64 are sent as they are. With --group-by
rows of equal values, which must stand together, are a cloud: columns (or folders KEY=VALUE),
file or row-group. Table points of an output gives the frames of its first run again, with
names, times and poses from table frames.

Examples:
  entropipe produce parquet scans/ --rate max
  entropipe produce parquet lake/ --group-by drive,scan --rate max
  entropipe produce parquet OLD/points --rate max
  entropipe produce parquet survey.parquet --x easting --y northing --z height`
}

// Help opens the help of produce arrow.
func (produceArrow) Help() string {
	return `A file, in Arrow's stream or file format (Feather V2), is a cloud; a row is a point.

Examples:
  entropipe produce arrow scans/ --rate max
  entropipe produce arrow survey.feather --x easting --y northing --z height`
}
