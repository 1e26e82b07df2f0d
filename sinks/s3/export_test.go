package s3

// Starve leaves all staged files the memory of one part, as many large files do.
func (s *Store) Starve() { s.Share(0) }

// Share leaves staged files so many pieces beyond those of one part.
func (s *Store) Share(pieces int) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.memory.left = pieces
}

// Pieces returns the number of pieces of memory that there are, and how many of those that all
// files share are left.
func (s *Store) Pieces() (all, left int) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return s.memory.all, s.memory.left
}
