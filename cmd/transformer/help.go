package transformer

// Help opens the help of freeze.
func (Freeze) Help() string {
	return `Chooses which blocks of keys the attention heads of a model read, from the model's dense
attention on a text, and writes a mask beside the unchanged checkpoint. Every head gets a
certificate, measured on the last quarter of the text: the mass that its queries keep,
the largest error of its output, and the bound 2·B·delta.

The masked model is then compared with the dense model and with a window of the same
budget. A mask is called sparse if it loses at most 0.5 points of cosine or 2 % of
perplexity and is better than the window, or if it is better than dense attention because
the model was trained with such a mask. run --mask serves any other mask densely and logs
that.

Examples:
  entropipe freeze --lm MiniLM/ --calibrate wiki.txt --out mask/
  entropipe freeze --lm gpt2/ --select window --calibrate wiki.txt --bucket 1024 --out window/
  entropipe freeze --lm builtin:bytes --select entropy --block 32 --calibrate notes.txt --out mask/
  entropipe freeze --lm MiniLM/ --select imported --import blocks.npy --calibrate wiki.txt --out mask/`
}

// HelpLines describes the flags of freeze.
func (Freeze) HelpLines() map[string]string {
	return map[string]string{
		"lm":        "Model: a Hugging Face folder, or builtin:bytes.",
		"calibrate": "File that the model reads: .txt, .jsonl (also .gz), Parquet; for a ViT pixels (.npy).",
		"out":       "Folder of the mask, for run --mask; may be the model's own folder.",

		"select":   "Rule that chooses blocks.",
		"sparsity": "Share of the blocks that are not read.",
		"block":    "Side of a block, in queries and keys: 16, 32, 64 or 128.",
		"bucket":   "Lengths of masks, one for a causal model; default: the model's positions, at most 2048.",
		"mode":     "Choice of blocks: static for every input, or anchor by the keys of each input (encoders).",
		"import":   "Mask for --select imported: a mask's folder, gates.safetensors, FlashInfer's arrays, or .npy.",
		"beyond":   "Blocks of sequences above the longest bucket: first, near, every so-many-th; default: all.",
		"seed":     "Seed of all random numbers.",

		"sequences": "Number of texts or sequences that are used; the last quarter judges.",
		"tokens":    "Number of tokens that are used, at most; 0: those of --sequences.",
		"workers":   "Number of goroutines; 0: one per processor. The mask does not depend on it.",
		"progress":  "Show progress.",
		"json":      "Print one JSON document.",
	}
}

// HelpLines describes the flags that train-lm and train-vit share.
func (transformerFlags) HelpLines() map[string]string {
	return map[string]string{
		"layers":      "Number of layers.",
		"dim":         "Width of a token's vector.",
		"heads":       "Number of attention heads of a layer.",
		"regulariser": "Term that makes attention sparse; paper and window are for comparison.",
		"lambda":      "Weight of the regulariser; 0: 0.03, for l1 0.01.",
		"mu":          "Weight of the balance of clusters (entropy); 0: half of lambda.",
		"block":       "Side, in tokens, of a block with a gate (l1, window).",
		"sparsity":    "Share of the blocks that are closed after 70 % of the training (l1, window); 0: none.",
		"dtype":       "Number type of the weights in the file.",
		"out":         "Folder of the model, in the form of Hugging Face, with card and history.",
		"about":       "Text for the card: origin and licence of the data.",

		"minutes":  "Duration of the training; 5 unless --steps is given.",
		"steps":    "Number of steps, instead of --minutes: the same steps, seed and data make the same model.",
		"seed":     "Seed of all random numbers.",
		"rate":     "Largest learning rate; 0: 0.006, for images 0.0007.",
		"resume":   "Continue from the checkpoint that an interrupted training of the same DIR left.",
		"workers":  "Number of goroutines; 0: one per processor. The model does not depend on it.",
		"progress": "Show progress.",
	}
}

// Help opens the help of train-lm.
func (TrainLM) Help() string {
	return `Trains a causal language model of the GPT-2 class from random weights, on the CPU, and
writes it as a folder that run --lm, freeze and Hugging Face's transformers open.

A checkpoint in DIR is written every half minute and when a signal ends the training;
--resume continues from it, with --steps to the same bits.

Examples:
  entropipe train-lm shakespeare.txt --minutes 5 --out bytes/ --progress
  entropipe train-lm a.txt b.txt --tokenizer tokenizer.json --layers 4 --dim 256 --steps 4000 --out model/
  entropipe train-lm shakespeare.txt --regulariser entropy --steps 3000 --seed 42 --out entropy/`
}

// HelpLines describes the arguments and flags of train-lm alone.
func (TrainLM) HelpLines() map[string]string {
	return map[string]string{
		"file":      "Files of text to learn from, one after the other; the last tenth is held out.",
		"context":   "Number of tokens of a sequence, and of positions of the model.",
		"tokenizer": "File tokenizer.json; without it every byte is a token.",
		"batch":     "Number of sequences of a step.",
	}
}

// Help opens the help of train-vit.
func (TrainViT) Help() string {
	return `Trains an image classifier of the ViT class from random weights, on the CPU, and writes
it as a folder that Hugging Face's transformers opens. Images become grey. The word shapes
stands for drawn images: an object of one of eight classes on a texture, with known pixels.

Examples:
  entropipe train-vit mnist/ --shift 2 --minutes 5 --out digits/ --progress
  entropipe train-vit shapes --steps 3000 --seed 42 --regulariser entropy --out shapes/`
}

// HelpLines describes the arguments and flags of train-vit alone.
func (TrainViT) HelpLines() map[string]string {
	return map[string]string{
		"source": "Images: folders of PNG files by class, sheets with labels.js, or shapes; a sixth is held out.",
		"patch":  "Side of a patch, in pixels.",
		"batch":  "Number of images of a step.",
		"shift":  "Distance, in pixels, by which images are moved at random, at most.",
		"images": "Number of drawn shapes.",
		"side":   "Side of a drawn shape's image, in pixels.",
	}
}
