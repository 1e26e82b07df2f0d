package produce

import (
	"errors"
	"fmt"
	"math"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/ingest/replay"
	"entropipe/schemas"
)

type produceTokens struct {
	Files         []string `arg:"" type:"path"`
	Tokenizer     string   `placeholder:"DIR" group:"Tokens"`
	Paragraphs    bool     `group:"Tokens"`
	Lengths       string   `type:"path" placeholder:"TRACE" group:"Tokens" more:"yes"`
	Clip          int      `default:"512" group:"Tokens" more:"yes"`
	Sequences     int64    `default:"0" group:"Tokens" more:"yes"`
	Pack          int      `default:"64" group:"Tokens"`
	SkipBad       bool
	producerFlags `embed:""`
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *produceTokens) Check() error {
	switch {
	case c.Key != "sequence":
		return mistake.NewUsage(fmt.Errorf("--key %s: packs of texts have no key; they go to the partitions in turn",
			c.Key))
	case c.Resume != "":
		return mistake.NewUsage(errors.New("--resume continues clouds and drawings; texts have no order to continue"))
	case c.Stage != "off":
		return mistake.NewUsage(fmt.Errorf("--stage %s: only clouds of points are pruned", c.Stage))
	case c.Lengths == "" && c.Clip != 512: // its default
		return mistake.NewUsage(errors.New("--clip needs --lengths, the trace to cut at"))
	case c.Lengths == "" && c.Sequences > 0:
		return mistake.NewUsage(errors.New("--sequences needs --lengths, the trace to cut at; --limit ends any source"))
	}
	return errors.Join(c.producerFlags.Check(), command.CheckAmount("pack", c.Pack, 1, command.MaxPack),
		command.CheckAmount("clip", c.Clip, 0, math.MaxInt32),
		command.CheckAmount("sequences", c.Sequences, 0, math.MaxInt64))
}

// Run checks the flags and runs the command.
func (c *produceTokens) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	c.Rate = c.Rate.Untimed()
	t := replay.Tokens{Files: c.Files, Paragraphs: c.Paragraphs, Sequences: c.Sequences, SkipBad: c.SkipBad,
		Pack: c.Rate.Pack(c.Pack), Log: e.Log}
	if err := c.openTokenizer(&t); err != nil {
		return err
	}
	if c.Lengths != "" {
		var err error
		if t.Lengths, err = replay.ReadLengths(c.Lengths, c.Clip); err != nil {
			return err
		}
	}
	src, err := t.Open()
	if err != nil {
		return err
	}
	return c.produceAs(e, src, "sequences", "tokens")
}

// OpenTokenizer has t send ids, if a tokenizer was named.
func (c *produceTokens) openTokenizer(t *replay.Tokens) error {
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
