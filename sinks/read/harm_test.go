package read_test

import (
	"bytes"
	"path"
	"strings"
	"testing"

	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// damagedOutput is an output of three commits that a test has done something to.
func damagedOutput(t *testing.T, harm func(t *testing.T, d *sinktest.MemDisk)) *sinktest.MemDisk {
	t.Helper()
	d := sinktest.NewMemDisk()
	w := sinktest.Writer{Store: sinktest.MemStore(d), End: repairEnd, Roll: sinktest.Roll(10), Fail: sinktest.IsCrash,
		Tables: []string{tables.Hulls}}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	harm(t, d)
	return d
}

func lose(starts ...int64) func(*testing.T, *sinktest.MemDisk) {
	return func(_ *testing.T, d *sinktest.MemDisk) {
		for _, start := range starts {
			delete(d.Live.Files, record.ManifestName(record.TopicPartition{Topic: sinktest.LogTopic, ID: 0}, start))
		}
	}
}

// spoil changes the bytes of manifests.
func spoil(change func([]byte) []byte, starts ...int64) func(*testing.T, *sinktest.MemDisk) {
	return func(_ *testing.T, d *sinktest.MemDisk) {
		for _, start := range starts {
			node := d.Live.Files[record.ManifestName(record.TopicPartition{Topic: sinktest.LogTopic, ID: 0}, start)]
			node.Data = change(node.Data)
		}
	}
}

// ofFile does something to the second file of a commit.
func ofFile(start int64, change func(d *sinktest.MemDisk, f *record.File)) func(*testing.T, *sinktest.MemDisk) {
	return func(t *testing.T, d *sinktest.MemDisk) {
		_, m := sinktest.ManifestOf(t, d, start)
		change(d, &m.Files[1])
	}
}

func unpublish(d *sinktest.MemDisk, f *record.File) {
	d.Live.Dirs[path.Dir(f.Staged)] = true
	d.Live.Files[f.Staged] = d.Live.Files[f.Path]
	delete(d.Live.Files, f.Path)
}

func after(fs ...func(*testing.T, *sinktest.MemDisk)) func(*testing.T, *sinktest.MemDisk) {
	return func(t *testing.T, d *sinktest.MemDisk) {
		for _, f := range fs {
			f(t, d)
		}
	}
}

func half(b []byte) []byte { return b[:len(b)/2] }

func nothing([]byte) []byte { return nil }

func flipped(b []byte) []byte { b[len(b)/2] ^= 1; return b }

// written has a writer go on with commits of n records, as far as it comes.
func wroteOn(n int) func(*testing.T, *sinktest.MemDisk) {
	return func(t *testing.T, d *sinktest.MemDisk) {
		w := sinktest.Writer{Store: sinktest.MemStore(d), End: repairEnd, Roll: sinktest.Roll(n),
			Fail: sinktest.IsCrash, Tables: []string{tables.Hulls}}
		w.Run(t.Context())
	}
}

// mendable are the faults after which run can write the records again, and where
// it then goes on.
var mendable = map[string]struct {
	harm func(*testing.T, *sinktest.MemDisk)
	next int64 // where a writer goes on after the repair
}{
	"newest manifest lost":                   {lose(20), 20},
	"two newest manifests lost":              {lose(10, 20), 10},
	"all manifests lost":                     {lose(0, 10, 20), 0},
	"newest manifest empty":                  {spoil(nothing, 20), 20},
	"newest manifest half":                   {spoil(half, 20), 20},
	"newest manifest flipped":                {spoil(flipped, 20), 20},
	"newest manifest of no format":           {spoil(func([]byte) []byte { return []byte("{}") }, 20), 20},
	"two newest manifests damaged":           {spoil(half, 10, 20), 10},
	"newest damaged, the one before lost":    {after(lose(10), spoil(half, 20)), 10},
	"newest lost, the one before damaged":    {after(lose(20), spoil(half, 10)), 10},
	"newest damaged, its files still staged": {after(ofFile(20, unpublish), spoil(half, 20)), 20},
	"file of the newest missing": {ofFile(20, func(d *sinktest.MemDisk, f *record.File) {
		delete(d.Live.Files, f.Path)
	}), 20},
	"file of the newest cut": {ofFile(20, func(d *sinktest.MemDisk, f *record.File) {
		n := d.Live.Files[f.Path]
		n.Data = half(n.Data)
	}), 20},
	"file of the newest flipped": {ofFile(20, func(d *sinktest.MemDisk, f *record.File) {
		n := d.Live.Files[f.Path]
		n.Data = flipped(n.Data)
	}), 20},
	"staged file of the newest flipped": {ofFile(20, func(d *sinktest.MemDisk, f *record.File) {
		unpublish(d, f)
		n := d.Live.Files[f.Staged]
		n.Data = flipped(n.Data)
	}), 20},
	"newest damaged, file of the one before too": {after(spoil(half, 20),
		ofFile(10, func(d *sinktest.MemDisk, f *record.File) {
			delete(d.Live.Files, f.Path)
		})), 10},
	"newest lost, records written again in other commits":     {after(lose(20), wroteOn(4)), 30},
	"newest lost, records being written again under its name": {after(lose(20), wroteOn(10)), 30},
	"stranger among the tables": {func(_ *testing.T, d *sinktest.MemDisk) {
		d.Live.Files["frames/copy.parquet"], d.Live.Files["hulls/notes.txt"] = &sinktest.Inode{Data: []byte("P")},
			&sinktest.Inode{Data: []byte("N")}
	}, 30},
	"stranger that has a commit's name": {func(t *testing.T, d *sinktest.MemDisk) {
		_, m := sinktest.ManifestOf(t, d, 10)
		name := strings.Replace(m.Files[0].Path, "00010-", "00012-", 1)
		d.Live.Files[name] = &sinktest.Inode{Data: bytes.Clone(d.Live.Files[m.Files[0].Path].Data)}
	}, 30},
}
