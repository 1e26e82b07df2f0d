package produce

// HelpLines describes the sources.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"files":     "Send files and folders of any format, found by content; may be left out.",
		"kitti":     "Send Velodyne scans: a raw drive, an odometry sequence, or .bin files.",
		"quickdraw": "Send QuickDraw drawings, raw or simplified .ndjson.",
		"mcap":      "Send the point clouds of MCAP files and ROS 2 bags in MCAP.",
		"rosbag":    "Send the point clouds of ROS 2 bags (.db3).",
		"pcd":       "Send PCD files, one cloud each.",
		"ply":       "Send the vertices of PLY files, one cloud each.",
		"las":       "Send LAS files, one cloud each.",
		"synthetic": "Send a synthetic LiDAR or synthetic sketches.",
		"tokens":    "Send texts or token ids: .txt, .jsonl, Parquet.",
		"waymo":     "Send LiDAR frames of the Waymo Open Dataset, version 1 or 2.",
	}
}

// HelpLines describes the flags of every source.
func (producerFlags) HelpLines() map[string]string {
	return map[string]string{
		"brokers":           "Bootstrap brokers.",
		"topic":             "Topic to send to; created when absent.",
		"partitions":        "Number of partitions of a topic that is created.",
		"replication":       "Number of replicas of a topic that is created; 0: the cluster's default.",
		"max-message-bytes": "Size limit of a message, for a topic that is created.",
		"chunk":             "Size of the records into which frames are parted; auto: where the topic takes no larger.",
		"compression":       "Compression of the Arrow body.",
		"rate":              "Speed of the replay: realtime, max, a frequency (10hz) or a multiple (2x).",
		"loop":              "Number of passes over the data; frame numbers and times continue.",
		"limit":             "Number of frames to send; 0: all.",
		"key":               "Key of messages: a sequence is one partition, or frames spread over all.",
		"resume":            "Continue where the topic ends; or-start: from the begin if nothing is there.",
		"resume-window":     "Number of bytes at the topic's end that --resume reads, at most.",
		"stage":             "Stage before sending; prune sends only points that the operators of --for depend on.",
		"for":               "Operators whose rows consumers find unchanged by --stage prune.",
		"model":             "Model (.safetensors) whose hints make --for hull3d faster; optional.",
	}
}

// Help opens the help of produce kitti.
func (produceKITTI) Help() string {
	return `DIR is a raw drive (2011_09_26_drive_0005_sync: times from timestamps.txt, gaps kept), an
odometry sequence (velodyne/, times.txt), or any folder of .bin or .bin.gz files (10 Hz
from --epoch). For a folder above these, the error names the folders with scans.

Examples:
  entropipe produce kitti 2011_09_26/2011_09_26_drive_0005_sync
  entropipe produce kitti dataset/sequences/00 --rate max --sequence kitti_00
  entropipe produce kitti scans/ --stage prune --for hull2d,maxima3d
  entropipe produce kitti scans/ --rate 2x --loop 10 --brokers kafka1:9092 --topic lidar`
}

// Help opens the help of produce quickdraw.
func (produceQuickdraw) Help() string {
	return `Each file is numbered and dated by itself, whatever files are named beside it.

Examples:
  entropipe produce quickdraw cow.ndjson --rate max
  entropipe produce quickdraw simplified/*.ndjson --rate 20000hz --topic sketches`
}

// Help opens the help of produce synthetic.
func (produceSynthetic) Help() string {
	return `Sends a 64-beam LiDAR that drives along a street at 10 Hz, or a crowd that draws a
thousand sketches a second.

Examples:
  entropipe produce synthetic --kind lidar --frames 600
  entropipe produce synthetic --kind sketch --frames 100000 --rate max --topic sketches`
}

// HelpLines describes the flags of produce synthetic.
func (produceSynthetic) HelpLines() map[string]string {
	return map[string]string{
		"kind":   "Kind of scene.",
		"frames": "Number of sweeps or drawings; 0: until stopped.",
		"points": "Approximate number of points of each; 0: 120000 a sweep, 40 a drawing.",
		"seed":   "Seed of the scene: the same seed makes the same data.",
	}
}

// Help opens the help of produce tokens.
func (produceTokens) Help() string {
	return `Sends rows as text (text/1), which run tokenizes with the tokenizer of its model, or as
token ids (tokens/1) if a file has input_ids or --tokenizer is given. JSON lines and
Parquet have the keys or columns input_ids, attention_mask (padding at the end is cut
off) or text, and id; a row without id is called FILE:LINE. A key that comes twice and
half a character make a bad row. Texts have no times: a frequency in --rate and --limit
hold them back, and --epoch dates them. Each file is numbered and dated by itself; with
--lengths all files are cut as one.

Examples:
  entropipe produce tokens wiki.txt --paragraphs
  entropipe produce tokens reviews.parquet --tokenizer ./all-MiniLM-L6-v2 --rate 5000hz
  entropipe produce tokens book.txt --tokenizer builtin:bytes --lengths azure.csv --sequences 100000`
}
