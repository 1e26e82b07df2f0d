package sinks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"entropipe/schemas"
)

// Folders and files that are not tables. Readers of tables never look here.
const (
	commitsFolder    = "_commits"
	stagingFolder    = "_staging"
	quarantineFolder = "_quarantine" // what repairs have moved aside
	storeFile        = commitsFolder + "/store.json"
	topicsFolder     = commitsFolder + "/topics"
	baseFile         = "base.json"
	dataSuffix       = ".parquet"
	uuidSize         = 36
)

// Keys of table folders, in the order in which they may nest.
const (
	byDataset  = "dataset"
	bySequence = "sequence"
	byDate     = "date"
)

func checkPartitionBy(by []string) error {
	order := []string{byDataset, bySequence, byDate}
	at := -1
	for _, key := range by {
		i := slices.Index(order, key)
		if i < 0 {
			return &ConfigError{"partition-by", fmt.Sprintf("unknown key %q; there are dataset, sequence and date", key)}
		}
		if i <= at {
			return &ConfigError{"partition-by", fmt.Sprintf("%s: keys stand in the order dataset, sequence, date, each once", strings.Join(by, ","))}
		}
		at = i
	}
	if by[0] != byDataset {
		return &ConfigError{"partition-by", "dataset comes first"}
	}
	return nil
}

// maxFolderValue is the length of the longest folder value. File systems allow
// 255 bytes a name, and the key stands before the value.
const maxFolderValue = 200

// folderValue encodes any bytes as the value of a folder such as dataset=…
// Different values stay different, and what comes out is a plain name:
//
//   - bytes outside [A-Za-z0-9._-] are percent-encoded, so no value nests,
//     climbs, or holds a blank;
//   - it begins with a letter, because readers take 2011-09-26 or 00 for dates
//     and numbers: else x- is put before it, and before what begins with x-,
//     so that the prefix can be taken off again;
//   - one longer than limit bytes becomes x-sha256-, the first 32 hex digits of
//     its hash and its beginning: no other value begins so.
func folderValue(value string, limit int) string {
	var b strings.Builder
	if value == "" || !isLetter(value[0]) || strings.HasPrefix(value, "x-") {
		b.WriteString("x-")
	}
	for i := range len(value) {
		if c := value[i]; isLetter(c) || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() <= limit {
		return b.String()
	}
	sum := sha256.Sum256([]byte(value))
	short := "x-sha256-" + hex.EncodeToString(sum[:16]) + "-" + b.String()
	cut := limit
	if i := strings.LastIndexByte(short[:cut], '%'); i > cut-3 {
		cut = i // not through an escape
	}
	return short[:cut]
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// topicFolder holds the commit records of a topic.
func topicFolder(topic string) string { return topicsFolder + "/" + folderValue(topic, maxFolderValue) }

// manifestFolder holds the manifests of a partition.
func manifestFolder(p partition) string {
	return topicFolder(p.topic) + "/" + strconv.Itoa(int(p.id))
}

func manifestFile(p partition, start int64) string {
	return fmt.Sprintf("%s/%020d.json", manifestFolder(p), start)
}

// manifestStart is the inverse of manifestFile, for the last element of a name.
func manifestStart(base string) (int64, bool) {
	digits, ok := strings.CutSuffix(base, ".json")
	if !ok || len(digits) != 20 {
		return 0, false
	}
	start, err := strconv.ParseInt(digits, 10, 64)
	return start, err == nil && start >= 0
}

// stagingPrefix begins the names of all staging folders of a partition; the
// start and the uuid of the attempt follow. It is shorter than a folder value,
// because all of it is one name.
func stagingPrefix(p partition) string {
	return fmt.Sprintf("%s-%d-", folderValue(p.topic, 120), p.id)
}

func stagingName(p partition, start int64, uuid string) string {
	return fmt.Sprintf("%s/%s%d-%s", stagingFolder, stagingPrefix(p), start, uuid)
}

// stagingAttempt reads start and uuid from the name of a staging folder, if it
// is one of partition p.
func stagingAttempt(p partition, name string) (start int64, uuid string, ok bool) {
	rest, ok := strings.CutPrefix(name, stagingPrefix(p))
	if !ok || len(rest) < uuidSize+2 || rest[len(rest)-uuidSize-1] != '-' {
		return 0, "", false
	}
	digits, uuid := rest[:len(rest)-uuidSize-1], rest[len(rest)-uuidSize:]
	start, err := strconv.ParseInt(digits, 10, 64)
	return start, uuid, err == nil && start >= 0 && strings.IndexByte(digits, '-') < 0
}

// folderKey is what the frames of one file have in common.
type folderKey struct{ dataset, sequence, date string }

// keyOf returns the folder key of a frame; what the output is not partitioned
// by is empty.
func (o *Output) keyOf(r *schemas.Result) folderKey {
	key := folderKey{dataset: r.Dataset}
	for _, by := range o.cfg.PartitionBy[1:] {
		switch by {
		case bySequence:
			key.sequence = r.Sequence
		case byDate:
			key.date = time.Unix(0, r.TimeNs).UTC().Format(time.DateOnly)
		}
	}
	return key
}

// dataFile names the file of a table in a commit, or in part number part of one;
// rejects have no folder key.
func (o *Output) dataFile(t *table, key folderKey, b *schemas.Batch, part int) string {
	var name strings.Builder
	name.WriteString(t.name)
	if t != rejectsTable {
		for _, by := range o.cfg.PartitionBy {
			value := map[string]string{byDataset: key.dataset, bySequence: key.sequence, byDate: key.date}[by]
			name.WriteString("/" + by + "=" + folderValue(value, maxFolderValue))
		}
	}
	fmt.Fprintf(&name, "/topic=%s/part-%d-%020d-%020d", folderValue(b.Topic, maxFolderValue), b.Partition, b.Start, b.End)
	if part > 0 {
		fmt.Fprintf(&name, "-%d", part)
	}
	return name.String() + dataSuffix
}
