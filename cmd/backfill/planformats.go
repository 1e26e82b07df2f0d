package backfill

import (
	"entropipe/cmd/command"
	"entropipe/cmd/produce/source"
)

// planCommand is the command backfill plan, with a command for each source.
type planCommand struct {
	Files      planFiles      `cmd:"" default:"withargs" name:"files"`
	KITTI      planKITTI      `cmd:"" name:"kitti"`
	QuickDraw  planQuickDraw  `cmd:"" name:"quickdraw"`
	MCAP       planMCAP       `cmd:"" name:"mcap"`
	Rosbag     planRosbag     `cmd:"" name:"rosbag"`
	NuScenes   planNuScenes   `cmd:"" name:"nuscenes"`
	Argoverse2 planArgoverse2 `cmd:"" name:"argoverse2"`
	PCD        planPCD        `cmd:"" name:"pcd"`
	PLY        planPLY        `cmd:"" name:"ply"`
	LAS        planLAS        `cmd:"" name:"las"`
	CSV        planCSV        `cmd:"" name:"csv"`
	Parquet    planParquet    `cmd:"" name:"parquet"`
	Arrow      planArrow      `cmd:"" name:"arrow"`
	Tokens     planTokens     `cmd:"" name:"tokens"`
	Waymo      planWaymo      `cmd:"" name:"waymo"`
}

// The commands of sources: the flags of a source, and those of all.
type (
	planFiles struct {
		source.Files `embed:""`
		planOnly     `embed:""`
	}
	planKITTI struct {
		source.KITTI `embed:""`
		planOnly     `embed:""`
	}
	planQuickDraw struct {
		source.QuickDraw `embed:""`
		planOnly         `embed:""`
	}
	planMCAP struct {
		source.MCAP `embed:""`
		planOnly    `embed:""`
	}
	planRosbag struct {
		source.Rosbag `embed:""`
		planOnly      `embed:""`
	}
	planNuScenes struct {
		source.NuScenes `embed:""`
		VersionFlag     `embed:""`
		planOnly        `embed:""`
	}
	planArgoverse2 struct {
		source.Argoverse2 `embed:""`
		planOnly          `embed:""`
	}
	planPCD struct {
		source.PCD `embed:""`
		planOnly   `embed:""`
	}
	planPLY struct {
		source.PLY `embed:""`
		planOnly   `embed:""`
	}
	planLAS struct {
		source.LAS `embed:""`
		planOnly   `embed:""`
	}
	planCSV struct {
		source.CSV `embed:""`
		planOnly   `embed:""`
	}
	planParquet struct {
		source.Parquet `embed:""`
		planOnly       `embed:""`
	}
	planArrow struct {
		source.Arrow `embed:""`
		planOnly     `embed:""`
	}
	planTokens struct {
		source.Tokens `embed:""`
		planOnly      `embed:""`
	}
	planWaymo struct {
		source.Waymo `embed:""`
		planOnly     `embed:""`
	}
)

// Run runs the command.
func (c *planFiles) Run(e *command.Env) error { return c.planOnly.run(e, &c.Files) }

// Run runs the command.
func (c *planKITTI) Run(e *command.Env) error { return c.planOnly.run(e, &c.KITTI) }

// Run runs the command.
func (c *planQuickDraw) Run(e *command.Env) error { return c.planOnly.run(e, &c.QuickDraw) }

// Run runs the command.
func (c *planMCAP) Run(e *command.Env) error { return c.planOnly.run(e, &c.MCAP) }

// Run runs the command.
func (c *planRosbag) Run(e *command.Env) error { return c.planOnly.run(e, &c.Rosbag) }

// Run runs the command.
func (c *planNuScenes) Run(e *command.Env) error {
	c.Version = c.Folder
	return c.planOnly.run(e, &c.NuScenes)
}

// Run runs the command.
func (c *planArgoverse2) Run(e *command.Env) error { return c.planOnly.run(e, &c.Argoverse2) }

// Run runs the command.
func (c *planPCD) Run(e *command.Env) error { return c.planOnly.run(e, &c.PCD) }

// Run runs the command.
func (c *planPLY) Run(e *command.Env) error { return c.planOnly.run(e, &c.PLY) }

// Run runs the command.
func (c *planLAS) Run(e *command.Env) error { return c.planOnly.run(e, &c.LAS) }

// Run runs the command.
func (c *planCSV) Run(e *command.Env) error { return c.planOnly.run(e, &c.CSV) }

// Run runs the command.
func (c *planParquet) Run(e *command.Env) error { return c.planOnly.run(e, &c.Parquet) }

// Run runs the command.
func (c *planArrow) Run(e *command.Env) error { return c.planOnly.run(e, &c.Arrow) }

// Run runs the command.
func (c *planTokens) Run(e *command.Env) error { return c.planOnly.run(e, &c.Tokens) }

// Run runs the command.
func (c *planWaymo) Run(e *command.Env) error { return c.planOnly.run(e, &c.Waymo) }
