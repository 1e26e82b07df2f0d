package produce

import (
	"entropipe/cmd/command"
	"entropipe/ingest/replay"
)

type produceRosbag struct {
	Paths         []string `arg:"" type:"path"`
	Topics        []string `placeholder:"TOPIC"`
	Time          string   `enum:"header,log" default:"header"`
	SkipBad       bool
	producerFlags `embed:""`
}

// Run checks the flags and runs the command.
func (c *produceRosbag) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	src, err := replay.Rosbag{Paths: c.Paths, Topics: c.Topics, Time: c.Time, SkipBad: c.SkipBad, Log: e.Log}.Open()
	if err != nil {
		return err
	}
	return c.produce(e, src)
}

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

// HelpLines describes the arguments and flags of produce rosbag.
func (produceRosbag) HelpLines() map[string]string {
	return map[string]string{
		"paths":    "Folders of bags, or .db3 files.",
		"topics":   "Topics to send, instead of all that hold point clouds.",
		"time":     "Time of a frame: the stamp of its header (log time where that is 0), or log time.",
		"skip-bad": "Skip and count messages and parts that cannot be used, instead of stopping.",
	}
}
