package run

import (
	"context"

	"entropipe/cmd/command"
)

// verdict says why a run that ended without an error is no success: it was to go on to
// the end and was interrupted, or too much was refused.
func (s *Service) verdict(ctx context.Context) error {
	untilEnd := s.flags.Source.UntilEnd
	if ctx.Err() != nil && untilEnd {
		left, err := s.consumer.Left(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		if left != "" {
			return &command.InterruptedError{Left: left}
		}
	}
	st := s.Pipeline.Stats()
	return s.flags.Frames.MaxRejects.Exceeded(&st, untilEnd)
}
