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
	Files         []string `arg:"" type:"path" help:"Files of texts or token ids: .txt, .jsonl, .ndjson (also .gz), .parquet."`
	Tokenizer     string   `placeholder:"DIR" help:"Folder with a tokenizer.json, or builtin:bytes: send token ids instead of text." group:"Tokens"`
	Paragraphs    bool     `help:"Of a .txt, take what stands between empty lines for one text, not each line." group:"Tokens"`
	Lengths       string   `type:"path" placeholder:"TRACE" help:"Cut the ids into sequences as long as the requests of a trace: a .csv with ContextTokens, or lines of JSON with input_length." group:"Tokens"`
	Clip          int      `default:"512" help:"With --lengths, the longest sequence; 0: none is too long (${default})." group:"Tokens"`
	Sequences     int64    `default:"0" help:"With --lengths, sequences to make, the trace and the files again and again; 0: one a request of the trace." group:"Tokens"`
	Pack          int      `default:"64" help:"Most sequences in a message (${default})." group:"Tokens"`
	SkipBad       bool     `help:"Leave out and count rows that cannot be used, instead of stopping."`
	producerFlags `embed:""`
}

func (produceTokens) Help() string {
	return `Rows are sent as text (text/1), which run tokenizes with its model's own tokenizer, or as
token ids (tokens/1) where a file has input_ids or --tokenizer is given. JSON lines and
Parquet have the keys or columns input_ids, attention_mask (padding at the end is cut off)
or text, and id; without id a row is called FILE:LINE. A key that comes twice, and half a
character, make a bad row. Texts have no times: only a
frequency or --limit holds them back, and --epoch dates them.

Examples:
  entropipe produce tokens wiki.txt --paragraphs
  entropipe produce tokens reviews.parquet --tokenizer ./all-MiniLM-L6-v2 --rate 5000hz
  entropipe produce tokens book.txt --tokenizer builtin:bytes --lengths azure.csv --clip 512 --sequences 100000`
}

// check returns its mistakes, as usageErrors.
func (c *produceTokens) Check() error {
	switch {
	case c.Stage != "off":
		return mistake.NewUsage(fmt.Errorf("--stage %s: only clouds of points are pruned", c.Stage))
	case c.Lengths == "" && c.Clip != 512: // its default
		return mistake.NewUsage(errors.New("--clip: want --lengths, the trace to cut at"))
	case c.Lengths == "" && c.Sequences > 0:
		return mistake.NewUsage(errors.New("--sequences: want --lengths, the trace to cut at; --limit ends any source"))
	}
	return errors.Join(c.producerFlags.Check(), command.CheckAmount("pack", c.Pack, 1, command.MaxPack), command.CheckAmount("clip", c.Clip, 0, math.MaxInt32),
		command.CheckAmount("sequences", c.Sequences, 0, math.MaxInt64))
}

func (c *produceTokens) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	c.Rate = c.Rate.Untimed()
	t := replay.Tokens{Files: c.Files, Paragraphs: c.Paragraphs, Sequences: c.Sequences, SkipBad: c.SkipBad, Pack: c.Rate.Pack(c.Pack), Log: e.Log}
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
	t.Vocabulary = schemas.Vocabulary{Tokenizer: command.NameOfModel(c.Tokenizer), Size: found.Vocab(), SHA256: found.SHA256()}
	return nil
}
