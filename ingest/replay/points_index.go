package replay

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"entropipe/ingest/filesys"
)

// indexes keeps the newest indexes of folders, because a backfill opens a folder once for each of its
// lanes, and an index is made by reading every key.
var indexes struct {
	mu   sync.Mutex
	keys [][sha256.Size]byte // newest last
	all  map[[sha256.Size]byte]*groupIndex
}

// mostIndexes is the number of indexes that are kept. An index has some 32 bytes for each row group.
const mostIndexes = 8

// indexKey identifies files as they are now, and how they are grouped.
func indexKey(by string, paths []string) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", by)
	for _, path := range paths {
		size, changed := int64(-1), int64(0)
		if info, err := filesys.Stat(path); err == nil {
			size, changed = info.Size(), info.ModTime().UnixNano()
		}
		fmt.Fprintf(h, "%q %d %d\n", absolute(path), size, changed)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// knownIndex returns the index of files that are as they were; nil: there is none.
func knownIndex(by string, paths []string) *groupIndex {
	key := indexKey(by, paths)
	indexes.mu.Lock()
	defer indexes.mu.Unlock()
	index := indexes.all[key]
	if index == nil {
		return nil
	}
	own := *index
	own.files = filesOf(&own, paths)
	return &own
}

// keepIndex keeps an index for knownIndex.
func keepIndex(by string, paths []string, index *groupIndex) {
	key := indexKey(by, paths)
	indexes.mu.Lock()
	defer indexes.mu.Unlock()
	if indexes.all == nil {
		indexes.all = map[[sha256.Size]byte]*groupIndex{}
	}
	if indexes.all[key] != nil {
		return
	}
	if len(indexes.keys) == mostIndexes {
		delete(indexes.all, indexes.keys[0])
		indexes.keys = indexes.keys[1:]
	}
	indexes.keys = append(indexes.keys, key)
	indexes.all[key] = index
}
