package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"entropipe/sinks/record"
)

// Properties of a table that this program made. The fence of a table is its properties
// entropipe.end.…: for each output, topic and partition the offset up to which the table has the
// rows. They change in the transaction that adds the files, so the table has a file if and only
// if its fence is behind the file's commit. Properties survive the expiry of snapshots and
// compaction by other engines.
//
//	entropipe.table                            name of the table
//	entropipe.schema                           version of its columns
//	entropipe.end.<output>.<topic>.<partition> <end> <uuid of the last commit>
//	entropipe.seen.<output>                    tables of which the output had files before those ends
//	entropipe.compaction.<output>              uuid of the output whose compaction it is
const (
	tableKey   = "entropipe.table"
	schemaKey  = "entropipe.schema"
	endPrefix  = "entropipe.end."
	seenPrefix = "entropipe.seen."

	compactionPrefix = "entropipe.compaction."
)

// mark is the end of what a table has of a partition.
type mark struct {
	end  int64
	uuid string // uuid of the commit that ends there
}

func (m mark) String() string { return fmt.Sprintf("%d %s", m.end, m.uuid) }

// fence holds the marks of one table for one output.
type fence struct {
	store string // uuid of the output
	marks map[record.TopicPartition]mark
	seen  []string // sorted
	// others are the uuids of further outputs of which the table has files.
	others map[string]bool
}

// endKey returns the key of the mark of a partition.
func endKey(store string, p record.TopicPartition) string {
	return endPrefix + store + "." + record.FolderValue(p.Topic, record.MaxFolderValue) + "." + strconv.Itoa(int(p.ID))
}

// parseFence reads the fence of a table from its properties. topics are the names of topics by
// their folder values. A malformed mark is an error: without its mark the files of a partition
// would be added again.
func parseFence(store string, props map[string]string, topics map[string]string) (*fence, error) {
	f := &fence{store: store, marks: map[record.TopicPartition]mark{}, others: map[string]bool{}}
	for key, value := range props {
		if uuid, ok := strings.CutPrefix(key, seenPrefix); ok && uuid == store {
			f.seen = splitNames(value)
		}
		rest, ok := strings.CutPrefix(key, endPrefix)
		if !ok {
			continue
		}
		uuid, rest, _ := strings.Cut(rest, ".")
		if uuid != store {
			f.others[uuid] = true
			continue
		}
		dot := strings.LastIndexByte(rest, '.')
		digits, commit, _ := strings.Cut(value, " ")
		end, err := strconv.ParseInt(digits, 10, 64)
		if dot < 0 || err != nil || end < 0 || len(commit) != record.UUIDSize {
			return nil, fmt.Errorf("property %s has the value %q, and no end of commits", key, value)
		}
		id, named := record.PartitionID(rest[dot+1:])
		topic, known := topics[rest[:dot]]
		if !named {
			return nil, fmt.Errorf("property %s names no partition", key)
		}
		if known {
			f.marks[record.TopicPartition{Topic: topic, ID: id}] = mark{end, commit}
		}
	}
	return f, nil
}

// changed returns the properties that move the fence to marks, and add names to what was seen.
func (f *fence) changed(marks map[record.TopicPartition]mark, seen []string) map[string]string {
	props := map[string]string{}
	for p, m := range marks {
		if m.end > f.end(p, -1) {
			props[endKey(f.store, p)] = m.String()
		}
	}
	if len(props) > 0 {
		props[seenPrefix+f.store] = strings.Join(union(f.seen, seen), ",")
	}
	return props
}

// end returns the end of a partition, or base if the table has nothing of it.
func (f *fence) end(p record.TopicPartition, base int64) int64 {
	if m, ok := f.marks[p]; ok {
		return m.end
	}
	return base
}

// reaches tells whether the fence is at all marks or behind them.
func (f *fence) reaches(marks map[record.TopicPartition]mark) bool {
	for p, m := range marks {
		if f.end(p, -1) < m.end {
			return false
		}
	}
	return true
}

func splitNames(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// union returns the names of both lists, sorted, each once.
func union(a, b []string) []string {
	all := map[string]bool{}
	for _, name := range slices.Concat(a, b) {
		all[name] = true
	}
	return slices.Sorted(maps.Keys(all))
}
