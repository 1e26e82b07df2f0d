// Package language opens the language model of the command run, with its tokenizer,
// masks and device, as --lm and its sister flags name them, and checks that they fit
// each other and the task. It reads no messages: package pipeline does that, with the
// configuration that Open returns.
//
// A mask names the blocks of keys that attention reads. A ladder is the bound on what a
// row of attention may miss before it reads more. The served lengths are the numbers of
// tokens for which attention is sparse.
package language

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/ops/pipeline"
	"entropipe/sparse/freeze"
	"entropipe/sparse/hf"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/plan"
	"entropipe/sparse/support"
	"entropipe/sparse/token"
)

// Flags say what is done with sequences of tokens.
type Flags struct {
	LM           string  `name:"lm" placeholder:"DIR" content:"yes"`
	Weights      string  `enum:"f32,bf16" default:"f32" content:"yes" more:"yes"`
	Task         string  `enum:"embed,logits,generate" default:"embed" content:"yes"`
	Mask         string  `placeholder:"DIR" content:"no"`
	MaskUse      string  `enum:"auto,always" default:"auto" content:"yes" more:"yes"`
	Ladder       float64 `default:"0" placeholder:"DELTA" content:"yes" more:"yes"`
	LadderBlocks int     `default:"0" placeholder:"N" content:"yes" more:"yes"`
	MaxNew       int     `default:"32" content:"yes" more:"yes"`
	TopK         int     `default:"5" content:"yes" more:"yes"`
	Truncate     bool    `content:"yes" more:"yes"`
	TruncateSide string  `enum:"auto,left,right" default:"auto" content:"yes" more:"yes"`
	AuditEvery   int64   `default:"1000" content:"yes" more:"yes"`
	Device       string  `enum:"cpu,cuda" default:"cpu" content:"yes" more:"yes"`
	TokenBudget  int     `default:"4096" content:"no" more:"yes"`
}

// Bounds of flags, far from what anybody needs.
const (
	maxNewTokens   = 1 << 20
	maxTopK        = 1000
	maxTokenBudget = 1 << 24

	maxLadderBlocks = 1 << 16
)

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *Flags) Check() error {
	var needs []error
	if c.LM == "" && c.Mask != "" {
		needs = append(needs, mistake.About(fmt.Sprintf("--mask %s needs --lm, the model whose attention it is for",
			c.Mask), "mask"))
	}
	if c.LM == "" && c.Task != "embed" {
		needs = append(needs, mistake.About(fmt.Sprintf("--task %s needs --lm, the model that does it", c.Task),
			"task"))
	}
	if c.LM == "" && c.Weights != "f32" {
		needs = append(needs, mistake.About(fmt.Sprintf("--weights %s needs --lm, the model of these weights",
			c.Weights), "weights"))
	}
	if c.Device == "cuda" && c.Task == "generate" {
		needs = append(needs, mistake.About("--device cuda: --task generate reads its keys from pages in the "+
			"processor's memory, and would never use the GPU: say --task embed or logits, or --device cpu", "device",
			"task"))
	}
	return errors.Join(errors.Join(needs...), c.checkLadder(),
		command.CheckAmount("max-new", c.MaxNew, 1, maxNewTokens), command.CheckAmount("top-k", c.TopK, 1, maxTopK),
		command.CheckAmount("audit-every", c.AuditEvery, 0, math.MaxInt64),
		command.CheckAmount("token-budget", c.TokenBudget, 1, maxTokenBudget),
		command.CheckAmount("ladder-blocks", c.LadderBlocks, 0, maxLadderBlocks))
}

// checkLadder returns what --ladder cannot go with, as a Usage.
func (c *Flags) checkLadder() error {
	switch {
	case !(c.Ladder >= 0 && c.Ladder < 1):
		return mistake.Value("ladder", " %v: want a share of the softmax, at least 0 and below 1", c.Ladder)
	case c.Ladder == 0 && c.LadderBlocks != 0:
		return mistake.About(fmt.Sprintf("--ladder-blocks %d needs --ladder, the share of the softmax that rows may "+
			"miss", c.LadderBlocks), "ladder-blocks")
	case c.Ladder > 0 && c.Mask == "":
		return mistake.About(fmt.Sprintf("--ladder %v needs --mask; without masks rows read everything", c.Ladder),
			"ladder")
	case c.Ladder > 0 && c.Device == "cuda":
		return mistake.About(fmt.Sprintf("--ladder %v: it climbs on the processor only, and --device is cuda",
			c.Ladder), "ladder")
	}
	return nil
}

