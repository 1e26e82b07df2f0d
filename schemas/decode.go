package schemas

import (
	"math"
	"unsafe"

	"entropipe/schemas/codec"
)

// DefaultMaxBytes is the limit of a Decoder whose MaxBytes is 0.
const DefaultMaxBytes = 64 << 20

// Decoder turns messages into frames or sequences. The zero value is ready. A
// Decoder owns memory that its frames point into, and is not for concurrent use:
// each worker has its own.
//
// The common message, float32 or float64 coordinates without a null in one
// batch under a schema that came before, is read in place: no value is copied
// and nothing allocated, so the cost is that of the metadata, about a
// microsecond. A compressed body is decompressed into memory that is reused.
// Everything else (nulls, integers, half floats, several batches, unaligned
// buffers) is gathered, through Arrow's arrays where a conversion is needed.
//
// The Decoder reads the metadata itself, and checks every length and position before
// it uses them. Arrow's ipc.Reader trusts them: a few corrupt bytes make it allocate
// gigabytes. The tests compare the Decoder with that reader.
type Decoder struct {
	// MaxBytes bounds each of four sizes of a message: its value, the declared sizes
	// of its buffers after decompression, its decoded values, and the bookkeeping of
	// its frames. Decoding allocates at most about four times MaxBytes, and only for
	// a message that declares as much. 0 means DefaultMaxBytes.
	MaxBytes int64

	// ContentTypes names the topics whose values without header content-type are no Arrow
	// streams. A value there that begins as an Arrow stream is read as one.
	ContentTypes ContentTypes

	// Strokes has Decode set Frame.Strokes of drawings.
	Strokes bool

	throughArrow bool // tests: read nothing in place

	names    names
	layouts  layouts
	inflater inflater
	frames   []Frame
	batches  []batch
	tokenMemory
	rows   int // rows of all batches together
	f32    [4][]float32
	f64    [3][]float64
	i64    [3][]int64
	ends   []int32 // memory of Frame.Strokes
	others extraMemory
	index  []int32     // scratch for Pruned.Index
	cloud  codec.Cloud // of a value that is not Arrow
}

// Decode returns the frames of a message of points: one frame of a points/1 message,
// one frame for each drawing of a sketches/1 message. The frames are views of the
// value or of the decoder's memory, valid until the next Decode and as long as the
// value; their names and Drawings own their memory.
//
// A cloud without points is a frame, too. The error is a *FormatError; its reason is
// ReasonEmpty for a tombstone, an empty Arrow value and a message without drawings.
// Decode returns for any bytes, and stays within the limits of MaxBytes.
//
// docs/messages.md defines the meaning of messages.
func (d *Decoder) Decode(m Message) ([]Frame, error) {
	d.begin()
	if err := d.decode(&m); err != nil {
		return nil, err
	}
	return d.frames, nil
}

// begin drops all references to the last message.
func (d *Decoder) begin() {
	clear(d.frames)
	clear(d.sequences)
	clear(d.batches)
	d.frames, d.sequences, d.batches, d.rows = d.frames[:0], d.sequences[:0], d.batches[:0], 0
	d.passed = Sequence{}
	d.inflater.reset()
	d.names.grown = 0
}

// checkValue returns an error if the message has no value or one that is too large.
func (d *Decoder) checkValue(m *Message) *FormatError {
	if m.Value == nil {
		return formatErr(ReasonEmpty, -1, "the record is a tombstone: it has no value")
	}
	if m.Oversize > 0 {
		return formatErr(ReasonTooLarge, -1,
			"the value has %d bytes, or the record too many headers: a message may hold at most %d bytes "+
				"(--max-frame-bytes)",
			m.Oversize, d.limit())
	}
	if int64(len(m.Value)) > d.limit() {
		return formatErr(ReasonTooLarge, -1, "the value has %d bytes, more than the %d that a message may hold "+
			"(--max-frame-bytes)", len(m.Value), d.limit())
	}
	return nil
}

