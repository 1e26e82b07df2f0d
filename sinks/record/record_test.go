package record

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/schemas"
)

func goodManifest() *Manifest {
	m := &Manifest{Format: FormatVersion, UUID: NewUUID(), Topic: "points", Partition: 2, Start: 10, End: 20,
		TopicID: "ABEiM0RVZneImaq7zN3u_w", ContentHash: "ab", AdoptedFrom: NewUUID(),
		Counts: Counts{Messages: 7, Chunks: 1, Frames: 12, Rejects: 1, Holes: 2},
		Chunks: &Chunks{Ahead: []int64{20, 22}, Closed: []string{"0123456789abcdef"}},
		Last:   &schemas.RecordID{Offset: 19, Timestamp: 5, CRC32C: 7}}
	m.Files = []File{{Table: "frames", Path: "frames/dataset=a/topic=points/part-2-x.parquet",
		Staged: StagingName(m.TopicPartition(), 10, m.UUID) + "/frames-0", Rows: 12, Bytes: 5, SHA256: "00"}}
	return m
}

func TestManifestRoundTrip(t *testing.T) {
	m := goodManifest()
	got, err := ParseManifest(ManifestName(m.TopicPartition(), m.Start), Encode(m))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got); diff != "" {
		t.Error(diff)
	}
}

// A manifest that contradicts itself or its name is refused: acting on it
// could move any file anywhere.
func TestDamagedManifests(t *testing.T) {
	for name, damage := range map[string]func(*Manifest){
		"later format":        func(m *Manifest) { m.Format = FormatVersion + 1 },
		"no format":           func(m *Manifest) { m.Format = 0 },
		"uuid":                func(m *Manifest) { m.UUID = "x" },
		"other topic":         func(m *Manifest) { m.Topic = "other" },
		"other partition":     func(m *Manifest) { m.Partition = 3 },
		"other start":         func(m *Manifest) { m.Start = 11 },
		"empty":               func(m *Manifest) { m.End = 10 },
		"negative count":      func(m *Manifest) { m.Counts.Messages, m.Counts.Holes = -1, 10 },
		"overflowing counts":  func(m *Manifest) { m.Counts.Messages, m.Counts.Holes = 1<<62, 10-1<<62 },
		"counts":              func(m *Manifest) { m.Counts.Holes = 3 },
		"negative chunks":     func(m *Manifest) { m.Counts.Chunks, m.Counts.Holes = -1, 3 },
		"overflowing chunks":  func(m *Manifest) { m.Counts.Chunks, m.Counts.Holes = 1<<62, 2-1<<62 },
		"uncounted chunks":    func(m *Manifest) { m.Counts.Chunks = 2 },
		"chunks ahead":        func(m *Manifest) { m.Chunks = &Chunks{Ahead: []int64{19}} },
		"chunks in disorder":  func(m *Manifest) { m.Chunks = &Chunks{Ahead: []int64{25, 22}} },
		"chunks twice":        func(m *Manifest) { m.Chunks = &Chunks{Ahead: []int64{25, 25}} },
		"closed without end":  func(m *Manifest) { m.Chunks = &Chunks{Closed: make([]string, schemas.MaxClosed+1)} },
		"adopted from nobody": func(m *Manifest) { m.AdoptedFrom = "x" },
		"gap with messages":   func(m *Manifest) { m.Gap = true },
		"last after end":      func(m *Manifest) { m.Last.Offset = 20 },
		"last before start":   func(m *Manifest) { m.Last.Offset = 9 },
		"no last":             func(m *Manifest) { m.Last = nil },
		"path climbs":         func(m *Manifest) { m.Files[0].Path = "frames/../../etc/passwd.parquet" },
		"path absolute":       func(m *Manifest) { m.Files[0].Path = "/frames/a.parquet" },
		"path of other table": func(m *Manifest) { m.Files[0].Path = "hulls/a.parquet" },
		"path of a record":    func(m *Manifest) { m.Files[0].Path = "frames/a.json" },
		"staged elsewhere":    func(m *Manifest) { m.Files[0].Staged = "_commits/store.json" },
		"staged by another": func(m *Manifest) {
			m.Files[0].Staged = StagingName(m.TopicPartition(), 10, NewUUID()) + "/frames-0"
		},
		"staged climbs": func(m *Manifest) {
			m.Files[0].Staged = StagingName(m.TopicPartition(), 10, m.UUID) + "/../../_commits/store.json"
		},
		"negative file length": func(m *Manifest) { m.Files[0].Bytes = -1 },
		"no checksum":          func(m *Manifest) { m.Files[0].SHA256 = "" },
	} {
		m := goodManifest()
		file := ManifestName(m.TopicPartition(), m.Start)
		damage(m)
		if got, err := ParseManifest(file, Encode(m)); err == nil {
			t.Errorf("%s: accepted as %+v", name, got)
		} else if !strings.Contains(err.Error(), file) {
			t.Errorf("%s: the error does not name the file: %v", name, err)
		}
	}
}

