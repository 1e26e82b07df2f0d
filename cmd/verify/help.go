package verify

// Help opens the help of verify.
func (Command) Help() string {
	return `Reads every manifest and every file: checksums, row counts, an unbroken chain of offsets,
and for every record a row, a reject or a counted hole. It may run beside writers. Exit
status 1 when anything is wrong.

--repair explains which faults can be mended. Files are in question where the newest
manifests of a partition are lost or damaged, where the newest commit has lost files, and
where no manifest names them. With --yes they are moved to OUT/_quarantine, and run writes
their records again; nothing is deleted. Before, the brokers are asked for the members of
the group and for the records, so that no file moves while a process may write.

Examples:
  entropipe verify ./entropipe-out
  entropipe verify ./entropipe-out --repair                             # explains, changes nothing
  entropipe verify ./entropipe-out --repair --yes --brokers kafka1:9092
  entropipe verify ./entropipe-out --repair --yes --group mine          # as given to run --group
  entropipe verify ./entropipe-out --repair --yes --offline             # the brokers are gone`
}

// HelpLines describes the argument and flag of verify without --repair.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"out":  "Output: a folder, or s3://BUCKET/PREFIX.",
		"json": "Print one JSON document.",
	}
}

// HelpLines describes the flags of --repair.
func (repairFlags) HelpLines() map[string]string {
	return map[string]string{
		"repair":  "Explain which faults can be mended by moving files aside.",
		"yes":     "Move the files of --repair to OUT/_quarantine.",
		"brokers": "Brokers that --repair asks for the group's members and for the records.",
		"group":   "Consumer group of the processes that write to the output; default: named after it.",
		"offline": "Move files without asking a broker; a writer and lost records are not noticed.",
	}
}