// decode returns an error, not a *FormatError: a nil *FormatError in an error is not
// nil.
func (d *Decoder) decode(m *Message) error {
	if err := d.checkValue(m); err != nil {
		return err
	}
	key, err := d.key(m)
	if err != nil {
		return err
	}
	f, by, err := d.formatOf(m)
	switch {
	case err != nil:
		err = named(m, nil, byNobody, err)
	case f == arrowFormat:
		if err = d.arrow(m, key); err != nil {
			err = named(m, f, by, err)
		}
	default:
		err = d.foreign(m, f, by, key)
	}
	if err != nil {
		return err
	}
	return nil
}

func (d *Decoder) limit() int64 {
	if d.MaxBytes > 0 {
		return d.MaxBytes
	}
	return DefaultMaxBytes
}

// arrow decodes an Arrow IPC stream.
func (d *Decoder) arrow(m *Message, key FrameKey) (err *FormatError) {
	defer func() {
		// This version's arrays trust their input. A value that passed the checks and
		// still makes an array panic is refused.
		if p := recover(); p != nil {
			err = formatErr(ReasonArrowPanic, -1, "Arrow failed on the value: %v", p)
		}
	}()
	l, next, err := d.layout(m.Value)
	if err != nil {
		return err
	}
	sketches, err := isSketches(m, l)
	if err != nil {
		return err
	}
	pruned, err := prunedOf(m)
	if err != nil {
		return err
	}
	texts := []int{}
	if sketches {
		texts = append(texts, colLabel)
	}
	if err := d.readBatches(m.Value, next, l, texts...); err != nil {
		return err
	}
	if sketches && pruned != nil {
		return formatErr(ReasonBadHeader, -1, "header %s is set, but drawings cannot be pruned", HeaderPrunedFor)
	}
	if sketches {
		return d.sketches(l, key)
	}
	return d.points(l, key, pruned)
}

// layout returns the layout of the stream's batches, and the position of the message
// after the schema.
func (d *Decoder) layout(value []byte) (*layout, int, *FormatError) {
	if l := d.layouts.find(value); l != nil {
		return l, len(l.raw), nil
	}
	m, next, err := readSchemaMessage(value)
	if err != nil {
		return nil, 0, err
	}
	l, err := newLayout(&m)
	if err != nil {
		return nil, 0, err
	}
	d.layouts.add(l, value[:next])
	return l, next, nil
}

// isSketches tells whether the message is sketches/1 (true) or points/1, and checks
// its columns. If there is no header schema, the columns decide.
func isSketches(m *Message, l *layout) (bool, *FormatError) {
	switch name := headerValue(m.Headers, HeaderSchema); {
	case string(name) == SchemaPoints:
		return false, l.checkPoints()
	case string(name) == SchemaSketches:
		return true, l.checkSketches()
	case string(name) == SchemaResults:
		return false, formatErr(ReasonUnknownSchema, -1, "schema is %s: the message holds what another run found "+
			"(--publish-results), and no cloud to compute on", SchemaResults)
	case len(name) > 0:
		return false, formatErr(ReasonUnknownSchema, -1, "schema is %.80q; this build reads %s, %s, %s and %s", name,
			SchemaPoints, SchemaSketches, SchemaTokens, SchemaText)
	case l.cols[colTokens].name != "":
		return false, formatErr(ReasonUnknownSchema, -1,
			"column %s makes this a message of tokens, which has no frame of points", l.cols[colTokens].name)
	case l.cols[colDrawing].name != "":
		return true, l.checkSketches()
	}
	return false, l.checkPoints()
}

