package replay

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// drawingParser reads one line of a QuickDraw file: a JSON object with key_id,
// word, timestamp and drawing, in any order, and others that are only checked
// to be JSON. It accepts what encoding/json accepts, but takes the numbers,
// nearly all of the bytes, without a detour: ten times faster.
type drawingParser struct {
	s    []byte
	i    int
	word string // the last label, so that equal ones share memory
}

// syntaxError is a fault at byte at of the line, counted from 0.
type syntaxError struct {
	at     int
	detail string
}

func (e *syntaxError) Error() string { return e.detail }

// maxDepth bounds the nesting of values that are skipped.
const maxDepth = 100

// drawingKeys are the keys that are read, the two that must be there first.
var drawingKeys = [4]string{"key_id", "drawing", "word", "timestamp"}

// parse reads line into d, whose slices it reuses. Errors are *syntaxError.
// A missing word or timestamp is left empty, any other missing key is a fault.
func (p *drawingParser) parse(line []byte, d *Drawing) error {
	p.s, p.i = line, 0
	d.ID, d.Label, d.TimeNs = 0, "", 0
	var seen [4]bool // seen[i]: the line has drawingKeys[i]
	if err := p.expect('{', "an object"); err != nil {
		return err
	}
	for more := !p.take('}'); more; {
		p.space()
		start := p.i
		key, err := p.text()
		if err != nil {
			return err
		}
		if err := p.expect(':', "a colon"); err != nil {
			return err
		}
		if k := slices.Index(drawingKeys[:], string(key)); k >= 0 {
			if seen[k] {
				p.i = start
				return p.fault("the key %q comes twice", key)
			}
			seen[k] = true
		}
		switch string(key) {
		case "key_id":
			err = p.id(d)
		case "word":
			err = p.label(d)
		case "timestamp":
			err = p.time(d)
		case "drawing":
			err = p.strokes(d)
		default:
			err = p.skip(0)
		}
		if err != nil {
			return err
		}
		if more = p.take(','); !more {
			if err := p.expect('}', "a comma or the object's end"); err != nil {
				return err
			}
		}
	}
	p.space()
	switch {
	case p.i < len(p.s):
		return p.fault("more after the object's end")
	case !seen[0]:
		return p.fault("no key_id")
	case !seen[1]:
		return p.fault("no drawing")
	}
	return nil
}

// id reads key_id: a decimal number in quotes. Tables hold int64, and no
// published key is larger.
func (p *drawingParser) id(d *Drawing) error {
	p.space()
	at := p.i
	digits, err := p.text()
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err == nil && n <= math.MaxInt64 {
		d.ID = int64(n)
		return nil
	}
	p.i = at
	if err == nil {
		return p.fault("key_id %d is larger than an int64", n)
	}
	return p.fault("key_id: want a decimal number of 64 bits, got %.40q", digits)
}

func (p *drawingParser) label(d *Drawing) error {
	word, err := p.text()
	if err != nil {
		return err
	}
	if string(word) != p.word {
		p.word = string(word)
	}
	d.Label = p.word
	return nil
}

func (p *drawingParser) time(d *Drawing) error {
	p.space()
	at := p.i
	text, err := p.text()
	if err != nil {
		return err
	}
	if d.TimeNs, err = parseDrawn(string(text)); err != nil {
		p.i = at
		return p.fault("timestamp: %v", err)
	}
	return nil
}

// parseDrawn reads "2017-03-01 20:41:36.70725 UTC".
func parseDrawn(s string) (int64, error) {
	bare, ok := strings.CutSuffix(s, " UTC")
	if !ok {
		return 0, fmt.Errorf("want a time like 2017-03-01 20:41:36.70725 UTC, got %.60q", s)
	}
	t, ok := parseUTC(bare)
	if !ok {
		return 0, fmt.Errorf("want a time like 2017-03-01 20:41:36.70725 UTC, got %.60q", s)
	}
	return unixNano(t)
}

// strokes reads [[[x…],[y…]],…], or with a third array of milliseconds: raw
// drawings have it, simplified ones do not.
func (p *drawingParser) strokes(d *Drawing) error {
	d.X, d.Y, d.T, d.Ends = d.X[:0], d.Y[:0], d.T[:0], d.Ends[:0]
	if err := p.expect('[', "an array of strokes"); err != nil {
		return err
	}
	if p.take(']') {
		d.T = nil
		return nil
	}
	for {
		if err := p.stroke(d); err != nil {
			return err
		}
		if p.take(',') {
			continue
		}
		if len(d.T) == 0 {
			d.T = nil
		}
		return p.expect(']', "a comma or the end of the strokes")
	}
}

func (p *drawingParser) stroke(d *Drawing) error {
	p.space()
	at := p.i
	if err := p.expect('[', "a stroke"); err != nil {
		return err
	}
	if err := p.coordinates(&d.X); err != nil {
		return err
	}
	if err := p.expect(',', "a comma and the array of y"); err != nil {
		return err
	}
	if err := p.coordinates(&d.Y); err != nil {
		return err
	}
	timed := p.take(',')
	if timed {
		if err := p.milliseconds(&d.T); err != nil {
			return err
		}
	}
	if err := p.expect(']', "the end of the stroke"); err != nil {
		return err
	}
	if d.Ends = append(d.Ends, int32(len(d.X))); len(d.Ends) > math.MaxInt16 {
		return p.fault("more than %d strokes", math.MaxInt16)
	}
	if len(d.X) != len(d.Y) || timed && len(d.T) != len(d.X) || !timed && len(d.T) > 0 {
		p.i = at
		return p.fault("stroke %d: its arrays have unequal lengths (x %d, y %d, t %d so far), or not all strokes "+
			"have times",
			len(d.Ends)-1, len(d.X), len(d.Y), len(d.T))
	}
	return nil
}

// coordinates appends an array of numbers to dst, each the float64 nearest to
// its decimals.
func (p *drawingParser) coordinates(dst *[]float64) error {
	if err := p.expect('[', "an array of numbers"); err != nil {
		return err
	}
	if p.take(']') {
		return nil
	}
	out := *dst
	for {
		v, ok := p.small()
		f := float64(v)
		if !ok {
			var err error
			if f, err = p.number(); err != nil {
				return err
			}
		}
		out = append(out, f)
		if p.i < len(p.s) && p.s[p.i] == ',' {
			p.i++
			continue
		}
		if p.take(',') {
			continue
		}
		*dst = out
		return p.expect(']', "a comma or the end of the numbers")
	}
}

// milliseconds appends an array of times to dst, rounded to whole ones.
func (p *drawingParser) milliseconds(dst *[]int32) error {
	if err := p.expect('[', "an array of times"); err != nil {
		return err
	}
	if p.take(']') {
		return nil
	}
	for {
		v, ok := p.small()
		if !ok {
			f, err := p.number()
			if err != nil {
				return err
			}
			if f = math.Round(f); f < math.MinInt32 || f > math.MaxInt32 {
				return p.fault("a time of %g ms", f)
			}
			v = int32(f)
		}
		*dst = append(*dst, v)
		if p.take(',') {
			continue
		}
		return p.expect(']', "a comma or the end of the times")
	}
}
