package sinks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"entropipe/schemas"
)

// verified makes an output of three commits, lets the test do something to
// it, and verifies it.
func verified(t *testing.T, harm func(*memDisk)) *Report {
	t.Helper()
	d := newMemDisk()
	w := writer{store: memStore(d), end: 30, roll: roll(10), fail: isCrash, cfg: Config{Tables: []string{tableHulls}}}
	if err := w.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	harm(d)
	r, err := Verify(context.Background(), memStore(d), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Errorf("the report has no JSON: %v", err)
	}
	return r
}

func manifestOf(t *testing.T, d *memDisk, start int64) (string, *Manifest) {
	t.Helper()
	name := manifestFile(partition{logTopic, 0}, start)
	m, err := parseManifest(name, d.live.files[name].data)
	if err != nil {
		t.Fatal(err)
	}
	return name, m
}

// Everything that can be wrong with an output is found, and under its name.
func TestVerifyFindsPlantedFaults(t *testing.T) {
	edit := func(start int64, change func(m *Manifest)) func(*memDisk) {
		return func(d *memDisk) {
			name, m := manifestOf(t, d, start)
			change(m)
			d.live.files[name].data = encodeRecord(m)
		}
	}
	file := func(start int64, change func(d *memDisk, f ManifestFile)) func(*memDisk) {
		return func(d *memDisk) {
			_, m := manifestOf(t, d, start)
			change(d, m.Files[0])
		}
	}
	for name, c := range map[string]struct {
		check string
		harm  func(*memDisk)
	}{
		"file missing":        {checkFiles, file(0, func(d *memDisk, f ManifestFile) { delete(d.live.files, f.Path) })},
		"newest file missing": {checkFiles, file(20, func(d *memDisk, f ManifestFile) { delete(d.live.files, f.Path) })},
		"older file staged": {checkFiles, file(10, func(d *memDisk, f ManifestFile) {
			d.live.files[f.Staged] = d.live.files[f.Path]
			delete(d.live.files, f.Path)
		})},
		"file short":  {checkFiles, file(0, func(d *memDisk, f ManifestFile) { n := d.live.files[f.Path]; n.data = n.data[:len(n.data)-1] })},
		"bit flipped": {checkSums, file(0, func(d *memDisk, f ManifestFile) { d.live.files[f.Path].data[100] ^= 1 })},
		"name taken by another": {checkFiles, file(20, func(d *memDisk, f ManifestFile) {
			d.live.dirs[path.Dir(f.Staged)] = true
			d.live.files[f.Staged] = d.live.files[f.Path]
		})},
		"staged bit flipped": {checkSums, file(20, func(d *memDisk, f ManifestFile) {
			d.live.files[f.Staged] = d.live.files[f.Path]
			delete(d.live.files, f.Path)
			d.live.files[f.Staged].data[100] ^= 1
		})},
		"newest bit flipped": {checkSums, file(20, func(d *memDisk, f ManifestFile) { d.live.files[f.Path].data[100] ^= 1 })},
		"sum changed":        {checkSums, edit(10, func(m *Manifest) { m.Files[1].SHA256 = "00" })},
		"rows changed":       {checkRows, edit(10, func(m *Manifest) { m.Files[1].Rows++ })},
		"files exchanged": {checkSums, edit(10, func(m *Manifest) {
			m.Files[0].Path, m.Files[1].Path = m.Files[1].Path, m.Files[0].Path
			m.Files[0].Bytes, m.Files[1].Bytes = m.Files[1].Bytes, m.Files[0].Bytes
		})},
		"frames count changed":   {checkAccounts, edit(10, func(m *Manifest) { m.Counts.Frames++ })},
		"message is a hole":      {checkAccounts, edit(10, func(m *Manifest) { m.Counts.Messages--; m.Counts.Holes++ })},
		"file left out":          {checkOrphans, edit(10, func(m *Manifest) { m.Files = m.Files[1:] })},
		"counts do not add up":   {checkRecords, edit(10, func(m *Manifest) { m.Counts.Holes++ })},
		"manifest missing":       {checkChain, func(d *memDisk) { delete(d.live.files, manifestFile(partition{logTopic, 0}, 10)) }},
		"first manifest missing": {checkChain, func(d *memDisk) { delete(d.live.files, manifestFile(partition{logTopic, 0}, 0)) }},
		"last record not kept": {checkChain, func(d *memDisk) {
			gap := goodManifest()
			*gap = Manifest{Format: formatVersion, UUID: gap.UUID, Topic: logTopic, Start: 30, End: 40, Gap: true, Counts: Counts{Holes: 10}}
			d.live.files[manifestFile(gap.of(), 30)] = &inode{data: encodeRecord(gap)}
		}},
		"range twice": {checkChain, func(d *memDisk) {
			_, m := manifestOf(t, d, 10)
			m.Start, m.Files, m.Counts = 15, nil, Counts{Messages: 5, Frames: 0}
			d.live.files[manifestFile(m.of(), 15)] = &inode{data: encodeRecord(m)}
		}},
		"manifest damaged": {checkRecords, func(d *memDisk) { d.live.files[manifestFile(partition{logTopic, 0}, 10)].data = []byte("{}") }},
		"store damaged":    {checkRecords, func(d *memDisk) { d.live.files[storeFile].data = []byte("{}") }},
		"base missing":     {checkRecords, func(d *memDisk) { delete(d.live.files, topicFolder(logTopic)+"/"+baseFile) }},
		"base moved": {checkChain, func(d *memDisk) {
			name := topicFolder(logTopic) + "/" + baseFile
			b, err := parseBase(name, d.live.files[name].data, logTopic)
			if err != nil {
				t.Fatal(err)
			}
			b.Starts["0"] = 5
			d.live.files[name].data = encodeRecord(b)
		}},
		"digit of the base changed": {checkRecords, func(d *memDisk) {
			b := d.live.files[topicFolder(logTopic)+"/"+baseFile]
			b.data = bytes.Replace(b.data, []byte(`"0": 0`), []byte(`"0": 5`), 1)
		}},
		"manifest of format 1": {checkRecords, edit(10, func(m *Manifest) { m.Format = 1 })},
		"newest of format 1":   {checkRecords, edit(20, func(m *Manifest) { m.Format = 1 })},
		"base of format 1": {checkRecords, func(d *memDisk) {
			name := topicFolder(logTopic) + "/" + baseFile
			b, err := parseBase(name, d.live.files[name].data, logTopic)
			if err != nil {
				t.Fatal(err)
			}
			b.Format = 1
			d.live.files[name].data = encodeRecord(b)
		}},
		"file of schema 1": {checkRows, func(d *memDisk) {
			name, m := manifestOf(t, d, 10)
			i := slices.IndexFunc(m.Files, func(f ManifestFile) bool { return f.Table == tableHulls })
			file := d.live.files[m.Files[i].Path]
			key := []byte("entropipe.schema\x18\x012") // in Thrift: a field further, a text of one byte
			if bytes.Count(file.data, key) != 1 {
				t.Fatalf("the footer of %s has not its schema once", m.Files[i].Path)
			}
			file.data = bytes.Replace(file.data, key, []byte("entropipe.schema\x18\x011"), 1)
			sum := sha256.Sum256(file.data)
			m.Files[i].SHA256 = hex.EncodeToString(sum[:])
			d.live.files[name].data = encodeRecord(m)
		}},
		"stranger":         {checkRecords, func(d *memDisk) { d.live.files[topicFolder(logTopic)+"/0/note.txt"] = &inode{} }},
		"orphan":           {checkOrphans, func(d *memDisk) { d.live.dirs["frames"] = true; d.live.files["frames/copy.parquet"] = &inode{} }},
		"orphan elsewhere": {checkOrphans, func(d *memDisk) { d.live.files["copy.parquet"] = &inode{} }},
	} {
		t.Run(name, func(t *testing.T) {
			r := verified(t, c.harm)
			if r.OK || !slices.ContainsFunc(r.Faults, func(f Fault) bool { return f.Check == c.check }) {
				t.Errorf("no fault of check %s:\n%s", c.check, r)
			}
			if !strings.Contains(r.String(), "FAIL "+c.check) {
				t.Errorf("the text does not say so:\n%s", r)
			}
		})
	}
}

