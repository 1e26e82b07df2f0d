package replay

// Help opens the help of replay.
func (Command) Help() string {
	return `Sends refused messages again, after what refused them was mended. OUT is an output, whose table
rejects says which; their values come from the topic that was read, else from the rows, else from
the topic of --dead-letter. TOPIC is a topic of dead letters. Each message is in --to once, also
when replay is killed and repeated, or runs twice. Exit status 1 when a value is gone.

Examples:
  entropipe replay ./entropipe-out --to points --dry-run               # counts by reason, sends nothing
  entropipe replay ./entropipe-out --to points --reason too_large
  entropipe replay ./entropipe-out --to points --since 2026-03-01T00:00:00Z --dead-letter points-dead
  entropipe replay points-dead --to points --brokers kafka1:9092`
}

// HelpLines describes the argument and flags of replay.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"from":         "Output: folder or s3://BUCKET/DIR; or topic of dead letters, also kafka://HOST:PORT/TOPIC.",
		"to":           "Topic to send to; it must exist.",
		"reason":       "Reasons of the rejects that are sent again; default: all.",
		"since":        "Time from which on messages were refused, such as 2026-03-01T00:00:00Z.",
		"dry-run":      "Print what would be sent, by reason; send nothing.",
		"max-replays":  "Number of times that a message is sent again, at most.",
		"dead-letter":  "Topic of dead letters that has what its topic and the rows lack.",
		"partial":      "Send also messages that have rows beside their rejects, which doubles these rows.",
		"chunk-window": "Number of bytes in which the chunks of a message are looked for.",
		"json":         "Print one JSON document.",
		"brokers":      "Bootstrap brokers.",
	}
}
