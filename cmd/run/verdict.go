package run

import "context"

// Verdict says why a run that ended without an error is no success: it was to go on to
// the end and was interrupted, or too much was refused.
func (s *Service) Verdict(ctx context.Context) error {
	if err := s.feed.Verdict(ctx); err != nil {
		return err
	}
	st := s.Pipeline.Stats()
	return s.flags.Frames.MaxRejects.Exceeded(&st, s.flags.Source.UntilEnd)
}