// Law: who writes accepts no record of another format among its own.
func TestRecordsOfAnotherFormatStopWriters(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name string
		harm func(*memDisk)
	}{
		{"base", func(d *memDisk) {
			name := topicFolder(logTopic) + "/" + baseFile
			b, err := parseBase(name, d.live.files[name].data, logTopic)
			if err != nil {
				t.Fatal(err)
			}
			b.Format = 1
			d.live.files[name].data = encodeRecord(b)
		}},
		{"manifest", func(d *memDisk) {
			name, m := manifestOf(t, d, 10)
			m.Format = 1
			d.live.files[name].data = encodeRecord(m)
		}},
	} {
		d := newMemDisk()
		takeOver(t, memStore(d), 0, 20, 10)
		c.harm(d)
		o, err := Open(ctx, memStore(d), testTables)
		if err != nil {
			t.Fatal(err)
		}
		var format *FormatError
		if pos, err := o.Resume(ctx, logTopic, 0); !errors.As(err, &format) || format.Format != 1 {
			t.Errorf("a %s of format 1: resumed at %+v, error %v", c.name, pos, err)
		}
	}
}

// What is no fault: staged files of the newest manifest, attempts in staging,
// files of others beside the tables, records being made.
func TestVerifyAcceptsWorkInProgress(t *testing.T) {
	r := verified(t, func(d *memDisk) {
		_, m := manifestOf(t, d, 20)
		d.live.dirs[path.Dir(m.Files[0].Staged)] = true
		d.live.files[m.Files[0].Staged] = d.live.files[m.Files[0].Path]
		delete(d.live.files, m.Files[0].Path)
		other := stagingName(m.of(), 30, newUUID())
		d.live.dirs[other] = true
		d.live.files[other+"/frames-0"] = &inode{data: []byte("half a fi")}
		d.live.files["README"] = &inode{}
		d.live.files[topicFolder(logTopic)+"/0/"+aside+"x"] = &inode{}
	})
	if !r.OK {
		t.Errorf("faults:\n%s", r)
	}
	if i := slices.IndexFunc(r.Tables, func(t TableReport) bool { return t.Table == tableFrames }); i < 0 || r.Tables[i].Pending != 1 {
		t.Errorf("tables %+v: want one pending file of frames", r.Tables)
	}
	if len(r.Notes) != 2 {
		t.Errorf("notes %q: want one of the attempt and one of README", r.Notes)
	}
}