// Language is a model with all that it takes to read sequences.
type Language struct {
	pipeline.TokenConfig
	Config string // lines that the configuration's hash covers besides flags
	mask   string // SHA-256 of the masks; empty: none
	made   []int  // lengths that the masks were made for
	Bytes  int64  // memory of the weights and of the workers' scratch
}

// Open reads model, tokenizer and masks, and checks that they go together and
// can do the task. Without a model it returns what refuses every sequence. The
// error is a *mistake.Config.
func (c *Flags) Open(workers int) (Language, error) {
	l := Language{TokenConfig: pipeline.TokenConfig{Task: pipeline.Task(c.Task), TopK: c.TopK, MaxNew: c.MaxNew,
		Truncate: c.Truncate, Budget: c.TokenBudget, Audit: c.AuditEvery,
		Threads: max(1, runtime.GOMAXPROCS(0)/workers)}}
	if c.LM == "" {
		return l, nil
	}
	before := heapInUse()
	if err := c.openModel(&l); err != nil {
		return l, err
	}
	if err := c.openMask(&l); err != nil {
		return l, err
	}
	if err := c.openDevice(&l); err != nil {
		return l, BadFlag("device", err)
	}
	l.Bytes = max(heapInUse()-before, 0) + int64(workers)*l.scratch()
	return l, nil
}

// heapInUse is what is reachable: weights are loaded once, so that a collection
// for it does not matter.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// scratch is about what a worker's session takes for a full batch: states,
// queries, keys, values and contexts of each token, and logits.
func (l *Language) scratch() int64 {
	c := l.Model.Config()
	return int64(l.Budget)*int64(6*c.Hidden+3*c.KVHeads*c.Dim)*4 + 32<<20
}

// BadFlag returns err as a problem of the value of flag.
func BadFlag(flag string, err error) error {
	return &mistake.Config{Problems: []mistake.Problem{{Path: flag, What: err.Error()}}}
}

// openModel reads the model and its tokenizer, if it has one.
func (c *Flags) openModel(l *Language) error {
	if err := command.LocalFolder(c.LM); err != nil {
		return BadFlag("lm", err)
	}
	m, err := model.OpenAs(c.LM, model.Weights(c.Weights))
	if err != nil {
		return BadFlag("lm", err)
	}
	l.Model, l.Name, l.Pooling = m, command.NameOfModel(c.LM), m.Pooling()
	if l.CutLeft = c.TruncateSide == "left" || c.TruncateSide == "auto" && l.Pooling.CutLeft; c.Task == "embed" {
		l.Longest = l.Pooling.MaxTokens
	}
	if err := c.checkTask(m); err != nil {
		return BadFlag("task", err)
	}
	if l.Tokenizer, err = command.OpenTokenizer(c.LM, m.Config().Vocab); err != nil {
		return BadFlag("lm", err)
	}
	if l.Tokenizer != nil && l.Pooling.LowerCase && !ignoresCase(l.Tokenizer) {
		return BadFlag("lm", fmt.Errorf("%s: sentence_bert_config.json: do_lower_case: its tokenizer knows "+
			"capitals, and texts are not changed before it here: send them in lower case, and say false", c.LM))
	}
	if l.Tokenizer != nil && l.Tokenizer.Vocab() > m.Config().Vocab {
		return BadFlag("lm", fmt.Errorf("%s: tokenizer.json has ids up to %d, but the embedding of the model has %d "+
			"rows: they are not of one model", c.LM, l.Tokenizer.Vocab()-1, m.Config().Vocab))
	}
	l.Config = "lm_sha256: " + m.SHA256() + "\n"
	if l.Tokenizer != nil {
		l.Config += "tokenizer_sha256: " + l.Tokenizer.SHA256() + "\n"
	}
	return nil
}

