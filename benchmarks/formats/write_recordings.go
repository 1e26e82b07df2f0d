package main

import (
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/parquet-go/parquet-go/compress/brotli"
	_ "modernc.org/sqlite" // the driver of ROS 2 bags

	"entropipe/schemas/codec/codectest"
	"entropipe/schemas/codec/mcap"
	"entropipe/schemas/codec/waymo/waymotest"
)

// definition is the message's text, by which readers without the message decode it.
var definition = strings.ReplaceAll(`std_msgs/Header header
uint32 height
uint32 width
sensor_msgs/PointField[] fields
bool is_bigendian
uint32 point_step
uint32 row_step
uint8[] data
bool is_dense
---
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
---
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
---
MSG: sensor_msgs/PointField
uint8 INT8=1
uint8 UINT8=2
uint8 INT16=3
uint8 UINT16=4
uint8 INT32=5
uint8 UINT32=6
uint8 FLOAT32=7
uint8 FLOAT64=8
string name
uint32 offset
uint8 datatype
uint32 count
`, "---\n", strings.Repeat("=", 80)+"\n")

// writeMCAP returns a function that writes a recording of one topic with chunks of ROS 2's
// size: a message a chunk.
func writeMCAP(compression string) func(*writer) error {
	return func(w *writer) error {
		return w.stream("drive.mcap", func(out io.Writer) error {
			m := mcap.NewWriter(out, mcap.Options{Profile: "ros2", Compression: compression, ChunkSize: 768 << 10})
			channel := m.AddChannel("/points", "cdr", m.AddSchema("sensor_msgs/msg/PointCloud2", "ros2msg",
				[]byte(definition)), nil)
			err := w.each(func(number int, c *codectest.Cloud) error {
				at := uint64(stampNs + number*frameNs)
				return m.Write(channel, uint32(number), at, at, c.Value("pointcloud2"))
			})
			return errors.Join(err, m.Close())
		})
	}
}

// writeRosbag writes one .db3 file with the tables of ROS 2 Jazzy.
func writeRosbag(w *writer) (err error) {
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "drive_0.db3"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, text := range []string{
		"PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF",
		"CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT NOT NULL)",
		"INSERT INTO schema VALUES (4, 'jazzy')",
		"CREATE TABLE metadata(id INTEGER PRIMARY KEY, metadata_version INTEGER NOT NULL, metadata TEXT NOT NULL)",
		"CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, serialization_format " +
			"TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL, type_description_hash TEXT NOT NULL)",
		"CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT NOT NULL, encoding TEXT NOT NULL, " +
			"encoded_message_definition TEXT NOT NULL, type_description_hash TEXT NOT NULL)",
		"INSERT INTO topics VALUES (1, '/points', 'sensor_msgs/msg/PointCloud2', 'cdr', '', '')",
		"CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL, data " +
			"BLOB NOT NULL)",
		"CREATE INDEX timestamp_idx ON messages (timestamp ASC)",
	} {
		if _, err := db.Exec(text); err != nil {
			return err
		}
	}
	if _, err := db.Exec("INSERT INTO message_definitions VALUES (1, 'sensor_msgs/msg/PointCloud2', 'ros2msg', ?, '')",
		definition); err != nil {
		return err
	}
	return w.each(func(number int, c *codectest.Cloud) error {
		_, err := db.Exec("INSERT INTO messages(topic_id, timestamp, data) VALUES (1, ?, ?)",
			int64(stampNs+number*frameNs), c.Value("pointcloud2"))
		return err
	})
}

// fullPoints is about how many points a frame of Waymo has with images of full size.
const fullPoints = 160_000

// writeWaymo writes a segment of version 2: one row group, brotli, as it is published. Frames
// have the data set's size, or, for few points, a sixteenth of its rows and columns.
func writeWaymo(w *writer) error {
	shrink := 1
	if w.points < fullPoints/64 {
		shrink = 8
	}
	s := waymotest.New(shrink)
	s.Noisy = shrink == 1
	return s.WriteFiles(waymotest.Files{Frames: w.frames, Codec: &brotli.Codec{Quality: 3}},
		func(component string) (io.WriteCloser, error) {
			dir := filepath.Join(w.dir, component)
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return nil, err
			}
			return os.Create(filepath.Join(dir, s.Context+".parquet"))
		})
}