// readBatches reads the rest of the stream, from position at on, into
// d.batches. texts are the columns, two at most, that may have a dictionary.
func (d *Decoder) readBatches(value []byte, at int, l *layout, texts ...int) *FormatError {
	limit := d.limit()
	var dicts [2]words
	for {
		m, next, err := readMessage(value, at)
		if err != nil {
			return err
		}
		if next < 0 {
			return nil
		}
		var declared int64
		switch m.kind {
		case kindRecordBatch:
			var b batch
			if b, declared, err = newBatch(&m, m.header, l, limit); err != nil {
				return err
			}
			if b.rows > math.MaxInt32-d.rows {
				return formatErr(ReasonTooLarge, at, "the batches have more than %d rows", math.MaxInt32)
			}
			b.words = dicts
			d.batches = append(d.batches, b)
			d.rows += b.rows
		case kindDictionaryBatch: // dictionaries of other columns are skipped
			for k, i := range texts { // two columns may share one dictionary
				if c := &l.cols[i]; c.dict && m.longField(m.header, 0, 0) == c.dictID {
					if declared, err = d.readWords(&dicts[k], &m, c, limit); err != nil {
						return err
					}
				}
			}
		default:
			return formatErr(ReasonUnsupported, at, "the stream has a message of kind %d; it may hold one schema "+
				"(1), dictionaries (2) and batches (3)", m.kind)
		}
		limit -= declared
		at = next
	}
}

// checkSize returns an error if the decoded values, width bytes a row, exceed the
// limit.
func (d *Decoder) checkSize(width int64) *FormatError {
	if size := int64(d.rows) * width; size > d.limit() {
		return formatErr(ReasonTooLarge, -1, "%d rows take %d bytes, more than the %d that a message may hold "+
			"(--max-frame-bytes)", d.rows, size, d.limit())
	}
	return nil
}

// newFrames returns n frames to fill, with key for each.
func (d *Decoder) newFrames(n int, key *FrameKey) ([]Frame, *FormatError) {
	size := int64(unsafe.Sizeof(Frame{}) + unsafe.Sizeof(Drawing{}))
	if int64(n) > 1 && int64(n)*size > d.limit() {
		return nil, formatErr(
			ReasonTooLarge,
			-1,
			"the message has %d frames, each with %d bytes of bookkeeping; it may have at most %d (--max-frame-bytes)",
			n,
			size,
			d.limit()/size,
		)
	}
	d.frames = resize(d.frames, n)
	for i := range d.frames {
		d.frames[i] = Frame{FrameKey: *key}
		d.frames[i].Index = int32(i)
	}
	return d.frames, nil
}

// coordinates reads x, y and z (unless the frames are plane) into f, which
// then holds the points of the whole message.
func (d *Decoder) coordinates(f *Frame, l *layout, plane bool) *FormatError {
	axes := []*column{&l.cols[colX], &l.cols[colY], &l.cols[colZ]}
	if plane || axes[2].name == "" {
		axes = axes[:2]
	}
	width := int64(4)
	for _, c := range axes {
		f.Double = f.Double || c.isDouble()
	}
	if f.Double {
		width = 8
	}
	if err := d.checkSize(width * int64(len(axes))); err != nil {
		return err
	}
	to32 := [...]*[]float32{&f.Cloud32.X, &f.Cloud32.Y, &f.Cloud32.Z}
	to64 := [...]*[]float64{&f.Cloud64.X, &f.Cloud64.Y, &f.Cloud64.Z}
	var err *FormatError
	for i, c := range axes {
		if f.Double {
			*to64[i], err = values(d, c, &d.f64[i], fillFloats)
		} else {
			*to32[i], err = values(d, c, &d.f32[i], fillFloats)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// points makes the one frame of a points/1 message.
func (d *Decoder) points(l *layout, key FrameKey, pruned *Pruned) *FormatError {
	frames, err := d.newFrames(1, &key)
	if err != nil {
		return err
	}
	f := &frames[0]
	if err := d.coordinates(f, l, false); err != nil {
		return err
	}
	if c := &l.cols[colIntensity]; c.name != "" {
		if f.Intensity, err = values(d, c, &d.f32[3], fillRounded); err != nil {
			return err
		}
	}
	if err := d.extra(f, l); err != nil {
		return err
	}
	if pruned != nil {
		return d.prune(f, pruned, l)
	}
	return nil
}
