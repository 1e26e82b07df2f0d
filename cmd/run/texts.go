package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"entropipe/cmd/command"
	"entropipe/cmd/run/flags"
	"entropipe/cmd/run/language"
	"entropipe/ingest"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/read"
)

// lookForTexts is checkTexts for an output that is not there yet, so that a start
// that fails for it leaves no folder.
func (k *kafkaFeed) lookForTexts(ctx context.Context) error {
	s, c := k.s, &k.s.flags.Source
	if !s.textless || !isNew(ctx, &s.flags.Output) {
		return nil
	}
	consumer, err := ingest.NewConsumer(ingest.Config{Brokers: c.Brokers, Security: s.security, Topics: c.Topic,
		Group:         "entropipe-look-" + rand.Text(),
		MaxFrameBytes: int64(s.flags.Frames.MaxFrameBytes), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer consumer.Close()
	for _, topic := range c.Topic {
		starts, err := consumer.Starts(ctx, topic, c.From)
		if err == nil {
			err = k.checkTexts(ctx, consumer, topic, starts)
		}
		if err != nil {
			return err
		}
	}
	s.textless = false // it is known
	return nil
}

// isNew tells whether there is no output at an address yet.
func isNew(ctx context.Context, out *flags.OutputFlags) bool {
	store, err := command.FindOutput(ctx, out.Out, &out.Bucket)
	if err != nil {
		return true
	}
	defer store.Close()
	_, err = read.Identify(ctx, store)
	return errors.Is(err, sinks.ErrNotFound)
}

// checkTexts refuses a topic that begins with texts, where the model has no
// tokenizer for them: all of them would become rejects. A topic where ids begin a
// partition, and one that the output has already, takes texts as rejects, so that
// one text does not keep the service from starting.
func (k *kafkaFeed) checkTexts(ctx context.Context, consumer *ingest.Consumer, topic string,
	starts map[int32]int64) error {
	if !k.s.textless {
		return nil
	}
	var found *schemas.Message
	ids := false
	err := consumer.First(ctx, topic, starts, func(m schemas.Message) bool {
		switch {
		case schemas.IsText(&m):
			found = &schemas.Message{Partition: m.Partition, Offset: m.Offset}
		case schemas.IsTokens(&m):
			ids = true
		}
		return !ids
	})
	if found == nil || ids || err != nil {
		return err
	}
	return language.BadFlag("lm", fmt.Errorf("%s has no tokenizer.json, but topic %s begins with texts (partition "+
		"%d, offset %d): put the model's tokenizer.json into its folder, or send token ids", k.s.flags.Tokens.LM, topic,
		found.Partition, found.Offset))
}
