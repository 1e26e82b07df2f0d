package source

import (
	"errors"
	"fmt"
	"math"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/ingest/replay"
	"entropipe/schemas"
)

// QuickDraw are files of drawings.
type QuickDraw struct {
	Files   []string `arg:"" type:"output"`
	SkipBad bool
	Pack    int `default:"256" setting:"yes"`
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *QuickDraw) Check() error { return command.CheckAmount("pack", c.Pack, 1, command.MaxPack) }

func (c *QuickDraw) replay(o Options) replay.QuickDraw {
	return replay.QuickDraw{Files: c.Files, SkipBad: c.SkipBad, Pack: o.Rate.Pack(c.Pack), Log: o.Log}
}

// Open opens the first file.
func (c *QuickDraw) Open(o Options) (replay.Source, error) { return c.replay(o).Open() }

// HelpLines describes the arguments and flags of drawings.
func (QuickDraw) HelpLines() map[string]string {
	return map[string]string{
		"files":    "Files of drawings, .ndjson or .ndjson.gz.",
		"skip-bad": "Skip and count lines that cannot be read, instead of stopping.",
		"pack":     "Number of drawings of a message, at most.",
	}
}

// Tokens are files of texts or token ids.
type Tokens struct {
	Files      []string `arg:"" type:"output"`
	Tokenizer  string   `placeholder:"DIR" group:"Tokens"`
	Paragraphs bool     `group:"Tokens" setting:"yes"`
	Lengths    string   `type:"path" placeholder:"TRACE" group:"Tokens" more:"yes"`
	Clip       int      `default:"512" group:"Tokens" more:"yes" setting:"yes"`
	Sequences  int64    `default:"0" group:"Tokens" more:"yes" setting:"yes"`
	Pack       int      `default:"64" group:"Tokens" setting:"yes"`
	SkipBad    bool
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *Tokens) Check() error {
	switch {
	case c.Lengths == "" && c.Clip != 512: // its default
		return mistake.NewUsage(errors.New("--clip needs --lengths, the trace to cut at"))
	case c.Lengths == "" && c.Sequences > 0:
		return mistake.NewUsage(errors.New("--sequences needs --lengths, the trace to cut at"))
	}
	return errors.Join(command.CheckAmount("pack", c.Pack, 1, command.MaxPack),
		command.CheckAmount("clip", c.Clip, 0, math.MaxInt32),
		command.CheckAmount("sequences", c.Sequences, 0, math.MaxInt64))
}

func (c *Tokens) replay(o Options) (replay.Tokens, error) {
	t := replay.Tokens{Files: c.Files, Paragraphs: c.Paragraphs, Sequences: c.Sequences, SkipBad: c.SkipBad,
		Pack: o.Rate.Pack(c.Pack), Log: o.Log}
	if err := c.openTokenizer(&t); err != nil {
		return t, err
	}
	var err error
	if c.Lengths != "" {
		t.Lengths, err = replay.ReadLengths(c.Lengths, c.Clip)
	}
	return t, err
}

// openTokenizer has t send ids, if a tokenizer was named.
func (c *Tokens) openTokenizer(t *replay.Tokens) error {
	if c.Tokenizer == "" {
		return nil
	}
	if err := command.LocalFolder(c.Tokenizer); err != nil {
		return err
	}
	found, err := command.OpenTokenizer(c.Tokenizer, 0)
	if err != nil {
		return err
	}
	if found == nil {
		return fmt.Errorf("--tokenizer %s: there is no tokenizer.json", c.Tokenizer)
	}
	t.Encode = found.Encode
	t.Vocabulary = schemas.Vocabulary{Tokenizer: command.NameOfModel(c.Tokenizer), Size: found.Vocab(),
		SHA256: found.SHA256()}
	return nil
}

// Open opens the tokenizer, the trace and the first file.
func (c *Tokens) Open(o Options) (replay.Source, error) {
	t, err := c.replay(o)
	if err != nil {
		return nil, err
	}
	return t.Open()
}

// HelpLines describes the arguments and flags of tokens.
func (Tokens) HelpLines() map[string]string {
	return map[string]string{
		"files":      "Files of texts or token ids: .txt, .jsonl, .ndjson (also .gz), .parquet.",
		"tokenizer":  "Folder with a tokenizer.json, or builtin:bytes: texts become token ids.",
		"paragraphs": "Take each paragraph of a .txt as a text, instead of each line.",
		"lengths":    "Trace of requests (.csv, JSON lines) whose lengths the sequences get.",
		"clip":       "Length limit of a sequence of --lengths; 0: none.",
		"sequences":  "Number of sequences of --lengths; 0: one for each request of the trace.",
		"pack":       "Number of sequences of a message, at most.",
		"skip-bad":   "Skip and count rows that cannot be used, instead of stopping.",
	}
}
