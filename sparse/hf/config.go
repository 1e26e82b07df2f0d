package hf

import (
	"errors"
	"fmt"
	"math"
)

// Architectures.
const (
	BERT  = "bert"  // encoder of text, norms after the residual sums
	ViT   = "vit"   // encoder of images, norms before the products
	GPT2  = "gpt2"  // decoder with learned positions
	LLaMA = "llama" // decoder with rotary positions: LLaMA, Mistral, Qwen2
)

// Activation names the function between the two layers of an MLP.
type Activation string

// Activations. GELU uses the normal distribution. GELUTanh uses a hyperbolic
// tangent; files call it gelu_new, gelu_fast or gelu_pytorch_tanh.
const (
	GELU     Activation = "gelu"
	GELUTanh Activation = "gelu_new"
	SiLU     Activation = "silu"
	ReLU     Activation = "relu"
)

// Config holds the settings of config.json, under names that are equal for all
// architectures. A setting that the class does not have is zero.
type Config struct {
	Arch  string // BERT, ViT, GPT2 or LLaMA
	Model string // model_type as written: "mistral" has the Arch LLaMA

	Layers, Hidden, Inner      int // Inner is the width of the MLP
	Heads, KVHeads, Dim        int // Dim is the numbers of one head
	Vocab, MaxPositions, Types int // Types is the number of BERT's token types
	Causal                     bool
	Act                        Activation
	Eps                        float32

	// Scale is the factor of q·k. With ScaleByLayer the factor of layer i, counted
	// from 0, is Scale/(i+1).
	Scale        float32
	ScaleByLayer bool

	QKVBias, OutBias, MLPBias bool
	Tied                      bool // the output matrix is the embedding
	Head                      bool // there is an output matrix, or for ViT a classifier
	Rope                      Rope

	Image  [2]int // height and width in pixels
	Patch  [2]int
	Colors int // channels
	Labels int // outputs of ViT's classifier
	// LabelNames holds the names of the labels; nil if the file has none, or has
	// LABEL_0, LABEL_1, …
	LabelNames []string

	BOS int32   // id of the first token; -1 if there is none
	EOS []int32 // ids that end a generated sequence
}

// Rope holds the settings of rotary positions (Su et al. 2021). If Factor is not
// zero, low frequencies are divided by it, as in LLaMA 3.1.
type Rope struct {
	Theta             float64
	Factor            float64
	LowFreq, HighFreq float64
	Original          int // positions of the training before Factor was introduced
}

// Limits of the numbers of a file. Nothing is allocated by these numbers before the
// shapes of the tensors have confirmed them.
const (
	maxLayers = 1 << 10
	maxWidth  = 1 << 17
	maxVocab  = 1 << 24
	maxImage  = 1 << 14
)

// Patches returns the rows and columns of patches of an image.
func (c *Config) Patches() (rows, cols int) {
	return c.Image[0] / c.Patch[0], c.Image[1] / c.Patch[1]
}

// Validate returns an error for the first setting that is out of range or
// contradicts another.
func (c *Config) Validate() error {
	for _, n := range []struct {
		name       string
		value, max int
	}{
		{"layers", c.Layers, maxLayers}, {"hidden size", c.Hidden, maxWidth}, {"MLP's size", c.Inner, 8 * maxWidth},
		{"heads", c.Heads, maxWidth}, {"key heads", c.KVHeads, maxWidth}, {"head's size", c.Dim, maxWidth},
		{"positions", c.MaxPositions, maxVocab},
	} {
		if n.value < 1 || n.value > n.max {
			return fmt.Errorf("%s: %d is not between 1 and %d", n.name, n.value, n.max)
		}
	}
	switch {
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("%d heads cannot share %d key heads", c.Heads, c.KVHeads)
	case c.Heads*c.Dim > 8*maxWidth:
		return fmt.Errorf("%d heads of %d are too wide", c.Heads, c.Dim)
	case !(c.Eps >= 0 && c.Eps < 1):
		return fmt.Errorf("epsilon of the norms: %v is not at least 0 and less than 1", c.Eps)
	case !(c.Scale > 0 && c.Scale <= math.MaxFloat32):
		return fmt.Errorf("scale of attention: %v is not above 0", c.Scale)
	}
	return c.validateArch()
}

