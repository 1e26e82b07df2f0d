package flags

// HelpLines describes the flags in no group of their own.
func (Flags) HelpLines() map[string]string {
	return map[string]string{
		"roll-age": "Time after which a commit is due; 0: never.",
		"progress": "Show progress: a bar, or a log line every ten seconds.",
	}
}

// HelpLines describes what is read.
func (SourceFlags) HelpLines() map[string]string {
	return map[string]string{
		"brokers":           "Bootstrap brokers.",
		"topic":             "Topics to read.",
		"group":             "Consumer group of the processes of an output; default: named after the output.",
		"from":              "Beginning of a topic that the output has no record of.",
		"until-end":         "Stop at the last stable offsets seen at the start.",
		"group-instance":    "Id of this process in the group; a restart within --session-timeout moves no partition.",
		"session-timeout":   "Silence after which the group gives a process's partitions to others.",
		"rebalance-timeout": "Time limit for committing when partitions move to another process.",
		"on-gap":            "Reaction to records that retention deleted before they were read.",
		"chunk-window":      "Bytes of records that may follow the first chunk of a frame before it is given up.",
		"chunk-age":         "Time after which a frame whose chunks are missing at a log's end is given up.",
		"content-type":      "Content type of values without header content-type, of all topics or of one.",
		"accept-topic":      "Topics to continue under another id, as on a mirror; the last records must match.",
	}
}

// HelpLines describes where and how rows become files.
func (OutputFlags) HelpLines() map[string]string {
	return map[string]string{
		"out":           "Folder or s3://BUCKET/DIR.",
		"tables":        "Tables to write besides frames and rejects; default: the tables of the operators.",
		"partition-by":  "Folder levels of a table, fixed once the output exists.",
		"strict-config": "Stop with status 78 before rows of another configuration follow.",
		"new-config":    "Start under --strict-config although the newest rows have another configuration.",
		"roll-bytes":    "Bytes of input after which a commit is due.",
		"roll-records":  "Records after which a commit is due.",
		"retry-for":     "Time to retry while the output cannot be written, as on a full disk; then exit 1.",
	}
}

// HelpLines describes what is done with every frame.
func (FrameFlags) HelpLines() map[string]string {
	return map[string]string{
		"ops":             "Operators; default: hull2d, delaunay2d and the maxima of the cloud's dimension.",
		"entropy-every":   "Interval, in frames, of rows in table entropy; 0: none.",
		"max-rejects":     "Rejects above which run exits 1: N, N%, none, or auto: all of them at the end.",
		"max-frame-bytes": "Size limit of a decompressed frame.",
	}
}

// HelpLines describes what the process may use.
func (ResourceFlags) HelpLines() map[string]string {
	return map[string]string{
		"workers": "Number of frames in work at a time; 0: one per core.",
		"memory":  "Memory for records, results and rows.",
	}
}

// HelpLines describes the HTTP server.
func (ServeFlags) HelpLines() map[string]string {
	return map[string]string{
		"listen":            "Address of the live page, metrics and health.",
		"listen-host":       "Further names under which the page may be opened.",
		"listen-origin":     "Further origins whose pages may watch, such as https://app.foxglove.dev.",
		"listen-advertise":  "Address of the page for other processes of the output; off: none is told.",
		"listen-token-file": "File with the token that the page asks for; needed off loopback.",
		"pprof":             "Serve /debug/pprof too.",
	}
}
