package compact

// Help opens the help of compact.
func (Command) Help() string {
	return `Copies the commits of OUT to OUT2, an output of its own, in fewer and larger files. Column
chunks are copied byte for byte, so nothing is decoded. Readers of OUT2 only see it grow; OUT
stays as it is, and its writers go on. Killed or repeated, it goes on where OUT2 ends; several
may run. A larger --roll-age of run is the cheaper way to larger files: try it first.

Examples:
  entropipe compact ./entropipe-out --into ./compacted
  entropipe compact ./entropipe-out --into ./compacted --follow --max-age 6h
  entropipe compact s3://lake/points --into s3://lake/points-large --target-bytes 512MiB
  entropipe verify ./compacted`
}

// HelpLines describes the argument and flags of compact.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"out":          "Output: a folder, or s3://BUCKET/PREFIX.",
		"into":         "Output that holds the compaction, of this output alone; made where there is none.",
		"target-bytes": "Size that no file gets beyond, unless one file of OUT is larger.",
		"follow":       "Continue while OUT grows, until stopped.",
		"max-age":      "Time after which --follow commits files that have not reached their size.",
		"poll":         "Time between two looks of --follow.",
		"json":         "Print one JSON document.",
	}
}

// Help opens the help of vacuum.
func (Vacuum) Help() string {
	return `Deletes the files of commits of OUT whose rows its compaction OUT2 holds. Before, the counts of
OUT2 are compared with those of OUT, and the files of OUT2 with their checksums. The newest
commit of each partition stays, and so do all manifests. A glob over OUT then finds fewer
rows: move readers to OUT2 first.

Examples:
  entropipe vacuum ./entropipe-out --covered-by ./compacted --dry-run
  entropipe vacuum ./entropipe-out --covered-by ./compacted --older-than 168h`
}

// HelpLines describes the argument and flags of vacuum.
func (Vacuum) HelpLines() map[string]string {
	return map[string]string{
		"out":        "Output: a folder, or s3://BUCKET/PREFIX.",
		"covered-by": "Compaction of this output, which holds the rows.",
		"older-than": "Age from which on commits are retired.",
		"dry-run":    "Print what would be retired; change nothing.",
		"json":       "Print one JSON document.",
	}
}
