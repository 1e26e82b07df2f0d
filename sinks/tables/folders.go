package tables

import (
	"fmt"
	"strings"
	"time"

	"entropipe/schemas"
	"entropipe/sinks/record"
)

// folderKey holds the folder keys that all frames of one file share. Keys by which the
// output is not partitioned are empty.
type folderKey struct{ dataset, sequence, date string }

// value returns the value of one key of an output's PartitionBy.
func (k folderKey) value(by string) string {
	switch by {
	case record.BySequence:
		return k.sequence
	case record.ByDate:
		return k.date
	}
	return k.dataset
}

// keyOf returns the folder keys of a result. date is the UTC date of its event time.
func (e *Encoder) keyOf(r *schemas.Result) folderKey {
	key := folderKey{dataset: r.Dataset}
	for _, by := range e.cfg.PartitionBy[1:] {
		switch by {
		case record.BySequence:
			key.sequence = r.Sequence
		case record.ByDate:
			key.date = time.Unix(0, r.TimeNs).UTC().Format(time.DateOnly)
		}
	}
	return key
}

// dataFile returns the path of a table's file for part number part of a batch.
func (e *Encoder) dataFile(t *table, key folderKey, b *schemas.Batch, part int) string {
	var name strings.Builder
	name.WriteString(t.name)
	if !t.ofRecords() {
		for _, by := range e.cfg.PartitionBy {
			name.WriteString("/" + by + "=" + record.FolderValue(key.value(by), record.MaxFolderValue))
		}
	}
	fmt.Fprintf(&name, "/topic=%s/part-%d-%020d-%020d", record.FolderValue(b.Topic, record.MaxFolderValue),
		b.Partition, b.Start, b.End)
	if part > 0 {
		fmt.Fprintf(&name, "-%d", part)
	}
	return name.String() + record.DataSuffix
}
