package sinks_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
	"entropipe/sinks/s3/s3test"
)

// everyStore runs a test on every implementation of Store.
func everyStore(t *testing.T, f func(t *testing.T, s sinks.Store)) {
	t.Run("folder", func(t *testing.T) {
		s, err := sinks.OpenLocal(filepath.Join(t.TempDir(), "a", "b"))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		f(t, s)
	})
	t.Run("memory", func(t *testing.T) { f(t, sinktest.MemStore(sinktest.NewMemDisk())) })
	t.Run("bucket", func(t *testing.T) { f(t, s3test.New(t).Open(t, "a/b c+d")) })
}

func namesIn(t *testing.T, s sinks.Reader, folder string) []string {
	t.Helper()
	var found []string
	if err := s.List(context.Background(), folder,
		func(e sinks.Entry) error { found = append(found, e.Name); return nil }); err != nil {
		t.Fatal(err)
	}
	return found
}

func stageText(t *testing.T, s sinks.Stager, name, text string) {
	t.Helper()
	w, err := s.Stage(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A record is created once: the second attempt fails and changes nothing.
func TestStoreCreateIsExclusive(t *testing.T) {
	everyStore(t, func(t *testing.T, s sinks.Store) {
		ctx, name := context.Background(), record.CommitsFolder+"/topics/t/base.json"
		if _, err := s.Read(ctx, name); !errors.Is(err, sinks.ErrNotFound) {
			t.Errorf("read before: %v", err)
		}
		if err := s.Create(ctx, name, []byte("one")); err != nil {
			t.Fatal(err)
		}
		if err := s.Create(ctx, name, []byte("two")); !errors.Is(err, sinks.ErrExists) {
			t.Errorf("second create: %v", err)
		}
		if data, err := s.Read(ctx, name); err != nil || string(data) != "one" {
			t.Errorf("read %q, %v", data, err)
		}
		if got := namesIn(t, s, "."); !slices.Equal(got, []string{name}) {
			t.Errorf("files %q", got)
		}
	})
}

// Publishing may be repeated, in part or in whole, and never replaces a file.
func TestStorePublish(t *testing.T) {
	everyStore(t, func(t *testing.T, s sinks.Store) {
		ctx, folder := context.Background(), record.StagingFolder+"/x"
		moves := []sinks.Move{{From: folder + "/a-0", To: "a/dataset=1/part.parquet", Bytes: 3},
			{From: folder + "/b-1", To: "b/part.parquet", Bytes: 4}}
		stageText(t, s, moves[0].From, "one")
		stageText(t, s, moves[1].From, "four")
		if got := namesIn(t, s, "."); !slices.Equal(got, []string{moves[0].From, moves[1].From}) {
			t.Errorf("staged %q", got)
		}
		for range 2 {
			if err := s.Publish(ctx, moves[:1]); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := s.Publish(ctx, moves); err != nil {
				t.Fatal(err)
			}
			if err := s.Discard(ctx, folder); err != nil {
				t.Fatal(err)
			}
		}
		if got := namesIn(t, s, "."); !slices.Equal(got, []string{moves[0].To, moves[1].To}) {
			t.Errorf("published %q", got)
		}
		var lost *sinks.LostFileError
		wrongSize := sinks.Move{From: moves[0].From, To: moves[0].To, Bytes: 4}
		if err := s.Publish(ctx, []sinks.Move{wrongSize}); !errors.As(err, &lost) {
			t.Errorf("a destination of another size: %v", err)
		}
		if err := s.Publish(ctx, []sinks.Move{{From: folder + "/gone", To: "a/gone.parquet",
			Bytes: 3}}); !errors.As(err, &lost) || !strings.Contains(err.Error(), "neither here nor in") {
			t.Errorf("gone at both places: %v", err)
		}
		stageText(t, s, moves[0].From, "two")
		if err := s.Publish(ctx, moves[:1]); !errors.As(err, &lost) ||
			!strings.Contains(err.Error(), "another file has this name") {
			t.Errorf("a stranger at the destination: %v", err)
		}
		if data, err := sinks.ReadRecord(ctx, s, moves[0].To); err != nil || string(data) != "one" {
			t.Errorf("the stranger is now %q (%v)", data, err)
		}
	})
}

// Discarding what is not there is no error.
func TestStoreDiscard(t *testing.T) {
	everyStore(t, func(t *testing.T, s sinks.Store) {
		ctx := context.Background()
		stageText(t, s, record.StagingFolder+"/x/a", "1")
		stageText(t, s, record.StagingFolder+"/y/a", "1")
		for range 2 {
			if err := s.Discard(ctx, record.StagingFolder+"/x"); err != nil {
				t.Error(err)
			}
		}
		if got := namesIn(t, s, record.StagingFolder); !slices.Equal(got, []string{record.StagingFolder + "/y/a"}) {
			t.Errorf("left %q", got)
		}
	})
}

// No name leads out of the folder, not through "..", not through a link.
func TestLocalStaysInItsFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := sinks.OpenLocal(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Symlink(dir, filepath.Join(dir, "out", "frames")); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for _, name := range []string{"../secret", "frames/secret", "/etc/passwd"} {
		if o, err := s.Open(ctx, name); err == nil {
			o.Close()
			t.Errorf("%s can be opened", name)
		}
	}
	stageText(t, s, record.StagingFolder+"/x/a", "1")
	if err := s.Publish(ctx, []sinks.Move{{From: record.StagingFolder + "/x/a", To: "frames/stolen",
		Bytes: 1}}); err == nil {
		t.Error("a file was moved out")
	}
}

// A real folder holds what a commit says, and what users see is named as the
// contract says.
func TestLocalFolderLayout(t *testing.T) {
	s, err := sinks.OpenLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sinktest.TakeOver(t, s, 0, 20, 10)
	want := []string{
		record.CommitsFolder + "/store.json",
		record.CommitsFolder + "/topics/points/0/00000000000000000000.json",
		record.CommitsFolder + "/topics/points/0/00000000000000000010.json",
		record.CommitsFolder + "/topics/points/base.json",
		"frames/dataset=a/topic=points/part-0-00000000000000000000-00000000000000000010.parquet",
		"frames/dataset=a/topic=points/part-0-00000000000000000010-00000000000000000020.parquet",
		"frames/dataset=b/topic=points/part-0-00000000000000000000-00000000000000000010.parquet",
		"frames/dataset=b/topic=points/part-0-00000000000000000010-00000000000000000020.parquet",
		"rejects/topic=points/part-0-00000000000000000000-00000000000000000010.parquet",
		"rejects/topic=points/part-0-00000000000000000010-00000000000000000020.parquet",
	}
	if got := namesIn(t, s, "."); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	sinktest.MustBeWhole(t, s, 0, 20)
}

// A folder that cannot be written is one clear error, at once.
func TestReadOnlyFolder(t *testing.T) {
	d := sinktest.NewMemDisk()
	f := &sinktest.FaultDisk{Disk: d, Before: func(op, name string) error {
		if op != "look" {
			return sinktest.PathError(op, name, syscall.EROFS)
		}
		return nil
	}}
	_, err := sinks.Open(context.Background(), sinktest.MemStore(f), sinktest.EncoderOf(), sinks.Config{})
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "open output") {
		t.Errorf("open: %v", err)
	}
	// The same in the middle of a run: the next commit says so, and when the
	// folder is writable again the output goes on.
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 10, 10)
	readOnly := false
	f.Before = func(op, name string) error {
		if readOnly && op != "look" {
			return sinktest.PathError(op, name, syscall.EROFS)
		}
		return nil
	}
	o, err := sinks.Open(context.Background(), sinktest.MemStore(f), sinktest.EncoderOf(), sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Resume(context.Background(), sinktest.LogTopic, 0); err != nil {
		t.Fatal(err)
	}
	readOnly = true
	if _, err := o.Commit(context.Background(), sinktest.LogBatch(10, 10)); !errors.Is(err, syscall.EROFS) {
		t.Errorf("commit: %v", err)
	}
	readOnly = false
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 20, 10)
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 20)
}

