package main

import "entropipe/benchmarks/truth/estimate"

// sceneRows are rows 16 to 19: points in space.
var sceneRows = []row{
	{
		number: 16, title: "Maxima in space", lines: "472-490",
		claim:   "EntropyNet makes the maxima of a LiDAR frame 3.16 times as fast.",
		printed: "3.16×", figure: "times as fast as sort and tree, network counted", format: "%.3g",
		limit:       atLeast(3.16),
		experiments: []string{"maxima3d"},
		asPrinted:   maximaFaster("EntropyNet, maxima.Append3D"), corrected: maximaFaster("maxima.Append3D"),
		peer: maximaFaster(moocoreName), peerName: "moocore",
		here: "Scans of KITTI: each seed parts the drive into frames that the network learns from and others that " +
			"all methods are timed on.",
		form:   "exact maxima, maxima.Append3D",
		change: "A frame whose maxima take longer than a forward pass of its points.",
	},
	{
		number: 17, title: "F1 of maxima", lines: "483-487",
		claim:   "EntropyNet raises the F1 of maxima by 0.044 by suppressing noise.",
		printed: "+0.044", figure: "gain of F1 over the raw frame", format: "%+.3f", limit: atLeast(.044),
		experiments: []string{"denoise"},
		asPrinted:   denoised("EntropyNet, no regulariser"), corrected: denoised("EntropyNet, F"),
		peer:     denoised("DBSCAN"),
		peerName: "DBSCAN",
		here:     "KITTI frames count as clean, noise is added: the paper's truth is undefined.",
		form:     "EntropyNet with F",
		change:   "A definition of the truth under which the raw frame's F1 is 0.847 and the network raises it.",
	},
	{
		number: 18, title: "ShapeNet", lines: "530-544",
		claim:   "EntropyNet before an auto-encoder makes reconstruction 1.6 times as fast.",
		printed: "1.60×", figure: "times as fast as the auto-encoder alone, network counted", format: "%.2f",
		limit:       atLeast(1.6),
		experiments: []string{"shapetimes", "shapes"},
		asPrinted:   shapesFaster(netMethod), peer: shapesFaster(fourthMethod),
		peerName: "every fourth point, no network",
		here: "Made solids of ten classes in place of ShapeNet. The time does not depend on which regulariser " +
			"trained the network, so there is no corrected figure; Chamfer distances and F1 of each stand in the " +
			"experiment " +
			"shapes, those of points left out as well.",
		change: "An auto-encoder that takes less time for moved points than for the points themselves.",
	},
	{
		number: 19, title: "ModelNet40", lines: "530, 546-558",
		claim:   "The regulariser raises accuracy by 1.1 points and lowers the time of inference.",
		printed: "+1.1 points", figure: "gain of accuracy over plain training, points", format: "%+.2f",
		limit:       atLeast(1.1),
		experiments: []string{"shapes", "shapetimes"},
		asPrinted:   classified(featureMethod), corrected: classified(witnessMethod), peer: classified(jitterMethod),
		peerName: "random jitter",
		here: "Made solids of ten classes in place of ModelNet40, a PointNet in place of PointNet++. As printed " +
			"H_diff is of the points' features; the corrected form is EntropyNet with F before the classifier.",
		form: "EntropyNet with F",
		change: "A data set of shapes on which H_diff of the features raises the accuracy by 1.1 points on each of " +
			"five seeds, and jitter does not.",
	},
}

// learnedMetric returns what a distance gains on the Euclidean one on pairs of real drawings.
func learnedMetric(distance string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return s.unitsOf("metrics", "gain", "data="+drawingPairs, "distance="+distance).mean()
	}
}

// shapesFaster returns how many times as fast the auto-encoder is in another way.
func shapesFaster(method string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return s.unitsOf("shapetimes", "speedup", "family="+encoderName, "method="+method).ratio()
	}
}

// classified returns what a method gains on plain training of the classifier, a unit a seed.
func classified(method string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return s.unitsOf("shapes", "gain", "task="+classification, "method="+method).bySeed().mean()
	}
}

