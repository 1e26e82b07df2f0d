package produce

import (
	"entropipe/cmd/command"
	"entropipe/cmd/produce/source"
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
	source.NuScenes `embed:""`
	Tables          string `placeholder:"NAME"`
	producerFlags   `embed:""`
}

type produceArgoverse2 struct {
	source.Argoverse2 `embed:""`
	producerFlags     `embed:""`
}

// Run checks the flags and runs the command.
func (c *produceNuscenes) Run(e *command.Env) error {
	c.Version = c.Tables
	return c.send(e, &c.NuScenes)
}

// Run checks the flags and runs the command.
func (c *produceArgoverse2) Run(e *command.Env) error { return c.send(e, &c.Argoverse2) }

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

// HelpLines describes the flag of produce nuscenes that is not the source's.
func (produceNuscenes) HelpLines() map[string]string {
	return map[string]string{"tables": "Folder of the tables, by its name, where there are several."}
}

// Help opens the help of produce argoverse2.
func (produceArgoverse2) Help() string {
	return `PATH is the folder of a log (sensors/lidar, city_SE3_egovehicle.feather), a folder of logs,
or a sweep (.feather). Points are in the frame of the vehicle; the pose takes them to the city.

Examples:
  entropipe produce argoverse2 av2/val/7fab2350-7eaf-3b7e-a39d-6937a4c1bede
  entropipe produce argoverse2 av2/val --rate max --skip-bad`
}
