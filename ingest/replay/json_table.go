package replay

import (
	"fmt"
	"io"

	"entropipe/ingest/filesys"
)

// maxObject bounds the memory that one object of a jsonTable can ask for.
const maxObject = 1 << 20

// jsonTable reads a file that is one JSON array of objects, an object at a time. Memory: one
// object and a buffer, whatever the size of the file.
type jsonTable struct {
	parser drawingParser // at a value of the last object
	name   string
	f      filesys.File
	buffer []byte
	from   int   // begin of what is not yet used in buffer
	offset int64 // offset in the file of buffer[0]
	begin  int64 // offset in the file of the last object
	number int64 // number of the last object, from 0
	ended  bool  // the file has no more bytes than buffer
}

func openJSONTable(name string) (*jsonTable, error) {
	f, err := openPlain(name)
	if err != nil {
		return nil, badFile(name, err)
	}
	t := &jsonTable{name: name, f: f, number: -1, buffer: make([]byte, 0, 256<<10)}
	c, err := t.mark()
	if err == nil && c != '[' {
		err = t.wrong(t.offset+int64(t.from), "want an array of objects, got %q", c)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	t.from++
	return t, nil
}

func (t *jsonTable) close() { t.f.Close() }

// wrong returns the error for what stands at an offset of the file.
func (t *jsonTable) wrong(at int64, format string, args ...any) error {
	return &BadInputError{File: t.name, Detail: fmt.Sprintf(format, args...) + fmt.Sprintf(" (at byte %d)", at)}
}

// bad is wrong for the last object.
func (t *jsonTable) bad(format string, args ...any) *BadInputError {
	return &BadInputError{File: t.name,
		Detail: fmt.Sprintf("record %d at byte %d: ", t.number, t.begin) + fmt.Sprintf(format, args...)}
}

// fill reads more of the file behind what is not yet used. false: there is no more.
func (t *jsonTable) fill() (bool, error) {
	if t.ended {
		return false, nil
	}
	if t.from > 0 {
		t.offset += int64(t.from)
		t.buffer = t.buffer[:copy(t.buffer, t.buffer[t.from:])]
		t.from = 0
	}
	if len(t.buffer) == cap(t.buffer) {
		t.buffer = append(t.buffer, 0)[:len(t.buffer)]
	}
	n, err := t.f.Read(t.buffer[len(t.buffer):cap(t.buffer)])
	t.buffer = t.buffer[:len(t.buffer)+n]
	if err == io.EOF {
		t.ended = true
		return false, nil
	}
	if err != nil {
		return false, badFile(t.name, err)
	}
	return true, nil
}

// mark returns the next byte that is not space, and leaves it; 0 at the end.
func (t *jsonTable) mark() (byte, error) {
	for {
		for ; t.from < len(t.buffer); t.from++ {
			switch c := t.buffer[t.from]; c {
			case ' ', '\t', '\r', '\n':
			default:
				return c, nil
			}
		}
		if more, err := t.fill(); !more {
			return 0, err
		}
	}
}

// next goes to the next object; io.EOF behind the last. Another error is that of the file,
// which cannot be read on.
func (t *jsonTable) next() error {
	c, err := t.mark()
	if err != nil {
		return err
	}
	if c == ',' && t.number >= 0 {
		t.from++
		if c, err = t.mark(); err != nil {
			return err
		}
	} else if c == ']' {
		return io.EOF
	} else if t.number >= 0 {
		return t.wrong(t.offset+int64(t.from), "want a comma or the end of the array behind record %d", t.number)
	}
	t.number++
	t.begin = t.offset + int64(t.from)
	switch {
	case c == 0:
		return t.bad("the file ends")
	case c != '{':
		return t.bad("want an object, got %q", c)
	}
	end, err := t.object()
	if err != nil {
		return err
	}
	t.parser.s, t.parser.i = t.buffer[t.from:end:end], 0
	t.from = end
	return nil
}

// object returns where in buffer the object ends that begins at from.
func (t *jsonTable) object() (int, error) {
	depth, quoted, escaped := 0, false, false
	for at := t.from; ; {
		for ; at < len(t.buffer); at++ {
			c := t.buffer[at]
			switch {
			case escaped:
				escaped = false
			case quoted:
				quoted, escaped = c != '"', c == '\\'
			case c == '"':
				quoted = true
			case c == '{':
				depth++
			case c == '}':
				if depth--; depth == 0 && at-t.from <= maxObject {
					return at + 1, nil
				}
			}
		}
		read := at - t.from
		if read > maxObject {
			return 0, t.bad("it is longer than %d bytes", maxObject)
		}
		more, err := t.fill()
		if err != nil {
			return 0, err
		}
		if !more && t.from+read == len(t.buffer) {
			return 0, t.bad("the file ends in it")
		}
		at = t.from + read
	}
}

// members calls take for each member of the last object. take reads the value with the
// parser, or returns false and leaves it. The error is a *BadInputError that names the object.
func (t *jsonTable) members(take func(key string) (bool, error)) error {
	p := &t.parser
	if err := p.expect('{', "an object"); err != nil {
		return t.bad("%v", err)
	}
	for more := !p.take('}'); more; {
		key, err := p.text()
		if err == nil {
			err = p.expect(':', "a colon")
		}
		taken := false
		if err == nil {
			taken, err = take(string(key))
		}
		if err == nil && !taken {
			err = p.skip(0)
		}
		if err == nil {
			if more = p.take(','); !more {
				err = p.expect('}', "a comma or the object's end")
			}
		}
		if err != nil {
			return t.bad("%v", err)
		}
	}
	return nil
}

// floats reads an array of numbers into dst, which it must fill.
func (t *jsonTable) floats(dst []float64) error {
	p := &t.parser
	if err := p.expect('[', "an array of numbers"); err != nil {
		return err
	}
	for i := range dst {
		if i > 0 {
			if err := p.expect(',', "a comma"); err != nil {
				return err
			}
		}
		v, err := p.number()
		if err != nil {
			return err
		}
		dst[i] = v
	}
	return p.expect(']', "the array's end")
}
