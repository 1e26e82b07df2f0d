package replay

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"modernc.org/sqlite"
	"modernc.org/sqlite/vfs"

	"entropipe/schemas/codec"
)

// bagDatabase reads the messages of one file of SQLite: those of given topics, in the order
// of their times where the file has an index of them, as ROS 2 writes it, else in the order
// in which they were written. Memory: the largest message, and some pages.
type bagDatabase struct {
	files  *bagFiles
	vfs    *vfs.FS
	db     *sql.DB
	conn   *sql.Conn
	byRow  *sql.Stmt
	rows   *sql.Rows
	value  *sql.Rows // row that holds the data of the last message
	topics map[int64]topicInfo
	limit  int64
	ended  bool
	lean   func(topicInfo) bool // messages whose data nobody reads; nil: none
}

// bagMessage is a message. Data are valid until the next call of next.
type bagMessage struct {
	row     int64
	topic   topicInfo
	logNs   int64
	data    []byte
	faulted error // data cannot be read
}

// openBagDatabase opens a file and reads its topics. limit bounds the bytes of a message.
func openBagDatabase(path string, limit int64) (d *bagDatabase, err error) {
	files, err := openBagFiles(path)
	if err != nil {
		return nil, err
	}
	d = &bagDatabase{files: files, limit: limit}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
			d = nil
		}
	}()
	name, folder, err := vfs.New(d.files.folder)
	if err != nil {
		return d, err
	}
	d.vfs = folder
	uri := url.URL{Scheme: "file", Opaque: bagName, RawQuery: url.Values{"vfs": {name}, "mode": {"ro"},
		"_pragma": {"locking_mode(exclusive)", "temp_store(2)", "trusted_schema(0)", "query_only(1)"}}.Encode()}
	if d.db, err = sql.Open("sqlite", uri.String()); err != nil {
		return d, err
	}
	if d.conn, err = d.db.Conn(background); err != nil {
		return d, err
	}
	// A blob of the file may claim a gigabyte.
	const limitLength = 0 // SQLITE_LIMIT_LENGTH
	if _, err := sqlite.Limit(d.conn, limitLength, int(min(limit, 1<<30))+1<<16); err != nil {
		return d, err
	}
	return d, d.readTopics()
}

// background is the context of all statements: one that can end would cost a goroutine a
// statement.
var background = context.Background()

// touchDatabase opens a file as its owner would, so that SQLite mends it.
func touchDatabase(path string) error {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path,
		RawQuery: "mode=rw&_pragma=trusted_schema(0)"}).String())
	if err != nil {
		return err
	}
	var n int64
	return errors.Join(db.QueryRow("SELECT count(*) FROM sqlite_master").Scan(&n), db.Close())
}

// close closes the file. d may be nil, and closed before. Only an error that leaves SQLite
// with the file is one: nothing was written.
func (d *bagDatabase) close() error {
	if d == nil || d.files == nil {
		return nil
	}
	for _, rows := range []*sql.Rows{d.value, d.rows} {
		if rows != nil {
			rows.Close()
		}
	}
	if d.byRow != nil {
		d.byRow.Close()
	}
	if d.conn != nil {
		d.conn.Close()
	}
	if d.db != nil {
		d.db.Close()
	}
	var err error
	if d.vfs != nil {
		err = d.vfs.Close()
	}
	d.files.close()
	d.files = nil
	return err
}

// fault describes an error of SQLite. Where bytes behind the end were asked for, they are
// the reason.
func (d *bagDatabase) fault(err error) error {
	if missed := d.missed(); missed != nil {
		return missed
	}
	if err != nil {
		return fmt.Errorf("SQLite: %s", strings.TrimSuffix(err.Error(), " (11)"))
	}
	return nil
}

// missed returns an error if the file is too short for what was read since the last call.
func (d *bagDatabase) missed() error {
	p := d.files.folder.bag
	if p.missed < 0 {
		return nil
	}
	at := p.missed
	p.missed = -1
	if fault := d.files.unpackFault; fault != nil {
		return fmt.Errorf("it cannot be unpacked behind byte %d: %w", p.size, fault)
	}
	return codec.Errorf(codec.Truncated, -1, "the file is cut off: it has %d of %d bytes, and byte %d is needed",
		p.size, p.claimed, at)
}

// maxBagTopics bounds the topics of a file: each takes memory.
const maxBagTopics = 1 << 14

// readTopics reads the table topics, and checks that both tables are tables: a view could
// compute for ever.
func (d *bagDatabase) readTopics() error {
	for _, table := range []string{"topics", "messages"} {
		var kind, text string
		var root int64
		err := d.conn.QueryRowContext(background, "SELECT type, coalesce(sql, ''), coalesce(rootpage, 0) FROM "+
			"sqlite_master WHERE name = ?", table).Scan(&kind, &text, &root)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return d.orMissed(codec.Errorf(codec.Unsupported, -1, "this is an SQLite database, but no ROS 2 bag: it "+
				"has no table %s", table))
		case err != nil:
			return d.fault(err)
		case kind != "table" || root <= 0:
			return codec.Errorf(codec.Unsupported, -1, "%s is no plain table", table)
		}
	}
	format := "'cdr'" // bags older than the column
	if has, err := d.hasColumn("topics", "serialization_format"); err != nil {
		return err
	} else if has {
		format = "serialization_format"
	}
	rows, err := d.conn.QueryContext(background, "SELECT CAST(id AS INTEGER), CAST(name AS TEXT), CAST(type AS TEXT), "+
		"CAST("+format+" AS TEXT) FROM topics")
	if err != nil {
		return d.fault(err)
	}
	defer rows.Close()
	d.topics = map[int64]topicInfo{}
	for rows.Next() {
		var id sql.NullInt64
		var name, kind, encoding sql.NullString
		if err := rows.Scan(&id, &name, &kind, &encoding); err != nil {
			return d.fault(err)
		}
		if len(d.topics) == maxBagTopics {
			return codec.Errorf(codec.TooLarge, -1, "there are more than %d topics", maxBagTopics)
		}
		d.topics[id.Int64] = topicInfo{name.String, kind.String, encoding.String}
	}
	return d.fault(rows.Err())
}

