package backfill

// HelpLines describes the sources.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"files":      "Compute tables of files and folders of any format, found by content; may be left out.",
		"kitti":      "Compute tables of Velodyne scans: a raw drive, an odometry sequence, or .bin files.",
		"quickdraw":  "Compute tables of QuickDraw drawings, raw or simplified .ndjson.",
		"mcap":       "Compute tables of the point clouds of MCAP files and ROS 2 bags in MCAP.",
		"rosbag":     "Compute tables of the point clouds of ROS 2 bags (.db3).",
		"nuscenes":   "Compute tables of LiDAR scans of nuScenes, by scenes or by files.",
		"argoverse2": "Compute tables of LiDAR sweeps of Argoverse 2: logs, or .feather files.",
		"pcd":        "Compute tables of PCD files, one cloud each.",
		"ply":        "Compute tables of the vertices of PLY files, one cloud each.",
		"las":        "Compute tables of LAS files, one cloud each.",
		"csv":        "Compute tables of points as text: with commas, semicolons, tabs or blanks.",
		"parquet":    "Compute tables of points in Parquet files.",
		"arrow":      "Compute tables of points in Arrow streams and files (Feather).",
		"tokens":     "Compute tables of texts or token ids: .txt, .jsonl, Parquet.",
		"waymo":      "Compute tables of LiDAR frames of the Waymo Open Dataset, version 1 or 2.",
		"plan":       "Write the plan of an archive, and print it.",
	}
}

// HelpLines describes the sources.
func (planCommand) HelpLines() map[string]string {
	return map[string]string{
		"files":      "Plan files and folders of any format, found by content; may be left out.",
		"kitti":      "Plan Velodyne scans: a raw drive, an odometry sequence, or .bin files.",
		"quickdraw":  "Plan QuickDraw drawings, raw or simplified .ndjson.",
		"mcap":       "Plan MCAP files and ROS 2 bags in MCAP.",
		"rosbag":     "Plan ROS 2 bags (.db3).",
		"nuscenes":   "Plan LiDAR scans of nuScenes, by scenes or by files.",
		"argoverse2": "Plan LiDAR sweeps of Argoverse 2: logs, or .feather files.",
		"pcd":        "Plan PCD files, one cloud each.",
		"ply":        "Plan PLY files, one cloud each.",
		"las":        "Plan LAS files, one cloud each.",
		"csv":        "Plan points as text: with commas, semicolons, tabs or blanks.",
		"parquet":    "Plan points in Parquet files.",
		"arrow":      "Plan points in Arrow streams and files (Feather).",
		"tokens":     "Plan texts or token ids: .txt, .jsonl, Parquet.",
		"waymo":      "Plan LiDAR frames of the Waymo Open Dataset, version 1 or 2.",
	}
}

// HelpLines describes the flags in no group of their own.
func (Flags) HelpLines() map[string]string {
	return map[string]string{
		"config":   "Configuration file (YAML); flags and variables override it.",
		"progress": "Show progress: a bar on a terminal, a log line every ten seconds elsewhere.",
		"dry-run":  "Show counts, bytes and an estimate of the time, and write nothing.",
	}
}

// Uncommon are flags that few archives need.
func (Flags) Uncommon() []string {
	return []string{"tls", "sasl", "mask", "memory", "config", "progress", "dataset", "sequence",
		"time", "task"}
}

// HelpLines describes where published records go.
func (BrokerFlags) HelpLines() map[string]string {
	return map[string]string{"brokers": "Bootstrap brokers of --publish, --publish-results and --dead-letter."}
}

// HelpLines describes how the archive is divided.
func (PlanFlags) HelpLines() map[string]string {
	return map[string]string{
		"plan":     "Name of the plan; a plan of that name is read, and the archive is not searched.",
		"changed":  "Take over the lanes of --reuse whose files have not changed, and compute the others.",
		"reuse":    "Earlier output of this archive, which is only read.",
		"identity": "Sign by which a file is known again: size with time, or content; auto: the plan's.",
	}
}

