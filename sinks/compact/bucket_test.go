package compact

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"entropipe/ingest/bucket"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/s3/s3test"
)

// Law: from and into buckets, a compaction is what it is between folders, and a vacuum retires
// there what it retires in a folder.
func TestBucketsAreCompacted(t *testing.T) {
	server := s3test.New(t)
	stores := map[string]func(name string) Erasable{
		"folder": func(string) Erasable { return sinktest.MemStore(sinktest.NewMemDisk()) },
		"bucket": func(name string) Erasable { return server.Open(t, "lidar/"+name) },
	}
	for _, c := range [][2]string{{"folder", "bucket"}, {"bucket", "folder"}, {"bucket", "bucket"}} {
		t.Run("from "+c[0]+" into "+c[1], func(t *testing.T) {
			from, into := stores[c[0]]("from "+c[1]), stores[c[1]]("into "+c[0])
			w := newWriter(t, from, sinks.Content{"ops": "hull2d"})
			for i := range 6 {
				w.commit(batches.Spec{Partition: int32(i % 2), Records: 5, Frames: 2, Points: 6, Points64: i == 3,
					Datasets: []string{"a", "b"}, Seed: uint64(i)})
			}
			want, chunks := rowsOf(t, from), chunksOf(t, from)
			compacted(t, from, into, Config{})
			if got := rowsOf(t, into); !maps.Equal(want, got) || !maps.Equal(chunks, chunksOf(t, into)) {
				t.Fatalf("%d different rows, and the compaction has %d", len(want), len(got))
			}
			eachFile(t, into, func(name string, o sinks.Object) { mustHaveIndexes(t, name, o) })
			before := mustVerify(t, from)
			mustCountAlike(t, before, mustVerify(t, into))
			done, err := vacuumed(t.Context(), from, into, false)
			if err != nil || done.Commits != 4 || done.Kept != 2 { // the newest of each partition stays
				t.Fatalf("%+v, %v", done, err)
			}
			after := mustVerify(t, from)
			if len(after.Retired) != 1 || after.Retired[0].Commits != 4 || after.Retired[0].Files != 0 {
				t.Errorf("retired: %+v", after.Retired)
			}
			for i := range after.Partitions {
				if after.Partitions[i].Counts != before.Partitions[i].Counts {
					t.Errorf("%+v after %+v", after.Partitions[i], before.Partitions[i])
				}
			}
			w = newWriter(t, from, sinks.Content{"ops": "hull2d"}) // the next process of the writer
			w.commit(batches.Spec{Records: 5, Frames: 2, Points: 6, Datasets: []string{"a", "b"}, Seed: 9})
			compacted(t, from, into, Config{})
			a, b := mustVerify(t, from), mustVerify(t, into)
			for i := range a.Partitions {
				if a.Partitions[i].End != b.Partitions[i].End || a.Partitions[i].Counts != b.Partitions[i].Counts {
					t.Errorf("%+v, and %+v", a.Partitions[i], b.Partitions[i])
				}
			}
		})
	}
}

// Law: in a bucket whose requests are refused, cut, doubled and late, compactors and vacuums
// that fail and begin again make one compaction with every row once, and a reader of it never
// sees a row twice, nor fewer rows than before.
func TestCompactionInBadWeather(t *testing.T) {
	const end = 36
	server := s3test.New(t)
	proxy := server.Before(t, s3test.NewWeather(11, 40).Plan)
	from, into := server.Open(t, "from"), server.Open(t, "into")
	sinktest.TakeOver(t, from, 0, 6, 2)
	var work, looks sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	work.Go(func() { sinktest.TakeOver(t, from, 0, end, 2) })
	for k := range 2 {
		work.Go(func() {
			for !reaches(t, into, end) && !t.Failed() {
				err := compactOnce(t.Context(), server.OpenAt(t, proxy.URL, "from"),
					server.OpenAt(t, proxy.URL, "into"),
					Config{TargetBytes: int64(9_000 * (k + 1)), Readers: 2})
				mustBeWeather(t, "compactor", err)
			}
		})
	}
	work.Go(func() {
		for !reaches(t, into, end) && !t.Failed() {
			_, err := vacuumed(t.Context(), server.OpenAt(t, proxy.URL, "from"),
				server.OpenAt(t, proxy.URL, "into"), false)
			if !errors.Is(err, sinks.ErrNotFound) { // there is no compaction yet
				mustBeWeather(t, "vacuum", err)
			}
			time.Sleep(time.Millisecond)
		}
	})
	seen := 0
	looks.Go(func() {
		for ctx.Err() == nil {
			rows := sinktest.Tally(t, into)
			for k, n := range rows {
				if n != 1 {
					t.Errorf("%+v: %d times", k, n)
				}
			}
			if len(rows) < seen {
				t.Errorf("%d rows after %d", len(rows), seen)
			}
			seen = len(rows)
		}
	})
	work.Wait()
	stop()
	looks.Wait()
	proxy.Settle()
	if err := compactOnce(t.Context(), from, into, Config{}); err != nil {
		t.Fatal(err)
	}
	if _, err := vacuumed(t.Context(), from, into, false); err != nil {
		t.Fatal(err)
	}
	sinktest.MustBeWhole(t, into, 0, end)
	mustVerify(t, from)
	if len(proxy.Faults()) == 0 || seen == 0 {
		t.Errorf("%v were spoilt, and %d rows were seen", proxy.Faults(), seen)
	}
}

