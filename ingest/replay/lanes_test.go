package replay

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/ingest/broker"
	"entropipe/schemas/codec"
	"entropipe/schemas/codec/foxglove"
	"entropipe/schemas/codec/mcap"
	"entropipe/schemas/codec/waymo/waymotest"
)

// floats returns n random float32 as bytes.
func floats(rng *rand.Rand, n int) (b []byte) {
	for range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(rng.NormFloat64()*100)))
	}
	return b
}

// cutOff cuts some files.
func cutOff(rng *rand.Rand, file []byte) []byte {
	if rng.IntN(6) == 0 && len(file) > 3 {
		return file[:len(file)-1-rng.IntN(3)]
	}
	return file
}

// inputsInLanes writes an input of each format that is read in lanes into a folder of its
// own, with damaged frames.
func inputsInLanes(t *testing.T, seed uint64) map[string]string {
	rng := rand.New(rand.NewPCG(seed, 1))
	root := t.TempDir()
	for i := range 12 + rng.IntN(20) {
		n := 1 + rng.IntN(200)
		damaged := func(file []byte) []byte {
			if i == 3 {
				return file[:len(file)-1]
			}
			return cutOff(rng, file)
		}
		scan := damaged(floats(rng, 4*n))
		if rng.IntN(3) == 0 {
			write(t, packedGzip(scan), root, "kitti", "street", fmt.Sprintf("%06d.bin.gz", i))
		} else {
			write(t, scan, root, "kitti", "street", fmt.Sprintf("%06d.bin", i))
		}
		if rng.IntN(3) > 0 {
			write(t, damaged(floats(rng, n)), root, "kitti", "street", fmt.Sprintf("%06d.label", i))
		}
		write(t, damaged(nuScan(rng.Float32(), n)), root, "nuscenes",
			fmt.Sprintf("log__LIDAR_TOP__%d.pcd.bin", 1_500_000_000_000_000+i))
		head := fmt.Sprintf("VERSION 0.7\nFIELDS x y z noise\nSIZE 4 4 4 4\nTYPE F F F F\nWIDTH %d\nDATA binary\n", n)
		pcd := append([]byte(head), damaged(floats(rng, 4*n))...)
		if rng.IntN(3) == 0 {
			write(t, zstandard(t, pcd), root, "pcd", "site", fmt.Sprintf("%d.pcd.zst", i))
		} else {
			write(t, pcd, root, "pcd", "site", fmt.Sprintf("%d.pcd", i))
		}
		text := "x,y,intensity\n" + strings.Repeat(fmt.Sprintf("%g,%d,7\n", rng.NormFloat64(), i), n)
		if i == 3 {
			text += "a word,1,2\n"
		}
		write(t, []byte(text), root, "csv", "field", fmt.Sprintf("%d.csv", i))
		ns := 315966265160030000 + int64(i)*99806000
		write(t, damaged(avSweepFile(t, float64(i))), root, "argoverse2", "city", "sensors", "lidar",
			fmt.Sprintf("%d.feather", ns))
	}
	write(t, avPoses(t, "[315966265160030000, 315966265259836000]"), root, "argoverse2", "city",
		"city_SE3_egovehicle.feather")
	writeRecording(t, rng, filepath.Join(root, "mcap", "drive.mcap"))
	var bag bagSpec
	bag.topics = []topicInfo{lidarTopic, {"/tf", "tf2_msgs/msg/TFMessage", "cdr"}, {"/rear", lidarTopic.schema, "cdr"}}
	for i := range 40 {
		ns := 1_700_000_000e9 + int64(i)*25e6
		data := cutOff(rng, rosCloud(ns, "lidar", 100*i, rng.IntN(50)))
		if rng.IntN(4) == 0 {
			data = zstandard(t, data)
		}
		before := ns/1e6 - 1
		transforms := rosTransforms(turn("odom", "base_link", before, 0, float64(i), 0, 0),
			turn("base_link", "lidar", before, 0.5, 0, 0, 2))
		bag.rows = append(bag.rows, bagRow{1, ns - 1e6, cutOff(rng, transforms)}, bagRow{2 * rng.IntN(2), ns, data})
	}
	putFile(t, filepath.Join(root, "rosbag", "part"), nil)
	bag.write(t, filepath.Join(root, "rosbag", "tour.db3"))
	scene := waymotest.New(32)
	writeRecords(t, filepath.Join(root, "waymo", "a.tfrecord"), scene, waymotest.Encoding{}, 0, 1, 2, 3, 4)
	scene.Context = "other"
	writeRecords(t, filepath.Join(root, "waymo", "b.tfrecord"), scene, waymotest.Encoding{Packed: true}, 4, 5, 6)
	inputs := map[string]string{"waymo v1": filepath.Join(root, "waymo", "a.tfrecord"), "all": root}
	for _, format := range []string{"kitti", "nuscenes", "pcd", "csv", "argoverse2", "mcap", "rosbag"} {
		inputs[format] = filepath.Join(root, format)
	}
	return inputs
}

