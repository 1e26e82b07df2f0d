package top

// Help opens the help of top.
func (Command) Help() string {
	return `WHAT is the address of run --listen or demo, HOST:PORT or http://HOST:PORT, or the folder of
an output. On a terminal the numbers fill the screen until q is pressed; ? lists the keys.
Elsewhere, and with --json, top prints one JSON document and ends.

Examples:
  entropipe top 127.0.0.1:8421
  entropipe top https://lidar1.example.com --token-file token
  entropipe top ./entropipe-out
  entropipe top 127.0.0.1:8421 --json > state.json`
}

// HelpLines describes the argument and flags of top.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"what":       "Address of a process that listens, or folder of an output.",
		"token-file": "File with the token of --listen-token-file.",
		"interval":   "Time between two readings; 0: a second for an address, two for a folder.",
		"json":       "Print one JSON document, also on a terminal.",
		"once":       "Print the numbers once as text, on a terminal.",
	}
}