// checkTask says why the model cannot do the task, if so.
func (c *Flags) checkTask(m *model.Model) error {
	cfg := m.Config()
	switch {
	case cfg.Arch == hf.ViT:
		return fmt.Errorf("%s: a model of images reads no tokens", c.LM)
	case c.Task == "embed" && m.Pooling().Mode == hf.None:
		return fmt.Errorf("embed: %s says that its rows become no embedding (modules.json)", c.LM)
	case c.Task != "embed" && !cfg.Causal:
		return fmt.Errorf("%s: %s is an encoder, which predicts no next token; it can do embed", c.Task, c.LM)
	case c.Task != "embed" && !cfg.Head:
		return fmt.Errorf("%s: %s has no output matrix; it can do embed", c.Task, c.LM)
	case c.Task == "generate" && c.MaxNew >= cfg.MaxPositions:
		return fmt.Errorf("generate: --max-new %d leaves no room in the %d positions of %s", c.MaxNew,
			cfg.MaxPositions, c.LM)
	}
	return nil
}

// ignoresCase says whether a tokenizer makes lower case of texts itself.
func ignoresCase(t *token.Tokenizer) bool {
	return slices.Equal(t.Encode(nil, "THE Quick ÉTÉ"), t.Encode(nil, "the quick été"))
}

// openMask reads the masks and makes the planner.
func (c *Flags) openMask(l *Language) error {
	if c.Mask == "" {
		return nil
	}
	set, err := support.Read(c.Mask)
	if err != nil {
		return BadFlag("mask", err)
	}
	planner, err := plan.New(set, plan.Facts{Facts: freeze.Facts(l.Model), Always: c.MaskUse == "always"})
	if err != nil {
		return BadFlag("mask", fmt.Errorf("%s: %w", c.Mask, err))
	}
	if l.mask, err = set.SHA256(); err != nil {
		return BadFlag("mask", err)
	}
	for i := range set.Buckets {
		l.made = append(l.made, set.Buckets[i].Length)
	}
	l.Plan, l.Route = planner.For, planner.Hook()
	switch {
	case c.Ladder == 0:
	case l.Model.Config().Causal:
		return BadFlag("ladder", fmt.Errorf("%s is a decoder: its rows read what was fixed before, so that the "+
			"tokens to come can, too; a ladder is for encoders", c.LM))
	case l.Route != nil:
		return BadFlag("ladder", fmt.Errorf("the masks of %s follow each input (mode anchor); a ladder is for masks "+
			"that are fixed", c.Mask))
	default:
		l.Ladder = &kern.Ladder{Delta: c.Ladder, Most: c.LadderBlocks}
	}
	l.Config += "mask_sha256: " + l.mask + "\n"
	return nil
}

// Report says once what serves sequences.
func (l *Language) Report(log *slog.Logger, c *Flags) {
	if l.Model == nil {
		return
	}
	cfg := l.Model.Config()
	log.Info("language model", "lm", c.LM, "arch", cfg.Arch, "layers", cfg.Layers, "hidden", cfg.Hidden, "weights",
		c.Weights, "task", c.Task, "pooling", l.Pooling.Mode, "tokenizer", l.Tokenizer != nil,
		"sha256", l.Model.SHA256())
	if l.Tokenizer == nil {
		log.Warn("the model's folder has no tokenizer.json: texts become rejects, and ids are taken on trust", "lm",
			c.LM)
	}
	if c.Task == "embed" && !l.Pooling.Stated {
		log.Info("the model's folder does not say how rows become an embedding: their mean is taken", "lm", c.LM)
	}
	if l.Longest > 0 {
		log.Info("longer sequences are cut, as the model's folder says", "max_seq_length", l.Longest,
			"positions", cfg.MaxPositions)
	}
	if l.Plan == nil {
		return
	}
	from, to, dense := l.Served()
	if to == 0 {
		log.Warn("attention is dense in spite of the masks", "mask", c.Mask, "reason", dense)
		return
	}
	log.Info("attention is sparse, by frozen masks", "mask", c.Mask, "sha256", l.mask, "from", from, "to", to,
		"ladder", c.Ladder)
}

// Served returns the least and the most tokens that masks serve, of powers of
// two, the lengths that the masks were made for, and the model's positions; or
// why they serve none of these.
func (l *Language) Served() (from, to int, dense string) {
	positions := l.Model.Config().MaxPositions
	lengths := append([]int{positions}, l.made...)
	for n := 1; n < positions; n *= 2 {
		lengths = append(lengths, n)
	}
	slices.Sort(lengths)
	for _, n := range lengths {
		if n > positions || l.Plan(n).Dense != "" {
			continue
		}
		if to = n; from == 0 {
			from = n
		}
	}
	if to == 0 {
		dense = l.Plan(min(positions, slices.Max(l.made))).Dense
	}
	return from, to, dense
}
