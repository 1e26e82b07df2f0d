package read_test

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
	"entropipe/sinks"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// verified makes an output of three commits, lets the test do something to
// it, and verifies it.
func verified(t *testing.T, harm func(*sinktest.MemDisk)) *read.Report {
	t.Helper()
	d := sinktest.NewMemDisk()
	w := sinktest.Writer{Store: sinktest.MemStore(d), End: 30, Roll: sinktest.Roll(10), Fail: sinktest.IsCrash,
		Tables: []string{tables.Hulls}}
	if err := w.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	harm(d)
	r, err := read.Verify(context.Background(), sinktest.MemStore(d), read.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Errorf("the report has no JSON: %v", err)
	}
	return r
}

// Everything that can be wrong with an output is found, and under its name.
func TestVerifyFindsPlantedFaults(t *testing.T) {
	edit := func(start int64, change func(m *record.Manifest)) func(*sinktest.MemDisk) {
		return func(d *sinktest.MemDisk) {
			name, m := sinktest.ManifestOf(t, d, start)
			change(m)
			d.Live.Files[name].Data = record.Encode(m)
		}
	}
	file := func(start int64, change func(d *sinktest.MemDisk, f record.File)) func(*sinktest.MemDisk) {
		return func(d *sinktest.MemDisk) {
			_, m := sinktest.ManifestOf(t, d, start)
			change(d, m.Files[0])
		}
	}
	for name, c := range map[string]struct {
		check string
		harm  func(*sinktest.MemDisk)
	}{
		"adopted from itself": {"records", func(d *sinktest.MemDisk) {
			o := sinktest.OpenOn(t, sinktest.MemStore(d))
			edit(10, func(m *record.Manifest) { m.AdoptedFrom = o.UUID() })(d)
		}},
		"file missing": {"files", file(0, func(d *sinktest.MemDisk, f record.File) {
			delete(d.Live.Files, f.Path)
		})},
		"newest file missing": {"files", file(20, func(d *sinktest.MemDisk, f record.File) {
			delete(d.Live.Files, f.Path)
		})},
		"older file staged": {"files", file(10, func(d *sinktest.MemDisk, f record.File) {
			d.Live.Files[f.Staged] = d.Live.Files[f.Path]
			delete(d.Live.Files, f.Path)
		})},
		"file short": {"files", file(0, func(d *sinktest.MemDisk, f record.File) {
			n := d.Live.Files[f.Path]
			n.Data = n.Data[:len(n.Data)-1]
		})},
		"bit flipped": {"checksums", file(0, func(d *sinktest.MemDisk, f record.File) {
			d.Live.Files[f.Path].Data[100] ^= 1
		})},
		"name taken by another": {"files", file(20, func(d *sinktest.MemDisk, f record.File) {
			d.Live.Dirs[path.Dir(f.Staged)] = true
			d.Live.Files[f.Staged] = d.Live.Files[f.Path]
		})},
		"staged bit flipped": {"checksums", file(20, func(d *sinktest.MemDisk, f record.File) {
			d.Live.Files[f.Staged] = d.Live.Files[f.Path]
			delete(d.Live.Files, f.Path)
			d.Live.Files[f.Staged].Data[100] ^= 1
		})},
		"newest bit flipped": {"checksums", file(20, func(d *sinktest.MemDisk, f record.File) {
			d.Live.Files[f.Path].Data[100] ^= 1
		})},
		"sum changed":  {"checksums", edit(10, func(m *record.Manifest) { m.Files[1].SHA256 = "00" })},
		"rows changed": {"rows", edit(10, func(m *record.Manifest) { m.Files[1].Rows++ })},
		"files exchanged": {"checksums", edit(10, func(m *record.Manifest) {
			m.Files[0].Path, m.Files[1].Path = m.Files[1].Path, m.Files[0].Path
			m.Files[0].Bytes, m.Files[1].Bytes = m.Files[1].Bytes, m.Files[0].Bytes
		})},
		"frames count changed": {"accounts", edit(10, func(m *record.Manifest) { m.Counts.Frames++ })},
		"message is a hole": {"accounts", edit(10, func(m *record.Manifest) {
			m.Counts.Messages--
			m.Counts.Holes++
		})},
		"file left out":        {"orphans", edit(10, func(m *record.Manifest) { m.Files = m.Files[1:] })},
		"counts do not add up": {"records", edit(10, func(m *record.Manifest) { m.Counts.Holes++ })},
		"manifest missing": {"chain", func(d *sinktest.MemDisk) {
			delete(d.Live.Files, record.ManifestName(record.TopicPartition{Topic: sinktest.LogTopic, ID: 0}, 10))
		}},
		"first manifest missing": {"chain", func(d *sinktest.MemDisk) {
			delete(d.Live.Files, record.ManifestName(record.TopicPartition{Topic: sinktest.LogTopic, ID: 0}, 0))
		}},
		"last record not kept": {"chain", func(d *sinktest.MemDisk) {
			gap := &record.Manifest{Format: record.FormatVersion, UUID: record.NewUUID(), Topic: sinktest.LogTopic,
				Start: 30, End: 40, Gap: true, Counts: record.Counts{Holes: 10}}
			d.Live.Files[record.ManifestName(gap.TopicPartition(), 30)] = &sinktest.Inode{Data: record.Encode(gap)}
		}},
		"range twice": {"chain", func(d *sinktest.MemDisk) {
			_, m := sinktest.ManifestOf(t, d, 10)
			m.Start, m.Files, m.Counts = 15, nil, record.Counts{Messages: 5, Frames: 0}
			d.Live.Files[record.ManifestName(m.TopicPartition(), 15)] = &sinktest.Inode{Data: record.Encode(m)}
		}},
		"manifest damaged": {"records", func(d *sinktest.MemDisk) {
			d.Live.Files[record.ManifestName(record.TopicPartition{Topic: sinktest.LogTopic, ID: 0},
				10)].Data = []byte("{}")
		}},
		"store damaged": {"records", func(d *sinktest.MemDisk) { d.Live.Files[record.StoreFile].Data = []byte("{}") }},
		"base missing": {"records", func(d *sinktest.MemDisk) {
			delete(d.Live.Files, record.TopicFolder(sinktest.LogTopic)+"/"+record.BaseFile)
		}},
		"base moved": {"chain", func(d *sinktest.MemDisk) {
			name := record.TopicFolder(sinktest.LogTopic) + "/" + record.BaseFile
			b, err := record.ParseBase(name, d.Live.Files[name].Data, sinktest.LogTopic)
			if err != nil {
				t.Fatal(err)
			}
			b.Starts["0"] = 5
			d.Live.Files[name].Data = record.Encode(b)
		}},
		"digit of the base changed": {"records", func(d *sinktest.MemDisk) {
			b := d.Live.Files[record.TopicFolder(sinktest.LogTopic)+"/"+record.BaseFile]
			b.Data = bytes.Replace(b.Data, []byte(`"0": 0`), []byte(`"0": 5`), 1)
		}},
		"manifest of format 1": {"records", edit(10, func(m *record.Manifest) { m.Format = 1 })},
		"newest of format 1":   {"records", edit(20, func(m *record.Manifest) { m.Format = 1 })},
		"base of format 1": {"records", func(d *sinktest.MemDisk) {
			name := record.TopicFolder(sinktest.LogTopic) + "/" + record.BaseFile
			b, err := record.ParseBase(name, d.Live.Files[name].Data, sinktest.LogTopic)
			if err != nil {
				t.Fatal(err)
			}
			b.Format = 1
			d.Live.Files[name].Data = record.Encode(b)
		}},
		"file of schema 1": {"rows", func(d *sinktest.MemDisk) {
			name, m := sinktest.ManifestOf(t, d, 10)
			i := slices.IndexFunc(m.Files, func(f record.File) bool { return f.Table == tables.Hulls })
			file := d.Live.Files[m.Files[i].Path]
			key := []byte("entropipe.schema\x18\x012") // in Thrift: a field further, a text of one byte
			if bytes.Count(file.Data, key) != 1 {
				t.Fatalf("the footer of %s has not its schema once", m.Files[i].Path)
			}
			file.Data = bytes.Replace(file.Data, key, []byte("entropipe.schema\x18\x011"), 1)
			sum := sha256.Sum256(file.Data)
			m.Files[i].SHA256 = hex.EncodeToString(sum[:])
			d.Live.Files[name].Data = record.Encode(m)
		}},
		"stranger": {"records", func(d *sinktest.MemDisk) {
			d.Live.Files[record.TopicFolder(sinktest.LogTopic)+"/0/note.txt"] = &sinktest.Inode{}
		}},
		"orphan": {"orphans", func(d *sinktest.MemDisk) {
			d.Live.Dirs["frames"] = true
			d.Live.Files["frames/copy.parquet"] = &sinktest.Inode{}
		}},
		"orphan elsewhere": {"orphans", func(d *sinktest.MemDisk) { d.Live.Files["copy.parquet"] = &sinktest.Inode{} }},
	} {
		t.Run(name, func(t *testing.T) {
			r := verified(t, c.harm)
			if r.OK || !slices.ContainsFunc(r.Faults, func(f read.Fault) bool { return f.Check == c.check }) {
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
		harm func(*sinktest.MemDisk)
	}{
		{"base", func(d *sinktest.MemDisk) {
			name := record.TopicFolder(sinktest.LogTopic) + "/" + record.BaseFile
			b, err := record.ParseBase(name, d.Live.Files[name].Data, sinktest.LogTopic)
			if err != nil {
				t.Fatal(err)
			}
			b.Format = 1
			d.Live.Files[name].Data = record.Encode(b)
		}},
		{"manifest", func(d *sinktest.MemDisk) {
			name, m := sinktest.ManifestOf(t, d, 10)
			m.Format = 1
			d.Live.Files[name].Data = record.Encode(m)
		}},
	} {
		d := sinktest.NewMemDisk()
		sinktest.TakeOver(t, sinktest.MemStore(d), 0, 20, 10)
		c.harm(d)
		o, err := sinks.Open(ctx, sinktest.MemStore(d), sinktest.EncoderOf(), sinks.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var format *record.FormatError
		if pos, err := o.Resume(ctx, sinktest.LogTopic, 0); !errors.As(err, &format) || format.Format != 1 {
			t.Errorf("a %s of format 1: resumed at %+v, error %v", c.name, pos, err)
		}
	}
}

// What is no fault: staged files of the newest manifest, attempts in staging,
// files of others beside the tables, records being made.
func TestVerifyAcceptsWorkInProgress(t *testing.T) {
	r := verified(t, func(d *sinktest.MemDisk) {
		_, m := sinktest.ManifestOf(t, d, 20)
		d.Live.Dirs[path.Dir(m.Files[0].Staged)] = true
		d.Live.Files[m.Files[0].Staged] = d.Live.Files[m.Files[0].Path]
		delete(d.Live.Files, m.Files[0].Path)
		other := record.StagingName(m.TopicPartition(), 30, record.NewUUID())
		d.Live.Dirs[other] = true
		d.Live.Files[other+"/frames-0"] = &sinktest.Inode{Data: []byte("half a fi")}
		d.Live.Files["README"] = &sinktest.Inode{}
		d.Live.Files[record.TopicFolder(sinktest.LogTopic)+"/0/"+record.NewPrefix+"x"] = &sinktest.Inode{}
	})
	if !r.OK {
		t.Errorf("faults:\n%s", r)
	}
	if i := slices.IndexFunc(r.Tables, func(t read.TableReport) bool { return t.Table == tables.Frames }); i < 0 ||
		r.Tables[i].Pending != 1 {
		t.Errorf("tables %+v: want one pending file of frames", r.Tables)
	}
	if len(r.Notes) != 2 {
		t.Errorf("notes %q: want one of the attempt and one of README", r.Notes)
	}
}

// A gap is committed without files, inherits the last record, and is printed.
func TestGap(t *testing.T) {
	ctx, d := context.Background(), sinktest.NewMemDisk()
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 10, 10)
	o, err := sinks.Open(ctx, sinktest.MemStore(d), sinktest.EncoderOf(), sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	pos, err := o.Resume(ctx, sinktest.LogTopic, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Commit(ctx, &schemas.Batch{Topic: sinktest.LogTopic, Start: 10, End: 25, Holes: 15, Last: pos.Last,
		Gap: true}); err != nil {
		t.Fatal(err)
	}
	again, err := o.Resume(ctx, sinktest.LogTopic, 0)
	if err != nil || again.Next != 25 || again.Last == nil || *again.Last != *pos.Last {
		t.Errorf("resumed at %+v (%v), want 25 with the last record inherited", again, err)
	}
	r, err := read.Verify(ctx, sinktest.MemStore(d), read.VerifyOptions{})
	if err != nil || !r.OK || !strings.Contains(r.String(), "gap: offsets 10 to 25") {
		t.Errorf("%v:\n%s", err, r)
	}
	if left, _ := d.ReadDir(record.StagingFolder); len(left) > 0 {
		t.Errorf("a gap has staged %s", left[0].Name())
	}
}

// An output that does not reach as far as the caller knows it must is faulted.
func TestVerifyExpectedEnds(t *testing.T) {
	d := sinktest.NewMemDisk()
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 10, 10)
	for ends, ok := range map[int64]bool{0: true, 10: true, 11: false} {
		r, err := read.Verify(context.Background(), sinktest.MemStore(d),
			read.VerifyOptions{Ends: map[string]map[int32]int64{sinktest.LogTopic: {0: ends}, "other": {0: 0}}})
		if err != nil || r.OK != ok {
			t.Errorf("expected to reach %d (%v): ok %t\n%s", ends, err, r.OK, r)
		}
	}
}

// Beside a writer at work, Verify never sees a fault.
func TestVerifyBesideWriter(t *testing.T) {
	d := sinktest.NewMemDisk()
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 2, 2)
	done := make(chan error)
	go func() {
		w := sinktest.Writer{Store: sinktest.MemStore(d), End: 120, Roll: sinktest.Roll(3), Fail: sinktest.IsCrash}
		done <- w.Run(context.Background())
	}()
	runs := 0
	for {
		r, err := read.Verify(context.Background(), sinktest.MemStore(d), read.VerifyOptions{})
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
