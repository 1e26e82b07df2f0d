package replay

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"entropipe/schemas/codec/tfmessage"
)

// cdrWriter writes CDR as a ROS 2 node does.
type cdrWriter []byte

func newCDR() *cdrWriter { return &cdrWriter{0, 1, 0, 0} }

func (w *cdrWriter) pad(n int) {
	for (len(*w)-4)%n != 0 {
		*w = append(*w, 0)
	}
}

func (w *cdrWriter) u32(v uint32) {
	w.pad(4)
	*w = binary.LittleEndian.AppendUint32(*w, v)
}

func (w *cdrWriter) f64(v float64) {
	w.pad(8)
	*w = binary.LittleEndian.AppendUint64(*w, math.Float64bits(v))
}

func (w *cdrWriter) text(s string) {
	w.u32(uint32(len(s) + 1))
	*w = append(append(*w, s...), 0)
}

func (w *cdrWriter) stamp(ns int64, frame string) {
	w.u32(uint32(ns / 1e9))
	w.u32(uint32(ns % 1e9))
	w.text(frame)
}

// rosCloud is a PointCloud2 of n points x, y, z, intensity, which count from first.
func rosCloud(ns int64, frame string, first, n int) []byte {
	w := newCDR()
	w.stamp(ns, frame)
	w.u32(1)
	w.u32(uint32(n))
	w.u32(4)
	for i, name := range []string{"x", "y", "z", "intensity"} {
		w.text(name)
		w.u32(uint32(4 * i))
		*w = append(*w, 7)
		w.u32(1)
	}
	*w = append(*w, 0)
	w.u32(16)
	w.u32(uint32(16 * n))
	w.u32(uint32(16 * n))
	for i := range 4 * n {
		*w = binary.LittleEndian.AppendUint32(*w, math.Float32bits(float32(first+i)))
	}
	*w = append(*w, 1)
	return *w
}

// rosTransforms is a TFMessage.
func rosTransforms(list ...tfmessage.Transform) []byte {
	w := newCDR()
	w.u32(uint32(len(list)))
	for _, m := range list {
		w.stamp(m.TimeNs, m.Parent)
		w.text(m.Child)
		for _, v := range append(m.Translation[:], m.Rotation[:]...) {
			w.f64(v)
		}
	}
	return *w
}

// bagRow is a message of a bag; its topic is an index of bagSpec.topics.
type bagRow struct {
	topic int
	ns    int64
	data  any
}

// bagSpec is a .db3 file as it is written.
type bagSpec struct {
	topics    []topicInfo
	rows      []bagRow
	journal   string // journal_mode; empty: delete
	noIndex   bool
	old       bool // the tables of the first version
	pageSize  int
	unchanged bool // keep the file open and the journal as it is: a crash
}

var lidarTopic = topicInfo{"/lidar", "sensor_msgs/msg/PointCloud2", "cdr"}

