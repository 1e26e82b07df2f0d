package schemas

import (
	"bytes"
	"math"
	"unicode/utf8"
	"unsafe"
)

// tokenMemory is a Decoder's memory for messages of sequences.
type tokenMemory struct {
	sequences  []Sequence // the requested rows, from row first on
	first      int
	passed     Sequence   // stands for every row that is not requested
	ids        []int32    // elements that are not read in place
	lists      []lists    // column input_ids, one entry for each batch
	masks      []lists    // column attention_mask, likewise
	vocabulary Vocabulary // the tokenizer that the last message names
	idText     []byte     // the sequences' names, one after the other
	idEnds     []int
}

// IsTokens tells whether the message holds sequences, which Sequences reads, and not
// frames, which Decode reads. The header schema decides; without it the columns do.
// IsTokens reads no more than the names of the columns and allocates nothing. It
// returns false for a value that is no Arrow stream.
func IsTokens(m *Message) bool {
	tokens, texts := branch(m)
	return tokens || texts
}

// IsText tells whether the message holds texts, which need a tokenizer. It decides
// as IsTokens does.
func IsText(m *Message) bool {
	_, texts := branch(m)
	return texts
}

// branch tells whether the message holds sequences of ids, or texts. Both are false
// for frames and for a value that is no Arrow stream.
func branch(m *Message) (tokens, texts bool) {
	if name := headerValue(m.Headers, HeaderSchema); len(name) > 0 {
		return string(name) == SchemaTokens, string(name) == SchemaText
	}
	if ct := headerValue(m.Headers, HeaderContentType); general(ct) != contentTypeOctets {
		if f, _ := formatOfType(ct); f != arrowFormat {
			return false, false
		}
	}
	schema, _, err := readMessage(m.Value, 0)
	if err != nil || schema.kind != kindSchema {
		return false, false
	}
	var text, drawing, x bool
	start, n := schema.vector(schema.header, 1, 4)
	for i := range min(n, maxFields) {
		name := schema.str(schema.table(schema.deref(start+4*i)), 0)
		if schema.broken {
			return false, false
		}
		if bytes.EqualFold(name, []byte(columnNames[colTokens])) {
			return true, false
		}
		text = text || bytes.EqualFold(name, []byte(columnNames[colText]))
		drawing = drawing || bytes.EqualFold(name, []byte(columnNames[colDrawing]))
		x = x || bytes.EqualFold(name, []byte(columnNames[colX]))
	}
	return false, text && !drawing && !x
}

// Sequences returns the rows of a message of schema tokens/1 or text/1, in their
// order. FrameID counts up from the header's frame-id. Ids are read in place if they
// came as int32 without nulls.
//
// A faulty row has Err set: its list or text is null, an id is negative or no int32,
// the mask has another length than the ids or hides ids before the last, text or id
// is not UTF-8, or there is no token. The error is a *FormatError and refuses the
// whole message; its reason is ReasonEmpty for a tombstone, an empty value and a
// stream without rows. Sequences returns for any bytes, and stays within the limits
// of MaxBytes.
//
// docs/messages.md defines the meaning of messages.
func (d *Decoder) Sequences(m Message) ([]Sequence, error) {
	sequences, _, err := d.SequencesOf(m, 0, math.MaxInt)
	return sequences, err
}

// SequencesOf is Sequences for those of the rows [from, to) that the message has, for
// callers that cannot hold a large message at once. rows is the number of rows of the
// whole message. All rows are checked, so every range yields the same error.
//
// It takes the time of the whole message, and memory for the rows of the range, for
// decompressed buffers, and eight bytes a row for each column of numbers.
func (d *Decoder) SequencesOf(m Message, from, to int) (sequences []Sequence, rows int, err error) {
	d.begin()
	d.vocabulary = Vocabulary{}
	if err := d.decodeSequences(&m, from, to); err != nil {
		return nil, 0, err
	}
	return d.sequences, d.rows, nil
}

