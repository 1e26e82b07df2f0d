package validate

// Help opens the help of validate.
func (Command) Help() string {
	return `Checks a configuration file of run or backfill, together with variables and flags. All mistakes are
printed as file:line:col; the exit status is then 78.

Examples:
  entropipe validate production.yaml
  entropipe validate production.yaml --connect --frame-bytes 4MiB
  entropipe validate archive.yaml --of backfill
  entropipe validate --schema > entropipe.schema.json   # for editors`
}

// HelpLines describes the argument of validate, and the flags that run does not have.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"config":      "Configuration file (YAML) of run, or of the command of --of.",
		"of":          "Command that the file is for.",
		"connect":     "Check also that brokers answer and that the output folder can be used.",
		"frame-bytes": "Size of the frames that are sent; --max-frame-bytes must take it.",
		"json":        "Print one JSON document.",
		"schema":      "Print the JSON Schema of a configuration file, and exit.",
	}
}