// write makes the file. The function that it returns closes the database of an unchanged
// one.
func (s bagSpec) write(t testing.TB, path string) func() {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	do := func(text string, args ...any) {
		t.Helper()
		if _, err := db.Exec(text, args...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if s.pageSize > 0 {
		do(fmt.Sprintf("PRAGMA page_size = %d", s.pageSize))
	}
	do("PRAGMA journal_mode = " + max(s.journal, "delete"))
	do("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0")
	if s.old {
		do("CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL)")
	} else {
		do("CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT NOT NULL)")
		do("INSERT INTO schema VALUES (4, 'jazzy')")
		do("CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, " +
			"serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL, " +
			"type_description_hash TEXT NOT NULL)")
	}
	do("CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL, " +
		"data BLOB)")
	if !s.noIndex {
		do("CREATE INDEX timestamp_idx ON messages (timestamp ASC)")
	}
	for i, topic := range s.topics {
		if s.old {
			do("INSERT INTO topics VALUES (?,?,?)", i+1, topic.name, topic.schema)
		} else {
			do("INSERT INTO topics VALUES (?,?,?,?,'','')", i+1, topic.name, topic.schema, topic.encoding)
		}
	}
	for _, r := range s.rows {
		do("INSERT INTO messages(topic_id, timestamp, data) VALUES (?,?,?)", r.topic+1, r.ns, r.data)
	}
	if s.unchanged {
		return func() { db.Close() }
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {}
}

// lidarRows are n clouds, a tenth of a second apart; logged 3 ms after their stamps.
func lidarRows(from, n int) []bagRow {
	var rows []bagRow
	for i := from; i < from+n; i++ {
		ns := 1_700_000_000e9 + int64(i)*1e8
		rows = append(rows, bagRow{0, ns + 3e6, rosCloud(ns, "velodyne", 100*i, 5+i%3)})
	}
	return rows
}

// describe returns an item in short.
func describe(it *Item) string {
	sum := float32(0)
	for i, v := range it.Cloud.Cloud32.X {
		sum += v + it.Cloud.Cloud32.Y[i] + it.Cloud.Cloud32.Z[i] + it.Cloud.Intensity[i]
	}
	return fmt.Sprintf("%s %s %s %d at %d: %d points, sum %g", it.Dataset, it.Sequence, it.Sensor, it.Number, it.TimeNs,
		it.Cloud.Len(), sum)
}

// lidarItems are the items of lidarRows.
func lidarItems(sequence string, from, n int) []string {
	var all []string
	for i := from; i < from+n; i++ {
		points := 5 + i%3
		sum := float32(0)
		for k := range 4 * points {
			sum += float32(100*i + k)
		}
		all = append(all, fmt.Sprintf("rosbag %s /lidar %d at %d: %d points, sum %g", sequence, i,
			1_700_000_000e9+int64(i)*1e8, points, sum))
	}
	return all
}

// drain reads a source to its end, or to its first error.
func drain(s Source) (items []string, err error) {
	for {
		var it Item
		err := s.Next(&it)
		if err == io.EOF {
			return items, nil
		}
		if err != nil {
			return items, err
		}
		items = append(items, describe(&it))
	}
}

// readBag opens and drains a bag.
func readBag(t *testing.T, r Rosbag) ([]string, error) {
	t.Helper()
	s, err := r.Open()
	if err != nil {
		return nil, err
	}
	items, err := drain(s)
	if closed := s.Close(); closed != nil {
		t.Errorf("close: %v", closed)
	}
	return items, err
}

// contentOf returns the names and the content of the files of a folder.
func contentOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = string(data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// copyFiles copies the files of a folder as they are, as a crash leaves them.
func copyFiles(t testing.TB, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err == nil {
		err = os.MkdirAll(to, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "-shm") { // memory that processes share: gone with them
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), data, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func putBagFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func packed(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

func metadataOf(files ...string) []byte {
	text := "rosbag2_bagfile_information:\n  version: 5\n  storage_identifier: sqlite3\n  relative_file_paths:\n"
	for _, f := range files {
		text += "    - " + f + "\n"
	}
	return []byte(text + "  message_count: 12\n")
}

// Every way in which a recorder leaves a bag gives the same clouds, and nothing in the
// folder of the bag changes, whether it can be written or not.
func TestRosbag(t *testing.T) {
	whole := bagSpec{topics: []topicInfo{lidarTopic, {"/imu", "sensor_msgs/msg/Imu", "cdr"}}, rows: slices.Concat(
		lidarRows(0, 4), []bagRow{{1, 1_700_000_000e9, []byte{0, 1, 0, 0, 9}}}, lidarRows(4, 8))}
	halves := [2]bagSpec{{topics: whole.topics, rows: lidarRows(0, 7)}, {topics: whole.topics, rows: lidarRows(7, 5)}}
	one := func(change func(*bagSpec)) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			s := whole
			change(&s)
			s.write(t, filepath.Join(dir, "drive_0.db3"))()
		}
	}
	split := func(names [2]string, more func(t *testing.T, dir string)) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for i, name := range names {
				halves[i].write(t, filepath.Join(dir, name))()
			}
			more(t, dir)
		}
	}
	crash := func(journal string, spoil func(t *testing.T, live string)) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			live, s := t.TempDir(), whole
			s.journal, s.unchanged = journal, true
			done := s.write(t, filepath.Join(live, "drive_0.db3"))
			defer done()
			spoil(t, live)
			copyFiles(t, live, dir)
			if hot := isHotJournal(filepath.Join(dir, "drive_0.db3-journal")); hot != (journal == "truncate") {
				t.Fatalf("a journal to take back: %t", hot)
			}
		}
	}
	for name, make := range map[string]func(t *testing.T, dir string){
		"one file":             one(func(*bagSpec) {}),
		"without index":        one(func(s *bagSpec) { s.noIndex = true }),
		"tables of old":        one(func(s *bagSpec) { s.old = true }),
		"large pages":          one(func(s *bagSpec) { s.pageSize = 65536 }),
		"small pages":          one(func(s *bagSpec) { s.pageSize = 512 }),
		"log that was emptied": one(func(s *bagSpec) { s.journal = "wal" }),
		"late rows first": one(func(s *bagSpec) {
			s.rows = slices.Clone(s.rows)
			slices.Reverse(s.rows)
		}),
		"compressed messages": one(func(s *bagSpec) {
			s.rows = slices.Clone(s.rows)
			for i, r := range s.rows {
				s.rows[i].data = packed(t, r.data.([]byte))
			}
		}),
		"compressed file": func(t *testing.T, dir string) {
			at := filepath.Join(t.TempDir(), "f")
			whole.write(t, at)()
			data, err := os.ReadFile(at)
			if err != nil {
				t.Fatal(err)
			}
			putBagFile(t, filepath.Join(dir, "drive_0.db3.zstd"), packed(t, data))
			putBagFile(t, filepath.Join(dir, "metadata.yaml"), metadataOf("drive_0.db3"))
		},
		"compressed by hand": func(t *testing.T, dir string) {
			at := filepath.Join(t.TempDir(), "f")
			whole.write(t, at)()
			data, err := os.ReadFile(at)
			if err != nil {
				t.Fatal(err)
			}
			putBagFile(t, filepath.Join(dir, "drive_0.db3.zst"), packed(t, data))
			putBagFile(t, filepath.Join(dir, "metadata.yaml"), metadataOf("drive_0.db3"))
		},
		"split": split([2]string{"drive_2.db3", "drive_10.db3"}, func(*testing.T, string) {}),
		"split, with metadata": split([2]string{"z.db3", "a.db3"}, func(t *testing.T, dir string) {
			putBagFile(t, filepath.Join(dir, "metadata.yaml"), metadataOf("drive/z.db3", "a.db3"))
		}),
		"log with all rows": crash("wal", func(t *testing.T, live string) {
			if info, err := os.Stat(filepath.Join(live, "drive_0.db3-wal")); err != nil || info.Size() < 4096 {
				t.Fatalf("no log: %v", err)
			}
		}),
		"log that is torn": crash("wal", func(t *testing.T, live string) {
			f, err := os.OpenFile(filepath.Join(live, "drive_0.db3-wal"), os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = f.Write(bytes.Repeat([]byte{7}, 3000))
			}
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
		}),
		"journal that takes back": crash("truncate", func(t *testing.T, live string) {
			db, err := sql.Open("sqlite", filepath.Join(live, "drive_0.db3"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { tx.Rollback() })
			for _, text := range []string{"PRAGMA cache_size = 2", "DELETE FROM messages WHERE id > 3",
				"INSERT INTO messages SELECT id + 1000, 1, 5, zeroblob(9000) FROM messages"} {
				if _, err := tx.Exec(text); err != nil {
					t.Fatal(err)
				}
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "drive")
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			make(t, dir)
			before := contentOf(t, root)
			want := lidarItems("drive", 0, 12)
			for _, mode := range []fs.FileMode{0o777, 0o555} {
				if err := os.Chmod(dir, mode); err != nil {
					t.Fatal(err)
				}
				got, err := readBag(t, Rosbag{Paths: []string{dir}})
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("mode %o: %v, got\n%s\nwant\n%s", mode, err, strings.Join(got, "\n"),
						strings.Join(want, "\n"))
				}
			}
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			after := contentOf(t, root)
			for path, data := range after {
				if before[path] != data {
					t.Errorf("%s was changed", path)
				}
			}
			if len(after) != len(before) {
				t.Errorf("%d files, then %d", len(before), len(after))
			}
		})
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "entropipe-bag-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("private folders that stayed: %v, %v", left, err)
	}
}

// A file is a sequence of its own name, a rewound source says the same again, and topics
// and times are as asked for.
func TestRosbagChoices(t *testing.T) {
	dir := t.TempDir()
	second := topicInfo{"/rear", "sensor_msgs/msg/PointCloud2", "cdr"}
	spec := bagSpec{topics: []topicInfo{lidarTopic, second, {"/imu", "sensor_msgs/msg/Imu", "cdr"}}}
	for i, r := range lidarRows(0, 6) {
		r.topic = i % 2
		if i == 4 {
			r.data = rosCloud(0, "velodyne", 400, 6) // no stamp
		}
		spec.rows = append(spec.rows, r)
	}
	path := filepath.Join(dir, "street.db3")
	spec.write(t, path)()
	for name, c := range map[string]struct {
		topics []string
		time   string
		want   string // topic, number and time, in milliseconds of the second
	}{
		"all": {nil, "", "/lidar0@0 /rear0@100 /lidar1@200 /rear1@300 /lidar2@403 /rear2@500"},
		"one": {[]string{"/rear"}, HeaderTime, "/rear0@100 /rear1@300 /rear2@500"},
		"logged": {[]string{"/rear", "/lidar"}, LogTime,
			"/lidar0@3 /rear0@103 /lidar1@203 /rear1@303 /lidar2@403 /rear2@503"},
	} {
		s, err := Rosbag{Paths: []string{path}, Topics: c.topics, Time: c.time}.Open()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for pass := range 2 {
			var got []string
			for {
				var it Item
				if err := s.Next(&it); err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if it.Sequence != "street" || it.Clock != UTC || it.Pose != nil {
					t.Errorf("%s: %+v", name, it)
				}
				got = append(got, fmt.Sprintf("%s%d@%d", it.Sensor, it.Number, it.TimeNs/1e6%1e3))
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("%s, pass %d: %s, want %s", name, pass, text, c.want)
			}
			if err := s.Rewind(); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What is no bag, or has no clouds, is refused when it is opened, by name.
func TestRosbagRefusals(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	imu := bagSpec{topics: []topicInfo{{"/imu", "sensor_msgs/msg/Imu", "cdr"}}}
	imu.write(t, at("imu.db3"))()
	lidar := bagSpec{topics: []topicInfo{lidarTopic}, rows: lidarRows(0, 2)}
	lidar.write(t, at("lidar.db3"))()
	putBagFile(t, at("old.bag"), []byte("#ROSBAG V2.0\n"+strings.Repeat("x", 200)))
	putBagFile(t, at("ros1/only.bag"), []byte("#ROSBAG V2.0\n"+strings.Repeat("x", 200)))
	putBagFile(t, at("empty.db3"), nil)
	putBagFile(t, at("text.db3"), []byte("hello"))
	putBagFile(t, at("short.db3"), []byte("SQLite format 3\x00abc"))
	putBagFile(t, at("draco.db3"), []byte("DRACO\x02\x02"))
	putBagFile(t, at("bomb.db3.zstd"), packed(t, make([]byte, 400<<20)))
	putBagFile(t, at("broken.db3.zstd"), []byte("\x28\xb5\x2f\xfd!!!!!!!!!!!!!!!!!!"))
	putBagFile(t, at("nothing/readme.txt"), []byte("x"))
	putBagFile(t, at("yaml/metadata.yaml"), []byte("rosbag2_bagfile_information: [1"))
	putBagFile(t, at("gone/metadata.yaml"), metadataOf("gone_0.db3"))
	putBagFile(t, at("huge/metadata.yaml"), bytes.Repeat([]byte("#"), 9<<20))
	db, err := sql.Open("sqlite", at("other.db3"))
	if err == nil {
		_, err = db.Exec("CREATE TABLE topics(id)")
	}
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	db, err = sql.Open("sqlite", at("view.db3"))
	if err == nil {
		_, err = db.Exec("CREATE TABLE topics(id, name, type); CREATE VIEW messages AS WITH RECURSIVE n(data) AS " +
			"(SELECT 1 UNION ALL SELECT data + 1 FROM n) SELECT data, 1 AS topic_id, 1 AS timestamp FROM n")
	}
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	for _, c := range []struct {
		r    Rosbag
		want string
	}{
		{Rosbag{}, "rosbag: no bag is named"},
		{Rosbag{Paths: []string{at("lidar.db3")}, Time: PublishTime},
			`time "publish": a bag has the times header and log`},
		{Rosbag{Paths: []string{at("absent")}}, "no such file"},
		{Rosbag{Paths: []string{at("imu.db3")}}, "imu.db3: no topic holds point clouds"},
		{Rosbag{Paths: []string{at("lidar.db3")}, Topics: []string{"/front"}},
			"there is no topic /front; the topics are /lidar (sensor_msgs/msg/PointCloud2, cdr)"},
		{Rosbag{Paths: []string{at("imu.db3")}, Topics: []string{"/imu"}}, "holds no point clouds"},
		{Rosbag{Paths: []string{at("old.bag")}}, "this is a ROS 1 bag, which is not read: `pip install rosbags`, " +
			"then `rosbags-convert --src"},
		{Rosbag{Paths: []string{at("ros1")}}, "only.bag: this is a ROS 1 bag"},
		{Rosbag{Paths: []string{at("empty.db3")}}, "there is no byte"},
		{Rosbag{Paths: []string{at("text.db3")}}, "text.db3: this is no ROS 2 bag (SQLite) file"},
		{Rosbag{Paths: []string{at("short.db3")}}, "ends within the header"},
		{Rosbag{Paths: []string{at("draco.db3")}}, "this is a Draco file"},
		{Rosbag{Paths: []string{at("bomb.db3.zstd")}}, "when they are unpacked"},
		{Rosbag{Paths: []string{at("broken.db3.zstd")}}, "it cannot be unpacked"},
		{Rosbag{Paths: []string{at("nothing")}}, "no file of a ROS 2 bag"},
		{Rosbag{Paths: []string{at("yaml")}}, "metadata.yaml: it is no metadata of a bag"},
		{Rosbag{Paths: []string{at("gone")}}, "gone_0.db3"},
		{Rosbag{Paths: []string{at("huge")}}, "it has more than 8388608 bytes"},
		{Rosbag{Paths: []string{at("other.db3")}}, "no ROS 2 bag: it has no table messages"},
		{Rosbag{Paths: []string{at("view.db3")}}, "messages is no plain table"},
	} {
		got, err := readBag(t, c.r)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(got) > 0 {
			t.Errorf("%v: %v, want %q", c.r.Paths, err, c.want)
		}
	}
}

// A message that cannot be used is named with its row, counted, and left out; the numbers
// of the others stay.
func TestRosbagBadMessages(t *testing.T) {
	rows := lidarRows(0, 8)
	whole := rows[1].data.([]byte)
	rows[1].data = whole[:len(whole)-20]
	rows[2].data = nil
	rows[3].data = "text"
	rows[4].data = make([]byte, 2000)
	rows[5].data = packed(t, make([]byte, 1<<20))
	rows[6].data = append([]byte(zstdMagic), 1, 2, 3)
	path := filepath.Join(t.TempDir(), "b.db3")
	bagSpec{topics: []topicInfo{lidarTopic}, rows: rows}.write(t, path)()
	_, err := readBag(t, Rosbag{Paths: []string{path}})
	if want := "b.db3: row 2, message 1 of /lidar: "; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	var log bytes.Buffer
	r := Rosbag{Paths: []string{path}, SkipBad: true, MaxFrameBytes: 1000,
		Log: slog.New(slog.NewTextHandler(&log, nil))}
	s, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := drain(s)
	all := lidarItems("b", 0, 8)
	if want := []string{all[0], all[7]}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v: got %q, want %q", err, got, want)
	}
	if n := s.(*rosbag).Skipped(); n != 6 {
		t.Errorf("%d were skipped", n)
	}
	for _, want := range []string{"row 3, message 2 of /lidar: its data are of type null",
		"row 4, message 3 of /lidar: its data are of type text", "it has 2000 bytes, more than the limit of 1000",
		"row 6, message 5 of /lidar: it cannot be unpacked", "row 7, message 6"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &log)
		}
	}
}

// A bag that is cut off anywhere is refused, or gives its messages up to the fault, none of
// them wrong, and says that it is cut off.
func TestRosbagTruncated(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "whole.db3")
	var rows []bagRow
	for i := range 30 {
		ns := 1_700_000_000e9 + int64(i)*1e8
		rows = append(rows, bagRow{0, ns, rosCloud(ns, "velodyne", 100*i, 60+i%3)})
	}
	bagSpec{topics: []topicInfo{lidarTopic}, rows: rows, pageSize: 1024}.write(t, path)()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := readBag(t, Rosbag{Paths: []string{path}})
	if err != nil || len(all) != 30 {
		t.Fatalf("%d items, %v", len(all), err)
	}
	cuts := []int{len(whole) - 1, 0, 1, 15, 16, 99, 100}
	for n := 128; n < len(whole); n += 64 {
		if n%320 == 0 {
			cuts = append(cuts, n)
		}
		if n%1024 == 0 {
			cuts = append(cuts, n-1, n+1)
		}
	}
	most := 0
	for _, n := range cuts {
		cut := filepath.Join(dir, "cut", "whole.db3")
		putBagFile(t, cut, whole[:n])
		got, err := readBag(t, Rosbag{Paths: []string{cut}})
		if err == nil {
			t.Errorf("%d bytes of %d: no error", n, len(whole))
			continue
		}
		if n > 2000 && !strings.Contains(err.Error(), "cut off") {
			t.Errorf("%d bytes of %d: %v", n, len(whole), err)
		}
		if len(got) > len(all) || !slices.Equal(got, all[:len(got)]) {
			t.Fatalf("%d bytes of %d: %q", n, len(whole), got)
		}
		most = max(most, len(got))
		s, err := Rosbag{Paths: []string{cut}, SkipBad: true}.Open()
		if err != nil {
			continue // its topics are lost
		}
		kept, err := drain(s)
		if err != nil || len(kept) < len(got) || s.(*rosbag).Skipped() == 0 {
			t.Errorf("%d bytes of %d: %d items, then %d; %v", n, len(whole), len(got), len(kept), err)
		}
		for _, item := range kept {
			if !slices.Contains(all, item) {
				t.Errorf("%d bytes of %d: an item that is none: %s", n, len(whole), item)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if most < 20 {
		t.Errorf("at most %d of 30 messages were found before a cut", most)
	}
}

// A bit that is wrong anywhere, in a bag or in its log, is found, or it is one of a cloud; and
// reading ends.
func TestRosbagFlippedBits(t *testing.T) {
	step := 47
	if os.Getenv(longTests) != "" {
		step = 7
	}
	live, dir := t.TempDir(), t.TempDir()
	spec := bagSpec{topics: []topicInfo{lidarTopic}, rows: lidarRows(0, 6), pageSize: 512}
	spec.write(t, filepath.Join(dir, "f.db3"))()
	spec.journal, spec.unchanged = "wal", true
	defer spec.write(t, filepath.Join(live, "logged.db3"))()
	copyFiles(t, live, dir)
	for file, bag := range map[string]string{"f.db3": "f.db3", "logged.db3": "logged.db3",
		"logged.db3-wal": "logged.db3"} {
		whole, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		faults := 0
		for at := 0; at < len(whole); at += step + len(whole)/3000 {
			bad := slices.Clone(whole)
			bad[at] ^= 1 << (at % 8)
			putBagFile(t, filepath.Join(dir, file), bad)
			faults += damagedBag(t, fmt.Sprintf("%s, byte %d", file, at), filepath.Join(dir, bag))
		}
		putBagFile(t, filepath.Join(dir, file), whole)
		if faults == 0 {
			t.Errorf("%s: no wrong bit was found", file)
		}
	}
}

// damagedBag reads a bag that may be wrong anywhere, and returns 1 if a fault was found.
func damagedBag(t *testing.T, name, path string) int {
	t.Helper()
	s, err := Rosbag{Paths: []string{path}, SkipBad: true, MaxFrameBytes: 1 << 20}.Open()
	if err != nil {
		return 1
	}
	n := 0
	for err == nil {
		var it Item
		if err = s.Next(&it); err == nil {
			n++
		}
	}
	if err != io.EOF || n > 1000 {
		t.Errorf("%s: %d items, %v", name, n, err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return int(min(s.(*rosbag).Skipped()+int64(6-min(n, 6)), 1))
}

// The real bag of ROS 1 is refused with the command that converts it.
func TestRosbagOfROS1(t *testing.T) {
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	path := filepath.Join(root, "streams", "evo", "tf_example.bag")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("real data: %v (set ENTROPIPE_TESTDATA)", err)
	}
	_, err := Rosbag{Paths: []string{path}}.Open()
	if bad := (*BadInputError)(nil); !errors.As(err, &bad) || !strings.Contains(bad.Detail, "rosbags-convert") {
		t.Error(err)
	}
}
