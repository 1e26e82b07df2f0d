package tfrecord

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/iotest"

	"entropipe/schemas/codec"
)

const limit = 1 << 20

// records reads all records of data; faults are in the order in which they appear.
func records(t testing.TB, r io.Reader, limit int64) (got []string, faults []*codec.Error) {
	t.Helper()
	in := NewReader(r, limit)
	for {
		data, err := in.Next()
		var fault *codec.Error
		switch {
		case err == io.EOF:
			return got, faults
		case errors.As(err, &fault):
			faults = append(faults, fault)
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, fmt.Sprintf("%d@%d %s", in.Number(), in.Offset(), data))
		}
	}
}

func three() []byte {
	var file []byte
	for _, text := range []string{"first", "", "third"} {
		file = Append(file, []byte(text))
	}
	return file
}

var threeRecords = []string{"0@0 first", "1@21 ", "2@37 third"}

// The CRC is Castagnoli's, by its published check value.
func TestChecksumIsCastagnoli(t *testing.T) {
	if c := crc32.Checksum([]byte("123456789"), castagnoli); c != 0xe3069283 {
		t.Errorf("CRC of 123456789 is %#x, want 0xe3069283", c)
	}
}

func TestReaderReadsEveryRecord(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"at once": bytes.NewReader(three()), "byte by byte": iotest.OneByteReader(bytes.NewReader(three())),
	} {
		got, faults := records(t, r, limit)
		if !slices.Equal(got, threeRecords) || faults != nil {
			t.Errorf("%s: got %q and %v, want %q", name, got, faults, threeRecords)
		}
	}
	if !Is(three()) || Is(three()[:11]) || Is(make([]byte, 12)) {
		t.Error("Is does not tell a record from other bytes")
	}
}

// A record longer than the steps in which memory grows arrives whole.
func TestReaderReadsLongRecords(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789abcdef"), 5*step/16+3)
	in := NewReader(bytes.NewReader(Append(Append(nil, long), []byte("behind"))), 8*step)
	for _, want := range [][]byte{long, []byte("behind")} {
		if got, err := in.Next(); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("a record of %d bytes: %d bytes, %v", len(want), len(got), err)
		}
	}
}

// A file that ends anywhere gives its whole records, and an error unless it ends between
// two of them.
func TestReaderOfFilesCutAnywhere(t *testing.T) {
	file := three()
	for n := range len(file) {
		got, faults := records(t, bytes.NewReader(file[:n]), limit)
		whole, between := 0, n == 0
		for i, end := range []int{21, 37, 58} {
			if n >= end {
				whole, between = i+1, n == end
			}
		}
		if !slices.Equal(got, threeRecords[:whole]) {
			t.Errorf("%d bytes: got %q, want %q", n, got, threeRecords[:whole])
		}
		if between != (len(faults) == 0) || !between && faults[0].Reason != codec.Truncated {
			t.Errorf("%d bytes: faults %v", n, faults)
		}
	}
}

// Every flipped bit is noticed. A fault in the data costs one record, a fault in the
// length all that follow.
func TestReaderNoticesEveryBit(t *testing.T) {
	file := three()
	for bit := range 8 * len(file) {
		flipped := bytes.Clone(file)
		flipped[bit/8] ^= 1 << (bit % 8)
		got, faults := records(t, bytes.NewReader(flipped), limit)
		record, inHead := 0, bit/8 < headBytes
		switch {
		case bit/8 >= 37:
			record, inHead = 2, bit/8 < 37+headBytes
		case bit/8 >= 21:
			record, inHead = 1, bit/8 < 21+headBytes
		}
		want := append(slices.Clone(threeRecords[:record]), threeRecords[record+1:]...)
		if inHead {
			want = threeRecords[:record]
		}
		if !slices.Equal(got, want) || len(faults) != 1 || faults[0].Reason != codec.Corrupt ||
			faults[0].At != []int64{0, 21, 37}[record] {
			t.Errorf("bit %d: got %q and %v, want %q", bit, got, faults, want)
		}
	}
}

// A record beyond the limit is left out; a length that lies reserves no memory.
func TestReaderBoundsRecords(t *testing.T) {
	file := Append(Append(nil, make([]byte, 100)), []byte("small"))
	got, faults := records(t, bytes.NewReader(file), 99)
	if !slices.Equal(got, []string{"1@116 small"}) || len(faults) != 1 || faults[0].Reason != codec.TooLarge {
		t.Errorf("got %q and %v", got, faults)
	}
	for _, length := range []uint64{1 << 30, 1<<62 + 1, 1<<64 - 1} {
		head := make([]byte, 8)
		for i := range head {
			head[i] = byte(length >> (8 * i))
		}
		sum := Mask(head)
		head = append(head, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24), 1, 2, 3)
		in := NewReader(bytes.NewReader(head), 1<<40)
		if _, err := in.Next(); err == nil || cap(in.data) > 2*step {
			t.Errorf("length %d: error %v, %d bytes reserved", length, err, cap(in.data))
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(three())
	f.Add(three()[:40])
	f.Fuzz(func(t *testing.T, file []byte) {
		got, faults := records(t, bytes.NewReader(file), limit)
		if len(got)+len(faults) > len(file)/16+1 {
			t.Errorf("%d records and %d faults in %d bytes", len(got), len(faults), len(file))
		}
	})
}

// The records of a published file have right checksums and fill the file.
func TestReaderReadsPublishedFile(t *testing.T) {
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	file, err := os.ReadFile(filepath.Join(root, "waymo", "testdata", "motion_data_one_scenario.tfrecord"))
	if err != nil {
		t.Skipf("real data: %v (set ENTROPIPE_TESTDATA)", err)
	}
	in := NewReader(bytes.NewReader(file), 64<<20)
	n, total := 0, 0
	for {
		data, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n, total = n+1, total+len(data)
	}
	if want := len(file) - n*(headBytes+footBytes); n == 0 || total != want {
		t.Errorf("%d records of %d bytes in all, want %d bytes", n, total, want)
	}
	t.Logf("%d records, %d bytes", n, total)
}

// Law: whichever records are skipped, the others are those that a whole reading yields, also in
// files that are cut or damaged.
func TestReaderSkips(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var file []byte
		for range rng.IntN(6) {
			file = Append(file, make([]byte, rng.IntN(100<<10)))
		}
		if len(file) > 0 && rng.IntN(2) == 0 {
			file = file[:rng.IntN(len(file))]
		}
		if len(file) > 0 && rng.IntN(3) == 0 {
			file[rng.IntN(len(file))] ^= 1
		}
		whole, some := NewReader(bytes.NewReader(file), 80<<10), NewReader(bytes.NewReader(file), 80<<10)
		for range 10 {
			data, err := whole.Next()
			if rng.IntN(2) == 0 {
				skipped := some.Skip()
				var fault *codec.Error
				if skipped != nil && (err == nil || skipped.Error() != err.Error()) ||
					skipped == nil && err != nil && !errors.As(err, &fault) {
					t.Fatalf("skipped with %v, read with %v", skipped, err)
				}
			} else {
				other, failed := some.Next()
				if !bytes.Equal(data, other) || fmt.Sprint(err) != fmt.Sprint(failed) {
					t.Fatalf("%d bytes and %v instead of %d and %v", len(other), failed, len(data), err)
				}
			}
			if whole.Number() != some.Number() || whole.Offset() != some.Offset() {
				t.Fatalf("record %d at %d instead of %d at %d", some.Number(), some.Offset(), whole.Number(),
					whole.Offset())
			}
		}
	}
}
