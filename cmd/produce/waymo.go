package produce

import (
	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/ingest/replay"
)

type produceWaymo struct {
	Paths         []string `arg:"" type:"path"`
	Lasers        []string `enum:"top,front,side_left,side_right,rear" placeholder:"LASER"`
	Returns       []int    `placeholder:"N"`
	PerLaser      bool
	SkipBad       bool
	producerFlags `embed:""`
}

// Run checks the flags and runs the command.
func (c *produceWaymo) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	src, err := replay.Waymo{Paths: c.Paths, Lasers: c.Lasers, Returns: c.Returns, PerLaser: c.PerLaser,
		SkipBad: c.SkipBad, Log: e.Log}.Open()
	if err != nil {
		return err
	}
	return c.produce(e, src)
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *produceWaymo) Check() error {
	for _, n := range c.Returns {
		if n != 1 && n != 2 {
			return mistake.About("--returns: a pulse has the returns 1 and 2", "returns")
		}
	}
	return c.producerFlags.Check()
}

// Help opens the help of produce waymo.
func (produceWaymo) Help() string {
	return `PATH is a .tfrecord file of version 1, a folder of them, or a folder of version 2 with the
components lidar, lidar_calibration, lidar_pose and vehicle_pose. A frame holds the points
of all lasers in the vehicle's frame; its pose takes them to the world.

Examples:
  entropipe produce waymo segment-10023947602400723454_1120_000_1140_000_with_camera_labels.tfrecord
  entropipe produce waymo waymo_v2/training --lasers top --returns 1 --rate max
  entropipe produce waymo segments/ --per-laser --skip-bad`
}

// HelpLines describes the arguments and flags of produce waymo.
func (produceWaymo) HelpLines() map[string]string {
	return map[string]string{
		"paths":     "Files and folders of version 1 or 2.",
		"lasers":    "Lasers to send: top, front, side_left, side_right, rear; all of them by default.",
		"returns":   "Returns to send: 1, 2; both by default.",
		"per-laser": "Send a frame for each laser, whose name is the sensor, instead of one for all.",
		"skip-bad":  "Skip and count frames and segments that cannot be read, instead of stopping.",
	}
}
