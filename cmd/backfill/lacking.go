package backfill

// Lacking says why a backfill has no flags of these names, which run or produce have.
func (Command) Lacking() map[string]string {
	const (
		group  = "a backfill joins no consumer group: its processes share lanes by --out alone"
		whole  = "a backfill reads the whole archive, and ends with it"
		chunks = "no message of a backfill comes in chunks"
		fast   = "a backfill reads as fast as it computes"
		part   = "for a part of an archive, name its paths, or say --shard I/N"
		keys   = "a backfill sends nothing to a topic but what --publish names"
	)
	return map[string]string{
		"group": group, "group-instance": group, "session-timeout": group, "rebalance-timeout": group,
		"until-end": whole, "from": whole, "loop": whole, "limit": part,
		"chunk": keys, "chunk-window": chunks, "chunk-age": chunks,
		"topic":        "a backfill reads files; --plan names what it reads, as a topic has a name",
		"on-gap":       "files have no records that retention deletes",
		"accept-topic": "a backfill reads files, not topics; it compares them with its plan",
		"content-type": "a backfill knows files by their content; a source such as backfill las says the format",
		"roll-age":     "a backfill commits by size, not by age: --roll-bytes, --roll-records",
		"rate":         fast,
		"resume":       "a backfill goes on where it stopped when it is run again",
		"key":          keys,
	}
}
