// Package replay is the command replay: it sends refused messages again, exactly once each.
//
// A source lists refused messages, its candidates: the rows of table rejects of an output, or
// the records of a topic of dead letters. The target is the topic to which they are sent. A
// message is identified by where it was read first (schemas.DeadLetterID, without the index);
// a record of the target says in a header which message it is.
//
// What is in the target already is read from its log, after an outbox was fenced that alone may
// send replays there. So no record of an earlier replay can come behind what was read. An
// output also keeps records of its replays (sinks/record): where to begin to read, and what was
// found.
package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/ingest"
	"entropipe/schemas"
)

// Command is the command replay: its flags and arguments.
type Command struct {
	From        string     `arg:""`
	To          string     `placeholder:"TOPIC" group:"Replay"`
	Reason      []string   `placeholder:"REASON" group:"Replay"`
	Since       time.Time  `placeholder:"TIME" group:"Replay"`
	DryRun      bool       `group:"Replay"`
	MaxReplays  int64      `default:"3" group:"Replay"`
	DeadLetter  string     `placeholder:"TOPIC" group:"Replay"`
	Partial     bool       `group:"Replay" more:"yes"`
	ChunkWindow value.Size `default:"256MiB" group:"Replay" more:"yes"`
	JSON        bool       `name:"json" group:"Replay"`

	Brokers  []string         `default:"127.0.0.1:9092" placeholder:"HOST:PORT" group:"Brokers"`
	Security command.Security `embed:"" group:"Brokers"`
	Bucket   command.Bucket   `embed:"" group:"Object store"`
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *Command) Check() error {
	var to, letters error
	if command.IsTopicURL(c.From) {
		brokers, topic, err := command.TopicURL(c.From)
		if err != nil {
			return mistake.NewUsage(err)
		}
		c.Brokers, c.From = brokers, topic
	}
	if c.To == "" {
		to = mistake.About("--to is missing: the topic to send to", "to")
	} else {
		to = command.CheckNameOfTopic("to", c.To)
	}
	if c.DeadLetter != "" {
		letters = command.CheckNameOfTopic("dead-letter", c.DeadLetter)
	}
	switch {
	case c.DeadLetter != "" && c.DeadLetter == c.To:
		letters = mistake.Value("dead-letter", " %s: it is the topic of --to", c.DeadLetter)
	case c.From == c.To && !isFolder(c.From):
		to = mistake.Value("to", " %s: it is the topic of dead letters itself", c.To)
	}
	return errors.Join(to, letters, c.Security.Check(), command.CheckBrokers(&c.Brokers),
		command.CheckAmount("max-replays", c.MaxReplays, 1, math.MaxInt32),
		command.CheckAmount("chunk-window", c.ChunkWindow, 1, command.MaxSize))
}

// Run checks the flags and runs the command.
func (c *Command) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	security, err := c.Security.Open(e.Log)
	if err != nil {
		return err
	}
	kafka := cluster{brokers: c.Brokers, security: security, log: e.Log}
	from, err := c.source(e, kafka)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	defer from.close()
	r := &replayer{Command: c, source: from, kafka: kafka, summary: newSummary(c)}
	err = r.run(e)
	r.summary.Seconds = time.Since(r.summary.begun).Seconds()
	if err != nil && r.summary.empty() {
		return fmt.Errorf("replay: %w", err)
	}
	if failed := command.PrintResult(e.Stdout, c.JSON, r.summary); err == nil {
		err = failed
	}
	switch n := r.summary.Gone; {
	case err != nil:
		return fmt.Errorf("replay: %w; what was sent is not sent again: repeat the command", err)
	case n > 0:
		return fmt.Errorf("replay: the values of %s messages are gone", command.Count(n))
	}
	return nil
}

// cluster is the way to the brokers.
type cluster struct {
	brokers  []string
	security ingest.Security
	log      logger
}

// open describes a topic and prepares to read its records.
func (k *cluster) open(ctx context.Context, topic string) (*ingest.Lookup, error) {
	return ingest.OpenLookup(ctx, k.brokers, k.security, topic, k.log)
}

