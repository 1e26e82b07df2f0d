package pipeline

// examine compares a sequence with dense attention, if it is one of those.
func (t *Tokens) examine(it *item) {}
