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

// Folders and files that are not tables. Readers of tables never look here.
const (
	CommitsFolder    = "_commits"
	StagingFolder    = "_staging"
	QuarantineFolder = "_quarantine" // what repairs have moved aside
	StoreFile        = CommitsFolder + "/store.json"
	TopicsFolder     = CommitsFolder + "/topics"
	BaseFile         = "base.json"
	DataSuffix       = ".parquet"
	UUIDSize         = 36
)

// Keys of table folders, in the order in which they may nest.
const (
	ByDataset  = "dataset"
	BySequence = "sequence"
	ByDate     = "date"
)

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

// MaxFolderValue is the length of the longest folder value. File systems allow
// 255 bytes a name, and the key stands before the value.
const MaxFolderValue = 200

// FolderValue encodes any bytes as the value of a folder such as dataset=…
// Different values stay different, and what comes out is a plain name:
//
//   - bytes outside [A-Za-z0-9._-] are percent-encoded, so no value nests,
//     climbs, or holds a blank;
//   - it begins with a letter, because readers take 2011-09-26 or 00 for dates
//     and numbers: else x- is put before it, and before what begins with x-,
//     so that the prefix can be taken off again;
//   - one longer than limit bytes becomes x-sha256-, the first 32 hex digits of
//     its hash and its beginning: no other value begins so.
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
		cut = i // not through an escape
	}
	return short[:cut]
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// TopicFolder holds the commit records of a topic.
func TopicFolder(topic string) string { return TopicsFolder + "/" + FolderValue(topic, MaxFolderValue) }

// ManifestFolder holds the manifests of a partition.
func ManifestFolder(p TopicPartition) string {
	return TopicFolder(p.Topic) + "/" + strconv.Itoa(int(p.ID))
}

// ManifestName names the manifest of p that begins at offset start.
func ManifestName(p TopicPartition, start int64) string {
	return fmt.Sprintf("%s/%020d.json", ManifestFolder(p), start)
}

// ManifestStart is the inverse of ManifestName, for the last element of a name.
func ManifestStart(base string) (int64, bool) {
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
func stagingPrefix(p TopicPartition) string {
	return fmt.Sprintf("%s-%d-", FolderValue(p.Topic, 120), p.ID)
}

// StagingName names the staging folder of the attempt uuid to commit p from start on.
func StagingName(p TopicPartition, start int64, uuid string) string {
	return fmt.Sprintf("%s/%s%d-%s", StagingFolder, stagingPrefix(p), start, uuid)
}

// ParseStagingName reads start and uuid from the name of a staging folder, if it
// is one of partition p.
func ParseStagingName(p TopicPartition, name string) (start int64, uuid string, ok bool) {
	rest, ok := strings.CutPrefix(name, stagingPrefix(p))
	if !ok || len(rest) < UUIDSize+2 || rest[len(rest)-UUIDSize-1] != '-' {
		return 0, "", false
	}
	digits, uuid := rest[:len(rest)-UUIDSize-1], rest[len(rest)-UUIDSize:]
	start, err := strconv.ParseInt(digits, 10, 64)
	return start, uuid, err == nil && start >= 0 && strings.IndexByte(digits, '-') < 0
}

// TopicPartition names a partition of a topic.
type TopicPartition struct {
	Topic string
	ID    int32
}

// ContentName names the record of the content with this hash.
func ContentName(hash string) string { return ConfigsFolder + "/" + hash + ".json" }

// IsContentName tells whether name is that of a content's record.
func IsContentName(name string) bool {
	hash, ok := strings.CutSuffix(path.Base(name), ".json")
	return ok && path.Dir(name) == ConfigsFolder && IsHash(hash)
}

// IsHash tells whether s is a SHA-256 in lower-case hex.
func IsHash(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == 2*sha256.Size && strings.ToLower(s) == s
}

// ConfigsFolder holds a record for every content configuration with which a
// manifest was committed.
const ConfigsFolder = CommitsFolder + "/configs"

// MaxBases bounds how often a topic's id is accepted. It keeps a folder of
// strange files from being read for ever.
const MaxBases = 1000

// BaseName names a base in the folder of a topic, from 1 on.
func BaseName(n int) string {
	if n == 1 {
		return BaseFile
	}
	return fmt.Sprintf("base-%d.json", n)
}

// IsBaseName tells whether a file in the folder of a topic is a base.
func IsBaseName(name string) bool {
	for n := 1; n <= MaxBases; n++ {
		if name == BaseName(n) {
			return true
		}
	}
	return false
}

// PartitionID reads the name of a partition's folder.
func PartitionID(name string) (int32, bool) {
	id, err := strconv.ParseInt(name, 10, 32)
	return int32(id), err == nil && id >= 0 && strconv.FormatInt(id, 10) == name
}

// NewPrefix is how the name of a file begins that will be linked to a record's
// name. It is in the same folder and ends in a uuid.
const NewPrefix = ".new-"

// MaxSize bounds the size of a commit record that is read into memory. A
// manifest takes some 400 bytes a file.
const MaxSize = 256 << 20

// NewUUID returns a random (version 4) UUID.
func NewUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Tables with a row for each frame and each token sequence. Their files are
// published after all others of a commit.
const (
	Frames = "frames"
	Tokens = "tokens"
)