func (c *Config) validateArch() error {
	if c.Arch == ViT {
		return c.validateImage()
	}
	switch c.Arch {
	case LLaMA:
		if err := c.Rope.validate(c.Dim); err != nil {
			return err
		}
	case BERT:
		if c.Types < 1 || c.Types > maxVocab {
			return fmt.Errorf("types of tokens: %d is not between 1 and %d", c.Types, maxVocab)
		}
	case GPT2:
	default:
		return fmt.Errorf("architecture %q is none of %s, %s, %s, %s", c.Arch, BERT, ViT, GPT2, LLaMA)
	}
	if c.Vocab < 1 || c.Vocab > maxVocab {
		return fmt.Errorf("vocabulary: %d is not between 1 and %d", c.Vocab, maxVocab)
	}
	if c.Arch != LLaMA && (c.KVHeads != c.Heads || c.Heads*c.Dim != c.Hidden) {
		return fmt.Errorf("hidden size %d is not %d heads of %d", c.Hidden, c.Heads, c.Dim)
	}
	return nil
}

func (c *Config) validateImage() error {
	for i := range 2 {
		if c.Patch[i] < 1 || c.Image[i] < c.Patch[i] || c.Image[i] > maxImage {
			return fmt.Errorf("images of %v cannot be cut into patches of %v", c.Image, c.Patch)
		}
	}
	rows, cols := c.Patches()
	switch {
	case c.Colors < 1 || c.Colors > maxImage:
		return fmt.Errorf("channels: %d is not between 1 and %d", c.Colors, maxImage)
	case c.KVHeads != c.Heads || c.Heads*c.Dim != c.Hidden:
		return fmt.Errorf("hidden size %d is not %d heads of %d", c.Hidden, c.Heads, c.Dim)
	case c.MaxPositions != rows*cols+1:
		return fmt.Errorf("%d positions are not %dx%d patches and one more", c.MaxPositions, rows, cols)
	case c.Head && (c.Labels < 1 || c.Labels > maxVocab):
		return fmt.Errorf("labels: %d is not between 1 and %d", c.Labels, maxVocab)
	case c.LabelNames != nil && len(c.LabelNames) != c.Labels:
		return fmt.Errorf("there are %d names for %d labels", len(c.LabelNames), c.Labels)
	}
	return nil
}

func (r *Rope) validate(dim int) error {
	switch {
	case dim%2 != 0:
		return fmt.Errorf("a head's size of %d cannot be turned by halves", dim)
	case !(r.Theta > 0 && r.Theta <= math.MaxFloat32):
		return fmt.Errorf("rope_theta: %v is not above 0", r.Theta)
	case r.Factor == 0:
		return nil
	case !(r.Factor >= 1 && r.Factor <= math.MaxFloat32), r.Original < 1,
		!(r.LowFreq > 0 && r.HighFreq > r.LowFreq && r.HighFreq <= math.MaxFloat32):
		return errors.New("llama3 rope needs factor >= 1, 0 < low_freq_factor < high_freq_factor and " +
			"original_max_position_embeddings > 0")
	}
	return nil
}

// Inverse returns the frequencies [dim/2] of a head's pairs in radians a position,
// rounded as in the float32 arithmetic of training: at position n, an error of one
// ulp in a frequency is an error of n ulp in the angle.
func (r *Rope) Inverse(dim int) []float32 {
	inverse := make([]float32, dim/2)
	for i := range inverse {
		power := float32(math.Pow(r.Theta, float64(float32(2*i)/float32(dim))))
		inverse[i] = r.stretch(1 / power)
	}
	return inverse
}

// stretch returns the frequency f after the change of LLaMA 3.1: divided by Factor
// if it turns less than LowFreq times within Original positions, unchanged if it
// turns more than HighFreq times, and a blend of both in between.
func (r *Rope) stretch(f float32) float32 {
	if r.Factor == 0 {
		return f
	}
	length := float32(2*math.Pi) / f
	low, high := float64(r.Original)/r.LowFreq, float64(r.Original)/r.HighFreq
	switch {
	case float64(length) < high:
		return f
	case float64(length) > low:
		return f / float32(r.Factor)
	}
	smooth := (float32(r.Original)/length - float32(r.LowFreq)) / float32(r.HighFreq-r.LowFreq)
	return float32((1-smooth)*f/float32(r.Factor)) + float32(smooth*f)
}
