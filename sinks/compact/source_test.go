package compact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/pairhash"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// atEveryLevel runs a test with two sums at once, where the CPU can do that, and with one after the
// other.
func atEveryLevel(t *testing.T, f func(t *testing.T)) {
	for _, single := range []bool{false, true} {
		t.Run(fmt.Sprintf("single=%t", single), func(t *testing.T) {
			if single {
				defer pairhash.Single()()
			}
			f(t)
		})
	}
}

// pairSum is a sinks.PairWriter that keeps what is written, and its sum.
type pairSum struct {
	bytes.Buffer
	sum *pairhash.Digest
}

func (w *pairSum) WriteBoth(p []byte, other *pairhash.Digest, q []byte) (int, error) {
	pairhash.WriteBoth(w.sum, p, other, q)
	return w.Buffer.Write(p)
}

func (w *pairSum) Write(p []byte) (int, error) {
	w.sum.Write(p)
	return w.Buffer.Write(p)
}

// bytesObject is an open file in memory.
type bytesObject struct{ *bytes.Reader }

func (bytesObject) Close() error { return nil }

const largeRows = 170_000

// largeFile makes a file of some MiB, whose pages and indexes lie across pieces.
func largeFile(t testing.TB) []byte {
	t.Helper()
	type row struct {
		Offset int64  `parquet:"offset"`
		Value  uint64 `parquet:"value"`
	}
	rng := rand.New(rand.NewPCG(5, 6))
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(20_000), parquet.PageBufferSize(256))
	for i := range largeRows {
		if _, err := w.Write([]row{{int64(i), rng.Uint64()}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// spliced makes a file that has the rows of data twice. The source is read whole, or in pieces.
func spliced(t testing.TB, data []byte, want string, whole bool) (*pairSum, error) {
	t.Helper()
	s := &source{name: "source", file: &record.File{SHA256: want, Rows: largeRows}, size: int64(len(data)),
		ctx: t.Context()}
	object := bytesObject{bytes.NewReader(data)}
	if s.data = data; !whole {
		s.data, s.object = nil, object
	}
	if whole && !pairhash.Paired() {
		if err := s.compareData(); err != nil {
			return nil, s.fault(err)
		}
	}
	if err := s.readFooter(object, new(sync.Map)); err != nil {
		return nil, s.fault(err)
	}
	out := &pairSum{sum: pairhash.New()}
	p := newSplicer(out, 0, 1)
	for range 2 {
		if err := p.add(s); err != nil {
			return nil, err
		}
	}
	_, err := p.finish()
	return out, err
}

// Law: a source that is read whole and one that is read in pieces give the same bytes, whose sum is
// that of crypto/sha256.
func TestPiecesAndWholesGiveOneFile(t *testing.T) {
	data := largeFile(t)
	if len(data) < 2*pieceBytes {
		t.Fatalf("%d bytes are one piece", len(data))
	}
	sum := sha256.Sum256(data)
	var first []byte
	atEveryLevel(t, func(t *testing.T) {
		for _, whole := range []bool{true, false} {
			out, err := spliced(t, data, hex.EncodeToString(sum[:]), whole)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = out.Bytes()
			}
			if !bytes.Equal(out.Bytes(), first) {
				t.Errorf("whole %t: %d bytes differ from %d", whole, out.Len(), len(first))
			}
			made := sha256.Sum256(out.Bytes())
			if out.sum.Hex() != hex.EncodeToString(made[:]) || out.sum.Bytes() != int64(out.Len()) {
				t.Errorf("whole %t: the sum %s of %d bytes is wrong", whole, out.sum.Hex(), out.sum.Bytes())
			}
		}
	})
	f, err := parquet.OpenFile(bytes.NewReader(first), int64(len(first)))
	if err != nil || f.NumRows() != 2*largeRows {
		t.Errorf("%v rows, %v", f, err)
	}
}

// Law: a changed byte anywhere in a source, also one that no footer names, is a *SourceError that
// tells both checksums, however the source is read, and nothing of its range is committed.
func TestDamageIsToldByChecksums(t *testing.T) {
	t.Run("large", func(t *testing.T) {
		data := largeFile(t)
		sum := sha256.Sum256(data)
		want := hex.EncodeToString(sum[:])
		atEveryLevel(t, func(t *testing.T) {
			for _, at := range []int{0, 3, 4, 100, pieceBytes - 1, pieceBytes, len(data) / 2} {
				data[at] ^= 1
				for _, whole := range []bool{true, false} {
					if _, err := spliced(t, data, want, whole); !tellsChecksums(err, want) {
						t.Errorf("byte %d, whole %t: %v", at, whole, err)
					}
				}
				data[at] ^= 1
			}
		})
	})
	t.Run("small", func(t *testing.T) {
		atEveryLevel(t, func(t *testing.T) {
			disk := logOn(t, 12, 3)
			_, m := sinktest.ManifestOf(t, disk, 6)
			f := disk.Live.Files[m.Files[0].Path]
			for at := 0; at < len(f.Data); at += 1 + len(f.Data)/60 {
				f.Data[at] ^= 1
				target := sinktest.NewMemDisk()
				err := compactOnce(t.Context(), sinktest.MemStore(disk), sinktest.MemStore(target),
					Config{TargetBytes: 1})
				if !tellsChecksums(err, m.Files[0].SHA256) {
					t.Errorf("byte %d of %d: %v", at, len(f.Data), err)
				}
				sinktest.MustBeWhole(t, sinktest.MemStore(target), 0, 6)
				sinktest.MustBeClean(t, target)
				f.Data[at] ^= 1
			}
		})
	})
}

func tellsChecksums(err error, want string) bool {
	fault := (*SourceError)(nil)
	return errors.As(err, &fault) && strings.Contains(err.Error(), "its manifest says "+want) &&
		strings.Count(err.Error(), fault.Name) == 1
}

// Law: a compaction on a real disk, where large files take another way than small ones, has the rows
// and the checksums that verify finds.
func TestLargeCompactionsOnDisk(t *testing.T) {
	dir := t.TempDir()
	from := openLocal(t, dir+"/out")
	e, err := tables.New(tables.Config{Tables: []string{tables.Points}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := sinks.Open(t.Context(), from, e, sinks.Config{})
	if err == nil {
		err = out.Base(t.Context(), sinktest.LogTopic, schemas.TopicID{}, map[int32]int64{0: 0})
	}
	if err == nil {
		_, err = out.Resume(t.Context(), sinktest.LogTopic, 0)
	}
	for start := int64(0); start < 12 && err == nil; start += 4 {
		_, err = out.Commit(t.Context(), batches.Synthetic(batches.Spec{Topic: sinktest.LogTopic, Start: start,
			Records: 4, Frames: 1, Points: 15_000, Points64: true, Plain: true, Seed: 7}))
	}
	if err != nil {
		t.Fatal(err)
	}
	atEveryLevel(t, func(t *testing.T) {
		into := openLocal(t, t.TempDir()+"/out2")
		c := compacted(t, from, into, Config{})
		if got := c.Copied(); got.Into != 2 || got.Bytes < 2<<20 {
			t.Errorf("%+v: no file is large", got)
		}
		mustCountAlike(t, mustVerify(t, from), mustVerify(t, into))
		if want, got := chunksOf(t, from), chunksOf(t, into); !maps.Equal(want, got) {
			t.Error("column chunks differ")
		}
	})
}

func openLocal(t testing.TB, dir string) *sinks.Local {
	t.Helper()
	store, err := sinks.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}
