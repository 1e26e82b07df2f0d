package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"entropipe/ingest/bucket"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// probeFolder holds the objects of a probe, which removes them.
const probeFolder = record.StagingFolder + "/probe"

// racers is how many creations of one object race in a probe.
const racers = 16

// Probe finds out whether the bucket keeps what outputs need: of writers that create one
// object at once exactly one wins, a copy is made only of the expected source, and metadata
// that it sets are there afterwards. A *sinks.ConfigError says that the store is unfit. A
// store that passes may still be unfit: a race is a sample.
func (s *Store) Probe(ctx context.Context) error {
	name := probeFolder + "/" + record.NewUUID()
	copied := name + "-copy"
	err := s.race(ctx, name)
	if err == nil {
		err = s.tryCopy(ctx, name, copied)
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), bucket.Patience)
	defer cancel()
	removed := s.remove(clean, []string{name, copied})
	if err == nil {
		err = removed
	}
	return err
}

// race has many writers create one object, and reads who has won.
func (s *Store) race(ctx context.Context, name string) error {
	var all sync.WaitGroup
	var errs [racers]error
	begin := make(chan struct{})
	for i := range racers {
		all.Go(func() {
			<-begin
			errs[i] = s.Create(ctx, name, racer(i))
		})
	}
	close(begin)
	all.Wait()
	winners, last := 0, -1
	var unsure error
	for i, err := range errs {
		switch {
		case err == nil:
			winners, last = winners+1, i
		case !errors.Is(err, sinks.ErrExists):
			unsure = err
		}
	}
	if winners > 1 {
		return s.unfit("of %d writers that created one object at once with If-None-Match, %d were told that they had "+
			"won: two workers could commit the same records", racers, winners)
	}
	stored, err := s.Read(ctx, name)
	if err != nil && unsure != nil {
		return unsure
	}
	if err != nil {
		return err
	}
	if winners == 1 && !bytes.Equal(stored, racer(last)) {
		return s.unfit("of %d writers that created one object at once one was told that it had won, and another one's "+
			"bytes are stored", racers)
	}
	if err := s.Create(ctx, name, racer(racers)); err == nil {
		return s.unfit("it creates an object with If-None-Match although there is one: two workers could commit the " +
			"same records")
	} else if !errors.Is(err, sinks.ErrExists) {
		return err
	}
	return nil
}

func racer(i int) []byte { return fmt.Appendf(nil, `{"racer": %d}`, i) }

// tryCopy copies the object twice: on a condition that does not hold, and on one that does.
func (s *Store) tryCopy(ctx context.Context, from, to string) error {
	data, err := s.Read(ctx, from)
	if err != nil {
		return nil // the race has said so
	}
	source, _, err := s.head(ctx, from)
	if err != nil {
		return err
	}
	wrong := step{s: s, Move: sinks.Move{From: from, To: to, Bytes: source.size}, etag: sumOf(data)[:32]}
	if err := wrong.copy(ctx); err == nil {
		return s.unfit("it copies an object although x-amz-copy-source-if-match names another one")
	} else if f := (*bucket.Fault)(nil); !errors.As(err, &f) || !f.Changed() {
		return err
	}
	right := wrong
	right.etag, right.SHA256 = source.etag, sumOf(data)
	if err := right.copy(ctx); err != nil {
		return err
	}
	copied, there, err := s.head(ctx, to)
	if err == nil && (!there || copied.sha256 != right.SHA256 || copied.bytes != source.size ||
		copied.source != source.etag) {
		return s.unfit("a copy does not have the metadata that it was given")
	}
	return err
}

func (s *Store) unfit(format string, args ...any) error {
	return &sinks.ConfigError{Field: "out", Problem: fmt.Sprintf("the store at %s is not fit for an output: ",
		s.c.Server()) + fmt.Sprintf(format, args...) + "; docs/s3.md names stores that are"}
}

// CheckWritable creates an object in staging and deletes it, which needs the permissions of
// a commit. Copies need no others.
func (s *Store) CheckWritable(ctx context.Context, _ []string) error {
	name := record.StagingFolder + "/" + record.NewPrefix + "look-" + record.NewUUID()
	err := s.c.Do(ctx, bucket.OpPut, name, 0, func(ctx context.Context) error {
		text := time.Now().UTC().Format(time.RFC3339)
		_, err := s.c.Core.PutObject(ctx, s.in, s.c.Key(name), bytes.NewReader([]byte(text)), int64(len(text)), "",
			sumOf([]byte(text)), minio.PutObjectOptions{DisableContentSha256: true})
		return err
	})
	if err != nil {
		return err
	}
	return s.remove(ctx, []string{name})
}
