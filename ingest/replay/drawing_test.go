package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/algos/geomtest"
)

const simplifiedLine = `{"word":"cat","countrycode":"GB","timestamp":"2017-03-01 20:41:36.70725 UTC","recognized":true,"key_id":"5891796615823360","drawing":[[[0,10,255],[0,20,30]],[[5,6],[7,8]]]}`

func TestSimplifiedAndRawDrawings(t *testing.T) {
	want := Drawing{
		ID: 5891796615823360, Label: "cat", TimeNs: 1488400896707250000,
		X: []float64{0, 10, 255, 5, 6}, Y: []float64{0, 20, 30, 7, 8}, Ends: []int32{3, 5},
	}
	raw := want
	raw.T = []int32{0, 17, 33, 500, 512}
	for line, want := range map[string]Drawing{
		simplifiedLine: want,
		// another order of keys, space, escapes, keys that nobody knows, floats
		` { "drawing" : [ [ [ 0 , 1e1 , 255.0 ] , [ 0, 20, 30 ] ] , [[5,6],[7,8]] ] , "more":[{"a":[null,-1.5e-3,"]"]},{}], "key_id":"5891796615823360",` +
			`"timestamp":"2017-03-01 20:41:36.70725 UTC", "word" : "c\u0061t" }` + "\r": want,
		strings.Replace(simplifiedLine, `[[[0,10,255],[0,20,30]],[[5,6],[7,8]]]`,
			`[[[0,10,255],[0,20,30],[0,17,33]],[[5,6],[7,8],[500,512.4]]]`, 1): raw,
	} {
		var p drawingParser
		d := Drawing{X: []float64{9}, T: []int32{9}, Ends: []int32{9}} // left over from the line before
		if err := p.parse([]byte(line), &d); err != nil {
			t.Errorf("%s: %v", line, err)
		} else if diff := cmp.Diff(want, d); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", line, diff)
		}
	}
}

func TestBrokenDrawingsAreNamedByColumn(t *testing.T) {
	with := func(old, new string) string { return strings.Replace(simplifiedLine, old, new, 1) }
	for _, c := range []struct {
		line   string
		rest   string // the text that the fault points at
		detail string
	}{
		{`[]`, `[]`, "want an object"},
		{`{`, ``, "line ends where a string"},
		{`{}`, ``, "no key_id"},
		{`{"key_id":"1"}`, ``, "no drawing"},
		{`{"key_id":"1","drawing":[]}x`, `x`, "more after"},
		{`{"key_id":"1",}`, `}`, "want a string"},
		{`{"key_id":1}`, `1}`, "want a string"},
		{`{"key_id": "-1"}`, `"-1"}`, "want a decimal number"},
		{`{"key_id":"9223372036854775808"}`, `"9223372036854775808"}`,
			"key_id 9223372036854775808 is larger than an int64"},
		{`{"key_id":"18446744073709551616"}`, `"18446744073709551616"}`, "want a decimal number of 64 bits"},
		{`{"word":"a` + "\n" + `"}`, "\n\"}", "control character"},
		{`{"word":"\x"}`, `"\x"}`, "escape"},
		{`{"word":"`, ``, "ends in a string"},
		{`{"more":tru}`, `tru}`, "want a value"},
		{`{"more":01}`, `1}`, "comma or the object's end"},
		{`{"more":[1,]}`, `]}`, "want a value"},
		{`{"more":` + strings.Repeat("[", 200), strings.Repeat("[", 99), "nested more than"},
		{with("UTC", "PST"), `"2017-03-01`, "timestamp: want a time like"},
		{with("2017-03-01", "2017-13-01"), `"2017-13-01`, "timestamp: want a time like"},
		{with("[5,6]", "[5,6,7]"), `[[5,6,7]`, "stroke 1: its arrays have unequal lengths"},
		{with("[5,6],[7,8]", "[5,6],[7,8],[1,2]"), `[[5,6],`, "not all strokes have times"},
		{with("[5,6],[7,8]", "[5,6]"), `]]}`, "comma and the array of y"},
		{with("[5,6],[7,8]", "[5,6],[7,8],[1,2],[3,4]"), `,[3,4]`, "end of the stroke"},
		{with("[5,6]", `[5,"6"]`), `"6"]`, "want a number"},
		{with("[5,6]", `[5,06]`), `6],[7`, "comma or the end of the numbers"},
		{with("[5,6]", `[5,6e999]`), `6e999`, "does not fit a float64"},
		{with("[5,6],[7,8]", `[5,6],[7,8],[1,1e10]`), `]]]}`, "a time of 1e+10 ms"},
	} {
		var p drawingParser
		err := p.parse([]byte(c.line), new(Drawing))
		var at *syntaxError
		if !errors.As(err, &at) || !strings.Contains(at.detail, c.detail) {
			t.Errorf("%s: %v, want %q", c.line, err, c.detail)
		} else if rest := c.line[at.at:]; !strings.HasPrefix(rest, c.rest) || c.rest == "" && rest != "" {
			t.Errorf("%s: points at %.12q, want %q", c.line, rest, c.rest)
		}
	}
}

// reference reads a line with encoding/json alone.
func reference(line []byte) (d Drawing, err error) {
	var o map[string]any
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if err := dec.Decode(&o); err != nil || o == nil {
		return d, fmt.Errorf("no object: %v", err)
	}
	if !json.Valid(line) { // the decoder stops behind the object
		return d, errors.New("no JSON")
	}
	text := func(key string) (s string, there bool, err error) {
		v, there := o[key]
		if s, ok := v.(string); ok || !there {
			return s, there, nil
		}
		return "", true, fmt.Errorf("%s is %T", key, v)
	}
	id, ok, err := text("key_id")
	if err != nil || !ok {
		return d, fmt.Errorf("key_id: %v", err)
	}
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || n > math.MaxInt64 {
		return d, errors.New("key_id")
	}
	d.ID = int64(n)
	if d.Label, _, err = text("word"); err != nil {
		return d, err
	}
	when, ok, err := text("timestamp")
	if err != nil {
		return d, err
	}
	if ok {
		if d.TimeNs, err = parseDrawn(when); err != nil {
			return d, err
		}
	}
	strokes, ok := o["drawing"].([]any)
	if !ok {
		return d, errors.New("no drawing")
	}
	return d, referenceStrokes(strokes, &d)
}

