package backfill

import (
	"entropipe/cmd/command"
	"entropipe/cmd/produce/source"
)

// Command is the command backfill: a command for each source, and plan.
type Command struct {
	Files      backfillFiles      `cmd:"" default:"withargs" name:"files" set:"memory=192MiB"`
	KITTI      backfillKITTI      `cmd:"" name:"kitti" set:"memory=192MiB"`
	QuickDraw  backfillQuickDraw  `cmd:"" name:"quickdraw" set:"memory=192MiB"`
	MCAP       backfillMCAP       `cmd:"" name:"mcap" set:"memory=192MiB"`
	Rosbag     backfillRosbag     `cmd:"" name:"rosbag" set:"memory=192MiB"`
	NuScenes   backfillNuScenes   `cmd:"" name:"nuscenes" set:"memory=192MiB"`
	Argoverse2 backfillArgoverse2 `cmd:"" name:"argoverse2" set:"memory=192MiB"`
	PCD        backfillPCD        `cmd:"" name:"pcd" set:"memory=192MiB"`
	PLY        backfillPLY        `cmd:"" name:"ply" set:"memory=192MiB"`
	LAS        backfillLAS        `cmd:"" name:"las" set:"memory=192MiB"`
	CSV        backfillCSV        `cmd:"" name:"csv" set:"memory=192MiB"`
	Parquet    backfillParquet    `cmd:"" name:"parquet" set:"memory=192MiB"`
	Arrow      backfillArrow      `cmd:"" name:"arrow" set:"memory=192MiB"`
	Tokens     backfillTokens     `cmd:"" name:"tokens" set:"memory=192MiB"`
	Waymo      backfillWaymo      `cmd:"" name:"waymo" set:"memory=192MiB"`

	Plan planCommand `cmd:""`
}

// The commands of sources: the flags of a source, and those of all.
type (
	backfillFiles struct {
		source.Files `embed:""`
		Flags        `embed:""`
	}
	backfillKITTI struct {
		source.KITTI `embed:""`
		Flags        `embed:""`
	}
	backfillQuickDraw struct {
		source.QuickDraw `embed:""`
		Flags            `embed:""`
	}
	backfillMCAP struct {
		source.MCAP `embed:""`
		Flags       `embed:""`
	}
	backfillRosbag struct {
		source.Rosbag `embed:""`
		Flags         `embed:""`
	}
	backfillNuScenes struct {
		source.NuScenes `embed:""`
		VersionFlag     `embed:""`
		Flags           `embed:""`
	}
	backfillArgoverse2 struct {
		source.Argoverse2 `embed:""`
		Flags             `embed:""`
	}
	backfillPCD struct {
		source.PCD `embed:""`
		Flags      `embed:""`
	}
	backfillPLY struct {
		source.PLY `embed:""`
		Flags      `embed:""`
	}
	backfillLAS struct {
		source.LAS `embed:""`
		Flags      `embed:""`
	}
	backfillCSV struct {
		source.CSV `embed:""`
		Flags      `embed:""`
	}
	backfillParquet struct {
		source.Parquet `embed:""`
		Flags          `embed:""`
	}
	backfillArrow struct {
		source.Arrow `embed:""`
		Flags        `embed:""`
	}
	backfillTokens struct {
		source.Tokens `embed:""`
		Flags         `embed:""`
	}
	backfillWaymo struct {
		source.Waymo `embed:""`
		Flags        `embed:""`
	}
)

// VersionFlag is the flag of nuScenes that has another name in produce: --tables names
// tables of the output here.
type VersionFlag struct {
	Folder string `name:"nuscenes-tables" placeholder:"NAME"`
}

// HelpLines describes the flag.
func (VersionFlag) HelpLines() map[string]string {
	return map[string]string{"nuscenes-tables": "Folder of the tables, by its name, where there are several."}
}

// Run runs the command.
func (c *backfillFiles) Run(e *command.Env) error { return c.Flags.run(e, c, &c.Files) }

// Run runs the command.
func (c *backfillKITTI) Run(e *command.Env) error { return c.Flags.run(e, c, &c.KITTI) }

// Run runs the command.
func (c *backfillQuickDraw) Run(e *command.Env) error { return c.Flags.run(e, c, &c.QuickDraw) }

// Run runs the command.
func (c *backfillMCAP) Run(e *command.Env) error { return c.Flags.run(e, c, &c.MCAP) }

// Run runs the command.
func (c *backfillRosbag) Run(e *command.Env) error { return c.Flags.run(e, c, &c.Rosbag) }

// Run runs the command.
func (c *backfillNuScenes) Run(e *command.Env) error {
	c.Version = c.Folder
	return c.Flags.run(e, c, &c.NuScenes)
}

// Run runs the command.
func (c *backfillArgoverse2) Run(e *command.Env) error { return c.Flags.run(e, c, &c.Argoverse2) }

// Run runs the command.
func (c *backfillPCD) Run(e *command.Env) error { return c.Flags.run(e, c, &c.PCD) }

// Run runs the command.
func (c *backfillPLY) Run(e *command.Env) error { return c.Flags.run(e, c, &c.PLY) }

// Run runs the command.
func (c *backfillLAS) Run(e *command.Env) error { return c.Flags.run(e, c, &c.LAS) }

// Run runs the command.
func (c *backfillCSV) Run(e *command.Env) error { return c.Flags.run(e, c, &c.CSV) }

// Run runs the command.
func (c *backfillParquet) Run(e *command.Env) error { return c.Flags.run(e, c, &c.Parquet) }

// Run runs the command.
func (c *backfillArrow) Run(e *command.Env) error { return c.Flags.run(e, c, &c.Arrow) }

// Run runs the command.
func (c *backfillTokens) Run(e *command.Env) error { return c.Flags.run(e, c, &c.Tokens) }

// Run runs the command.
func (c *backfillWaymo) Run(e *command.Env) error { return c.Flags.run(e, c, &c.Waymo) }