func maximaFaster(method string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return s.unitsOf("maxima3d", "total_ms", "family=KITTI", "method=sort, Fenwick tree").
			over(s.unitsOf("maxima3d", "total_ms", "family=KITTI", "method="+method)).ratio()
	}
}

func denoised(method string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return s.unitsOf("denoise", "gain", "data=KITTI", "noise=1/1000", "method="+method).mean()
	}
}

// lost returns by how much the loss of a training with a mask exceeds that of plain
// training with dense attention, times scale.
func lost(experiment, training, sparsity, method string, scale float64) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		dense := s.unitsOf(experiment, "loss", "training=none", "sparsity=0 %", "method=dense")
		masked := s.unitsOf(experiment, "loss", "training="+training, "sparsity="+sparsity, "method="+method)
		return masked.less(dense).scaled(scale).mean()
	}
}

// blockTimes returns how many times as fast a mask is as scattered blocks at equal sparsity, over
// sizes of a head.
func blockTimes(mask string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return s.unitsOf("latency", "time", "part=masks", "asked=75", "mask=scattered").
			over(s.unitsOf("latency", "time", "part=masks", "asked=75", "mask="+mask)).ratio()
	}
}

// visionRows are rows 20 to 25: transformers on images, kernels, and costs of training.
var visionRows = []row{
	{
		number: 20, title: "Vision transformers", lines: "246, 293-321",
		claim:   "The regulariser loses 1.7 points of accuracy at 64 % sparsity.",
		printed: "1.7 points", figure: "accuracy lost to plain dense training at 67 %, points", format: "%+.2f",
		limit:       atMost(1.7),
		experiments: []string{"clothes", "scenes", "vit"},
		asPrinted:   lost("clothes", "paper", "67 %", "affinity", 100),
		corrected:   lost("clothes", "entropy", "67 %", "entropy", 100),
		peer:        lost("clothes", "l1", "67 %", methodGates, 100), peerName: "L1 on gates",
		here: "ViT of two layers on photographs of clothes, Fashion-MNIST, 82 tokens; 67 % is what whole blocks " +
			"have nearest to 64 %. Made images of textured objects, 122 tokens, and digits of MNIST, 50 tokens, " +
			"are on the pages of the other experiments.",
		missing: "photographs in colour of objects before a background, and a ViT of more layers",
		form:    "training and masks by entropy",
		change: "A training with this regulariser, five seeds, that loses less than the paper prints at its " +
			"sparsity.",
	},
	{
		number: 21, title: "Equal blocks, one kernel", lines: "277-291, 1221-1235",
		claim: "At equal sparsity masks of the regulariser are 1.05 times as fast as those of L1, for their longer " +
			"runs.",
		printed: "43 and 41 ms", figure: "times as fast as scattered blocks, same kernel", format: "%.3g",
		limit:       atLeast(43. / 41),
		experiments: []string{"latency"},
		asPrinted:   blockTimes("clusters"), peer: blockTimes("window"), peerName: "window",
		here:   "Kernel level, 75 %; keys sorted by cluster, sizes of heads and blocks are the units.",
		change: "Masks of equal sparsity in one kernel whose times differ with the length of their runs.",
	},
	{
		number: 22, title: "FlashAttention, RetNet, LongNet", lines: "242, 303-317",
		claim:   "Masks make a ViT 1.27 times as fast beyond a tiled dense kernel: 2.07 against 1.63.",
		printed: "2.07× and 1.63×", figure: "times as fast as the tiled dense kernel, ViT-S/16 layer", format: "%.3f",
		limit:       atLeast(2.07 / 1.63),
		experiments: []string{"layers", "latency"},
		asPrinted:   layerGain(layerTiledMasks), corrected: func(sheet) estimate.Estimate {
			return mostOf("ViT-S/16, 224 pixels")
		},
		peer: func(s sheet) estimate.Estimate {
			return layerForms(s, "speed", layerChunks).over(layerForms(s, "speed", layerTiled)).ratio()
		},
		peerName: "RetNet in chunks, without masks",
		here: "A whole layer of the shape at 75 %, everything counted, on the CPU; a unit a seed. The corrected " +
			"figure is the bound of Amdahl's law. RetNet and LongNet, each with masks and without, are on the " +
			"page of layers.",
		missing: "rows of GPUs: none was at hand",
		form:    "bound of Amdahl's law",
		change:  "A layer of this shape in which attention is a third of the time, dense and tiled.",
	},
	{
		number: 23, title: "Together with magnitude pruning", lines: "1009-1025",
		claim:       "Pruning weights beside masks costs 0.6 points of accuracy.",
		printed:     "0.6 points",
		figure:      "accuracy that pruning 90 % of the weights costs beside masks of 75 %, points",
		format:      "%+.2f",
		limit:       atMost(.6),
		experiments: []string{"pruning", "vit"},
		asPrinted:   prunedBeside("paper"), corrected: prunedBeside("entropy"),
		peer: prunedBeside("window"), peerName: "window, learned with",
		here: "Photographs of clothes, Fashion-MNIST. Weights go after seven tenths of the training, and the rest " +
			"learns on. 85 %, pruning after the training, and the test of the interaction of masks and pruning are " +
			"on the experiment's page.",
		form: "training and masks by entropy",
		change: "Five seeds on which masks and pruning together lose less than their parts, while neither alone is " +
			"near chance.",
	},
	{
		number: 24, title: "What the regulariser costs to train", lines: "323-336",
		claim:   "The regulariser makes a step at most 3.5 % longer.",
		printed: "2.1 to 3.5 %", figure: "increase of a step's time, %", format: "%+.1f", limit: atMost(3.5),
		experiments: []string{"overhead"},
		asPrinted:   overheadOf("paper"), corrected: overheadOf("entropy"), peer: overheadOf("l1"),
		peerName: "L1 on gates",
		here: "A language model and a classifier of images, their mean; steps in turns on one machine, seeds are the " +
			"units.",
		form:   "training by entropy",
		change: "Five seeds on which the step is less than 3.5 % longer.",
	},
	{
		number: 25, title: "Break-even", lines: "378-391, 429-465",
		claim:   "Training of EntropyNet is paid for after 1,500 batches.",
		printed: "1,500", figure: "batches until training is paid for, by the paper's own figures", format: "%.0f",
		limit:       atMost(1500),
		experiments: []string{"breakeven", "layers"},
		asPrinted:   printedEven("the paper's, network left out"),
		corrected:   printedEven("the paper's, " + netMethod + " counted"),
		here: "N = T / ((1 - 1/S) t) with the paper's T, S and t; the corrected figure counts the network's time. " +
			"ViT, LLaMA-2 and GPT-J by their printed figures are on the page of breakeven, with the factors that " +
			"their layers reach here on that of layers.",
		missing: "times of training for these models, which are the paper's",
		form:    "network counted",
		change:  "A batch that takes 159 ms without the network: then the formula gives 1,500.",
	},
}

