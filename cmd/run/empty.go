package run

// WarnOfEmptyTables logs which of the tables that were asked for by name got no row of
// this run, though frames were committed. The cause may lie in the frames: clouds
// without z have no hull in space, and few frames meet a large --entropy-every.
func (s *Service) WarnOfEmptyTables() {
	frames, rows := s.Pipeline.Stats().Frames, s.Pipeline.TableRows()
	if frames == 0 {
		return
	}
	for _, table := range s.flags.Output.Tables {
		if table == "frames" || table == "rejects" || rows[table] > 0 {
			continue
		}
		about := []any{"table", table, "frames", frames}
		if table == "entropy" {
			about = append(about, "entropy_every", s.flags.Frames.EntropyEvery,
				"note", "a 32nd as many are measured of frames of fewer than 1,024 points, and without delaunay2d")
		}
		s.log.Warn("this table was asked for and got no row of this run", about...)
	}
}
