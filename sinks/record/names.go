package record

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Folders and files beside the tables. Readers of tables ignore names that begin with _.
const (
	CommitsFolder    = "_commits"
	StagingFolder    = "_staging"
	QuarantineFolder = "_quarantine" // files that repairs have moved aside
	StoreFile        = CommitsFolder + "/store.json"
	TopicsFolder     = CommitsFolder + "/topics"
	BaseFile         = "base.json"
	DataSuffix       = ".parquet"
	UUIDSize         = 36 // characters of a UUID
)

// Keys of table folders, in the order in which they may nest.
const (
	ByDataset  = "dataset"
	BySequence = "sequence"
	ByDate     = "date"
)

// CheckPartitionBy checks a list of folder keys: dataset, sequence, date in this order,
// each at most once, dataset always.
func CheckPartitionBy(by []string) error {
	order := []string{ByDataset, BySequence, ByDate}
	at := -1
	for _, key := range by {
		i := slices.Index(order, key)
		if i < 0 {
			return fmt.Errorf("unknown key %q; there are dataset, sequence and date", key)
		}
		if i <= at {
			return fmt.Errorf("%s: keys stand in the order dataset, sequence, date, each once", strings.Join(by, ","))
		}
		at = i
	}
	if by[0] != ByDataset {
		return errors.New("dataset comes first")
	}
	return nil
}

// MaxFolderValue is the length in bytes of the longest folder value. File systems allow
// names of 255 bytes, and a name has the key before the value.
const MaxFolderValue = 200

// FolderValue encodes any bytes as the value of a folder such as dataset=… Different
// values have different results, and a result is a plain name of at most limit bytes:
//
//   - bytes outside [A-Za-z0-9._-] are percent-encoded, so that no value contains a
//     slash or a blank;
//   - the result begins with a letter, because readers take 2011-09-26 or 00 for dates
//     and numbers: other values get the prefix x-, as do values that begin with x-, so
//     that the prefix can be removed again;
//   - a longer result becomes x-sha256-, the first 32 hex digits of the value's hash, -
//     and its own beginning; no other value has a result that begins so.
func FolderValue(value string, limit int) string {
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
		cut = i // do not cut through an escape
	}
	return short[:cut]
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// TopicFolder returns the folder of a topic's commit records.
func TopicFolder(topic string) string { return TopicsFolder + "/" + FolderValue(topic, MaxFolderValue) }

// ManifestFolder returns the folder of a partition's manifests.
func ManifestFolder(p TopicPartition) string {
	return TopicFolder(p.Topic) + "/" + strconv.Itoa(int(p.ID))
}

// ManifestName returns the path of the manifest of p that begins at offset start.
func ManifestName(p TopicPartition, start int64) string {
	return ManifestFolder(p) + "/" + ManifestBase(start)
}

// ManifestBase returns the last element of the path of a manifest. Bases are in the order of
// their starts.
func ManifestBase(start int64) string { return fmt.Sprintf("%020d.json", start) }

// ManifestStart returns the start of a manifest from the last element of its path.
func ManifestStart(base string) (int64, bool) {
	digits, ok := strings.CutSuffix(base, ".json")
	if !ok || len(digits) != 20 {
		return 0, false
	}
	start, err := strconv.ParseInt(digits, 10, 64)
	return start, err == nil && start >= 0
}

// StagingPrefix returns the common prefix of a partition's staging folders; the start
// and the uuid of the attempt follow. Its topic is cut at 120 bytes, because all parts
// share one name.
func StagingPrefix(p TopicPartition) string {
	return fmt.Sprintf("%s-%d-", FolderValue(p.Topic, 120), p.ID)
}

// StagingName returns the staging folder of the attempt uuid that commits p from start on.
func StagingName(p TopicPartition, start int64, uuid string) string {
	return fmt.Sprintf("%s/%s%d-%s", StagingFolder, StagingPrefix(p), start, uuid)
}

// ParseStagingName returns start and uuid from the last element of a staging folder's
// path, if an attempt on partition p made the folder.
func ParseStagingName(p TopicPartition, name string) (start int64, uuid string, ok bool) {
	rest, ok := strings.CutPrefix(name, StagingPrefix(p))
	if !ok || len(rest) < UUIDSize+2 || rest[len(rest)-UUIDSize-1] != '-' {
		return 0, "", false
	}
	digits, uuid := rest[:len(rest)-UUIDSize-1], rest[len(rest)-UUIDSize:]
	start, err := strconv.ParseInt(digits, 10, 64)
	return start, uuid, err == nil && start >= 0 && strings.IndexByte(digits, '-') < 0
}

// StagedPartition returns the id of the partition whose attempt made a staging folder, from
// the last element of its path, if it is one of topic.
func StagedPartition(topic, name string) (int32, bool) {
	rest, ok := strings.CutPrefix(name, FolderValue(topic, 120)+"-")
	digits, _, found := strings.Cut(rest, "-")
	id, named := PartitionID(digits)
	if !ok || !found || !named {
		return 0, false
	}
	_, _, ours := ParseStagingName(TopicPartition{topic, id}, name)
	return id, ours
}

// TopicPartition identifies a partition of a topic.
type TopicPartition struct {
	Topic string
	ID    int32
}

// ContentName returns the path of the record of the content with this hash.
func ContentName(hash string) string { return ConfigsFolder + "/" + hash + ".json" }

// IsContentName tells whether name is the path of a content's record.
func IsContentName(name string) bool {
	hash, ok := strings.CutSuffix(path.Base(name), ".json")
	return ok && path.Dir(name) == ConfigsFolder && IsHash(hash)
}

// IsHash tells whether s is a SHA-256 in lower-case hex.
func IsHash(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == 2*sha256.Size && strings.ToLower(s) == s
}

// ConfigsFolder has a record of every content with which a manifest was committed.
const ConfigsFolder = CommitsFolder + "/configs"

// MaxBases bounds the bases of a topic, and so how often another topic id can be
// accepted.
const MaxBases = 1000

// BaseName returns the name of base number n in the folder of a topic: base.json for 1,
// base-<n>.json from 2 on.
func BaseName(n int) string {
	if n == 1 {
		return BaseFile
	}
	return fmt.Sprintf("base-%d.json", n)
}

// IsBaseName tells whether name is that of a base in the folder of a topic.
func IsBaseName(name string) bool {
	for n := 1; n <= MaxBases; n++ {
		if name == BaseName(n) {
			return true
		}
	}
	return false
}

// PartitionID returns the id of a partition from the name of its folder.
func PartitionID(name string) (int32, bool) {
	id, err := strconv.ParseInt(name, 10, 32)
	return int32(id), err == nil && id >= 0 && strconv.FormatInt(id, 10) == name
}

// NewPrefix begins the temporary name under which a record is written before it is
// linked to its own name: .new-<name>-<uuid>, in the same folder.
const NewPrefix = ".new-"

// MaxSize bounds the size of a commit record in bytes. A manifest takes about 400 bytes
// for each of its files.
const MaxSize = 256 << 20

// NewUUID returns a random (version 4) UUID.
func NewUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Frames and Tokens are the tables with a row for each frame and for each token
// sequence. Their files are published after the other files of a commit.
const (
	Frames = "frames"
	Tokens = "tokens"
)
