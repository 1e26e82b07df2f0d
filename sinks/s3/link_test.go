package s3_test

import (
	"net/http"
	"strings"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/s3/s3test"
)

// adopt adopts all of an output into a new one and returns what it did.
func adopt(t *testing.T, to, from sinks.Store, end int64) sinks.Adopted {
	t.Helper()
	former, err := sinks.OpenFormer(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	o, err := sinks.Open(t.Context(), to, sinktest.EncoderOf(), sinks.Config{Content: sinks.Content{"ops": "hull2d"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Base(t.Context(), sinktest.LogTopic, schemas.TopicID{}, nil); err != nil {
		t.Fatal(err)
	}
	a, err := o.Adopt(t.Context(), former, sinktest.LogTopic, 0, end)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// written makes an output with records up to end in a store.
func written(t *testing.T, store sinks.Store, end int64) {
	t.Helper()
	o, err := sinks.Open(t.Context(), store, sinktest.EncoderOf(),
		sinks.Config{Content: sinks.Content{"ops": "hull2d"}})
	if err == nil {
		err = o.Base(t.Context(), sinktest.LogTopic, schemas.TopicID{}, nil)
	}
	if err == nil {
		_, err = o.Resume(t.Context(), sinktest.LogTopic, 0)
	}
	for start := int64(0); err == nil && start < end; start += 10 {
		_, err = o.Commit(t.Context(), sinktest.LogBatch(start, 10))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Commits of an output in a bucket of the same server are copied by the server; others are read
// and sent. Damaged ones are not adopted.
func TestAdoptIntoABucket(t *testing.T) {
	t.Parallel()
	const end = 30
	server, second := s3test.New(t), s3test.New(t)
	folder, err := sinks.OpenLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	written(t, server.Open(t, "old"), end)
	written(t, folder, end)
	fresh := func(prefix string) sinks.Store { return server.Open(t, prefix) }
	elsewhere, err := sinks.OpenLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	for _, c := range []struct {
		name           string
		to, from       sinks.Store
		linked, copied bool
	}{
		{name: "the same server", to: fresh("a"), from: server.Open(t, "old"), linked: true},
		{name: "another server", to: second.Open(t, "b"), from: server.Open(t, "old"), copied: true},
		{name: "from a folder", to: fresh("c"), from: folder, copied: true},
		{name: "into a folder", to: elsewhere, from: server.Open(t, "old"), copied: true},
	} {
		a := adopt(t, c.to, c.from, end)
		if a.Next != end || (a.Linked > 0) != c.linked || (a.Copied > 0) != c.copied {
			t.Errorf("%s: %+v", c.name, a)
		}
		sinktest.MustBeWhole(t, c.to, 0, end)
	}
	if left := server.Keys(t, "a/"+record.StagingFolder); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	server.Ask(func(r *http.Request) *s3test.Refusal { // nobody may read across, so the files are sent
		if strings.Contains(r.Header.Get("X-Amz-Copy-Source"), "/old/") {
			return &s3test.Refusal{Status: 403, Code: "AccessDenied"}
		}
		return nil
	}, nil)
	if a := adopt(t, fresh("d"), server.Open(t, "old"), end); a.Next != end || a.Copied == 0 {
		t.Errorf("a copy is denied: %+v", a)
	}
	server.Ask(nil, nil)
	for _, key := range server.Keys(t, "old/frames/") {
		if strings.Contains(key, "-00000000000000000010-") {
			server.Put(t, key, strings.Repeat("x", 10), nil)
		}
	}
	a := adopt(t, fresh("e"), server.Open(t, "old"), end)
	if a.Next != 10 || !strings.Contains(a.Why, "10 bytes") {
		t.Errorf("a damaged file: %+v", a)
	}
	if left := server.Keys(t, "e/"+record.StagingFolder); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// What is staged is compared by the checksum that the store has of it, without being read.
func TestRollForwardByTheStoresChecksum(t *testing.T) {
	folder := record.StagingName(record.TopicPartition{Topic: "t"}, 0, record.NewUUID())
	for _, c := range []struct {
		name, kind, of string // name of the checksum in the answer
		gets           bool
		damaged        bool
	}{
		{name: "of all bytes", kind: "FULL_OBJECT", of: "rows"},
		{name: "of all bytes, others", kind: "FULL_OBJECT", of: "ROWS", damaged: true},
		{name: "of parts", kind: "COMPOSITE", of: "ROWS", gets: true},
		{name: "of an unknown kind", of: "ROWS", gets: true},
		{name: "none", gets: true},
	} {
		s := s3test.New(t)
		meta := map[string]string{}
		if c.of != "" {
			meta["X-Amz-Checksum-Sha256"] = base64Of(c.of)
		}
		if c.kind != "" {
			meta["X-Amz-Checksum-Type"] = c.kind
		}
		move := sinks.Move{From: folder + "/frames-0", To: "frames/part.parquet", Bytes: 4, SHA256: sum("rows")}
		s.Put(t, "out/"+move.From, "rows", meta)
		store := s.Open(t, "out")
		err := store.Publish(t.Context(), []sinks.Move{move})
		if (err != nil) != c.damaged || c.damaged != (len(s.Keys(t, "out/_staging")) > 0) {
			t.Errorf("%s: %v, %q", c.name, err, s.Keys(t, ""))
		}
		if gets := store.Requests().Get; gets > 0 != c.gets {
			t.Errorf("%s: %d GET", c.name, gets)
		}
	}
}

// Files of tables frames and tokens appear when all others are there, and nothing of a commit
// whose staged files are damaged.
func TestOrderOfCopies(t *testing.T) {
	s := s3test.New(t)
	var moves []sinks.Move
	for i := range 40 {
		name := string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		folder := record.StagingName(record.TopicPartition{Topic: "t"}, 0, record.NewUUID())
		m := sinks.Move{From: folder + "/" + name, To: name + "/part.parquet", Bytes: 4,
			SHA256: sum("rows"), Last: i >= 37}
		s.Put(t, "out/"+m.From, "rows", nil)
		moves = append(moves, m)
	}
	s.Put(t, "out/"+moves[20].From, "ROWS", nil)
	store := s.Open(t, "out")
	if err := store.Publish(t.Context(), moves); err == nil || !strings.Contains(err.Error(), moves[20].From) {
		t.Errorf("a damaged file: %v", err)
	}
	published := func() (n int) {
		for _, key := range s.Keys(t, "out/") {
			if !strings.HasPrefix(key, "out/_staging/") {
				n++
			}
		}
		return n
	}
	if n := published(); n > 0 {
		t.Errorf("%d files of a damaged commit are published", n)
	}
	s.Put(t, "out/"+moves[20].From, "rows", nil)
	s.Ask(func(r *http.Request) *s3test.Refusal {
		last := false
		for _, m := range moves[37:] {
			last = last || strings.HasSuffix(r.URL.Path, "/"+m.To)
		}
		if n := published(); r.Header.Get("X-Amz-Copy-Source") != "" && last && n < 37 {
			t.Errorf("%s is copied when %d files are published", r.URL.Path, n)
		}
		return nil
	}, nil)
	if err := store.Publish(t.Context(), moves); err != nil || published() != 40 {
		t.Errorf("%d files are published: %v", published(), err)
	}
}
