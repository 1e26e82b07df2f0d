package s3_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"entropipe/sinks/record"
	"entropipe/sinks/s3/s3test"
)

// Law: however many files are staged at a time, whether small or sent in parts, the pieces of all
// of them stay below the bound, every file arrives whole, and all memory comes back.
func TestFilesShareTheMemory(t *testing.T) {
	t.Parallel()
	const share, part, files = 5, 8, 7
	s := s3test.New(t)
	store := s.Open(t, "out")
	store.Share(share)
	folder := record.StagingName(record.TopicPartition{Topic: "t"}, 0, record.NewUUID())
	var all sync.WaitGroup
	most := make([]int, files)
	for i := range files {
		all.Go(func() {
			name, size := fmt.Sprintf("%s/frames-%d", folder, i), (1+4*i)<<19 // up to 12.5 MB
			w, err := store.Stage(t.Context(), name)
			if err != nil {
				t.Error(err)
				return
			}
			slice := make([]byte, 150_000)
			rng := rand.NewChaCha8([32]byte{byte(i)})
			for size > 0 {
				n := min(size, len(slice))
				rng.Read(slice[:n])
				if _, err := w.Write(slice[:n]); err != nil {
					t.Errorf("file %d: %v", i, err)
					break
				}
				size -= n
				pieces, _ := store.Pieces()
				most[i] = max(most[i], pieces)
			}
			if err := w.Close(); err != nil {
				t.Errorf("file %d: %v", i, err)
			}
		})
	}
	all.Wait()
	for i := range files {
		name, size := fmt.Sprintf("%s/frames-%d", folder, i), (1+4*i)<<19
		if most[i] > share+part {
			t.Errorf("%d pieces, want %d at most", most[i], share+part)
		}
		want := make([]byte, size)
		rng := rand.NewChaCha8([32]byte{byte(i)})
		for at := 0; at < size; at += 150_000 {
			rng.Read(want[at:min(at+150_000, size)])
		}
		if contentOf(t, store, name) != string(want) {
			t.Errorf("file %d is not what was written", i)
		}
	}
	if pieces, left := store.Pieces(); left != share || pieces > share+part {
		t.Errorf("at the end there are %d pieces, and %d of %d are left", pieces, left, share)
	}
}

// A file that waits for memory ends with its context; what it had comes back.
func TestWaitForMemoryEnds(t *testing.T) {
	t.Parallel()
	s := s3test.New(t)
	store := s.Open(t, "out")
	store.Share(1)
	ctx, cancel := context.WithCancel(t.Context())
	var files []interface {
		Write(p []byte) (int, error)
		Close() error
	}
	for i := range 3 {
		folder := record.StagingName(record.TopicPartition{Topic: "t"}, 0, record.NewUUID())
		w, err := store.Stage(ctx, fmt.Sprintf("%s/frames-%d", folder, i))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, w)
	}
	for _, w := range files[:2] { // the piece of all, and the turn
		if _, err := w.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	result := make(chan error, 1)
	go func() {
		_, err := files[2].Write([]byte("x"))
		result <- err
	}()
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the third file: %v", err)
	}
	for _, w := range files {
		if err := w.Close(); err == nil {
			t.Error("a file was sent after the end of its context")
		}
	}
	if _, left := store.Pieces(); left != 1 {
		t.Errorf("%d pieces are left", left)
	}
}
