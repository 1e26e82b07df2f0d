package main

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"entropipe/schemas/codec/foxglove"
	"entropipe/schemas/codec/mcap"
	"entropipe/schemas/codec/waymo/waymotest"
)

// The commands that lead from a download to a picture are run as the pages of the sensors
// type them, by a shell, in a folder that has what a page takes for given.
func TestSensorPagesRun(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skipf("no shell: %v", err)
	}
	brokers := startBroker(t)
	download := map[string]func(t *testing.T, dir string){"argoverse2": sweepsOfArgoverse, "kitti": driveOfKITTI,
		"las": tilesOfLAS, "mcap": fileOfMCAP, "nuscenes": setOfNuScenes, "pcd": filesOfPCD, "ply": filesOfPLY,
		"ros2": bagOfROS2, "tables": surveyOfCSV, "waymo": segmentOfWaymo}
	elsewhere := map[string]bool{"README": true, "kafka-messages": true} // kcat's messages are the clients' suite
	files, err := filepath.Glob("docs/sensors/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		put := download[name]
		if put == nil {
			if !elsewhere[name] {
				t.Errorf("%s: this test has nothing in place of the download", file)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, dir)
			block := firstCommands(t, file)
			cmd := exec.Command(shell, "-ec", block.text)
			cmd.Dir, cmd.WaitDelay = dir, patience
			cmd.Env = append(os.Environ(), "ENTROPIPE_BROKERS="+brokers)
			said, err := cmd.CombinedOutput()
			if err != nil || bytes.Contains(said, []byte("level=WARN")) {
				t.Fatalf("%s:%d: %v\n%s", file, block.line, err, said)
			}
			_, picture, _ := strings.Cut(strings.TrimSpace(block.text), " -o ")
			if svg := readAll(t, dir, picture); !strings.Contains(svg, "</svg>") || !strings.Contains(svg, "maxima") {
				t.Errorf("%s:%d: %s is no picture of points and maxima", file, block.line, picture)
			}
		})
	}
}

// firstCommands is the first block of commands of a page.
func firstCommands(t *testing.T, file string) codeBlock {
	for _, block := range readMarkdown(t, filepath.ToSlash(file)).blocks {
		if block.language == "sh" {
			return block
		}
	}
	t.Fatalf("%s has no block of commands", file)
	return codeBlock{}
}

const pointsOfScan = 60

// spiral are the points of a scan.
func spiral() (points [pointsOfScan][3]float32) {
	data := scan(pointsOfScan, 0)
	for i := range points {
		for axis := range points[i] {
			points[i][axis] = math.Float32frombits(binary.LittleEndian.Uint32(data[16*i+4*axis:]))
		}
	}
	return points
}

// spiralText are the points of a scan, one a line.
func spiralText(between string) string {
	var b strings.Builder
	for _, p := range spiral() {
		fmt.Fprintf(&b, "%g%s%g%[2]s%g\n", p[0], between, p[1], p[2])
	}
	return b.String()
}

func driveOfKITTI(t *testing.T, dir string) {
	drive := filepath.Join(dir, "2011_09_26", "2011_09_26_drive_0005_sync", "velodyne_points")
	writeFiles(t, filepath.Join(drive, "data"), 0o666, map[string]string{"0000000000.bin": string(scan(90, 0)),
		"0000000001.bin": string(scan(90, 1))})
	writeFiles(t, drive, 0o666, map[string]string{"timestamps.txt": "2011-09-26 13:02:25.951199337\n" +
		"2011-09-26 13:02:26.054598000\n"})
	calibration := "R: 1 0 0 0 1 0 0 0 1\nT: 0 0 0\n"
	writeFiles(t, filepath.Join(dir, "2011_09_26"), 0o666, map[string]string{"calib_imu_to_velo.txt": calibration})
	place := "49 8.4 112 0 0 0" + strings.Repeat(" 0", 24) + "\n"
	writeFiles(t, filepath.Join(filepath.Dir(drive), "oxts", "data"), 0o666, map[string]string{
		"0000000000.txt": place, "0000000001.txt": place})
}

