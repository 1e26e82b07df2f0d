package produce

import (
	"entropipe/cmd/command"
	"entropipe/cmd/produce/source"
)

type produceMCAP struct {
	source.MCAP   `embed:""`
	producerFlags `embed:""`
}

// Run checks the flags and runs the command.
func (c *produceMCAP) Run(e *command.Env) error { return c.send(e, &c.MCAP) }

// Help opens the help of produce mcap.
func (produceMCAP) Help() string {
	return `PATH is an .mcap file, a folder of such files, or the folder of a ROS 2 bag in MCAP. Topics
of sensor_msgs/msg/PointCloud2 (cdr) and foxglove.PointCloud (protobuf, json) are sent.
A file is a sequence, a topic a sensor. A file that was not closed is read to its last
whole message.

Examples:
  entropipe produce mcap drive.mcap
  entropipe produce mcap bag/ --topics /lidar/front,/lidar/rear --rate max
  entropipe produce mcap drive.mcap --time log --skip-bad`
}
