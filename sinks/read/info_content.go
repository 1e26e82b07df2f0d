package read

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Configuration is a content with which rows of an output were made.
type Configuration struct {
	Hash    string        `json:"content_hash"`
	Content sinks.Content `json:"content"` // null: the output has no readable record of it
	Ranges  []OffsetRange `json:"ranges"`
}

// OffsetRange is the offsets [Start, End) of a partition.
type OffsetRange struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Start     int64  `json:"start"`
	End       int64  `json:"end"`
}

// configuration adds the range of a manifest to its configuration. It is called with the
// manifests of a partition in order.
func (d *describer) configuration(m *record.Manifest) {
	if m.ContentHash == "" {
		return
	}
	i := slices.IndexFunc(d.Configurations, func(c Configuration) bool { return c.Hash == m.ContentHash })
	if i < 0 {
		i = len(d.Configurations)
		d.Configurations = append(d.Configurations, Configuration{Hash: m.ContentHash})
	}
	c := &d.Configurations[i]
	if n := len(c.Ranges); n > 0 {
		if r := &c.Ranges[n-1]; r.Topic == m.Topic && r.Partition == m.Partition && r.End == m.Start {
			r.End = m.End
			return
		}
	}
	c.Ranges = append(c.Ranges, OffsetRange{m.Topic, m.Partition, m.Start, m.End})
}

// readContents reads the records of the configurations.
func (d *describer) readContents(ctx context.Context) {
	for i := range d.Configurations {
		c := &d.Configurations[i]
		if content, err := sinks.ReadContent(ctx, d.store, c.Hash); err == nil { // Verify reports the others
			c.Content = content
		}
	}
}

// writeConfigurations writes the first configuration in full, and of each further one
// the settings that differ from the first. If there are several, each is followed by its
// ranges of offsets.
func (s *Summary) writeConfigurations(b *strings.Builder) {
	for i, c := range s.Configurations {
		switch first := s.Configurations[0].Content; {
		case c.Content == nil:
			fmt.Fprintf(b, "configuration %.8s, which the output does not describe", c.Hash)
		case i == 0 || first == nil:
			fmt.Fprintf(b, "configuration %.8s: %s", c.Hash, c.Content)
		default:
			fmt.Fprintf(b, "configuration %.8s, against %.8s: %s", c.Hash, s.Configurations[0].Hash,
				strings.Join(first.Changes(c.Content), "; "))
		}
		b.WriteByte('\n')
		if len(s.Configurations) == 1 {
			return
		}
		for _, r := range c.Ranges {
			fmt.Fprintf(b, "  %s/%d: offsets %d to %d\n", r.Topic, r.Partition, r.Start, r.End)
		}
	}
}