// A gap is committed without files, inherits the last record, and is printed.
func TestGap(t *testing.T) {
	ctx, d := context.Background(), newMemDisk()
	takeOver(t, memStore(d), 0, 10, 10)
	o, err := Open(ctx, memStore(d), testTables)
	if err != nil {
		t.Fatal(err)
	}
	pos, err := o.Resume(ctx, logTopic, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Commit(ctx, &schemas.Batch{Topic: logTopic, Start: 10, End: 25, Holes: 15, Last: pos.Last, Gap: true}); err != nil {
		t.Fatal(err)
	}
	again, err := o.Resume(ctx, logTopic, 0)
	if err != nil || again.Next != 25 || again.Last == nil || *again.Last != *pos.Last {
		t.Errorf("resumed at %+v (%v), want 25 with the last record inherited", again, err)
	}
	r, err := Verify(ctx, memStore(d), VerifyOptions{})
	if err != nil || !r.OK || !strings.Contains(r.String(), "gap: offsets 10 to 25") {
		t.Errorf("%v:\n%s", err, r)
	}
	if left, _ := d.readDir(stagingFolder); len(left) > 0 {
		t.Errorf("a gap has staged %s", left[0].Name())
	}
}

// An output that does not reach as far as the caller knows it must is faulted.
func TestVerifyExpectedEnds(t *testing.T) {
	d := newMemDisk()
	takeOver(t, memStore(d), 0, 10, 10)
	for ends, ok := range map[int64]bool{0: true, 10: true, 11: false} {
		r, err := Verify(context.Background(), memStore(d), VerifyOptions{Ends: map[string]map[int32]int64{logTopic: {0: ends}, "other": {0: 0}}})
		if err != nil || r.OK != ok {
			t.Errorf("expected to reach %d (%v): ok %t\n%s", ends, err, r.OK, r)
		}
	}
}

// Beside a writer at work, Verify never sees a fault.
func TestVerifyBesideWriter(t *testing.T) {
	d := newMemDisk()
	takeOver(t, memStore(d), 0, 2, 2)
	done := make(chan error)
	go func() {
		w := writer{store: memStore(d), end: 120, roll: roll(3), fail: isCrash, cfg: testTables}
		done <- w.run(context.Background())
	}()
	runs := 0
	for {
		r, err := Verify(context.Background(), memStore(d), VerifyOptions{})
		if err != nil || !r.OK {
			t.Errorf("run %d (%v):\n%s", runs, err, r)
		}
		runs++
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			t.Logf("%d runs", runs)
			return
		default:
		}
	}
}

func TestDescribe(t *testing.T) {
	d := newMemDisk()
	takeOver(t, memStore(d), 0, 30, 10)
	s, err := Describe(context.Background(), memStore(d))
	if err != nil {
		t.Fatal(err)
	}
	want := logBatch(0, 30)
	if len(s.Partitions) != 1 || s.Partitions[0].End != 30 || s.Partitions[0].Manifests != 3 || s.Partitions[0].Frames != int64(len(want.Results)) || s.Partitions[0].Rejects != int64(len(want.Rejects)) {
		t.Errorf("partitions %+v", s.Partitions)
	}
	if s.First == nil || s.First.UnixNano() != want.Results[0].TimeNs || s.Last.UnixNano() != want.Results[len(want.Results)-1].TimeNs {
		t.Errorf("times %v to %v, want %d to %d", s.First, s.Last, want.Results[0].TimeNs, want.Results[len(want.Results)-1].TimeNs)
	}
	if text := s.String(); !strings.Contains(text, "points/0: offsets 0 to 30 in 3 commits") {
		t.Error(text)
	}
}