func (d *Decoder) decodeSequences(m *Message, from, to int) (failed error) {
	if err := d.checkValue(m); err != nil {
		return err
	}
	key, err := d.key(m)
	if err != nil {
		return err
	}
	f, by, err := d.formatOf(m)
	if err != nil {
		return err
	}
	if by == byHeader && f != arrowFormat {
		return formatErr(ReasonUnknownContentType, -1, "content-type is %s; sequences come as %s", f.contentType,
			ContentTypeArrow)
	}
	defer func() { // as in Decoder.arrow: text is read through Arrow's arrays
		if p := recover(); p != nil {
			failed = formatErr(ReasonArrowPanic, -1, "Arrow failed on the value: %v", p)
		}
	}()
	l, next, err := d.layout(m.Value)
	if err != nil {
		return err
	}
	texts, err := isTextSchema(m, l)
	if err != nil {
		return err
	}
	vocabulary, err := readVocabulary(m, l)
	if err != nil {
		return err
	}
	if err := d.readBatches(m.Value, next, l, colID, colText); err != nil {
		return err
	}
	if err := d.newSequences(&key, from, to); err != nil {
		return err
	}
	if texts {
		err = d.texts(&l.cols[colText])
	} else {
		err = d.tokens(l)
	}
	if err == nil {
		err = d.dateSequences(l)
	}
	if err == nil {
		err = d.nameSequences(l)
	}
	if err != nil {
		return err
	}
	d.vocabulary = vocabulary
	return nil
}

// isTextSchema tells whether the message is text/1 (true) or tokens/1, and checks its
// columns. If there is no header schema, the columns decide.
func isTextSchema(m *Message, l *layout) (bool, *FormatError) {
	name := headerValue(m.Headers, HeaderSchema)
	texts := string(name) == SchemaText
	switch {
	case texts || string(name) == SchemaTokens:
	case len(name) > 0:
		return false, formatErr(ReasonUnknownSchema, -1, "schema is %.80q; sequences come as %s or %s", name,
			SchemaTokens, SchemaText)
	default:
		texts = l.cols[colTokens].name == "" && l.cols[colText].name != ""
	}
	if texts {
		return true, l.checkTexts()
	}
	return false, l.checkTokens()
}

// newSequences makes room for the rows [from, to), with key for each.
func (d *Decoder) newSequences(key *FrameKey, from, to int) *FormatError {
	if d.rows == 0 {
		return formatErr(ReasonEmpty, -1, "the message has no sequence: its Arrow stream has no rows")
	}
	size := int64(unsafe.Sizeof(Sequence{}))
	if int64(d.rows) > 1 && int64(d.rows)*size > d.limit() {
		return formatErr(ReasonTooLarge, -1, "the message has %d sequences, each with %d bytes of bookkeeping; it "+
			"may have at most %d (--max-frame-bytes)",
			d.rows, size, d.limit()/size)
	}
	if key.FrameID > math.MaxInt64-int64(d.rows) {
		return formatErr(ReasonBadHeader, -1, "frame-id %d leaves no room for %d sequences", key.FrameID, d.rows)
	}
	from = min(max(from, 0), d.rows)
	to = min(max(to, from), d.rows)
	d.first = from
	d.sequences = resize(d.sequences, to-from)
	for i := range d.sequences {
		s := Sequence{FrameKey: *key}
		s.FrameID += int64(from + i)
		s.Index = int32(from + i)
		d.sequences[i] = s
	}
	d.passed = Sequence{Err: notAsked}
	return nil
}

// notAsked keeps what is found wrong with a row from being put into words.
var notAsked = new(FormatError)

// sequence returns row i, or what stands for it where it is not asked for.
func (d *Decoder) sequence(i int) *Sequence {
	if i -= d.first; i >= 0 && i < len(d.sequences) {
		return &d.sequences[i]
	}
	return &d.passed
}

// refuse sets the fault of a row, the first one that is found.
func (s *Sequence) refuse(reason, format string, args ...any) {
	if s.Err != nil {
		return
	}
	s.Err = formatErr(reason, -1, format, args...)
	switch reason {
	case ReasonIDOutOfRange, ReasonEmptySequence, ReasonBadMask:
		s.Err.Stage = StageModel // the pipeline refuses sequences with these reasons at that stage, too
	}
	s.IDs, s.Text = nil, ""
}

// tokens reads the rows of tokens/1.
func (d *Decoder) tokens(l *layout) *FormatError {
	var err *FormatError
	if d.lists, err = d.openLists(d.lists, &l.cols[colTokens]); err != nil {
		return err
	}
	masked := l.cols[colMask].name != ""
	if masked {
		if d.masks, err = d.openLists(d.masks, &l.cols[colMask]); err != nil {
			return err
		}
	}
	if err := d.roomForIDs(); err != nil {
		return err
	}
	row, tokens := 0, int64(0)
	for i := range d.batches {
		in := &d.lists[i]
		ids := d.batchIDs(&in.elements)
		for k := range d.batches[i].rows {
			s := d.sequence(row)
			row++
			from, to, null, err := in.row(k)
			switch {
			case err != nil:
				return err
			case null:
				s.refuse(ReasonBadValue, "column %s is null", in.name)
				continue
			}
			if tokens += int64(to - from); tokens*4 > d.limit() { // views may overlap: many tokens in few bytes
				return formatErr(ReasonTooLarge, -1, "the sequences take more than %d bytes (--max-frame-bytes)",
					d.limit())
			}
			n := to - from
			if masked {
				if n, err = s.unmasked(&d.masks[i], k, n); err != nil {
					return err
				}
			}
			if s.Err == nil {
				s.take(ids[from : from+n : from+n])
			}
		}
	}
	return nil
}

