package cmd

// HelpLines describes the commands and the flags that all of them have.
func (cli) HelpLines() map[string]string {
	return map[string]string{
		"run":       "Process topics into Parquet until stopped.",
		"demo":      "Show everything at work: broker, synthetic clouds and notes, Parquet.",
		"broker":    "Run an embedded Kafka broker, for laptops and tests.",
		"produce":   "Send a data set or a synthetic scene to a topic.",
		"backfill":  "Compute the tables of files, without a broker.",
		"train":     "Train a model for the stage before the operators.",
		"freeze":    "Choose the attention blocks that a transformer reads, and measure the loss.",
		"train-lm":  "Train a small language model on text files.",
		"train-vit": "Train a small image classifier.",
		"top":       "Show the numbers of a process or an output in the terminal.",
		"verify":    "Check an output: manifests, files, checksums, row counts and offsets.",
		"compact":   "Copy an output into one of fewer and larger files.",
		"vacuum":    "Delete files of an output whose rows a compaction has.",
		"replay":    "Send refused messages again, after what refused them was mended.",
		"info":      "Describe a file, an output, a model, a mask or a topic.",
		"export":    "Draw a frame from the tables, or convert a model or a mask.",
		"init":      "Write an example configuration file.",
		"validate":  "Check a configuration file and, with --connect, brokers and output.",
		"bench":     "Time the operators on this machine.",
		"truth":     "Show the paper's figures beside ours in a browser.",
		"version":   "Print the version, or the licences of what the program contains.",

		"completion": "Print the completions for a shell.",
		"man":        "Print the manual page.",

		"log-level":  "Lowest level that is logged.",
		"log-format": "Format of the log on stderr.",
	}
}
