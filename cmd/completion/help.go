package completion

// Help opens the help of completion.
func (Command) Help() string {
	return `Prints the completions of commands, flags, values and file names. They belong to this
version of the program: print them again after an upgrade.

Examples:
  source <(entropipe completion bash)     # for this shell alone
  entropipe completion bash > ~/.local/share/bash-completion/completions/entropipe
  entropipe completion zsh > ~/.zsh/completions/_entropipe   # a folder of fpath
  entropipe completion fish > ~/.config/fish/completions/entropipe.fish`
}

// HelpLines describes the argument of completion.
func (Command) HelpLines() map[string]string {
	return map[string]string{"shell": "Shell that the completions are for."}
}
