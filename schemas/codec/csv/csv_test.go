package csv

import (
	stdcsv "encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// rows reads a whole table: its names, then its rows, each joined by |.
func rows(text string, chosen ...string) ([]string, error) {
	r := NewReader(iotest.OneByteReader(strings.NewReader(text)))
	names, err := r.Header(chosen...)
	if err != nil {
		return nil, err
	}
	all := []string{strings.Join(names, "|")}
	for {
		fields, err := r.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		var row []string
		for _, f := range fields {
			row = append(row, string(f))
		}
		all = append(all, strings.Join(row, "|"))
	}
}

func TestTables(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"names":              {"x,y,z\n1,2,3\n4,5,6\n", []string{"x|y|z", "1|2|3", "4|5|6"}},
		"no names":           {"1,2,3\n4,5,6", []string{"x|y|z", "1|2|3", "4|5|6"}},
		"many without names": {"1 2 3 4 5 6\n", []string{"x|y|z|intensity|column5|column6", "1|2|3|4|5|6"}},
		"semicolons":         {"x;y\n1.5;2\n", []string{"x|y", "1.5|2"}},
		"tabs":               {"x\ty\r\n1\t2\r\n", []string{"x|y", "1|2"}},
		"blanks":             {"  x   y z \n 1  2\t3\n", []string{"x|y|z", "1|2|3"}},
		"quotes": {"\"x\",\"a \"\"b\"\", c\",y\n\"1\",\"two\nlines\",2\n",
			[]string{`x|a "b", c|y`, "1|two\nlines|2"}},
		"empty fields":         {"x,y,z\n1,,3\n,,\n", []string{"x|y|z", "1||3", "||"}},
		"empty lines":          {"\n\nx,y\n\n1,2\n\n", []string{"x|y", "1|2"}},
		"mark of UTF-8":        {"\xef\xbb\xbfx,y\n1,2\n", []string{"x|y", "1|2"}},
		"CloudCompare":         {"//X Y Z\n2\n1 2 3\n4 5 6\n", []string{"X|Y|Z", "1|2|3", "4|5|6"}},
		"comments":             {"# a scan, made by hand\n# x y\n1 2\n", []string{"x|y", "1|2"}},
		"count without names":  {"2\n1 2 3\n4 5 6\n", []string{"x|y|z", "1|2|3", "4|5|6"}},
		"nothing":              {"", []string{""}},
		"names alone":          {"x,y\n", []string{"x|y"}},
		"blanks around values": {"x , y\n 1 , 2 \n", []string{"x|y", "1|2"}},
	} {
		if got, err := rows(c.text); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if got, err := rows("# easting northing\n1 2\n", "EASTING"); err != nil || got[0] != "easting|northing" {
		t.Errorf("names in a comment that a user chose: %q, %v", got, err)
	}
}

func TestFaultsHaveLineAndColumn(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
	}{
		"few fields": {"x,y,z\n1,2,3\n4,5\n",
			"line 3: the row has 2 fields, but there are 3 columns"},
		"many fields": {"x,y\n1,2,3\n", "line 2: the row has 3 fields"},
		"open quote":  {"x,y\n1,2\n\"3,4\n", "line 3: the file ends in a quoted field"},
		"text behind quote": {"x,y\n1,\"2\"3\n",
			`line 2, column 6: want ',' behind a quoted field, got '3'`},
		"a row of the line after the quoted one": {"x,y\n\"1\n\",2\n5\n", "line 4: the row has 1 fields"},
		"a long line": {"x,y\n" + strings.Repeat("1", maxRow+1),
			"line 2: the row is longer than"},
		"a long quote": {"x,y\n\"" + strings.Repeat("1\n", maxRow),
			"line 2: the row is longer than"},
		"many columns": {strings.Repeat("1,", maxFields+1),
			"line 1: the row has more than 4096 fields"},
		"many blanks": {strings.Repeat("1 ", maxFields+1),
			"line 1: the row has more than 4096 fields"},
	} {
		_, err := rows(c.text)
		var known *Error
		if !errors.As(err, &known) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	broken := errors.New("the disk is gone")
	r := NewReader(io.MultiReader(strings.NewReader("x,y\n1,2\n"), iotest.ErrReader(broken)))
	if _, err := r.Header(); err != nil {
		t.Fatal(err)
	}
	_, err := r.Next()
	if err == nil {
		_, err = r.Next()
	}
	if !errors.Is(err, broken) {
		t.Errorf("the error of the file: %v", err)
	}
}

// A table that encoding/csv writes is read as it was written, whatever is in its fields.
func TestAgainstTheStandardLibrary(t *testing.T) {
	values := []string{"1", "", "-2.5e3", "a,b", `say "x"`, "two\nlines", "nan", "#", "//"}
	for first := range values {
		var text strings.Builder
		w := stdcsv.NewWriter(&text)
		want := []string{"x|y|z"}
		_ = w.Write([]string{"x", "y", "z"})
		for i := range values {
			row := []string{values[first], values[i], values[(first+i)%len(values)]}
			_ = w.Write(row)
			want = append(want, strings.Join(row, "|"))
		}
		w.Flush()
		if got, err := rows(text.String()); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", text.String(), got, err)
		}
	}
}

// Any text is rows of as many fields as there are names, or an *Error.
func FuzzReader(f *testing.F) {
	for _, text := range []string{"x,y,z\n1,2,3\n", "//X Y\n2\n1 2\n3 4\n", "\"x\";y\n\"1\n\";\"\"\"\"\n",
		"1\t2\n", "#\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := NewReader(strings.NewReader(text))
		names, err := r.Header("easting")
		for err == nil {
			var fields [][]byte
			fields, err = r.Next()
			if err == nil && len(fields) != len(names) {
				t.Fatalf("%d fields of %d columns", len(fields), len(names))
			}
			for i := range fields {
				if wrong := r.Wrong(i, "bad"); wrong.Line < 1 || wrong.Col < 1 {
					t.Fatalf("a fault at %d:%d", wrong.Line, wrong.Col)
				}
			}
		}
		var known *Error
		if err != io.EOF && !errors.As(err, &known) {
			t.Fatal(err)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	var text strings.Builder
	text.WriteString("x,y,z,intensity\n")
	for i := range 100000 {
		fmt.Fprintf(&text, "%.3f,%.3f,%.3f,%d\n", float64(i)/100, float64(i)/-77, float64(i%100), i%256)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		r := NewReader(strings.NewReader(text.String()))
		_, err := r.Header()
		for err == nil {
			_, err = r.Next()
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
}
