package train

// Help opens the help of train.
func (Command) Help() string {
	return `Trains the network that moves points (modes perturb and denoise of run), or chooses the
directions of a seed model (mode seed), which takes seconds and no steps.

Every fifth frame is held out. On held-out frames two figures are measured: the entropy G
that a legal partition of the moved cloud proves, and the exact error of the answers, for
denoise F1. They choose the step that is kept and end the training early.

A checkpoint, FILE.checkpoint, is written at every measurement and when a signal ends the
training; --resume continues from it to the same bits.

Examples:
  entropipe train scans/ --mode perturb --ops hull2d --steps 2000 --out lidar.safetensors --progress
  entropipe train kafka://127.0.0.1:9092/points --mode perturb --ops hull3d --out points.safetensors
  entropipe train cow.ndjson dog.ndjson --mode perturb --ops maxima2d,hull2d --out sketch.safetensors
  entropipe train synthetic --mode denoise --ops maxima3d --seed 42 --out denoise.safetensors
  entropipe train scans/ --steps 2000 --out lidar.safetensors --resume
  entropipe train scans/ --mode seed --out seeds.safetensors
  entropipe train scans/ --ops hull2d --as-printed --out printed.safetensors
  entropipe train scans/ --ops hull2d --regulariser H_diff --anchors 32 --alpha 5 --lambda 0.1 --out balls.safetensors
  entropipe train scans/ --ops hull2d --regulariser H_soft --tau 0.01 --out cells.safetensors`
}

// HelpLines describes the arguments and flags of train.
func (Command) HelpLines() map[string]string {
	return map[string]string{
		"source": "Frames to learn from: a KITTI folder, QuickDraw files, a topic, or the word synthetic.",

		"mode":        "Mode of the stage that the model is for.",
		"ops":         "Operators of the model; default: hull2d (perturb), maxima2d (denoise), hull3d (seed).",
		"regulariser": "Entropy that is lowered beside the task; H_diff (balls) and H_soft (cells) are the paper's.",
		"as-printed":  "Take the paper's protocol: H_diff, sigma 0.1, lambda 0.1, batch 32, 200 epochs.",
		"sigma":       "Largest displacement of a coordinate; 0: 1 % of the extent, to denoise three times the noise.",
		"directions":  "Number of directions of a seed model, at least 24.",
		"out":         "File of the model; its card and, except for seed, history and curves are put beside it.",

		"steps":     "Number of steps, at most; training ends when held-out frames no longer gain.",
		"seed":      "Seed of all random numbers: the same seed and data make the same model.",
		"batch":     "Number of clouds of a step.",
		"points":    "Number of points of a cloud.",
		"lambda":    "Weight of the regulariser, the paper's lambda.",
		"anchors":   "Number of anchors of H_diff, the paper's K.",
		"alpha":     "Sharpness of H_diff's assignments, the paper's alpha; 0: from 10 to 5, as printed.",
		"tau":       "Last temperature of F and H_soft, the paper's tau; the first is 0.01.",
		"tolerance": "Error, in frame diagonals, up to which a model is kept (perturb; mean over held-out frames).",
		"noise":     "Standard deviation of the added noise (denoise); 0: a 300th of the extent.",
		"resume":    "Continue from the checkpoint that an interrupted training of the same FILE left.",
		"workers":   "Number of goroutines; 0: one per processor. The model does not depend on it.",
		"progress":  "Show progress.",

		"frames":       "Number of frames to learn from, at most; the first ones are taken.",
		"kind":         "Kind of synthetic frames.",
		"content-type": "Content type of a topic's values without header content-type.",
		"dataset":      "Data set that the model is for, instead of the frames' own; any: every data set.",
		"sensor":       "Sensor that the model is for, instead of the frames' own; any: every sensor.",
	}
}
