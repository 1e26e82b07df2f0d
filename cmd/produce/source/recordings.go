package source

import "entropipe/ingest/replay"

// MCAP are files of MCAP.
type MCAP struct {
	Paths   []string `arg:"" type:"output"`
	Topics  []string `placeholder:"TOPIC" setting:"yes"`
	Time    string   `enum:"header,log,publish" default:"header" setting:"yes"`
	SkipBad bool
}

// Check finds nothing.
func (c *MCAP) Check() error { return nil }

func (c *MCAP) replay(o Options) replay.MCAP {
	return replay.MCAP{Paths: c.Paths, Topics: c.Topics, Time: c.Time, SkipBad: c.SkipBad, Log: o.Log}
}

// Open finds the recordings.
func (c *MCAP) Open(o Options) (replay.Source, error) { return c.replay(o).Open() }

// HelpLines describes the arguments and flags of MCAP.
func (MCAP) HelpLines() map[string]string {
	return map[string]string{
		"paths":    "Files of MCAP, or folders of them.",
		"topics":   "Topics to read, instead of all that hold point clouds.",
		"time":     "Time of a frame: the stamp of its header (log time where that is 0), log or publish time.",
		"skip-bad": "Skip and count messages and chunks that cannot be used, instead of stopping.",
	}
}

// Rosbag are bags of ROS 2.
type Rosbag struct {
	Paths   []string `arg:"" type:"output"`
	Topics  []string `placeholder:"TOPIC" setting:"yes"`
	Time    string   `enum:"header,log" default:"header" setting:"yes"`
	SkipBad bool
}

// Check finds nothing.
func (c *Rosbag) Check() error { return nil }

func (c *Rosbag) replay(o Options) replay.Rosbag {
	return replay.Rosbag{Paths: c.Paths, Topics: c.Topics, Time: c.Time, SkipBad: c.SkipBad, Log: o.Log}
}

// Open finds the bags.
func (c *Rosbag) Open(o Options) (replay.Source, error) { return c.replay(o).Open() }

// HelpLines describes the arguments and flags of bags.
func (Rosbag) HelpLines() map[string]string {
	return map[string]string{
		"paths":    "Folders of bags, or .db3 files.",
		"topics":   "Topics to read, instead of all that hold point clouds.",
		"time":     "Time of a frame: the stamp of its header (log time where that is 0), or log time.",
		"skip-bad": "Skip and count messages and parts that cannot be used, instead of stopping.",
	}
}
