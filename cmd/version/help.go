package version

// Help opens the help of version.
func (Command) Help() string {
	return `Prints the release, the commit that was built, the Go toolchain and the platform.

Examples:
  entropipe version
  entropipe version --json       # also the vector units that operators use here
  entropipe version --licenses   # of the modules that the program contains`
}

// HelpLines describes the flags of version.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"json":     "Print one JSON document.",
		"licenses": "Print the notices and licences of third-party software.",
	}
}