var logPartition = record.TopicPartition{Topic: sinktest.LogTopic}

// reaches tells whether the partition of a log is committed up to end.
func reaches(t *testing.T, store sinks.Reader, end int64) bool {
	names, err := store.Names(t.Context(), record.ManifestFolder(logPartition))
	if err != nil {
		t.Error(err)
	}
	for _, name := range names {
		if start, ok := record.ManifestStart(name); ok {
			m, err := sinks.ReadManifest(t.Context(), store, record.ManifestName(logPartition, start))
			if err == nil && m.End >= end {
				return true
			}
		}
	}
	return false
}

// mustBeWeather fails the test unless err is an answer of a bucket, or none.
func mustBeWeather(t *testing.T, who string, err error) {
	if fault := (*bucket.Fault)(nil); err != nil && !errors.As(err, &fault) {
		t.Errorf("%s: %v", who, err)
	}
}

// Law: a vacuum deletes what no commit needs below _staging, and nothing else there.
func TestVacuumRemovesStrayFiles(t *testing.T) {
	stores := map[string]func() Erasable{
		"folder": func() Erasable { return sinktest.MemStore(sinktest.NewMemDisk()) },
		"bucket": func() Erasable { return s3test.New(t).Open(t, "lidar") },
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			from, into := open(), sinktest.MemStore(sinktest.NewMemDisk())
			sinktest.TakeOver(t, from, 0, 12, 3)
			if err := compactOnce(t.Context(), from, into, Config{}); err != nil {
				t.Fatal(err)
			}
			m := map[int64]*record.Manifest{}
			for _, start := range []int64{0, 3, 6, 9} {
				var err error
				if m[start], err = sinks.ReadManifest(t.Context(), from,
					record.ManifestName(logPartition, start)); err != nil {
					t.Fatal(err)
				}
			}
			other := record.NewUUID()
			strays := map[string]bool{ // whether it is removed
				m[0].Files[0].Staged: true, // made anew after its commit was published
				record.StagingName(logPartition, 3, other) + "/frames-0":  true,  // lost its race
				record.StagingName(logPartition, 4, other) + "/frames-0":  false, // no commit begins there
				record.StagingName(logPartition, 12, other) + "/frames-0": false, // may be committed yet
				m[9].Files[0].Staged: false, // of the newest commit, which its writer may move
				record.StagingName(record.TopicPartition{Topic: "another"}, 0, other) + "/frames-0": false,
			}
			for name := range strays {
				stageAnew(t, from, name)
			}
			for _, dry := range []bool{true, false} {
				done, err := vacuumed(t.Context(), from, into, dry)
				if err != nil || done.Stray != 2 || done.StrayBytes != 2*int64(len(strayText)) {
					t.Errorf("%+v, %v", done, err)
				}
			}
			for name, removed := range strays {
				_, err := sinks.ReadRecord(t.Context(), from, name)
				if got := errors.Is(err, sinks.ErrNotFound); got != removed {
					t.Errorf("%s: removed: %t, want %t", name, got, removed)
				}
			}
		})
	}
	t.Run("the only copy of a file", func(t *testing.T) {
		disk, into := sinktest.NewMemDisk(), sinktest.MemStore(sinktest.NewMemDisk())
		from := sinktest.MemStore(disk)
		sinktest.TakeOver(t, from, 0, 12, 3)
		if err := compactOnce(t.Context(), from, into, Config{}); err != nil {
			t.Fatal(err)
		}
		_, m := sinktest.ManifestOf(t, disk, 0)
		stageAnew(t, from, m.Files[0].Staged)
		disk.Live.Files[m.Files[0].Path].Data = nil // it has lost its bytes
		done, err := Vacuum(t.Context(), from, into, VacuumConfig{OlderThan: time.Hour})
		if err != nil || done.Stray != 0 {
			t.Errorf("a young commit: %+v, %v", done, err)
		}
		v := vacuum{cfg: VacuumConfig{OlderThan: -1}, from: from,
			newest: map[record.TopicPartition]int64{logPartition: 9}}
		if err = v.findStray(t.Context()); err == nil {
			err = v.removeStray(t.Context(), sinktest.LogTopic)
		}
		if err != nil || v.done.Stray != 0 {
			t.Errorf("%+v, %v", v.done, err)
		}
	})
}

const strayText = "stray"

// stageAnew makes a staged file as a late request does.
func stageAnew(t *testing.T, store sinks.Store, name string) {
	t.Helper()
	w, err := store.Stage(t.Context(), name)
	if err == nil {
		_, err = w.Write([]byte(strayText))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(name, err)
	}
}
