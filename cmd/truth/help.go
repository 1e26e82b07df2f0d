package truth

// Help opens the help of truth.
func (Command) Help() string {
	return `Serves the truth page: each table and figure of the paper "Differentiable Entropy Regularization"
beside what was measured here, with intervals, verdicts, errata and the commands that repeat
them. The page is part of the program and needs no network.

Examples:
  entropipe truth                              # prints the address to open in a browser
  entropipe truth --listen 127.0.0.1:0         # any free port
  entropipe truth --print > truth.html         # the page itself`
}

// HelpLines describes the flags of truth.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"listen": "Address to serve the page on.",
		"print":  "Write the page to the standard output instead.",
	}
}
