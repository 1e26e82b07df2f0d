package export

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"entropipe/cmd/command"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/picture"
	"entropipe/sinks/read"
)

// exportMCAP writes one frame, or with --all every frame, for Foxglove and Rerun. With
// --all table frames is read twice: the topics of the file depend on the names in it, and
// frames of several partitions are merged by their times.
func (c *Command) exportMCAP(e *command.Env, store sinks.Reader) error {
	var levels picture.Levels
	var from partitions
	if c.All {
		if err := read.ReadFrames(e.Ctx, store, c.query(), func(r *schemas.Result, _ []string) error {
			levels.See(&r.FrameKey)
			from.see(&r.FrameKey)
			return nil
		}); err != nil {
			return err
		}
	}
	return c.send(e.Stdout, func(w *bufio.Writer) error {
		m := picture.NewMCAP(w, levels)
		err := c.eachFrame(e, store, from.readByTime, m.Add)
		repeats, closing := m.Close()
		if err = errors.Join(err, closing); err == nil && repeats > 0 {
			e.Log.Warn("frames of one topic have equal times: a viewer shows the last of them", "messages", repeats)
		}
		return err
	})
}

// partitions are those that have frames of a selection.
type partitions []partition

type partition struct {
	topic  string
	number int32
}

func (all *partitions) see(k *schemas.FrameKey) {
	if p := (partition{k.Topic, k.Partition}); !slices.Contains(*all, p) {
		*all = append(*all, p)
	}
}

// found is what read.ReadFrames says of a frame.
type found struct {
	result *schemas.Result
	absent []string
}

// readByTime is read.ReadFrames, but the frames come in the order of their times if those
// of each partition do; else the time runs back where it does in a partition. Memory: a
// frame of each partition.
func (all partitions) readByTime(ctx context.Context, store sinks.Reader, q read.FrameQuery,
	use func(r *schemas.Result, absent []string) error, others ...string) error {
	if len(all) < 2 {
		return read.ReadFrames(ctx, store, q, use, others...)
	}
	type stream struct {
		head found
		next func() (found, error, bool)
	}
	var streams []*stream // each has a frame
	advance := func(s *stream) error {
		head, err, ok := s.next()
		if err != nil {
			return err
		}
		if s.head = head; !ok {
			streams = slices.DeleteFunc(streams, func(other *stream) bool { return other == s })
		}
		return nil
	}
	for _, p := range all {
		of := q
		of.Topic, of.Partition = p.topic, &p.number
		next, stop := iter.Pull2(framesOf(ctx, store, of, others))
		defer stop()
		s := &stream{next: next}
		streams = append(streams, s)
		if err := advance(s); err != nil {
			return err
		}
	}
	for len(streams) > 0 {
		first := slices.MinFunc(streams, func(a, b *stream) int {
			return cmp.Compare(a.head.result.TimeNs, b.head.result.TimeNs)
		})
		if err := use(first.head.result, first.head.absent); err != nil {
			return err
		}
		if err := advance(first); err != nil {
			return err
		}
	}
	return nil
}

// framesOf yields the frames of a query, or at last an error.
func framesOf(ctx context.Context, store sinks.Reader, q read.FrameQuery, tables []string) iter.Seq2[found, error] {
	enough := errors.New("the caller has enough frames")
	return func(yield func(found, error) bool) {
		err := read.ReadFrames(ctx, store, q, func(r *schemas.Result, absent []string) error {
			if !yield(found{r, absent}, nil) {
				return enough
			}
			return nil
		}, tables...)
		if err != nil && !errors.Is(err, enough) {
			yield(found{}, err)
		}
	}
}
