package stage

// HelpLines describes the stage before the operators.
func (Flags) HelpLines() map[string]string {
	return map[string]string{
		"stage":      "Mode of the stage before the operators; perturb and denoise make rows approximate.",
		"model":      "Model of the stage (.safetensors), or builtin:lidar.",
		"on-foreign": "Reaction to frames of another stream than the model's.",
	}
}

// HelpLines describes what is sent on.
func (Publish) HelpLines() map[string]string {
	return map[string]string{
		"publish": "Topic for the surviving points of every frame; created when absent.",
		"for":     "Operators whose rows consumers of --publish find unchanged.",

		"publish-results": "Topic for what is found in every frame; created when absent.",
		"dead-letter":     "Topic for refused messages, which say why in their headers; created when absent.",
	}
}
