package manual

// Help opens the help of man.
func (Command) Help() string {
	return `Prints the manual page of the program, with every command and flag, for man.

Examples:
  entropipe man > entropipe.1 && man ./entropipe.1
  entropipe man > /usr/local/share/man/man1/entropipe.1`
}
