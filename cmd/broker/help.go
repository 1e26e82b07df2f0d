package broker

// Help opens the help of broker.
func (Command) Help() string {
	return `Runs a Kafka broker in one process, for laptops and tests: one node, no replication, no
security. With --data, acknowledged records survive kill -9.

Examples:
  entropipe broker
  entropipe broker --listen 127.0.0.1:19092 --data ./kafka --partitions 8`
}

// HelpLines describes the flags of broker.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"listen":            "Address to listen on.",
		"data":              "Folder of the log, which is kept; default: a temporary folder, removed at the end.",
		"partitions":        "Number of partitions of a topic whose creator names none.",
		"max-message-bytes": "Size limit of a message of such a topic.",
	}
}