func setOfNuScenes(t *testing.T, dir string) {
	const file = "n015-2018-07-24-11-22-45+0800__LIDAR_TOP__1532402927647951.pcd.bin"
	var data []byte
	for i, p := range spiral() {
		for _, v := range []float32{p[0], p[1], p[2], 9, float32(i % 32)} {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
	}
	writeFiles(t, filepath.Join(dir, "nuscenes", "samples", "LIDAR_TOP"), 0o666, map[string]string{file: string(data)})
	writeFiles(t, filepath.Join(dir, "nuscenes", "v1.0-mini"), 0o666, map[string]string{
		"sensor.json": `[{"token": "s", "channel": "LIDAR_TOP", "modality": "lidar"}]`,
		"calibrated_sensor.json": `[{"token": "c", "sensor_token": "s", "translation": [0, 0, 2], ` +
			`"rotation": [1, 0, 0, 0]}]`,
		"scene.json":    `[{"token": "a", "name": "scene-0061"}]`,
		"sample.json":   `[{"token": "b", "timestamp": 1, "scene_token": "a"}]`,
		"ego_pose.json": `[{"token": "e", "timestamp": 1, "translation": [0, 0, 0], "rotation": [1, 0, 0, 0]}]`,
		"sample_data.json": `[{"token": "d", "sample_token": "b", "ego_pose_token": "e", "calibrated_sensor_token": "c", ` +
			`"timestamp": 1532402927647951, "is_key_frame": true, "filename": "samples/LIDAR_TOP/` + file + `"}]`})
}

func segmentOfWaymo(t *testing.T, dir string) {
	s := waymotest.New(16)
	err := s.WriteFiles(waymotest.Files{Frames: 2, GroupRows: 10}, func(component string) (io.WriteCloser, error) {
		folder := filepath.Join(dir, "waymo_v2", "training", component)
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return nil, err
		}
		return os.Create(filepath.Join(folder, s.Context+".parquet"))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func sweepsOfArgoverse(t *testing.T, dir string) {
	log := filepath.Join(dir, "av2", "val", "7fab2350-7eaf-3b7e-a39d-6937a4c1bede")
	f16, u8, i32 := arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Int32
	columns := []arrow.Field{{Name: "x", Type: f16}, {Name: "y", Type: f16}, {Name: "z", Type: f16},
		{Name: "intensity", Type: u8}, {Name: "laser_number", Type: u8}, {Name: "offset_ns", Type: i32}}
	var rows []string
	for i, p := range spiral() {
		rows = append(rows, fmt.Sprintf(`{"x": %g, "y": %g, "z": %g, "intensity": 9, "laser_number": %d, "offset_ns": 1}`,
			p[0], p[1], p[2], i))
	}
	writeFiles(t, filepath.Join(log, "sensors", "lidar"), 0o666, map[string]string{
		"315966265160030000.feather": featherOf(t, columns, rows)})
	columns = []arrow.Field{{Name: "timestamp_ns", Type: arrow.PrimitiveTypes.Int64}}
	for _, name := range []string{"qw", "qx", "qy", "qz", "tx_m", "ty_m", "tz_m"} {
		columns = append(columns, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float64})
	}
	writeFiles(t, log, 0o666, map[string]string{"city_SE3_egovehicle.feather": featherOf(t, columns, []string{
		`{"timestamp_ns": 315966265160030000, "qw": 1, "qx": 0, "qy": 0, "qz": 0, "tx_m": 0, "ty_m": 0, "tz_m": 0}`})})
}

// featherOf is an Arrow file of rows in JSON.
func featherOf(t *testing.T, columns []arrow.Field, rows []string) string {
	schema := arrow.NewSchema(columns, nil)
	record, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema,
		strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "feather")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(schema), ipc.WithLZ4())
	if err == nil {
		err = w.Write(record)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return readAll(t, name)
}

func filesOfPCD(t *testing.T, dir string) {
	text := fmt.Sprintf("VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH %d\nHEIGHT 1\n"+
		"VIEWPOINT 0 0 0 1 0 0 0\nPOINTS %[1]d\nDATA ascii\n%s", pointsOfScan, spiralText(" "))
	writeFiles(t, filepath.Join(dir, "scans"), 0o666, map[string]string{"0.pcd": text, "1.pcd": text})
}

func filesOfPLY(t *testing.T, dir string) {
	text := fmt.Sprintf("ply\nformat ascii 1.0\nelement vertex %d\nproperty float x\nproperty float y\n"+
		"property float z\nend_header\n%s", pointsOfScan, spiralText(" "))
	writeFiles(t, filepath.Join(dir, "scans"), 0o666, map[string]string{"0.ply": text, "1.ply": text})
}

func surveyOfCSV(t *testing.T, dir string) {
	writeFiles(t, dir, 0o666, map[string]string{"survey.csv": "easting,northing,height\n" + spiralText(",")})
}

// tilesOfLAS writes a file of version 1.2, point format 0.
func tilesOfLAS(t *testing.T, dir string) {
	const headerBytes, pointBytes = 227, 20
	le := binary.LittleEndian
	b := make([]byte, headerBytes)
	copy(b, "LASF")
	b[24], b[25] = 1, 2
	le.PutUint16(b[94:], headerBytes)
	le.PutUint32(b[96:], headerBytes)
	le.PutUint16(b[105:], pointBytes)
	le.PutUint32(b[107:], pointsOfScan)
	for axis := range 3 {
		le.PutUint64(b[131+8*axis:], math.Float64bits(.001))
	}
	for _, p := range spiral() {
		at := len(b)
		b = append(b, make([]byte, pointBytes)...)
		for axis, v := range p {
			le.PutUint32(b[at+4*axis:], uint32(int32(v*1000)))
		}
		b[at+14] = 1<<3 | 1
	}
	writeFiles(t, filepath.Join(dir, "survey"), 0o666, map[string]string{"a.las": string(b)})
}

// spiralBytes are the coordinates of a scan, 12 bytes a point.
func spiralBytes() (b []byte) {
	for _, p := range spiral() {
		for _, v := range p {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

func fileOfMCAP(t *testing.T, dir string) {
	var b bytes.Buffer
	w := mcap.NewWriter(&b, mcap.Options{Library: "test", Compression: mcap.Zstd})
	schema := w.AddSchema(foxglove.PointCloudSchema, "protobuf", foxglove.Schema(foxglove.PointCloudSchema))
	channel := w.AddChannel("/lidar/front", "protobuf", schema, nil)
	cloud := foxglove.PointCloud{TimeNs: 1e18, FrameID: "lidar", Stride: 12, Data: spiralBytes()}
	cloud.Pose.Orientation.W = 1
	for i, name := range []string{"x", "y", "z"} {
		cloud.Fields = append(cloud.Fields, foxglove.Field{Name: name, Offset: uint32(4 * i), Type: foxglove.Float32})
	}
	if err := w.Write(channel, 0, 1e18, 1e18, cloud.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, 0o666, map[string]string{"drive.mcap": b.String()})
}

// bagOfROS2 writes a bag of one PointCloud2 in CDR.
func bagOfROS2(t *testing.T, dir string) {
	const name = "rosbag2_2024_05_17-10_20_30"
	b := []byte{0, 1, 0, 0}
	u32 := func(v uint32) {
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	text := func(s string) {
		u32(uint32(len(s) + 1))
		b = append(append(b, s...), 0)
	}
	u32(1715934030)
	u32(0)
	text("lidar")
	u32(1)
	u32(pointsOfScan)
	u32(3)
	for i, field := range []string{"x", "y", "z"} {
		text(field)
		u32(uint32(4 * i))
		b = append(b, 7) // float32
		u32(1)
	}
	b = append(b, 0) // little-endian
	u32(12)
	u32(12 * pointsOfScan)
	u32(12 * pointsOfScan)
	b = append(append(b, spiralBytes()...), 1)
	writeFiles(t, filepath.Join(dir, name), 0o666, map[string]string{"metadata.yaml": "rosbag2_bagfile_information:\n" +
		"  version: 5\n  storage_identifier: sqlite3\n  relative_file_paths: [" + name + "_0.db3]\n"})
	db, err := sql.Open("sqlite", filepath.Join(dir, name, name+"_0.db3"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT,
		offered_qos_profiles TEXT);
		CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB);
		INSERT INTO topics VALUES (1, '/lidar/front', 'sensor_msgs/msg/PointCloud2', 'cdr', '');
		INSERT INTO messages VALUES (1, 1, 1715934030000000000, ?)`, b); err != nil {
		t.Fatal(err)
	}
}
