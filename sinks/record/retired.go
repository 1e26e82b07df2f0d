package record

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Retired is _commits/topics/<topic>/<partition>/<start>.retired.json: another output holds the
// rows of the commit that begins at Start, and the files of the commit are gone or will be. The
// manifest stays.
type Retired struct {
	Format    int       `json:"format"`
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Start     int64     `json:"start"`
	End       int64     `json:"end"`
	UUID      string    `json:"uuid"`       // uuid in the manifest
	CoveredBy string    `json:"covered_by"` // uuid of the output that holds the rows
	Created   time.Time `json:"created"`
	Writer    string    `json:"writer,omitempty"`
}

const retiredSuffix = ".retired.json"

// RetiredName returns the path of the record that retires the commit of p that begins at start.
func RetiredName(p TopicPartition, start int64) string {
	return fmt.Sprintf("%s/%020d%s", ManifestFolder(p), start, retiredSuffix)
}

// RetiredStart returns the start of the commit from the last element of the path of such a record.
func RetiredStart(base string) (int64, bool) {
	digits, ok := strings.CutSuffix(base, retiredSuffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	start, err := strconv.ParseInt(digits, 10, 64)
	return start, err == nil && start >= 0
}

// ParseRetired decodes and checks such a record.
func ParseRetired(name string, data []byte) (*Retired, error) {
	r := new(Retired)
	if err := Parse(name, data, r); err != nil {
		return nil, err
	}
	switch want := RetiredName(TopicPartition{r.Topic, r.Partition}, r.Start); {
	case len(r.UUID) != UUIDSize || len(r.CoveredBy) != UUIDSize || r.Partition < 0 || r.Start < 0 || r.End <= r.Start:
		return nil, &DamagedError{name, errors.New("it names no commit, or no output that covers it")}
	case name != want:
		return nil, &DamagedError{name, fmt.Errorf("what it says belongs into %s", want)}
	}
	return r, nil
}
