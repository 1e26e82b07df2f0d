package info

// Help opens the help of info.
func (Command) Help() string {
	return `Examples:
  entropipe info ./entropipe-out
  entropipe info ./entropipe-out --sql > views.sql; duckdb -init views.sql
  entropipe info ./entropipe-out --files --with ./compacted > views.sql
  entropipe info s3://lake/points --files --with s3://lake/points-large --format polars
  entropipe info ./entropipe-out/hulls/dataset=kitti/topic=points/part-0-….parquet
  entropipe info 2011_09_26/2011_09_26_drive_0005_sync
  entropipe info drive.mcap scans/ --json
  entropipe info model.safetensors
  entropipe info all-MiniLM-L6-v2/
  entropipe info builtin:lidar
  entropipe info kafka://127.0.0.1:9092/points`
}

// HelpLines describes the argument and flags of info.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"what":    "Files, folders of any kind, output, s3://…, model, builtin:MODEL, kafka://HOST:PORT/TOPIC, topic.",
		"brokers": "Bootstrap brokers, for a topic.",
		"json":    "Print one JSON document.",
		"sql":     "Print DuckDB views of an output, and how other programs open its tables.",
		"files":   "Print what opens exactly the committed files of an output, table by table.",
		"with":    "Compaction of the output: --files names its files, and of the output those behind its end.",
		"format":  "Program that --files prints for.",
	}
}
