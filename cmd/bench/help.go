package bench

import "strings"

// Help opens the help of bench.
func (Command) Help() string {
	return `Times the operators on synthetic clouds in memory, without Kafka or Parquet, and prints
nanoseconds a point: the median, in brackets the minimum, and the share of the minimum
that one plain read of the same coordinates takes, in percent. The plain read takes turns
with the operators. Close every other program first.

Examples:
  entropipe bench
  entropipe bench --ops delaunay2d --sizes 1e5,1e6 --type float32,float64
  entropipe bench --ops hull2d --level portable --json`
}

// HelpLines describes the flags of bench.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"ops":      "Operators to time.",
		"sizes":    "Number of points of a cloud.",
		"dist":     "Distributions of points; default: a few that suit each operator.",
		"type":     "Number types of coordinates.",
		"workers":  "Number of goroutines for a cloud, above 1 only from 100000 points on; 0: one per processor.",
		"min-time": "Duration of a measurement, at least.",
		"level":    "Widest vector unit to use.",
		"kitti":    "Folder of KITTI scans, whose first ten are timed too.",
		"seed":     "Seed of the clouds.",
		"json":     "Print one JSON document.",
	}
}

// Variables lists the operators and distributions for the tags of Command.
func (Command) Variables() map[string]string {
	var ops, dists []string
	for _, op := range benchOps {
		ops = append(ops, op.name)
	}
	for _, d := range distributions {
		dists = append(dists, d.name)
	}
	return map[string]string{"operators": strings.Join(ops, ","), "distributions": strings.Join(dists, ",")}
}