// HelpLines describes what this process computes.
func (WorkFlags) HelpLines() map[string]string {
	return map[string]string{
		"shard":  "Lanes of this process: those whose number modulo N is I; default: all unfinished ones.",
		"shards": "Number of shards of a Kubernetes Indexed Job, whose index is the shard.",
		"jobs":   "Number of lanes at a time; 0: one per worker.",
	}
}

// Help opens the help of backfill files.
func (backfillFiles) Help() string {
	return `Computes the tables of what lies at PATH without a broker: the rows of produce and run. The
word files may be left out, unless PATH is a source's name: a folder kitti is ./kitti.

The first process writes a plan to --out, which divides PATH into lanes. The same command goes
on after any end, and processes with the same --out share the lanes. A lane stops when its
files have changed, or cannot be read and --skip-bad is not given.

Exit status: 0 all lanes of the shard are done, 75 a signal came before, 1 a lane stopped.

Examples:
  entropipe backfill 2011_09_26/ --out clouds
  entropipe backfill 'recordings/*.mcap' --out clouds --ops hull2d,maxima3d
  entropipe backfill s3://archive/drives --out /data/clouds --shard 3/16 --plan archive`
}

// Help opens the help of backfill kitti.
func (backfillKITTI) Help() string {
	return `Computes the tables without a broker. See backfill --help for plans,
shards and exit statuses, and produce kitti --help for the format.

Examples:
  entropipe backfill kitti 2011_09_26/2011_09_26_drive_0005_sync --out clouds
  entropipe backfill kitti dataset/sequences/00 --out clouds --sequence kitti_00 --ops hull3d`
}

// Help opens the help of backfill quickdraw.
func (backfillQuickDraw) Help() string {
	return `Computes the tables without a broker. See backfill --help for plans,
shards and exit statuses, and produce quickdraw --help for the format.

Examples:
  entropipe backfill quickdraw cow.ndjson --out sketches
  entropipe backfill quickdraw simplified/*.ndjson --out sketches --jobs 4`
}

// Help opens the help of backfill mcap.
func (backfillMCAP) Help() string {
	return `Computes the tables without a broker. See backfill --help for plans,
shards and exit statuses, and produce mcap --help for the format.

Examples:
  entropipe backfill mcap drive.mcap --out clouds
  entropipe backfill mcap bag/ --topics /lidar/front,/lidar/rear --out clouds --skip-bad`
}

// Help opens the help of backfill rosbag.
func (backfillRosbag) Help() string {
	return `Computes the tables without a broker. See backfill --help for plans,
shards and exit statuses, and produce rosbag --help for the format.

Examples:
  entropipe backfill rosbag rosbag2_2024_05_17-10_20_30/ --out clouds
  entropipe backfill rosbag bag/ --topics /lidar/front,/lidar/rear --out clouds`
}

// Help opens the help of backfill nuscenes.
func (backfillNuScenes) Help() string {
	return `Computes the tables without a broker. See backfill --help for plans,
shards and exit statuses, and produce nuscenes --help for the format.

Examples:
  entropipe backfill nuscenes nuscenes/ --out clouds
  entropipe backfill nuscenes nuscenes/ --nuscenes-tables v1.0-trainval --scenes scene-0061 --out clouds`
}

// Help opens the help of backfill argoverse2.
func (backfillArgoverse2) Help() string {
	return `Computes the tables without a broker. See backfill --help for plans,
shards and exit statuses, and produce argoverse2 --help for the format.

Examples:
  entropipe backfill argoverse2 av2/val/7fab2350-7eaf-3b7e-a39d-6937a4c1bede --out clouds
  entropipe backfill argoverse2 av2/val --out clouds --skip-bad`
}