// source opens the output or the topic that From names.
func (c *Command) source(e *command.Env, kafka cluster) (source, error) {
	if isFolder(c.From) || strings.ContainsAny(c.From, `/\`) {
		return openOutput(e, c, kafka)
	}
	if err := command.CheckNameOfTopic("from", c.From); err != nil {
		return nil, err
	}
	from, err := openLetters(e, c, kafka)
	if errors.Is(err, ingest.ErrNoTopic) {
		return nil, fmt.Errorf("%s is no folder here; as a topic: %w", c.From, err)
	}
	return from, err
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// candidate is a refused message.
type candidate struct {
	id            schemas.DeadLetterID
	stage, reason string
	count         int64 // how often it was sent again before it was refused
	partial       bool  // others of its frames have rows

	// fetch returns the message, which the caller owns. *goneError: nothing has its value.
	fetch func(ctx context.Context) (*schemas.Message, error)
}

// goneError says why a message cannot be had any more.
type goneError struct{ why string }

func (e *goneError) Error() string { return e.why }

// source lists refused messages.
type source interface {
	// each gives use the candidates of the selection and ends with its error.
	each(ctx context.Context, use func(*candidate) error) error
	// extent returns about how many steps each takes, and a time before which no message of the
	// selection was refused; zero: there is none.
	extent(ctx context.Context) (steps int64, oldest time.Time, err error)
	// done returns how many of the steps were taken.
	done() int64
	// state returns what an output knows of earlier replays; nil: nothing is kept.
	state(ctx context.Context, to *ingest.Topic) (*state, error)
	close()
}

// replayer sends what a source lists to the target.
type replayer struct {
	*Command
	source  source
	kafka   cluster
	summary *summary
	target  *target
	batch   []*schemas.Record
	bytes   int64 // the batch's
	pending []*candidate
	sent    atomic.Int64
}

// A transaction has as much as this, or one message.
const (
	batchBytes    = 8 << 20
	batchMessages = 200
)

func (r *replayer) run(e *command.Env) error {
	steps, oldest, err := r.source.extent(e.Ctx)
	if err != nil {
		return err
	}
	if r.target, err = openTarget(e, r, oldest); err != nil {
		return err
	}
	defer r.target.close()
	show := command.StartProgress(e.Stderr, e.Log, "refused messages", steps, func() (int64, string) {
		return r.source.done(), command.Count(r.sent.Load()) + " sent"
	})
	err = r.source.each(e.Ctx, func(c *candidate) error { return r.take(e.Ctx, c) })
	if err == nil {
		err = r.flush(e.Ctx)
	}
	show.Stop()
	if err != nil {
		return err
	}
	return r.target.finish(e.Ctx)
}

// take decides about one candidate.
func (r *replayer) take(ctx context.Context, c *candidate) error {
	of := r.summary.of(c)
	switch {
	case r.target.has(c.id):
		of.Before++
		r.summary.Before++
		return nil
	case c.count >= r.MaxReplays:
		of.AtLimit++
		r.summary.AtLimit++
		r.summary.list(c, fmt.Sprintf("it was sent again %d times (--max-replays)", c.count))
		return nil
	case c.partial && !r.Partial:
		of.Partial++
		r.summary.Partial++
		r.summary.list(c, "others of its frames have rows (--partial)")
		return nil
	}
	r.target.note(c.id)
	if r.DryRun {
		of.Sent++
		r.summary.Sent++
		return nil
	}
	m, err := c.fetch(ctx)
	if gone := (*goneError)(nil); errors.As(err, &gone) {
		of.Gone++
		r.summary.Gone++
		r.summary.list(c, gone.why)
		return nil
	}
	if err != nil {
		return err
	}
	_, count, _ := schemas.ReplayOf(m.Headers)
	record := schemas.ReplayedRecord(m, c.id, max(count, c.count)+1)
	if r.bytes+record.Bytes() > batchBytes || len(r.batch) >= batchMessages {
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
	r.batch, r.pending, r.bytes = append(r.batch, record), append(r.pending, c), r.bytes+record.Bytes()
	return nil
}

// flush sends the batch in a transaction.
func (r *replayer) flush(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	bytes := int64(0)
	for _, record := range r.batch {
		bytes += int64(len(record.Value))
	}
	if err := r.target.out.Transact(ctx, r.batch); err != nil {
		return cmp.Or(r.target.moved(ctx), err)
	}
	for _, c := range r.pending {
		r.summary.of(c).Sent++
	}
	r.summary.Sent += int64(len(r.batch))
	r.summary.Bytes += bytes
	r.sent.Add(int64(len(r.batch)))
	clear(r.batch)
	clear(r.pending)
	r.batch, r.pending, r.bytes = r.batch[:0], r.pending[:0], 0
	return nil
}
