package produce

import (
	"entropipe/cmd/command"
	"entropipe/ingest/replay"
)

type produceMCAP struct {
	Paths         []string `arg:"" type:"path"`
	Topics        []string `placeholder:"TOPIC"`
	Time          string   `enum:"header,log,publish" default:"header"`
	SkipBad       bool
	producerFlags `embed:""`
}

// Run checks the flags and runs the command.
func (c *produceMCAP) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	src, err := replay.MCAP{Paths: c.Paths, Topics: c.Topics, Time: c.Time, SkipBad: c.SkipBad, Log: e.Log}.Open()
	if err != nil {
		return err
	}
	return c.produce(e, src)
}

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

// HelpLines describes the arguments and flags of produce mcap.
func (produceMCAP) HelpLines() map[string]string {
	return map[string]string{
		"paths":    "Files of MCAP, or folders of them.",
		"topics":   "Topics to send, instead of all that hold point clouds.",
		"time":     "Time of a frame: the stamp of its header (log time where that is 0), log or publish time.",
		"skip-bad": "Skip and count messages and chunks that cannot be used, instead of stopping.",
	}
}
