package produce

import (
	"entropipe/cmd/command"
	"entropipe/cmd/produce/source"
)

type produceWaymo struct {
	source.Waymo  `embed:""`
	producerFlags `embed:""`
}

// Run checks the flags and runs the command.
func (c *produceWaymo) Run(e *command.Env) error { return c.send(e, &c.Waymo) }

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