// take makes ids the sequence's, unless one of them is none.
func (s *Sequence) take(ids []int32) {
	s.IDs = ids
	if len(ids) == 0 {
		s.refuse(ReasonEmptySequence, "the sequence has no token")
		return
	}
	for i, id := range ids {
		if id < 0 {
			if id == noID {
				s.refuse(ReasonIDOutOfRange, "token %d of %d is null or beyond int32", i, len(ids))
			} else {
				s.refuse(ReasonIDOutOfRange, "token %d of %d is %d", i, len(ids), id)
			}
			return
		}
	}
}

// unmasked returns how many of the sequence's n tokens the mask of row k leaves:
// padding at their end is cut off. No mask leaves all.
func (s *Sequence) unmasked(masks *lists, k, n int) (int, *FormatError) {
	from, to, null, err := masks.row(k)
	switch {
	case err != nil:
		return 0, err
	case null:
		return n, nil
	case to-from != n:
		s.refuse(ReasonBadMask, "the mask has %d values for %d tokens", to-from, n)
		return 0, nil
	}
	ones, ok := masks.ones(from, to)
	if !ok {
		s.refuse(ReasonBadMask, "the mask is not ones before zeros: only padding at the end can be left out")
	}
	return ones, nil
}

// openLists opens a column of lists in every batch.
func (d *Decoder) openLists(dst []lists, c *column) ([]lists, *FormatError) {
	clear(dst)
	dst = dst[:0]
	for i := range d.batches {
		l, err := d.listsOf(&d.batches[i], c)
		if err != nil {
			return dst, err
		}
		dst = append(dst, l)
	}
	return dst, nil
}

// roomForIDs makes room for the elements that batchIDs converts.
func (d *Decoder) roomForIDs() *FormatError {
	n := 0
	for i := range d.lists {
		if e := &d.lists[i].elements; d.throughArrow || !e.inPlace() {
			n += e.n
		}
	}
	if int64(n)*4 > d.limit() {
		return formatErr(ReasonTooLarge, -1, "%d tokens take %d bytes, more than the %d that a message may hold "+
			"(--max-frame-bytes)", n, 4*n, d.limit())
	}
	d.ids = resize(d.ids, n)[:0]
	return nil
}

// batchIDs returns the elements of a batch as token ids: in place, or behind
// those of the batches before.
func (d *Decoder) batchIDs(e *elements) []int32 {
	if !d.throughArrow && e.inPlace() {
		return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(e.raw))), e.n)
	}
	from := len(d.ids)
	d.ids = e.appendIDs(d.ids)
	return d.ids[from:]
}

// texts reads the rows of text/1.
func (d *Decoder) texts(c *column) *FormatError {
	size := int64(0)
	return d.eachText(c, 1, func(s *Sequence, text string, ok bool) *FormatError {
		s.IsText = true
		switch {
		case !ok:
			s.refuse(ReasonBadValue, "column %s is null", c.name)
			return nil
		case !utf8.ValidString(text):
			s.refuse(ReasonBadValue, "column %s is not UTF-8", c.name)
			return nil
		}
		s.Text = text
		if size += int64(len(text)); size > d.limit() { // views may overlap, words of a dictionary come again
			return formatErr(ReasonTooLarge, -1, "the texts take more than %d bytes (--max-frame-bytes)", d.limit())
		}
		return nil
	})
}

// eachText calls put for every row with the text in column c, whose dictionary
// is number k of the batches; false: it is null.
func (d *Decoder) eachText(c *column, k int, put func(s *Sequence, text string, ok bool) *FormatError) *FormatError {
	row := 0
	for i := range d.batches {
		b := &d.batches[i]
		if b.rows == 0 {
			continue
		}
		in, err := d.labelsOf(b, c, k)
		if err != nil {
			return err
		}
		for r := range b.rows {
			text, ok, err := in.text(r)
			if err == nil {
				err = put(d.sequence(row), text, ok)
			}
			if err != nil {
				return err
			}
			row++
		}
	}
	return nil
}
