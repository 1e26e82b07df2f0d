package replay

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// line is a drawing of that many points.
func line(id int64, word string, points int) string {
	xy := strings.TrimSuffix(strings.Repeat("7,", points), ",")
	return fmt.Sprintf(`{"key_id":"%d","word":%q,"timestamp":"2017-03-01 20:41:36 UTC","drawing":[[[%s],[%s]]]}`, id,
		word, xy, xy) + "\n"
}

// packs tells of each item: sequence, number, drawings.
func packs(items []Item) (out []string) {
	for _, it := range items {
		out = append(out, fmt.Sprintf("%s %d+%d", it.Sequence, it.Number, len(it.Drawings)))
	}
	return out
}

func TestPacksEndWithTheirFile(t *testing.T) {
	dir := t.TempDir()
	var cats strings.Builder
	for i := range 5 {
		cats.WriteString(line(int64(i), "cat", 3))
	}
	a := write(t, []byte(cats.String()), dir, "a.ndjson")
	b := write(t, []byte(line(9, "dog", 1)), dir, "b.ndjson")
	s := open(t, QuickDraw{Files: []string{a, b, a}, Pack: 2})
	want := []string{"cat 0+2", "cat 2+2", "cat 4+1", "dog 0+1"}
	for range 2 {
		items := all(t, s)
		if d := cmp.Diff(want, packs(items)); d != "" {
			t.Error(d)
		}
		if it := items[0]; it.Clock != Unordered || it.TimeNs != 1488400896e9 || it.Dataset != "quickdraw" {
			t.Errorf("%s at %d, clock %d", it.Dataset, it.TimeNs, it.Clock)
		}
		if err := s.Rewind(); err != nil {
			t.Fatal(err)
		}
	}
}

// Rows of a message are grouped by drawing_id: two drawings of one id beside
// each other would be read as one.
func TestEqualNeighboursAreNotInOnePack(t *testing.T) {
	f := write(t, []byte(line(1, "cat", 1)+line(1, "cat", 2)+line(1, "cat", 3)+line(2, "cat", 4)+line(1, "cat", 5)),
		t.TempDir(), "cat.ndjson")
	items := all(t, open(t, QuickDraw{Files: []string{f}}))
	if d := cmp.Diff([]string{"cat 0+1", "cat 1+1", "cat 2+3"}, packs(items)); d != "" {
		t.Error(d)
	}
	if n := []int{len(items[0].Drawings[0].X), len(items[1].Drawings[0].X),
		len(items[2].Drawings[2].X)}; !cmp.Equal(n, []int{1, 2, 5}) {
		t.Errorf("points %v", n)
	}
}

func TestCategoryComesFromWordElseFromTheFile(t *testing.T) {
	dir := t.TempDir()
	nameless := `{"key_id":"5","drawing":[[[1],[2]]]}` + "\n"
	files := []string{
		write(t, []byte(nameless), dir, "full_simplified_The Eiffel Tower.ndjson"),
		write(t, []byte(nameless+line(6, "rain", 1)), dir, "weather.ndjson"),
	}
	items := all(t, open(t, QuickDraw{Files: files}))
	if d := cmp.Diff([]string{"The Eiffel Tower 0+1", "weather 0+2"}, packs(items)); d != "" {
		t.Error(d)
	}
	labels := []string{items[0].Drawings[0].Label, items[1].Drawings[0].Label, items[1].Drawings[1].Label}
	if d := cmp.Diff([]string{"The Eiffel Tower", "weather", "rain"}, labels); d != "" || items[0].Clock != NoClock {
		t.Errorf("clock %d %s", items[0].Clock, d)
	}
}

func TestDrawingWithoutAPointIsCountedNotSent(t *testing.T) {
	log, book := logBook()
	f := write(t, []byte(line(1, "cat", 0)+"\n \r\n"+line(2, "cat", 1)+`{"key_id":"3","drawing":[]}`),
		t.TempDir(), "cat.ndjson")
	s := open(t, QuickDraw{Files: []string{f}, Log: log})
	if d := cmp.Diff([]string{"cat 0+1"}, packs(all(t, s))); d != "" {
		t.Error(d)
	}
	if n := s.(*quickdraw).Empty(); n != 2 ||
		!strings.Contains(book.String(), "without a point were left out\" count=2") {
		t.Errorf("%d empty, logged %q", n, book)
	}
}

