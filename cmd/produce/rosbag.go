package produce

import (
	"entropipe/cmd/command"
	"entropipe/cmd/produce/source"
)

type produceRosbag struct {
	source.Rosbag `embed:""`
	producerFlags `embed:""`
}

// Run checks the flags and runs the command.
func (c *produceRosbag) Run(e *command.Env) error { return c.send(e, &c.Rosbag) }

// Help opens the help of produce rosbag.
func (produceRosbag) Help() string {
	return `PATH is the folder of a ROS 2 bag or a .db3 file, compressed or not. Topics of
sensor_msgs/msg/PointCloud2 are sent. A bag is a sequence with all its parts, a topic a
sensor. Nothing in the folder changes. Poses come from /tf_static and /tf: interpolated between
transforms at most 1 s apart, else the nearest within 50 ms.

Examples:
  entropipe produce rosbag rosbag2_2024_05_17-10_20_30/
  entropipe produce rosbag bag/ --topics /lidar/front,/lidar/rear --rate max
  entropipe produce rosbag bag/bag_0.db3 --time log --skip-bad`
}