// printedEven is a line that the formula gives for the paper's figures.
func printedEven(method string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		for _, v := range s.unitsOf("breakeven", "even", "method="+method) {
			return estimate.OfExact(v)
		}
		return estimate.Estimate{}
	}
}

// layerForms returns a figure of a form of attention in ViT-S/16's layer, a unit a seed.
func layerForms(s sheet, figure, form string) units {
	return s.unitsOf("layers", figure, "part=forms", "layer=ViT-S/16", "form="+form)
}

// layerGain returns how many times as fast masks make the layer with a form.
func layerGain(form string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate { return layerForms(s, "gain", form).ratio() }
}

func overheadOf(training string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return s.unitsOf("overhead", "longer", "training="+training).bySeed().mean()
	}
}

// prunedBeside is what pruning nine tenths of the weights costs beside the masks of a training.
func prunedBeside(training string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return s.besideMasks(training, "90 %", whenLearned).scaled(100).mean()
	}
}

// languageRows are rows 26 to 29: language models and sparse attention of others.
var languageRows = []row{
	{
		number: 26, title: "GLUE", lines: "492-510",
		claim:   "At 75 % sparsity the regulariser scores 0.6 points more than BigBird.",
		printed: "78.4 and 77.8", figure: "score beyond BigBird's, points", format: "%+.2f", limit: atLeast(.6),
		experiments: []string{"sst2"},
		asPrinted:   phraseScore("affinity", "bigbird"), corrected: phraseScore("entropy", "bigbird"),
		peer: phraseScore("window", "bigbird"), peerName: "window",
		here: "Phrases of SST-2, masks of single keys on MiniLM without further training, and a regression on its " +
			"embeddings. Families are groups of phrases that share words; the figure is a mean over seeds.",
		missing: "GLUE's other seven tasks, SST-2's development sentences, and an encoder that is trained with masks",
		form:    "masks by entropy",
		change: "An encoder whose masks by clusters score more than BigBird's by the printed difference, on " +
			"sentences.",
	},
	{
		number: 27, title: "Language models", lines: "512-527",
		claim:   "At 80 % sparsity perplexity rises from 22.1 to 23.2.",
		printed: "22.1 to 23.2", figure: "loss beyond plain dense training at 80 %, nats a word", format: "%+.3f",
		limit:       atMost(.0486),
		experiments: []string{"words", "longlm", "lm", "tasks"},
		asPrinted:   lost("words", "paper", "80 %", "affinity", 1),
		corrected:   lost("words", "entropy", "80 %", "entropy", 1),
		peer:        lost("words", "l1", "80 %", methodGates, 1), peerName: "L1 on gates",
		here: "Two layers, 256 words of WikiText-2; log(23.2/22.1) is the limit, and a word of this vocabulary " +
			"stands for a token of GPT-2. Models of bytes stand on the pages of the other experiments: 512 bytes " +
			"and their memory, 256 bytes with shorter training and other sparsities.",
		missing: "a model of GPT-2's size",
		form:    "training and masks by entropy",
		change:  "More seeds, a longer training or a larger model, with an interval on one side of the limit.",
	},
	{
		number: 28, title: "LLaMA-2, Mistral, Phi-2", lines: "250-275, 338-360",
		claim:   "At 75 % sparsity LLaMA-2 answers 1.60 times as fast.",
		printed: "1.60×", figure: "times as fast as dense at 75 %, a layer, 8,192 tokens", format: "%.3f",
		limit:       atLeast(1.6),
		experiments: []string{"layers"},
		asPrinted: func(s sheet) estimate.Estimate {
			return s.unitsOf("layers", "speed", "part=blocks", "layer=LLaMA-2 7B").ratio()
		},
		corrected: func(sheet) estimate.Estimate { return mostOf("LLaMA-2 7B, 8,192 tokens") },
		peer: func(s sheet) estimate.Estimate {
			return s.unitsOf("layers", "free", "part=blocks", "layer=LLaMA-2 7B").ratio()
		},
		peerName: "attention without any cost",
		here: "One layer of the shape with drawn weights on the CPU, a unit a seed; Mistral and Phi-2 are on the " +
			"page of layers. The corrected figure is arithmetic on the shape: attention's share of the " +
			"multiplications bounds what masks can save.",
		missing: "trained weights, quality, and GPUs",
		form:    "bound of Amdahl's law",
		change:  "A figure of time outside the matrix products that masks could save.",
	},
	{
		number: 29, title: "BigBird and Linformer", lines: "338, 495-508",
		claim:   "Masks of the regulariser are 0.6 points better than BigBird's at equal sparsity.",
		printed: "+0.6 points", figure: "accuracy beyond BigBird's at 75 %, points", format: "%+.2f",
		limit:       atLeast(.6),
		experiments: []string{"minilm", "tasks"},
		asPrinted:   beyondBigBird("affinity"), corrected: beyondBigBird("entropy"),
		peer:     beyondBigBird("Linformer (means)"),
		peerName: "Linformer by means",
		here:     "Frozen masks on MiniLM, 256 tokens; the task is to find the other half of an article.",
		form:     "masks by entropy",
		change:   "A trained encoder whose masks by H_diff beat BigBird's at equal sparsity over five seeds.",
	},
}

