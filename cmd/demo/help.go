package demo

// Help opens the help of demo.
func (Command) Help() string {
	return `Starts a broker inside the process, sends it a synthetic 64-beam LiDAR at 10 Hz, a
thousand synthetic sketches and a hundred short notes a second, and writes Parquet: exact
geometry of the clouds, and the words that a small language model expects after each
note. A second run in the same folder continues where the first one ended.

Examples:
  entropipe demo
  entropipe demo --frames 1000 --rate max --out /tmp/demo
  entropipe demo --frames 0                              # until Ctrl-C`
}

// HelpLines describes the flags of demo.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"frames": "Number of LiDAR frames; 0: until stopped.",
		"out":    "Output folder; the broker's log stands in its folder _broker.",
		"listen": "Address of the live page, metrics and health; a free port if this one is taken.",
		"keep":   "Stay up after the last frame, until stopped.",
		"rate":   "Speed of the replay: realtime (10 Hz), max, a frequency (20hz) or a multiple (2x).",
		"points": "Approximate number of points of a LiDAR frame.",
		"seed":   "Seed of the scene.",
		"lm":     "Language model that reads the notes.",
	}
}
