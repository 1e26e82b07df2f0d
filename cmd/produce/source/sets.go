package source

import (
	"entropipe/cmd/mistake"
	"entropipe/ingest/replay"
)

// KITTI is a folder of Velodyne scans.
type KITTI struct {
	Dir     string `arg:"" type:"output"`
	SkipBad bool
}

// Check finds nothing.
func (c *KITTI) Check() error { return nil }

func (c *KITTI) replay(o Options) replay.KITTI {
	return replay.KITTI{Dir: c.Dir, SkipBad: c.SkipBad, Log: o.Log}
}

// Open finds the scans.
func (c *KITTI) Open(o Options) (replay.Source, error) { return c.replay(o).Open() }

// HelpLines describes the argument and flag of KITTI.
func (KITTI) HelpLines() map[string]string {
	return map[string]string{
		"dir":      "Folder of a drive, of a sequence, or of scans.",
		"skip-bad": "Skip and count scans that cannot be read, instead of stopping.",
	}
}

// NuScenes are scenes or scans of nuScenes.
type NuScenes struct {
	Paths   []string `arg:"" type:"output"`
	Scenes  []string `placeholder:"SCENE" setting:"yes"`
	SkipBad bool

	// Version is the folder of the tables, a flag of the command: --tables is taken in some.
	Version string `kong:"-" setting:"yes"`
}

// Check finds nothing.
func (c *NuScenes) Check() error { return nil }

func (c *NuScenes) replay(o Options) replay.NuScenes {
	return replay.NuScenes{Paths: c.Paths, Tables: c.Version, Scenes: c.Scenes, SkipBad: c.SkipBad, Log: o.Log}
}

// Open finds the scenes.
func (c *NuScenes) Open(o Options) (replay.Source, error) { return c.replay(o).Open() }

// HelpLines describes the arguments and flags of nuScenes.
func (NuScenes) HelpLines() map[string]string {
	return map[string]string{
		"paths":    "Folders of the data set or of scans, and scans.",
		"scenes":   "Scenes to read, by their names; all of them by default.",
		"skip-bad": "Skip and count scans and records that cannot be read, instead of stopping.",
	}
}

// Argoverse2 are logs or sweeps of Argoverse 2.
type Argoverse2 struct {
	Paths   []string `arg:"" type:"output"`
	SkipBad bool
}

// Check finds nothing.
func (c *Argoverse2) Check() error { return nil }

func (c *Argoverse2) replay(o Options) replay.Argoverse2 {
	return replay.Argoverse2{Paths: c.Paths, SkipBad: c.SkipBad, Log: o.Log}
}

// Open finds the logs.
func (c *Argoverse2) Open(o Options) (replay.Source, error) { return c.replay(o).Open() }

// HelpLines describes the arguments and flags of Argoverse 2.
func (Argoverse2) HelpLines() map[string]string {
	return map[string]string{
		"paths":    "Folders of logs or of sweeps, and sweeps.",
		"skip-bad": "Skip and count sweeps that cannot be read, instead of stopping.",
	}
}

// Waymo are frames of the Waymo Open Dataset.
type Waymo struct {
	Paths    []string `arg:"" type:"output"`
	Lasers   []string `enum:"top,front,side_left,side_right,rear" placeholder:"LASER" setting:"yes"`
	Returns  []int    `placeholder:"N" setting:"yes"`
	PerLaser bool     `setting:"yes"`
	SkipBad  bool
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *Waymo) Check() error {
	for _, n := range c.Returns {
		if n != 1 && n != 2 {
			return mistake.About("--returns: a pulse has the returns 1 and 2", "returns")
		}
	}
	return nil
}

func (c *Waymo) replay(o Options) replay.Waymo {
	return replay.Waymo{Paths: c.Paths, Lasers: c.Lasers, Returns: c.Returns, PerLaser: c.PerLaser,
		SkipBad: c.SkipBad, Log: o.Log}
}

// Open finds the segments.
func (c *Waymo) Open(o Options) (replay.Source, error) { return c.replay(o).Open() }

// HelpLines describes the arguments and flags of Waymo.
func (Waymo) HelpLines() map[string]string {
	return map[string]string{
		"paths":     "Files and folders of version 1 or 2.",
		"lasers":    "Lasers to read: top, front, side_left, side_right, rear; all of them by default.",
		"returns":   "Returns to read: 1, 2; both by default.",
		"per-laser": "Take a frame for each laser, whose name is the sensor, instead of one for all.",
		"skip-bad":  "Skip and count frames and segments that cannot be read, instead of stopping.",
	}
}