// On a file system without hard links the error says what is missing.
func TestFileSystemWithoutLinks(t *testing.T) {
	f := &sinktest.FaultDisk{Disk: sinktest.NewMemDisk(), Before: func(op, name string) error {
		if op == "link" {
			return sinktest.PathError(op, name, syscall.ENOTSUP)
		}
		return nil
	}}
	if _, err := sinks.Open(context.Background(), sinktest.MemStore(f), sinktest.EncoderOf(),
		sinks.Config{}); err == nil || !strings.Contains(err.Error(), "no hard links") {
		t.Errorf("open: %v", err)
	}
}

// However an output's folder is named, and whatever topic and partition are
// called, it is the same output.
func TestNamesOfOutputsAndTopics(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "real"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	topics := []string{"points", "a.b_c-d", "...", "x-", "Größe/ß", strings.Repeat("t", 249),
		strings.Repeat("t", 248) + "u", "points-2147483647"}
	for i, out := range []string{"real", "real/", "./real//", "link", "link/", dir + "/link/../real"} {
		s, err := sinks.OpenLocal(out)
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		o, err := sinks.Open(t.Context(), s, sinktest.EncoderOf(), sinks.Config{})
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		for k, topic := range topics {
			if err := o.Base(t.Context(), topic, schemas.TopicID{}, nil); err != nil {
				t.Fatalf("%s: %q: %v", out, topic, err)
			}
			for _, id := range []int32{0, 10_000, math.MaxInt32}[:1+2*(1-min(k, 1))] {
				pos, err := o.Resume(t.Context(), topic, id)
				if err != nil || pos.Next != int64(3*i) {
					t.Fatalf("%s: %q/%d resumes at %d, want %d; %v", out, topic, id, pos.Next, 3*i, err)
				}
				b := batches.Synthetic(batches.Spec{Topic: topic, Partition: id, Start: pos.Next, Records: 3, Frames: 1,
					Points: 3, Seed: sinktest.LogSeed})
				if b.Last == nil {
					b.Last = pos.Last
				}
				if _, err := o.Commit(t.Context(), b); err != nil {
					t.Fatalf("%s: %q/%d: %v", out, topic, id, err)
				}
			}
		}
		r, err := read.Verify(t.Context(), s, read.VerifyOptions{})
		if err != nil || !r.OK || len(r.Partitions) != 2+len(topics) || len(r.Notes) > 0 {
			t.Fatalf("%s: %v\n%s", out, err, r)
		}
		s.Close()
	}
}
