package language

// HelpLines describes what is done with sequences of tokens.
func (Flags) HelpLines() map[string]string {
	return map[string]string{
		"lm":            "Model for tokens and texts: a Hugging Face folder, or builtin:bytes.",
		"weights":       "Number type of the model's matrices; bf16 halves their memory and makes rows approximate.",
		"task":          "Result of a sequence: a vector, the likeliest next tokens, or a continuation.",
		"mask":          "Folder of frozen attention masks, as freeze writes them.",
		"mask-use":      "Use of masks; auto keeps attention dense where masks are not faster, or lose too much.",
		"ladder":        "Missed share of softmax above which an encoder's row reads more blocks; 0: off.",
		"ladder-blocks": "Number of blocks that --ladder adds to a row before the row reads all keys.",
		"max-new":       "Number of tokens that --task generate adds.",
		"top-k":         "Number of next tokens that --task logits names.",
		"truncate":      "Cut sequences that are longer than the model allows, instead of rejecting them.",
		"truncate-side": "Side at which sequences are cut; auto: as tokenizer_config.json says, else right.",
		"audit-every":   "Interval, in sequences, of comparing --mask with dense attention; 0: never.",
		"device":        "Processor of attention; cuda needs a program built with the tag cuda.",
		"token-budget":  "Number of tokens of a batch.",
	}
}