func TestDamagedStoreAndBase(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"format":1}`,
		`{"format":3,"schema":3,"uuid":"` + NewUUID() + `","partition_by":["dataset"]}`,
		`{"format":2,"uuid":"` + NewUUID() + `","partition_by":["dataset"]}`,
		`{"format":2,"schema":1,"uuid":"` + NewUUID() + `","partition_by":["dataset"]}`,
		`{"format":1,"uuid":"` + NewUUID() + `","partition_by":[]}`,
		`{"format":1,"uuid":"` + NewUUID() + `","partition_by":["label"]}`} {
		if r, err := ParseStore([]byte(text)); err == nil {
			t.Errorf("store %s: accepted as %+v", text, r)
		}
	}
	for _, text := range []string{"", "null", `{"format":1,"topic":"other"}`,
		`{"format":1,"topic":"t","starts":{"a":1}}`, `{"format":1,"topic":"t","starts":{"-1":1}}`,
		`{"format":1,"topic":"t","starts":{"0":-1}}`} {
		if r, err := ParseBase("base.json", []byte(text), "t"); err == nil {
			t.Errorf("base %s: accepted as %+v", text, r)
		}
	}
	b, err := ParseBase("base.json", []byte(`{"format":1,"topic":"t","starts":{"0":5}}`), "t")
	if err != nil || b.Start(0) != 5 || b.Start(1) != 0 {
		t.Errorf("base %+v, %v: want 5 for partition 0 and 0 for one added later", b, err)
	}
}

// Law: a bit of a commit record that has changed is found.
func TestEveryFlippedBitIsFound(t *testing.T) {
	m := goodManifest()
	name := ManifestName(m.TopicPartition(), m.Start)
	data := Encode(m)
	for i := range data {
		for bit := range 8 {
			data[i] ^= 1 << bit
			if _, err := ParseManifest(name, data); err == nil {
				t.Errorf("bit %d of byte %d is not seen: …%s", bit, i, data[max(0, i-10):min(len(data), i+10)])
			}
			data[i] ^= 1 << bit
		}
	}
	for n := range data {
		if got, err := ParseManifest(name, data[:n]); err == nil {
			t.Errorf("its first %d bytes are accepted as %+v", n, got)
		}
		// as file systems leave a file whose length came before its bytes
		torn := append(slices.Clone(data[:n]), make([]byte, len(data)-n)...)
		if got, err := ParseManifest(name, torn); err == nil {
			t.Errorf("its first %d bytes and zeroes are accepted as %+v", n, got)
		}
		if _, err := ParseManifest(name, append(slices.Clone(data), data[n:]...)); err == nil {
			t.Errorf("bytes from %d on twice are accepted", n)
		}
	}
}

// Records of programs that wrote no checksum are read.
func TestRecordsWithoutAChecksum(t *testing.T) {
	m := goodManifest()
	data := Encode(m)
	data = append(data[:bytes.LastIndex(data, []byte(sumBegin))], "\n}\n"...)
	got, err := ParseManifest(ManifestName(m.TopicPartition(), m.Start), data)
	if err != nil || cmp.Diff(m, got) != "" {
		t.Errorf("%v: %s", err, cmp.Diff(m, got))
	}
}

// No bytes in a manifest's place panic, and what is accepted keeps its files
// where they belong.
func FuzzManifest(f *testing.F) {
	m := goodManifest()
	name := ManifestName(m.TopicPartition(), m.Start)
	f.Add(Encode(m))
	f.Add([]byte(`{"format":1,"files":[{}]}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := ParseManifest(name, data)
		if err != nil {
			return
		}
		for _, file := range got.Files {
			if !strings.HasPrefix(file.Staged, StagingFolder+"/points-2-10-") || strings.HasPrefix(file.Path, "_") ||
				!fs.ValidPath(file.Path) || !strings.HasSuffix(file.Path, DataSuffix) {
				t.Errorf("%s is accepted with file %+v", data, file)
			}
		}
	})
}
