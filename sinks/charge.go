package sinks

// Charge is what a commit, or many, take of a store that charges for requests.
type Charge struct {
	Put    int64 // objects, parts of objects, begins and ends of objects in parts
	Copy   int64
	Delete int64
	Bytes  int64 // files
}

// Add adds what another commit takes.
func (c *Charge) Add(other Charge) {
	c.Put += other.Put
	c.Copy += other.Copy
	c.Delete += other.Delete
	c.Bytes += other.Bytes
}