func TestBrokenLines(t *testing.T) {
	dir := t.TempDir()
	timed := `{"key_id":"5","drawing":[[[1],[2],[0]]]}` + "\n"
	f := write(t, []byte(line(1, "cat", 1)+`{"key_id":"2","drawing":[[[1],[x]]]}`+"\n"+line(3, "cat", 1)+timed+
		line(4, "cat", 1)+`{"key_id":"9"`), dir, "cat.ndjson")

	s := open(t, QuickDraw{Files: []string{f}})
	var it Item
	next := func(want string, words ...string) {
		t.Helper()
		err := s.Next(&it)
		if words != nil {
			failsWith(t, err, words...)
		} else if got := packs([]Item{it})[0]; err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	next("cat 0+1") // the drawings before the fault are not lost
	next("", "cat.ndjson:2:32: want a number", "--skip-bad")
	next("cat 1+1")
	next("", "cat.ndjson:4: raw and simplified drawings are mixed")
	next("cat 2+1")
	next("", "cat.ndjson:6:14: ", "the line ends")
	if err := s.Next(&it); err != io.EOF {
		t.Errorf("the end: %v", err)
	}

	log, book := logBook()
	lax := open(t, QuickDraw{Files: []string{f}, SkipBad: true, Log: log})
	if d := cmp.Diff([]string{"cat 0+3"}, packs(all(t, lax))); d != "" {
		t.Error(d)
	}
	if n := lax.(*quickdraw).Skipped(); n != 3 || !strings.Contains(book.String(), "cat.ndjson:2:32") {
		t.Errorf("%d skipped, logged %q", n, book)
	}
}

func TestLongLines(t *testing.T) {
	dir := t.TempDir()
	long := line(2, "cat", 1<<20) // 4 MiB
	f := write(t, []byte(line(1, "cat", 1)+long+line(3, "cat", 1)), dir, "cat.ndjson")
	s := open(t, QuickDraw{Files: []string{f}})
	items := all(t, s)
	// So large a drawing ends its message.
	if d := cmp.Diff([]string{"cat 0+2", "cat 2+1"}, packs(items)); d != "" || len(items[0].Drawings[1].X) != 1<<20 {
		t.Error(d)
	}

	// A line beyond every bound, most of it a hole in the file.
	f = write(t, []byte(line(1, "cat", 1)+`{"key_id":"2","more":"`), dir, "hole.ndjson")
	if err := os.Truncate(f, maxLine+1<<20); err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile(f, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	if _, err := end.WriteString("\"}\n" + line(3, "cat", 1)); err != nil {
		t.Fatal(err)
	}
	s = open(t, QuickDraw{Files: []string{f}})
	var it Item
	if err := s.Next(&it); err != nil {
		t.Fatal(err)
	}
	failsWith(t, s.Next(&it), "hole.ndjson:2: the line is longer than 64 MiB")
	if kept := cap(s.(*quickdraw).file.long); kept > 2*maxLine {
		t.Errorf("%d bytes are held", kept)
	}
	if err := s.Next(&it); err != nil || it.Drawings[0].ID != 3 {
		t.Errorf("the file does not go on behind a long line: %v", err)
	}
}

func gzipped(t *testing.T, fill func(io.Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fill(z)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCompressedFileAndByteOrderMark(t *testing.T) {
	dir := t.TempDir()
	z := gzipped(t, func(w io.Writer) { io.WriteString(w, "\xef\xbb\xbf"+line(1, "cat", 1)+line(2, "cat", 1)) })
	f := write(t, z, dir, "cat.ndjson") // told by its content, not by its name
	if d := cmp.Diff([]string{"cat 0+2"}, packs(all(t, open(t, QuickDraw{Files: []string{f}})))); d != "" {
		t.Error(d)
	}
	cut := write(t, z[:len(z)-12], dir, "cut.ndjson.gz")
	after := write(t, []byte(line(3, "dog", 1)), dir, "dog.ndjson")
	lax := open(t, QuickDraw{Files: []string{cut, after}, SkipBad: true})
	items := all(t, lax)
	if got := packs(items); got[len(got)-1] != "dog 0+1" || skippedBy(lax) != 1 {
		t.Errorf("%v, %d skipped", got, skippedBy(lax))
	}
	_, err := gzipError(t, write(t, z[:3], dir, "stub.gz"))
	failsWith(t, err, "stub.gz")
}

func gzipError(t *testing.T, f string) (Item, error) {
	var it Item
	err := open(t, QuickDraw{Files: []string{f}}).Next(&it)
	return it, err
}

func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ files, words []string }{
		{nil, []string{"no file"}},
		{[]string{dir + "/gone"}, []string{"no such file"}},
		{[]string{dir}, []string{"is not a file"}},
	} {
		_, err := QuickDraw{Files: c.files}.Open()
		failsWith(t, err, c.words...)
	}
}

// The memory of one enormous drawing is not kept for the small ones after it.
func TestMonsterIsForgotten(t *testing.T) {
	dir := t.TempDir()
	big := write(t, []byte(line(1, "cat", 2*keptPoints)), dir, "a.ndjson")
	small := write(t, []byte(line(2, "cat", 1)), dir, "b.ndjson")
	s := open(t, QuickDraw{Files: []string{big, small}})
	var it Item
	for range 2 {
		if err := s.Next(&it); err != nil {
			t.Fatal(err)
		}
	}
	if n := cap(it.Drawings[0].X); n > keptPoints {
		t.Errorf("room for %d points is kept for a drawing of 1", n)
	}
}
