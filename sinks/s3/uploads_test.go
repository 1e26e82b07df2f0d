package s3_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/s3"
	"entropipe/sinks/s3/s3test"
)

// large is an encoder of a file for a batch, which is large in the first one or in every one,
// and of a small one.
type large struct {
	sinks.Encoder
	every bool
}

const largeBytes = 8<<20 + 1000 // two parts

func (large) Plan(b *schemas.Batch, _ int) []sinks.File {
	name := fmt.Sprintf("part-%d-%d-%d%s", b.Partition, b.Start, b.End, record.DataSuffix)
	return []sinks.File{{Table: "points", Path: "points/dataset=d/topic=points/" + name},
		{Table: "frames", Path: "frames/dataset=d/topic=points/" + name}}
}

func (l large) Encode(w io.Writer, f sinks.File, b *schemas.Batch) (int64, error) {
	piece, left := make([]byte, 1<<20), 100
	rng := rand.NewChaCha8([32]byte{byte(b.Start), byte(len(f.Table))})
	if f.Table == "points" && (b.Start == 0 || l.every) {
		left = largeBytes
	}
	for left > 0 {
		n := min(left, len(piece))
		rng.Read(piece[:n])
		if _, err := w.Write(piece[:n]); err != nil {
			return 0, err
		}
		left -= n
	}
	return 1, nil
}

// Law: a writer dies at any moment of a commit whose files are sent in parts. A rule of the
// bucket ends every incomplete upload, and nobody comes for 30 days: whoever resumes the
// partition then finds all that was committed, once.
func TestUploadsAreAbortedAndAMonthGoesBy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at       moment
		executed bool // the request at which it dies
		uploads  int  // incomplete ones
		next     int64
	}{
		{moment{kind: s3test.Begin}, true, 1, 0},
		{moment{kind: s3test.Put, nth: 1}, true, 1, 0},
		{moment{kind: s3test.Complete}, false, 1, 0},
		{moment{kind: s3test.Complete}, true, 0, 0},
		{moment{kind: s3test.Create}, true, 0, 4},
		{moment{kind: s3test.Copy}, true, 0, 4},
		{moment{kind: s3test.Delete}, false, 0, 4},
	} {
		s := s3test.New(t)
		ctx, die := context.WithCancel(t.Context())
		z := &standing{at: c.at, commit: ctx, kept: map[s3test.Kind][]s3test.Seen{}, stood: func() s3test.Fault {
			die()
			if c.executed {
				return s3test.CutAfter
			}
			return s3test.CutBefore
		}}
		proxy := s.Before(t, z.plan)
		store := s.OpenAt(t, proxy.URL, "out")
		store.Starve()
		o, _ := resumeLarge(t, store)
		z.begun = true
		if _, err := o.Commit(ctx, sinktest.LogBatch(0, 4)); err == nil {
			t.Errorf("%+v: the writer has not died", c)
		}
		die()
		proxy.Await()
		if n := s.AbortUploads(t); n != c.uploads {
			t.Errorf("%+v: %d uploads were incomplete", c, n)
		}
		s.Advance(30 * 24 * time.Hour)
		for _, key := range s.Keys(t, "out/"+record.StagingFolder) {
			if s.Age(t, key) < 29*24*time.Hour {
				t.Errorf("%+v: %s is young", c, key)
			}
		}
		o, next := resumeLarge(t, s.Open(t, "out"))
		if next != c.next {
			t.Errorf("%+v: goes on at %d, want %d", c, next, c.next)
		}
		if _, err := o.Commit(t.Context(), sinktest.LogBatch(next, 8)); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		largeMustBeWhole(t, s, fmt.Sprintf("%+v", c), next+8)
		s.Close()
	}
}

// A rule that ends the upload of a writer that lives has it fail, and nothing is lost.
func TestUploadAbortedUnderItsWriter(t *testing.T) {
	t.Parallel()
	s := s3test.New(t)
	z := &standing{at: moment{kind: s3test.Complete}, commit: t.Context(), kept: map[s3test.Kind][]s3test.Seen{},
		stood: func() s3test.Fault {
			if n := s.AbortUploads(t); n != 1 {
				t.Errorf("%d uploads", n)
			}
			return ""
		}}
	store := s.OpenAt(t, s.Before(t, z.plan).URL, "out")
	store.Starve()
	o, _ := resumeLarge(t, store)
	z.begun = true
	_, err := o.Commit(t.Context(), sinktest.LogBatch(0, 4))
	if err == nil || !strings.Contains(err.Error(), "NoSuchUpload") {
		t.Errorf("the commit ended with %v", err)
	}
	o, next := resumeLarge(t, store)
	if _, err := o.Commit(t.Context(), sinktest.LogBatch(next, 4)); next != 0 || err != nil {
		t.Errorf("goes on at %d, %v", next, err)
	}
	largeMustBeWhole(t, s, "at the end", 4)
}

func resumeLarge(t *testing.T, store *s3.Store) (o *sinks.Output, next int64) {
	t.Helper()
	return resumeAs(t, store, large{Encoder: sinktest.EncoderOf()})
}

func resumeAs(t *testing.T, store *s3.Store, encoder sinks.Encoder) (o *sinks.Output, next int64) {
	t.Helper()
	o, err := sinks.Open(t.Context(), store, encoder, sinks.Config{})
	if err == nil {
		err = o.Base(t.Context(), sinktest.LogTopic, schemas.TopicID{}, map[int32]int64{0: 0})
	}
	var pos schemas.Position
	if err == nil {
		pos, err = o.Resume(t.Context(), sinktest.LogTopic, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o, pos.Next
}

// largeMustBeWhole compares the bucket with its manifests, and these with the log.
func largeMustBeWhole(t *testing.T, s *s3test.Server, when string, end int64) {
	t.Helper()
	ctx, store, files := t.Context(), s.Open(t, "out"), 0
	next := int64(0)
	for next < end {
		name := record.ManifestName(record.TopicPartition{Topic: sinktest.LogTopic}, next)
		text, err := store.Read(ctx, name)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		m, err := record.ParseManifest(name, text)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		for _, f := range m.Files {
			files++
			var want bytes.Buffer
			large{}.Encode(&want, sinks.File{Table: f.Table}, &schemas.Batch{Start: m.Start})
			o, err := store.Open(ctx, f.Path)
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			got, err := sinks.Checksum(ctx, o, make([]byte, 1<<20))
			if err != nil || got != f.SHA256 || got != sum(want.String()) {
				t.Errorf("%s: %s is not what was written: %v", when, f.Path, err)
			}
			o.Close()
		}
		next = m.End
	}
	there := 0
	err := store.List(ctx, ".", func(e sinks.Entry) error {
		if strings.HasSuffix(e.Name, record.DataSuffix) {
			there++
		}
		return nil
	})
	_, last := resumeLarge(t, store)
	if err != nil || there != files || last != end || next != end {
		t.Errorf("%s: %d files, the manifests name %d; goes on at %d, want %d: %v", when, there, files, last, end,
			err)
	}
	if left := s.Keys(t, "out/"+record.StagingFolder+"/"+sinktest.LogTopic); len(left) > 0 {
		t.Errorf("%s: %q are left", when, left)
	}
}