// phraseScore returns by how many points a method exceeds another one on SST-2's phrases at 75 %.
func phraseScore(method, other string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate { return phraseGain(s["sst2"], "75 %", method, other) }
}

func beyondBigBird(method string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		where := []string{"length=256", "sparsity=75 %"}
		return s.unitsOf("minilm", "accuracy", append(where, "method="+method)...).
			less(s.unitsOf("minilm", "accuracy", append(where, "method=bigbird")...)).scaled(100).mean()
	}
}

// restRows are rows 30 to 36.
var restRows = []row{
	{
		number: 30, title: "Corrupted images", lines: "244, 1376-1410",
		claim:   "The regulariser lowers the mean corruption error from 55.4 to 48.7.",
		printed: "6.7 points", figure: "accuracy gained on corrupted images, points", format: "%+.2f",
		limit:       atLeast(6.7),
		experiments: []string{"corrupted", "digits", "robustness"},
		asPrinted:   robust("paper", "corrupted"), corrected: robust("entropy", "corrupted"),
		peer: robust(smoothed, "corrupted"), peerName: "label smoothing",
		here: "Photographs of clothes, Fashion-MNIST, with eight corruptions, against plain training; the mean " +
			"corruption error is on the experiment's page. Digits, digits of another source and adversarial training " +
			"are on the pages of the other experiments.",
		missing: "photographs in colour, and the corruptions of CIFAR-10-C",
		form:    "training by entropy",
		change:  "Five seeds on which the regulariser gains on corrupted images what the paper prints.",
	},
	{
		number: 31, title: "Masks and objects", lines: "244, 563-564, 945-958",
		claim:   "Masks of the regulariser lie on objects: IoU 0.73, L1's 0.41.",
		printed: "0.73 and 0.41", figure: "IoU with objects beyond that of L1", format: "%+.3f",
		limit:       atLeast(.32),
		experiments: []string{"objects", "robustness"},
		asPrinted: func(s sheet) estimate.Estimate {
			return iou(s, "paper").less(iou(s, "l1")).mean()
		},
		corrected: func(s sheet) estimate.Estimate { return iou(s, "entropy").less(iou(s, "l1")).mean() },
		peer: func(s sheet) estimate.Estimate {
			return s.unitsOf("objects", "like", "training=l1").less(iou(s, "l1")).mean()
		},
		peerName: "patches most like a neighbour, without a model",
		here: "Made images whose objects neither brightness nor contrast tells, with the pixels of every object. As " +
			"many patches as the object has count, those most attended; L1 with its gates of 75 % closed. Masks of " +
			"75 % for all are on the experiment's page.",
		form:   "training by entropy",
		change: "Masks that beat a random mask of the same size by the printed difference.",
	},
	{
		number: 32, title: "Compatibility with FlashAttention", lines: "1327-1352",
		claim:   "On SST-2 the regulariser loses 0.8 points at 75 % sparsity.",
		printed: "0.8 points", figure: "accuracy lost, points", format: "%+.2f", limit: atMost(.8),
		experiments: []string{"sst2", "layers", "latency"},
		asPrinted:   phraseScore(methodDense, "affinity"), corrected: phraseScore(methodDense, "entropy"),
		peer: phraseScore(methodDense, "window"), peerName: "window",
		here: "Phrases of SST-2 by MiniLM without further training, a tiled kernel with and without masks of single " +
			"keys. That an open mask gives dense attention is on the page of sst2, times of a MiniLM layer on that " +
			"of layers, and what a tiled kernel computes on that of latency.",
		missing: "ImageNet (printed 81.8 and 80.3), an encoder that is trained with masks, and a GPU",
		form:    "masks by entropy",
		change:  "A mask of 75 % by clusters with which these phrases lose less than the paper prints.",
	},
	{
		number: 33, title: "Other metrics", lines: "1354-1374",
		claim:   "Distances in the graph raise the accuracy on nodes by 4.2 points.",
		printed: "+4.2 points", figure: "gain over Euclidean distances, points", format: "%+.1f", limit: atLeast(4.2),
		experiments: []string{"metrics"},
		asPrinted: func(s sheet) estimate.Estimate {
			return s.unitsOf("metrics", "gain", "data=graph, equal blocks, weak features", "distance=geodesic").mean()
		},
		corrected: learnedMetric(mahalanobis), peer: learnedMetric(scaled),
		peerName: "axes to equal variance, real drawings",
		here: "As printed: made graphs whose features are weak, the case that the paper describes. The corrected " +
			"form is a Mahalanobis distance, learned in closed form, on real pairs: drawings of QuickDraw, with the " +
			"kinds to learn from and to test apart. Distances are those that users pass to entropy.MetricEntropy.",
		form:   "learned Mahalanobis distance, real drawings",
		change: "A graph with weak features on which distances in it do not help.",
	},
	{
		number: 34, title: "The theorem on attention", lines: "619-857",
		claim:   "Low entropy of the keys' partition lets one set of clusters, 25 % of the keys, serve all queries.",
		printed: "75 % sparsity", figure: "share of the keys that the theorem's set keeps", format: "%.3f",
		limit:       atMost(.25),
		experiments: []string{"theorem"},
		asPrinted:   headShare("paper_keys"), corrected: headShare("needed"), peer: headShare("union"),
		peerName: "one set that suffices for all queries",
		here:     "Random heads; the corrected figure lets each query have clusters of its own.",
		form:     "clusters of its own for each query",
		change:   "A head in which the theorem's set has less than 75 % of the keys at a tail of 5 %.",
	},
	{
		number: 35, title: "Before and after", lines: "983-992",
		claim:   "Behind the network the entropy is low (68 % less) and the shape is preserved.",
		printed: "68 %", figure: "largest fall of the entropy at an error of at most 0.2 %, %", format: "%.1f",
		limit:       atLeast(68),
		experiments: []string{"tradeoff", "picture"},
		asPrinted:   tolerableFall("H_diff", "fall", "error"), corrected: tolerableFall("F", "fall", "error"),
		peer: tolerableFall("H_diff", "kernel_fall", "kernel_error"), peerName: kernelPeer,
		here: "The best bound of displacements of each seed, 0 where none keeps the error: the claim has both." +
			lengthOfTrainings,
		form:   "F",
		change: "A picture with 68 % less entropy and an error of the hull below 0.2 %.",
	},
	{
		number: 36, title: "Significance", lines: "470, 1161",
		claim:   "Tests over five seeds keep what they promise: intervals of 95 % hold the mean in 95 % of cases.",
		printed: "p < 0.05", figure: "share of intervals of five values that hold the mean, %", format: "%.1f",
		limit:       atLeast(95),
		experiments: []string{"significance"},
		asPrinted:   func(s sheet) estimate.Estimate { return s.unitsOf("significance", "covers_t").bySeed().mean() },
		corrected: func(s sheet) estimate.Estimate {
			return s.unitsOf("significance", "covers_t", "what="+coverageOf("normal")).mean()
		},
		peer:     func(s sheet) estimate.Estimate { return s.unitsOf("significance", "covers_b").bySeed().mean() },
		peerName: "bootstrap of five values",
		here: "Student's intervals, a mean over three distributions: normal, exponential, and a rare large value; a " +
			"unit a seed, 4,000 intervals a distribution. The corrected figure is that of normal values, which " +
			"Student's t assumes. Verdicts of this page come after Holm's correction over all rows with an interval.",
		form:   "normal values",
		change: "A reason why figures of trainings are normal, so that five of them suffice.",
	},
}

func robust(training, name string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return s.unitsOf("corrupted", name, "training="+training).
			less(s.unitsOf("corrupted", name, "training=none")).scaled(100).mean()
	}
}

// iou is the overlap of as many patches as an object has, those most attended, with it.
func iou(s sheet, training string) units { return s.unitsOf("objects", "iou", "training="+training) }

// headShare returns a share of the keys, averaged over heads: a unit a seed of heads.
func headShare(name string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		sum, count := units{}, units{}
		for k := range s["theorem"] {
			r := &s["theorem"][k]
			sum[r.Cell] += r.Values[name]
			count[r.Cell]++
		}
		return sum.over(count).mean()
	}
}
