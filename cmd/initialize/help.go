package initialize

// Help opens the help of init.
func (Command) Help() string {
	return `Writes a short configuration file of run, with comments. The file passes entropipe validate
as it is. A file that exists is kept unless --force is given.

Examples:
  entropipe init
  entropipe init tokens.yaml --tokens
  entropipe init -                      # to stdout`
}

// HelpLines describes the argument and flags of init.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"file":   "File to write; - is stdout.",
		"tokens": "Write an example for texts and token ids instead of point clouds.",
		"force":  "Write even if the file exists.",
	}
}
