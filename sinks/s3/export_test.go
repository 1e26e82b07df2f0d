package s3

// Starve leaves each staged file the memory of one part, as many large files do.
func (s *Store) Starve() {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.memory.left = 0
}
