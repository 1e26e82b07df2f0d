package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/segmentio/kafka-go"

	"entropipe/schemas"
	"entropipe/schemas/codec/codectest"
)

// The same clouds give the same rows, whether produce sent them as Arrow or another client as
// a value of any content type, named by a header or by the topic.
func TestContentTypesGiveTheRowsOfProduce(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	clouds := gridClouds(3, 500)
	scans := filepath.Join(dir, "scans")
	if err := os.Mkdir(scans, 0o777); err != nil {
		t.Fatal(err)
	}
	for i, c := range clouds {
		if err := os.WriteFile(filepath.Join(scans, fmt.Sprintf("%010d.bin", i)), c.Value("kitti"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	must(t, dir, "produce", "kitti", "scans", "--rate", "max", "--brokers", brokers, "--topic", "produced")
	names := schemas.ContentTypeNames()
	topics := []string{"produced"}
	var types []string
	for _, name := range names[1:] { // Arrow is what produce sends
		for _, by := range []string{"header", "topic"} {
			topic := name + "-by-" + by
			sendClouds(t, brokers, topic, name, by == "header", clouds)
			topics = append(topics, topic)
			if by == "topic" {
				types = append(types, topic+"="+name)
			}
		}
	}
	must(t, dir, "run", "--brokers", brokers, "--topic", strings.Join(topics, ","), "--content-type",
		strings.Join(types, ","), "--tables", "hulls,hulls3d,maxima,triangles,points", "--until-end", "--out", "out")
	must(t, dir, "verify", "out")
	for _, table := range []string{"frames", "hulls", "hulls3d", "maxima", "triangles", "points"} {
		want := tableRows(t, filepath.Join(dir, "out", table, "dataset=kitti", "topic=produced"))
		if len(want) < len(clouds) {
			t.Fatalf("%s: %d rows of %d frames that produce sent", table, len(want), len(clouds))
		}
		for _, topic := range topics[1:] {
			got := tableRows(t, filepath.Join(dir, "out", table, "dataset=kitti", "topic="+topic))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s of %s (-of produce +got):\n%.2000s", table, topic, diff)
			}
		}
	}
}

// gridClouds are clouds whose numbers every format holds exactly.
func gridClouds(frames, points int) []codectest.Cloud {
	rng := rand.New(rand.NewPCG(3, 9))
	clouds := make([]codectest.Cloud, frames)
	for i := range clouds {
		c := &clouds[i]
		c.Frame = "velodyne"
		c.Sec, c.Nsec = 1577836800, uint32(i)*100_000_000 // as produce counts where scans have no times
		for range points {
			at := func(span int) float32 { return float32(rng.IntN(2*span)-span) / 64 }
			c.X, c.Y, c.Z = append(c.X, at(4000)), append(c.Y, at(3000)), append(c.Z, at(200))
			c.Intensity = append(c.Intensity, float32(rng.IntN(256)))
		}
	}
	return clouds
}

// sendClouds sends clouds in the format name, with the names and times that produce gives.
// What a PointCloud says of itself stands in no header.
func sendClouds(t *testing.T, brokers, topic, name string, header bool, clouds []codectest.Cloud) {
	t.Helper()
	var messages []kafka.Message
	for i := range clouds {
		c := &clouds[i]
		headers := map[string]string{"dataset": "kitti", "frame-id": strconv.Itoa(i)}
		if header {
			headers["content-type"] = contentTypes[name]
		}
		if !strings.HasPrefix(name, "foxglove") && name != "pointcloud2" {
			headers["sensor"] = c.Frame
			headers["ts-ns"] = strconv.FormatInt(int64(c.Sec)*1e9+int64(c.Nsec), 10)
		}
		m := kafka.Message{Key: []byte("scans"), Value: c.Value(name)}
		for _, key := range slices.Sorted(maps.Keys(headers)) {
			m.Headers = append(m.Headers, kafka.Header{Key: key, Value: []byte(headers[key])})
		}
		messages = append(messages, m)
	}
	if err := sendRaw(brokers, topic, messages...); err != nil {
		t.Fatal(err)
	}
}

// contentTypes are the names as schemas/docs/messages.md has them.
var contentTypes = map[string]string{
	"kitti":         "application/vnd.kitti.velodyne",
	"nuscenes":      "application/vnd.nuscenes.lidar",
	"pointcloud2":   "application/vnd.ros2.cdr;type=sensor_msgs/msg/PointCloud2",
	"foxglove":      "application/vnd.foxglove.pointcloud+protobuf",
	"foxglove-json": "application/vnd.foxglove.pointcloud+json",
	"pcd":           "application/vnd.pcl.pcd",
	"las":           "application/vnd.las",
	"ply":           "model/vnd.ply",
}

// tableRows returns the rows of the files in a folder as texts, sorted, without what tells one record
// of Kafka from another, times of the operators, and columns that some formats alone have.
func tableRows(t *testing.T, dir string) (rows []string) {
	t.Helper()
	err := eachTable(dir, func(f *parquet.File) error {
		columns := f.Schema().Columns()
		r := parquet.NewReader(f)
		defer r.Close()
		for {
			row := make([]parquet.Row, 1)
			n, err := r.ReadRows(row)
			for _, values := range row[:n] {
				rows = append(rows, rowText(columns, values))
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(rows) // records of one topic lie in several partitions
	return rows
}

func rowText(columns [][]string, values parquet.Row) string {
	var b strings.Builder
	for _, v := range values {
		name := strings.Join(columns[v.Column()], ".")
		switch name {
		case "partition", "offset", "ring", "return", "label", "red", "green", "blue", "laser":
			continue
		}
		if name != "ts_ns" && name != "t_offset_ns" && strings.HasSuffix(name, "_ns") {
			continue
		}
		text := v.String()
		if v.Kind() == parquet.Float { // one text for a number of either width
			text = strconv.FormatFloat(float64(v.Float()), 'g', -1, 64)
		} else if v.Kind() == parquet.Double {
			text = strconv.FormatFloat(v.Double(), 'g', -1, 64)
		}
		fmt.Fprintf(&b, "%s=%s ", name, text)
	}
	return b.String()
}
