package produce

import (
	"entropipe/cmd/command"
	"entropipe/ingest/replay"
)

// setCommands are the commands of data sets and of tables.
type setCommands struct {
	NuScenes   produceNuscenes   `cmd:"" name:"nuscenes" set:"topic=points"`
	Argoverse2 produceArgoverse2 `cmd:"" name:"argoverse2" set:"topic=points"`
	CSV        produceCSV        `cmd:"" name:"csv" set:"topic=points"`
	Parquet    produceParquet    `cmd:"" name:"parquet" set:"topic=points"`
	Arrow      produceArrow      `cmd:"" name:"arrow" set:"topic=points"`
}

// HelpLines describes the sources.
func (setCommands) HelpLines() map[string]string {
	return map[string]string{
		"argoverse2": "Send LiDAR sweeps of Argoverse 2: logs, or .feather files.",
		"arrow":      "Send tables of points: Arrow streams and files (Feather).",
		"csv":        "Send tables of points: text with commas, semicolons, tabs or blanks.",
		"nuscenes":   "Send LiDAR scans of nuScenes, by scenes or by files.",
		"parquet":    "Send tables of points: Parquet files.",
	}
}

type produceNuscenes struct {
	Paths         []string `arg:"" type:"path"`
	Tables        string   `placeholder:"NAME"`
	Scenes        []string `placeholder:"SCENE"`
	SkipBad       bool
	producerFlags `embed:""`
}

type produceArgoverse2 struct {
	Paths         []string `arg:"" type:"path"`
	SkipBad       bool
	producerFlags `embed:""`
}

// Run checks the flags and runs the command.
func (c *produceNuscenes) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	src, err := replay.NuScenes{Paths: c.Paths, Tables: c.Tables, Scenes: c.Scenes, SkipBad: c.SkipBad,
		Log: e.Log}.Open()
	if err != nil {
		return err
	}
	return c.produce(e, src)
}

// Run checks the flags and runs the command.
func (c *produceArgoverse2) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	src, err := replay.Argoverse2{Paths: c.Paths, SkipBad: c.SkipBad, Log: e.Log}.Open()
	if err != nil {
		return err
	}
	return c.produce(e, src)
}

// Help opens the help of produce nuscenes.
func (produceNuscenes) Help() string {
	return `PATH is the folder above samples, sweeps and the tables (v1.0-mini, …): every scene is sent
in the order of time, with poses. Of a folder without tables, and of scans (.pcd.bin), the
names of the files say log and time.

Examples:
  entropipe produce nuscenes nuscenes/
  entropipe produce nuscenes nuscenes/ --tables v1.0-trainval --scenes scene-0061,scene-0103 --rate max
  entropipe produce nuscenes nuscenes/sweeps/LIDAR_TOP --rate 2x`
}

// HelpLines describes the arguments and flags of produce nuscenes.
func (produceNuscenes) HelpLines() map[string]string {
	return map[string]string{
		"paths":    "Folders of the data set or of scans, and scans.",
		"tables":   "Folder of the tables, by its name, where there are several.",
		"scenes":   "Scenes to send, by their names; all of them by default.",
		"skip-bad": "Skip and count scans and records that cannot be read, instead of stopping.",
	}
}

// Help opens the help of produce argoverse2.
func (produceArgoverse2) Help() string {
	return `PATH is the folder of a log (sensors/lidar, city_SE3_egovehicle.feather), a folder of logs,
or a sweep (.feather). Points are in the frame of the vehicle; the pose takes them to the city.

Examples:
  entropipe produce argoverse2 av2/val/7fab2350-7eaf-3b7e-a39d-6937a4c1bede
  entropipe produce argoverse2 av2/val --rate max --skip-bad`
}

// HelpLines describes the arguments and flags of produce argoverse2.
func (produceArgoverse2) HelpLines() map[string]string {
	return map[string]string{
		"paths":    "Folders of logs or of sweeps, and sweeps.",
		"skip-bad": "Skip and count sweeps that cannot be read, instead of stopping.",
	}
}