// writeRecording writes an MCAP file of clouds in each encoding among transforms.
func writeRecording(t *testing.T, rng *rand.Rand, path string) {
	t.Helper()
	r := record(mcap.Options{ChunkSize: 4096})
	for i := range int64(60) {
		at := 1000*second + i*25e6
		data := floats(rng, 4*rng.IntN(60))
		protobuf, text := foxgloveCloud("lidar", at, foxglove.Pose{Position: foxglove.Vector{Z: 2},
			Orientation: foxglove.Quaternion{W: 1}}, data)
		tf := func(ms int64) []byte {
			return cutOff(rng, rosTransforms(turn("odom", "base_link", at/1e6+ms, 0, float64(10*i+ms), 0, 0),
				turn("base_link", "lidar", at/1e6+ms, 0.5, 0, 0, 2)))
		}
		write := func(channel uint16, data []byte) { r.Write(channel, uint32(i), uint64(at), uint64(at), data) }
		write(r.tf, tf(-2))
		switch rng.IntN(3) {
		case 0:
			write(r.lidar, cutOff(rng, pointCloud2("lidar", at, data)))
		case 1:
			write(r.proto, cutOff(rng, protobuf))
		default:
			write(r.js, cutOff(rng, text))
		}
		write(r.tf, tf(-1)) // comes too late for the cloud
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	putFile(t, path, r.file.Bytes())
}

// Law: the messages of each key are the same, bit by bit and in their order, whatever the number of jobs.
func TestJobsSendTheSameMessages(t *testing.T) {
	seeds := uint64(2)
	if testing.Short() {
		seeds = 1
	}
	b := startBroker(t, broker.Config{})
	for seed := range seeds {
		for name, path := range inputsInLanes(t, seed) {
			send := func(jobs int) (map[string][]string, Stats) {
				in, err := Files{Paths: []string{path}, SkipBad: true}.Open()
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				defer in.Close()
				topic := strings.ReplaceAll(fmt.Sprint(name, seed, ".", jobs), " ", "")
				p := &Producer{Brokers: []string{b.Addr()}, Topic: topic, Jobs: jobs, Compression: "lz4",
					Play: Play{Rate: Rate{max: true}, Loop: 1 + int64(seed%2)}}
				st := produce(t, p, in)
				byKey := map[string][]string{}
				for _, m := range consume(t, b.Addr(), topic, 4, int(st.Messages)) {
					text := fmt.Sprintf("%s, value %x", m.Headers, sha256.Sum256(m.Value))
					byKey[string(m.Key)] = append(byKey[string(m.Key)], text)
				}
				return byKey, st
			}
			want, serial := send(1)
			if serial.Messages < 4 || serial.Skipped == 0 && name != "waymo v1" {
				t.Errorf("%s, seed %d: %+v is no test", name, seed, serial)
			}
			jobs := [][]int{{2, 16}, {5}}[seed]
			if os.Getenv(longTests) != "" {
				jobs = []int{2, 5, 16}
			}
			for _, jobs := range jobs {
				got, st := send(jobs)
				diff := cmp.Diff(want, got)
				if diff != "" || st.Skipped != serial.Skipped || st.Points != serial.Points {
					t.Errorf("%s, seed %d, %d jobs: %d of %d frames, %d of %d skipped\n%.2000s", name, seed, jobs,
						st.Frames, serial.Frames, st.Skipped, serial.Skipped, diff)
				}
			}
		}
	}
}

// Law: with several jobs, too, a limit counts the first frames, an error ends behind the
// frames before it, and what a source logs once is logged once.
func TestJobsStopWhereOneJobStops(t *testing.T) {
	b := startBroker(t, broker.Config{})
	dir := t.TempDir()
	for i := range 40 {
		content := make([]byte, 48)
		if i == 23 {
			content = content[1:]
		}
		write(t, content, dir, "drive", fmt.Sprintf("%d.bin", i))
	}
	for _, c := range []struct{ limit, sent int64 }{{1, 1}, {7, 7}, {23, 23}, {24, 23}, {0, 23}} {
		for _, jobs := range []int{1, 6} {
			p := &Producer{Brokers: []string{b.Addr()}, Topic: fmt.Sprint("t", c.limit, ".", jobs), Jobs: jobs,
				Play: Play{Rate: Rate{max: true}, Limit: c.limit}}
			st, err := p.Run(soon(t), openFiles(t, dir))
			if st.Frames != c.sent || (err != nil) != (c.limit == 0 || c.limit > 23) {
				t.Errorf("limit %d, %d jobs: %d frames instead of %d, %v", c.limit, jobs, st.Frames, c.sent, err)
			}
			if err != nil {
				failsWith(t, err, "23.bin", "--skip-bad")
			}
		}
	}
}

// slowLanes is a Source whose lanes wait before they decode.
type slowLanes struct {
	skips
	wait chan struct{}
	next int
}

type slowLane struct {
	of *slowLanes
	at int
}

func (s *slowLanes) Next(*Item) error { panic("read without lanes") }
func (s *slowLanes) Rewind() error    { s.next = 0; return nil }
func (s *slowLanes) Close() error     { return nil }
func (s *slowLanes) lane() lane       { return &slowLane{of: s} }

func (l *slowLane) take() error {
	if l.at = l.of.next; l.at == 9 {
		return io.EOF
	}
	l.of.next++
	return nil
}

func (l *slowLane) decode(it *Item) error {
	<-l.of.wait
	*it = Item{Number: int64(l.at)}
	return nil
}

func (l *slowLane) finish(_ *Item, err error) error { return err }
func (l *slowLane) skip(error) error                { return nil }
func (l *slowLane) close()                          {}

// All lanes decode at a time; the items come in order, again after Rewind at any moment, and
// behind the last one there is none however often it is asked for.
func TestLanesDecodeAtATime(t *testing.T) {
	const n = 4
	slow := &slowLanes{wait: make(chan struct{})}
	src := inLanes(slow, n, nil)
	defer src.Close()
	got := make(chan int64, 9)
	go func() {
		defer close(got)
		var it Item
		for src.Next(&it) == nil {
			got <- it.Number
		}
	}()
	ctx, cancel := context.WithCancel(soon(t))
	defer cancel()
	for range n { // no lane waits for the item before
		select {
		case slow.wait <- struct{}{}:
		case <-ctx.Done():
			t.Fatal("fewer lanes than asked for")
		}
	}
	close(slow.wait)
	for want := int64(0); want < 9; want++ {
		if n := <-got; n != want {
			t.Errorf("item %d instead of %d", n, want)
		}
	}
	if _, more := <-got; more {
		t.Error("an item behind the last")
	}
	for stop := range 12 {
		if err := src.Rewind(); err != nil {
			t.Fatal(err)
		}
		var it Item
		for i := range stop {
			err := src.Next(&it)
			if i < 9 && (err != nil || it.Number != int64(i)) || i >= 9 && err != io.EOF {
				t.Errorf("%d: item %d, %v", i, it.Number, err)
			}
		}
	}
}

// The items of a source in lanes may be closed early, and their memory is not shared.
func TestLanesHaveMemoryOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		write(t, pcdFile(i), dir, "scans", fmt.Sprintf("%d.pcd", i))
	}
	src := inLanes(open(t, CloudFiles{Format: PCD, Paths: []string{filepath.Join(dir, "scans")}}), 3, nil)
	var it Item
	var last codec.Points
	for i := range 11 {
		if err := src.Next(&it); err != nil || it.Cloud.Cloud32.X[0] != float32(i) {
			t.Fatalf("%d: %v, %v", i, it.Cloud.Cloud32.X, err)
		}
		last = it.Cloud
	}
	if last.Cloud32.X[0] != 10 {
		t.Errorf("an item changed before the next call: %v", last.Cloud32.X)
	}
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
}
