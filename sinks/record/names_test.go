package record

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Names that producers and users have come up with, or could.
var hostileNames = map[string]string{
	"kitti":                      "kitti",
	"a.b_c-D9":                   "a.b_c-D9",
	"":                           "x-",
	".":                          "x-.",
	"..":                         "x-..",
	"../..":                      "x-..%2F..",
	"00":                         "x-00",
	"2011-09-26":                 "x-2011-09-26",
	"12:30:00":                   "x-12%3A30%3A00",
	"x-":                         "x-x-",
	"x-00":                       "x-x-00",
	"xylo":                       "xylo",
	"-x":                         "x--x",
	"con":                        "con",
	"Con":                        "Con",
	"name.":                      "name.",
	"a b":                        "a%20b",
	"a%2Fb":                      "a%252Fb",
	"a=b":                        "a%3Db",
	"é":                          "x-%C3%A9",
	"a\x00\xff":                  "a%00%FF",
	"__HIVE_DEFAULT_PARTITION__": "x-__HIVE_DEFAULT_PARTITION__",
}

func TestFolderValueExamples(t *testing.T) {
	for value, want := range hostileNames {
		if got := FolderValue(value, MaxFolderValue); got != want {
			t.Errorf("folderValue(%q) = %q, want %q", value, got, want)
		}
	}
}

var plainValue = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9._-]|%[0-9A-F]{2})*$`)

func value(t *rapid.T, label string) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", ".", "..", "../..", "x-", "x-x-", "x-sha256-", "00", "2011-09-26", "12:30:00",
			"con", "CON", "é", strings.Repeat("y", 500)}),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 600), func(b []byte) string { return string(b) }),
		rapid.StringMatching(`x-.{0,20}`),
	).Draw(t, label)
}

// A folder value is a plain name that begins with a letter and is not too
// long, for any bytes at all.
func TestFolderValueIsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int{120, MaxFolderValue}).Draw(t, "limit")
		v := value(t, "value")
		if got := FolderValue(v, limit); !plainValue.MatchString(got) || len(got) > limit {
			t.Fatalf("folderValue(%q, %d) = %q", v, limit, got)
		}
	})
}

// Different values have different folders: two data sets never share a file.
func TestFolderValueIsInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := value(t, "a")
		b := rapid.OneOf(rapid.Just(FolderValue(a, MaxFolderValue)),
			rapid.Custom(func(t *rapid.T) string { return value(t, "b") }),
			rapid.Just(strings.ToUpper(a)), rapid.Just(a+"."), rapid.Just("x-"+a)).Draw(t, "other")
		if a != b && FolderValue(a, MaxFolderValue) == FolderValue(b, MaxFolderValue) {
			t.Fatalf("%q and %q both become %q", a, b, FolderValue(a, MaxFolderValue))
		}
	})
}

// Attempts are found again by their staging folder's name, and only by the
// partition they belong to, whatever topics are called.
func TestStagingNamesAreUnambiguous(t *testing.T) {
	topics := rapid.OneOf(rapid.StringMatching(`[a-zA-Z0-9._-]{1,249}`),
		rapid.SampledFrom([]string{"a", "a-1", "a-1-2", "..", "1-1"}))
	rapid.Check(t, func(t *rapid.T) {
		p := TopicPartition{topics.Draw(t, "topic"), rapid.Int32Range(0, 20).Draw(t, "partition")}
		q := TopicPartition{topics.Draw(t, "other topic"), rapid.Int32Range(0, 20).Draw(t, "other partition")}
		start, uuid := rapid.Int64Min(0).Draw(t, "start"), NewUUID()
		name := strings.TrimPrefix(StagingName(p, start, uuid), StagingFolder+"/")
		if len(name) > 255 {
			t.Fatalf("%q has %d bytes", name, len(name))
		}
		if gotStart, gotUUID, ok := ParseStagingName(p, name); !ok || gotStart != start || gotUUID != uuid {
			t.Fatalf("%q of %v is read as %d, %q, %t", name, p, gotStart, gotUUID, ok)
		}
		if _, _, ok := ParseStagingName(q, name); ok && p != q {
			t.Fatalf("%q of %v is taken for one of %v", name, p, q)
		}
		if id, ok := StagedPartition(p.Topic, name); !ok || id != p.ID {
			t.Fatalf("%q of %v is of partition %d, %t", name, p, id, ok)
		}
		if id, ok := StagedPartition(q.Topic, name); ok && p.Topic != q.Topic {
			t.Fatalf("%q of %v is taken for one of %s/%d", name, p, q.Topic, id)
		}
	})
}

func TestManifestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Min(0).Draw(t, "start")
		name := ManifestName(TopicPartition{"t", 3}, start)
		if got, ok := ManifestStart(name[strings.LastIndexByte(name, '/')+1:]); !ok || got != start {
			t.Fatalf("%q is read as %d, %t", name, got, ok)
		}
	})
	for _, name := range []string{"", "base.json", "1.json", "-0000000000000000001.json", "00000000000000000001.JSON",
		".new-00000000000000000001.json-x", "99999999999999999999.json"} {
		if start, ok := ManifestStart(name); ok {
			t.Errorf("%q is read as the manifest of %d", name, start)
		}
	}
}

// Keys of folders are fixed in number and order, so that outputs are alike.
func TestPartitionBy(t *testing.T) {
	for by, ok := range map[string]bool{"dataset": true, "dataset,sequence": true, "dataset,date": true,
		"dataset,sequence,date": true,
		"sequence":              false, "date,dataset": false, "dataset,dataset": false,
		"dataset,label": false, "": false} {
		if err := CheckPartitionBy(strings.Split(by, ",")); (err == nil) != ok {
			t.Errorf("partition-by %q: %v", by, err)
		}
	}
}
