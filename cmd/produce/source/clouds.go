package source

import "entropipe/ingest/replay"

// Clouds are the flags of formats whose files hold one cloud each.
type Clouds struct {
	Paths   []string `arg:"" type:"output"`
	SkipBad bool
}

// The formats of clouds.
type (
	PCD struct {
		Clouds `embed:""`
	}
	PLY struct {
		Clouds `embed:""`
	}
	LAS struct {
		Clouds `embed:""`
	}
)

// Check finds nothing.
func (c *Clouds) Check() error { return nil }

func (c *Clouds) replay(format replay.CloudFormat, o Options) replay.CloudFiles {
	return replay.CloudFiles{Format: format, Paths: c.Paths, SkipBad: c.SkipBad, MaxFrameBytes: o.MaxFrameBytes,
		Log: o.Log}
}

// Open finds the files.
func (c *PCD) Open(o Options) (replay.Source, error) { return c.replay(replay.PCD, o).Open() }

// Open finds the files.
func (c *PLY) Open(o Options) (replay.Source, error) { return c.replay(replay.PLY, o).Open() }

// Open finds the files.
func (c *LAS) Open(o Options) (replay.Source, error) { return c.replay(replay.LAS, o).Open() }

// HelpLines describes the arguments and flags of files of clouds.
func (Clouds) HelpLines() map[string]string {
	return map[string]string{
		"paths":    "Files of the format, perhaps in gzip or Zstandard, or folders of them.",
		"skip-bad": "Skip and count files that cannot be read, instead of stopping.",
	}
}

// Tables are the flags of the formats of tables.
type Tables struct {
	Paths     []string `arg:"" type:"output"`
	X         string   `placeholder:"COLUMN" group:"Columns" setting:"yes"`
	Y         string   `placeholder:"COLUMN" group:"Columns" setting:"yes"`
	Z         string   `placeholder:"COLUMN" group:"Columns" setting:"yes"`
	Intensity string   `placeholder:"COLUMN" group:"Columns" setting:"yes"`
	SkipBad   bool
}

// The formats of tables.
type (
	CSV struct {
		Tables `embed:""`
	}
	Parquet struct {
		Tables  `embed:""`
		GroupBy []string `placeholder:"COLUMN" group:"Columns" setting:"yes"`
	}
	Arrow struct {
		Tables `embed:""`
	}
)

// Check finds nothing.
func (c *Tables) Check() error { return nil }

func (c *Tables) replay(format string, o Options) replay.Table {
	return replay.Table{Paths: c.Paths, Format: format, SkipBad: c.SkipBad, Log: o.Log,
		Columns: replay.Columns{X: c.X, Y: c.Y, Z: c.Z, Intensity: c.Intensity}}
}

// Open finds the files.
func (c *CSV) Open(o Options) (replay.Source, error) {
	return c.replay(replay.FormatCSV, o).Open()
}

// Open finds the files.
func (c *Parquet) Open(o Options) (replay.Source, error) {
	return c.table(o).Open()
}

func (c *Parquet) table(o Options) replay.Table {
	t := c.replay(replay.FormatParquet, o)
	t.GroupBy = c.GroupBy
	return t
}

// HelpLines describes the flag of Parquet.
func (Parquet) HelpLines() map[string]string {
	return map[string]string{
		"group-by": "Columns whose equal values make rows one cloud; or file; or row-group.",
	}
}

// Open finds the files.
func (c *Arrow) Open(o Options) (replay.Source, error) {
	return c.replay(replay.FormatArrow, o).Open()
}

// HelpLines describes the arguments and flags of tables.
func (Tables) HelpLines() map[string]string {
	return map[string]string{
		"paths":     "Files and folders of files.",
		"x":         "Column that holds x, instead of the one of that name.",
		"y":         "Column that holds y, instead of the one of that name.",
		"z":         "Column that holds z, instead of the one of that name.",
		"intensity": "Column that holds the intensity, instead of the one of that name.",
		"skip-bad":  "Skip and count files that cannot be read, instead of stopping.",
	}
}
