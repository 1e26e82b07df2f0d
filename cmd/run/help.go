package run

// Help opens the help of run.
func (Command) Help() string {
	return `Reads point clouds from topics and writes hulls, maxima and Delaunay triangulations
to --out as Parquet. With --lm, messages of tokens and texts become table tokens. Each
record is written exactly once. Processes with the same --out share the partitions.

Examples:
  entropipe run                                   # topic points to ./entropipe-out
  entropipe run --until-end                       # process what is there and stop
  entropipe run production.yaml --listen 127.0.0.1:8421
  entropipe run --brokers kafka1:9092 --topic lidar,drone --out /data/clouds
  entropipe run --ops hull2d,hull3d --roll-age 10s  # a file every 10 s
  entropipe run --ops hull3d --stage seed --model lidar.safetensors
  entropipe run --topic tokens --lm all-MiniLM-L6-v2 --mask mask/

SIGTERM or Ctrl-C: commit what was read and exit 0; with --until-end, exit 75 before
the end. A second signal: exit at once.`
}

// HelpLines describes the argument of run, and the flags that no file has.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"config":       "Configuration file (YAML); flags and variables override it.",
		"print-config": "Print the configuration in effect as YAML, and exit.",
		"commented":    "Print the help of every key with --print-config.",
	}
}