// Help opens the help of backfill pcd.
func (backfillPCD) Help() string {
	return `Computes the tables without a broker. See backfill --help for plans,
shards and exit statuses, and produce pcd --help for the format.

Examples:
  entropipe backfill pcd scans/ --out clouds
  entropipe backfill pcd site.pcd.gz --sequence site --out clouds`
}

// Help opens the help of backfill ply.
func (backfillPLY) Help() string {
	return `Computes the tables without a broker. See backfill --help for plans,
shards and exit statuses, and produce ply --help for the format.

Examples:
  entropipe backfill ply scans/ --out clouds
  entropipe backfill ply bunny.ply --out bunny --ops hull3d`
}

// Help opens the help of backfill las.
func (backfillLAS) Help() string {
	return `Computes the tables without a broker. See backfill --help for plans,
shards and exit statuses, and produce las --help for the format.

Examples:
  entropipe backfill las tile.las --out tiles --max-frame-bytes 256MiB
  entropipe backfill las survey/ --max-frame-bytes 1GiB --out tiles --skip-bad`
}

// Help opens the help of backfill csv.
func (backfillCSV) Help() string {
	return `Computes the tables without a broker. See backfill --help for plans,
shards and exit statuses, and produce csv --help for the format.

Examples:
  entropipe backfill csv scans/ --out clouds
  entropipe backfill csv survey.csv --x easting --y northing --z height --out survey`
}

// Help opens the help of backfill parquet.
func (backfillParquet) Help() string {
	return `Computes the tables without a broker. See backfill --help for plans,
shards and exit statuses, and produce parquet --help for the format.

Examples:
  entropipe backfill parquet scans/ --out clouds
  entropipe backfill parquet OLD/points --ops hull3d --out hulls
  entropipe backfill parquet lake/ --group-by drive,scan --out clouds
  entropipe backfill parquet survey.parquet --x easting --y northing --z height --out survey`
}

// Help opens the help of backfill arrow.
func (backfillArrow) Help() string {
	return `Computes the tables without a broker. See backfill --help for plans,
shards and exit statuses, and produce arrow --help for the format.

Examples:
  entropipe backfill arrow scans/ --out clouds
  entropipe backfill arrow survey.feather --x easting --y northing --z height --out survey`
}

// Help opens the help of backfill tokens.
func (backfillTokens) Help() string {
	return `Computes table tokens, with --lm the model. See backfill --help for plans,
shards and exit statuses, and produce tokens --help for the format.

Examples:
  entropipe backfill tokens wiki.txt --paragraphs --lm all-MiniLM-L6-v2 --out vectors
  entropipe backfill tokens reviews.parquet --lm all-MiniLM-L6-v2 --mask mask/ --out vectors`
}

// Help opens the help of backfill waymo.
func (backfillWaymo) Help() string {
	return `Computes the tables without a broker. See backfill --help for plans,
shards and exit statuses, and produce waymo --help for the format.

Examples:
  entropipe backfill waymo waymo_v2/training --lasers top --returns 1 --out clouds
  entropipe backfill waymo segments/ --per-laser --out clouds --skip-bad`
}

// Help opens the help of backfill plan.
func (planFiles) Help() string {
	return `Searches PATH as backfill does, writes the plan to --out and prints it: a line for the plan,
and a line for each lane. Of a plan that is there already, --plan NAME prints the lines and
searches nothing. Pods that start with --plan NAME begin at once.

Examples:
  entropipe backfill plan /archive --out /data/clouds --plan archive
  entropipe backfill plan mcap recordings/ --out clouds --topics /lidar/front --json`
}

// HelpLines describes the flags of backfill plan.
func (planOnly) HelpLines() map[string]string {
	return map[string]string{
		"out":          "Output folder.",
		"partition-by": "Folder levels of a table, fixed once the output exists.",
		"json":         "Print the head of the plan as JSON.",
		"progress":     "Show progress: a bar on a terminal, nothing elsewhere.",
	}
}