// orMissed returns err, or what the file lacks.
func (d *bagDatabase) orMissed(err error) error {
	if missed := d.missed(); missed != nil {
		return missed
	}
	return err
}

func (d *bagDatabase) hasColumn(table, column string) (bool, error) {
	var n int64
	err := d.conn.QueryRowContext(background, "SELECT count(*) FROM pragma_table_info(?) WHERE name = ?", table,
		column).Scan(&n)
	return n > 0, d.fault(err)
}

// timeIndex returns the quoted name of an index of messages by time; empty: there is none.
func (d *bagDatabase) timeIndex() (string, error) {
	rows, err := d.conn.QueryContext(background, "SELECT l.name FROM pragma_index_list('messages') l, "+
		"pragma_index_info(l.name) i WHERE i.seqno = 0 AND i.name = 'timestamp' AND NOT l.partial ORDER BY 1")
	if err != nil {
		return "", d.fault(err)
	}
	defer rows.Close()
	name := ""
	for rows.Next() && name == "" {
		if err := rows.Scan(&name); err != nil {
			return "", d.fault(err)
		}
	}
	if err := d.fault(rows.Err()); err != nil || name == "" {
		return "", err
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`, nil
}

// start begins to read the messages of the topics that are wanted.
func (d *bagDatabase) start(wanted func(topicInfo) bool) error {
	var ids []string
	for id, t := range d.topics {
		if wanted(t) {
			ids = append(ids, fmt.Sprint(id))
		}
	}
	if len(ids) == 0 {
		d.ended = true
		return nil
	}
	index, err := d.timeIndex()
	if err != nil {
		return err
	}
	from, order := "messages NOT INDEXED", "rowid"
	if index != "" {
		from, order = "messages INDEXED BY "+index, "timestamp, rowid"
	}
	d.byRow, err = d.conn.PrepareContext(background, "SELECT data FROM messages WHERE rowid = ?")
	if err == nil {
		d.rows, err = d.conn.QueryContext(background, "SELECT rowid, CAST(topic_id AS INTEGER), "+
			"CAST(timestamp AS INTEGER), typeof(data), length(data) FROM "+from+" WHERE topic_id IN ("+
			strings.Join(ids, ",")+") ORDER BY "+order)
	}
	return d.fault(err)
}

// errEnded is the fault of messages that cannot be listed any further.
type errEnded struct{ err error }

func (e errEnded) Error() string { return "messages from here on cannot be listed: " + e.err.Error() }
func (e errEnded) Unwrap() error { return e.err }

// next sets m to the next message. more is false after the last one. An error ends the
// messages; m.faulted is of one message only.
func (d *bagDatabase) next(m *bagMessage) (more bool, err error) {
	if d.ended {
		return false, nil
	}
	if d.value != nil {
		d.value.Close()
		d.value = nil
	}
	if !d.rows.Next() {
		d.ended = true
		if err := d.fault(d.rows.Err()); err != nil {
			return false, errEnded{err}
		}
		return false, nil
	}
	var topic, size, logNs sql.NullInt64
	var kind string
	*m = bagMessage{}
	if err := d.rows.Scan(&m.row, &topic, &logNs, &kind, &size); err != nil {
		d.ended = true
		return false, errEnded{d.fault(err)}
	}
	if missed := d.missed(); missed != nil { // the row itself is made of zeros
		d.ended = true
		return false, errEnded{missed}
	}
	m.topic, m.logNs = d.topics[topic.Int64], logNs.Int64
	switch {
	case kind != "blob":
		m.faulted = codec.Errorf(codec.BadType, -1, "its data are of type %s, not blob", kind)
	case size.Int64 > d.limit:
		m.faulted = codec.Errorf(codec.TooLarge, -1, "it has %d bytes, more than the limit of %d", size.Int64, d.limit)
	}
	if m.faulted != nil {
		return true, nil
	}
	if d.lean == nil || !d.lean(m.topic) {
		m.data, m.faulted = d.dataOf(m.row)
	}
	return true, nil
}

// dataOf returns the data of a row, which are valid until the next call.
func (d *bagDatabase) dataOf(row int64) ([]byte, error) {
	var err error
	if d.value, err = d.byRow.QueryContext(background, row); err != nil {
		return nil, d.fault(err)
	}
	var data sql.RawBytes
	if d.value.Next() {
		err = d.value.Scan(&data)
	} else {
		err = d.value.Err()
	}
	return data, d.fault(err)
}