func referenceStrokes(strokes []any, d *Drawing) error {
	for _, s := range strokes {
		arrays, ok := s.([]any)
		if !ok || len(arrays) < 2 || len(arrays) > 3 {
			return errors.New("stroke")
		}
		var ns [3]int
		for k, a := range arrays {
			numbers, ok := a.([]any)
			if !ok {
				return errors.New("array")
			}
			ns[k] = len(numbers)
			for _, v := range numbers {
				number, ok := v.(json.Number)
				if !ok {
					return errors.New("number")
				}
				f, err := strconv.ParseFloat(string(number), 64)
				if err != nil {
					return err
				}
				switch k {
				case 0:
					d.X = append(d.X, f)
				case 1:
					d.Y = append(d.Y, f)
				default:
					if f = math.Round(f); f < math.MinInt32 || f > math.MaxInt32 {
						return errors.New("time")
					}
					d.T = append(d.T, int32(f))
				}
			}
		}
		d.Ends = append(d.Ends, int32(len(d.X)))
		timed := len(arrays) == 3
		if ns[0] != ns[1] || timed && len(d.T) != len(d.X) || !timed && len(d.T) > 0 {
			return errors.New("lengths")
		}
	}
	return nil
}

// repeats tells whether a key stands twice: encoding/json merges objects then,
// while the last one counts here.
func repeats(line []byte) bool {
	for _, key := range []string{"key_id", "word", "timestamp", "drawing"} {
		if bytes.Count(line, []byte(key)) > 1 {
			return true
		}
	}
	return bytes.Contains(line, []byte(`\`)) // a key may be written with escapes
}

// The parser accepts what encoding/json accepts, and reads the same from it.
func FuzzDrawing(f *testing.F) {
	f.Add([]byte(simplifiedLine))
	f.Add([]byte(`{"key_id":"1","drawing":[[[1.5,-2,1e2],[0,20,30],[0,17,33.5]]],"more":{"a":[null,true,"é"]}}`))
	f.Add([]byte(`{"key_id":"1","drawing":[[[],[]],[[1],[2]]]}`))
	f.Add([]byte(`{"key_id":"18446744073709551615","drawing":[]}`))
	f.Add([]byte("\x00{\"word\":\"\xff\"}"))
	f.Add([]byte(`{"key_id":"1","drawing":[[[-0],[0000001]]]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if repeats(line) {
			return
		}
		var p drawingParser
		got := Drawing{X: make([]float64, 3), Y: make([]float64, 2), T: make([]int32, 1), Ends: make([]int32, 5)}
		err := p.parse(line, &got)
		want, refused := reference(line)
		var deep *syntaxError
		if errors.As(err, &deep) && (strings.Contains(deep.detail, "nested") ||
			strings.Contains(deep.detail, "more than")) {
			return // our limits
		}
		if (err == nil) != (refused == nil) {
			t.Fatalf("%q: %v, encoding/json: %v", line, err, refused)
		}
		if err == nil && !sameDrawing(got, want) {
			t.Fatalf("%q: got %+v, encoding/json %+v", line, got, want)
		}
	})
}

func sameDrawing(a, b Drawing) bool {
	return a.ID == b.ID && a.Label == b.Label && a.TimeNs == b.TimeNs &&
		slices.Equal(a.X, b.X) && slices.Equal(a.Y, b.Y) && slices.Equal(a.T, b.T) && slices.Equal(a.Ends, b.Ends)
}

// Every real drawing is read as encoding/json reads it.
func TestRealDrawings(t *testing.T) {
	for _, kind := range []string{"quickdraw_simplified", "quickdraw_raw"} {
		files, err := filepath.Glob(filepath.Join(geomtest.TestData(t, "sketch", kind), "*.ndjson"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", kind, len(files), err)
		}
		drawings := 0
		for _, it := range all(t, open(t, QuickDraw{Files: files})) {
			drawings += len(it.Drawings)
		}
		lines := 0
		for _, f := range files {
			content, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.Lines(content) {
				var p drawingParser
				var got Drawing
				err := p.parse(line, &got)
				want, refused := reference(line)
				if err != nil || refused != nil || !sameDrawing(got, want) ||
					(kind == "quickdraw_raw") != (got.T != nil) {
					t.Fatalf("%s: %v, encoding/json: %v", line, err, refused)
				}
				lines++
			}
		}
		if t.Logf("%s: %d drawings in %d files", kind, drawings, len(files)); drawings != lines {
			t.Errorf("%s: %d drawings from %d lines", kind, drawings, lines)
		}
	}
}

func BenchmarkDrawing(b *testing.B) {
	line := []byte(simplifiedLine)
	if files, _ := filepath.Glob(filepath.Join(geomtest.TestData(b, "sketch", "quickdraw_simplified"),
		"*.ndjson")); len(files) > 0 {
		content, err := os.ReadFile(files[0])
		if err != nil {
			b.Fatal(err)
		}
		line = content[:bytes.IndexByte(content, '\n')]
	}
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	var p drawingParser
	var d Drawing
	for b.Loop() {
		if err := p.parse(line, &d); err != nil {
			b.Fatal(err)
		}
	}
}
