package replay

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kafka "github.com/segmentio/kafka-go"

	"entropipe/ingest"
	"entropipe/ingest/broker"
	"entropipe/schemas"
	"entropipe/schemas/codec/mcap"
	"entropipe/schemas/codec/tfrecord"
	"entropipe/schemas/codec/waymo/waymotest"
)

// scans writes n KITTI scans of three points below a folder.
func scans(t *testing.T, dir string, n int) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.bin", i)), make([]byte, 48), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func openFiles(t *testing.T, path string) *Inputs {
	t.Helper()
	in, err := Files{Paths: []string{path}}.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return in
}

func TestNaturalOrder(t *testing.T) {
	want := []string{"a", "a1", "a01", "a2", "a10", "a10b2", "a10b10", "b"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, naturally)
	want[1], want[2] = "a01", "a1" // zeros before a number decide last
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInputsByContent(t *testing.T) {
	dir := t.TempDir()
	scans(t, filepath.Join(dir, "kitti"), 3)
	pcdText := "# .PCD v0.7\nVERSION 0.7\nFIELDS x y\nSIZE 4 4\nTYPE F F\nCOUNT 1 1\nWIDTH 1\nHEIGHT 1\n" +
		"VIEWPOINT 0 0 0 1 0 0 0\nPOINTS 1\nDATA ascii\n1 2\n"
	for name, text := range map[string]string{"pcd/10.pcd": pcdText, "pcd/9.wrong": pcdText, "pcd/readme": "words",
		"five/a.pcd.bin": strings.Repeat("\x00", 20), "text/p.csv": "x,y\n1,2\n",
		"pen.ndjson": `{"word":"a","drawing":[]}`} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(dir, "pcd", "11.pcd.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	io.WriteString(z, pcdText)
	z.Close()
	f.Close()
	in, err := Files{Paths: []string{dir}}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	got := []string{}
	for _, i := range in.List() {
		rel, err := filepath.Rel(dir, i.Path)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %v", rel, i.Format, i.Files))
	}
	want := []string{". quickdraw [pen.ndjson]", "five nuscenes [a.pcd.bin]", "kitti kitti [0.bin 1.bin 2.bin]",
		"pcd pcd [9.wrong 10.pcd 11.pcd.gz]", "text csv [p.csv]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBadPathsAreNamed(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	empty := filepath.Join(dir, "void")
	if err := os.Mkdir(empty, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want string }{
		{write("d.pcd", "DRACO\x02"), "this is a Draco file, which entropipe does not read; convert it first: " +
			"draco_decoder -i " + at("d.pcd") + " -o " + at("d.ply")},
		{write("a.LAZ", "LASF"+strings.Repeat("\x00", 100)+"\x81"), "this is a LAZ file, which entropipe does not " +
			"read; convert it first: pdal translate " + at("a.LAZ") + " " + at("a.las")},
		{write("a.e57", "ASTM-E57\x01"), "this is an E57 file, which entropipe does not read; convert it first: pdal " +
			"translate " + at("a.e57") + " " + at("a.las")},
		{write("old.bag", "#ROSBAG V2.0\n"), "this is a ROS 1 bag, which entropipe does not read; convert it first: " +
			"rosbags-convert --src " + at("old.bag") + " --dst " + at("old")},
		{write("a.h5", "\x89HDF\r\n\x1a\n"), "this is an HDF5 file, which entropipe does not read; write its " +
			"points as"},
		{write("a.zip", "PK\x03\x04"), "this is a ZIP archive, which entropipe does not read; unpack it first: unzip " +
			at("a.zip") + " -d " + at("a")},
		{write("a.bin.xz", "\xfd7zXZ\x00"), "this is an xz file, which entropipe does not read; unpack it first: xz"},
		{write("a.pcap", "\xd4\xc3\xb2\xa1"), "this is a pcap capture, which entropipe does not read; write its " +
			"points"},
		{write("p.pcd", "version https://git-lfs.github.com/spec/v1\n"), "git lfs pull"},
		{filepath.Dir(write("bag/metadata.yaml", "rosbag2_bagfile_information:\n  version: 5\n")), "metadata.yaml is " +
			"the metadata of a ROS 2 bag; its clouds stand in the files that it names (.db3, .mcap): put them beside"},
		{write("bag/metadata.yaml", "rosbag2_bagfile_information:\n"), "this is the metadata of a ROS 2 bag, which " +
			"entropipe does not read; its clouds stand in the files that it names"},
		{write("e.ply", ""), "the file is empty"},
		{write("n.txt", "words"), "entropipe produce tokens"},
		{write("z.pcd.gz", "\x1f\x8bdamaged"), "cannot be unpacked"},
		{empty, "there is no file to read"},
		{link, "it is a link to nowhere"},
		{filepath.Join(dir, "absent"), "there is no such file"},
		{filepath.Join(dir, "*.nix"), "no file matches"},
	} {
		for _, skip := range []bool{false, true} {
			_, err := Files{Paths: []string{c.path}, SkipBad: skip}.Open()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, skip %v: %v, want %q", c.path, skip, err, c.want)
			}
		}
	}
	if os.Geteuid() == 0 {
		return // root reads every folder
	}
	if err := os.Chmod(empty, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := (Files{Paths: []string{empty}}).Open(); err == nil || !strings.Contains(err.Error(), "permission") {
		t.Errorf("a folder without permission: %v", err)
	}
}

// sentFrames returns "sequence number" of all messages, sorted.
func sentFrames(t *testing.T, addr, topic string, n int) []string {
	all := []string{}
	for _, m := range consume(t, addr, topic, 4, n) {
		key, number, ok := frameOf(&m)
		if !ok {
			t.Fatalf("a message without a frame: %+v", m)
		}
		all = append(all, fmt.Sprint(key.sequence, " ", number))
	}
	slices.Sort(all)
	return all
}

// Whatever was sent before, with any key, by one job or several, a resumed run sends the
// rest and nothing twice.
func TestResumeAfterEveryMessage(t *testing.T) {
	b := startBroker(t, broker.Config{})
	dir := t.TempDir()
	scans(t, filepath.Join(dir, "one"), 5)
	scans(t, filepath.Join(dir, "two"), 4)
	want := []string{"one 0", "one 1", "one 2", "one 3", "one 4", "two 0", "two 1", "two 2", "two 3"}
	for _, key := range []Key{KeySequence, KeyFrame, KeyNone} {
		for n := int64(0); n <= 9; n++ {
			topic := fmt.Sprintf("t%d.%d", key, n)
			p := &Producer{Brokers: []string{b.Addr()}, Topic: topic, Key: key,
				Play: Play{Rate: Rate{max: true}, Limit: n}}
			if n > 0 {
				produce(t, p, openFiles(t, dir))
			}
			p.Play.Limit, p.Jobs, p.Resume = 0, 2, &Resume{}
			in := openFiles(t, dir)
			if _, err := p.Run(soon(t), in); n == 0 && err == nil {
				t.Errorf("key %d: an empty topic is resumed", key)
			}
			p.Resume.OrStart = true
			produce(t, p, openFiles(t, dir))
			if diff := cmp.Diff(want, sentFrames(t, b.Addr(), topic, 9)); diff != "" {
				t.Errorf("key %d, %d frames before (-want +got):\n%s", key, n, diff)
			}
		}
	}
}

// wholeFrames returns how often the topic has each frame as a whole, and the number of
// sendings that have a chunk and not all.
func wholeFrames(t *testing.T, addr, topic string, partitions, records int) (whole map[string]int, cut int) {
	t.Helper()
	whole = map[string]int{}
	chunks := map[string]map[int]bool{}
	for _, m := range consume(t, addr, topic, partitions, records) {
		key, number, ok := frameOf(&m)
		c, chunk, err := schemas.ChunkOf(&m)
		if !ok || err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		if chunk {
			if chunks[c.ID] == nil {
				chunks[c.ID] = map[int]bool{}
				cut++
			}
			chunks[c.ID][c.Index] = true
			if len(chunks[c.ID]) < c.Count {
				continue
			}
			cut--
		}
		whole[fmt.Sprint(key.sequence, " ", number)]++
	}
	return whole, cut
}

// cutAt copies the first records of each partition of a topic to a new one, so that n are
// there in all, as if the producer had been killed behind the n-th.
func cutAt(t *testing.T, addr, from, to string, partitions, records, n int) {
	t.Helper()
	spec := ingest.TopicSpec{Partitions: partitions}
	if err := ingest.EnsureTopic(soon(t), []string{addr}, ingest.Security{}, to, spec); err != nil {
		t.Fatal(err)
	}
	w := &kafka.Writer{Addr: kafka.TCP(addr), Topic: to, BatchTimeout: time.Millisecond, BatchSize: n + 1,
		RequiredAcks: kafka.RequireAll,
		Balancer:     kafka.BalancerFunc(func(m kafka.Message, _ ...int) int { return m.Partition }),
		Transport:    &kafka.Transport{}}
	defer w.Close()
	defer w.Transport.(*kafka.Transport).CloseIdleConnections()
	var cut []kafka.Message
	for _, m := range consume(t, addr, from, partitions, records)[:n] {
		k := kafka.Message{Partition: int(m.Partition), Key: m.Key, Value: m.Value}
		for _, h := range m.Headers {
			k.Headers = append(k.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		cut = append(cut, k)
	}
	if err := w.WriteMessages(soon(t), cut...); err != nil {
		t.Fatal(err)
	}
}

// A producer that died behind any chunk of any frame sends that frame again as a whole, and
// no frame that was whole, whatever the key.
func TestResumeAfterEveryChunk(t *testing.T) {
	b := startBroker(t, broker.Config{})
	dir := t.TempDir()
	scans(t, filepath.Join(dir, "one"), 3)
	scans(t, filepath.Join(dir, "two"), 2)
	want := map[string]int{"one 0": 1, "one 1": 1, "one 2": 1, "two 0": 1, "two 1": 1}
	between := 0
	for _, key := range []Key{KeySequence, KeyFrame, KeyNone} {
		producer := func(topic string, resume *Resume) *Producer {
			return &Producer{Brokers: []string{b.Addr()}, Topic: topic, Key: key, Chunk: 200, Resume: resume,
				Create: ingest.TopicSpec{Partitions: 2}, Play: Play{Rate: Rate{max: true}}}
		}
		p := producer(fmt.Sprint("whole", key), nil)
		st := produce(t, p, openFiles(t, dir))
		total := int(topicEnd(t, b.Addr(), p.Topic))
		if st.Frames != 5 || total < 10 {
			t.Fatalf("%d frames in %d records", st.Frames, total)
		}
		for n := range total {
			if os.Getenv(longTests) == "" && n%3 != int(key)%3 {
				continue // each place is one of some key
			}
			topic := fmt.Sprintf("cut%d.%d", key, n)
			cutAt(t, b.Addr(), p.Topic, topic, 2, total, n)
			before, cut := wholeFrames(t, b.Addr(), topic, 2, n)
			between += cut
			st := produce(t, producer(topic, &Resume{OrStart: true}), openFiles(t, dir))
			if int(st.There) != len(before) {
				t.Errorf("key %d, %d records before: %d frames count as sent, %d are whole", key, n, st.There,
					len(before))
			}
			got, left := wholeFrames(t, b.Addr(), topic, 2, int(topicEnd(t, b.Addr(), topic)))
			if diff := cmp.Diff(want, got); diff != "" || left != cut {
				t.Errorf("key %d, %d records before, %d frames cut (-want +got):\n%s", key, n, cut, diff)
			}
		}
	}
	if between == 0 {
		t.Error("no frame was cut between its chunks")
	}
}

// A producer that died between the chunks of the very first frame has begun: it is resumed
// without or-start.
func TestResumeOfAFirstFrameInPart(t *testing.T) {
	b := startBroker(t, broker.Config{})
	dir := scans(t, filepath.Join(t.TempDir(), "drive"), 2)
	p := &Producer{Brokers: []string{b.Addr()}, Topic: "whole", Chunk: 200, Create: ingest.TopicSpec{Partitions: 1},
		Play: Play{Rate: Rate{max: true}}}
	produce(t, p, open(t, KITTI{Dir: dir}))
	total := int(topicEnd(t, b.Addr(), "whole"))
	cutAt(t, b.Addr(), "whole", "cut", 1, total, 1)
	p.Topic, p.Resume = "cut", &Resume{}
	if st := produce(t, p, open(t, KITTI{Dir: dir})); st.There != 0 || st.Frames != 2 {
		t.Errorf("%+v", st)
	}
}

// topicEnd returns the number of records of a topic from which nothing was deleted.
func topicEnd(t *testing.T, addr, topic string) (n int64) {
	t.Helper()
	d, err := ingest.Describe(soon(t), []string{addr}, ingest.Security{}, topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Partitions {
		n += p.End
	}
	return n
}

// A topic that ends with a frame that the source lacks is another source's.
func TestResumeOfAnotherSource(t *testing.T) {
	b := startBroker(t, broker.Config{})
	dir := scans(t, filepath.Join(t.TempDir(), "drive"), 3)
	p := &Producer{Brokers: []string{b.Addr()}, Topic: "t", Play: Play{Rate: Rate{max: true}}}
	produce(t, p, open(t, KITTI{Dir: dir}))
	if err := os.Remove(filepath.Join(dir, "2.bin")); err != nil {
		t.Fatal(err)
	}
	p.Resume = &Resume{}
	_, err := p.Run(soon(t), open(t, KITTI{Dir: dir}))
	if err == nil || !strings.Contains(err.Error(), "frame 2 of kitti drive") {
		t.Errorf("%v", err)
	}
}

// A compressed file is its content, or is refused with the command that unpacks it. None is
// left out in silence.
func TestCompressedFilesOfEachFormat(t *testing.T) {
	recorded := drive3(t, 1, make([]byte, 16), mcap.Options{})
	for name, content := range map[string][]byte{"0.bin": make([]byte, 32), "0.txt.bin": make([]byte, 16),
		"log__LIDAR_TOP__1532402927647951.pcd.bin": nuScan(1, 3), "315966265259836000.feather": avSweepFile(t, 1),
		"a.pcd": pcdFile(1), "a.csv": []byte("x,y\n1,2\n"), "a.arrow": surveyStream(t), "drive.mcap": recorded,
		"seg.tfrecord": tfrecord.Append(nil, waymotest.New(32).Record(0, waymotest.Encoding{}))} {
		for ending, pack := range map[string]func([]byte) []byte{"": bytes.Clone, ".gz": packedGzip,
			".zst": func(b []byte) []byte { return zstandard(t, b) }} {
			dir := t.TempDir()
			path := write(t, pack(content), dir, name+ending)
			for _, path := range []string{path, dir} {
				in, err := Files{Paths: []string{path}}.Open()
				if ending != "" && name == "seg.tfrecord" {
					failsWith(t, err, name+ending, "unpack it first")
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", path, err)
					continue
				}
				if name == "a.arrow" {
					in.files.Columns = Columns{X: "easting", Y: "northing"}
				}
				var it Item
				if err := in.Next(&it); err != nil || it.Points() == 0 {
					t.Errorf("%s: %d points, %v", path, it.Points(), err)
				}
				in.Close()
			}
		}
	}
}

// A scan may begin with the two bytes of gzip: one of 65,536 does.
func TestScanThatBeginsLikeGzip(t *testing.T) {
	dir := scans(t, filepath.Join(t.TempDir(), "drive"), 3)
	scan := append([]byte{0x1f, 0x8b, 0x0d, 0x41}, make([]byte, 44)...) // x is 8.8
	if err := os.WriteFile(filepath.Join(dir, "1.bin"), scan, 0o666); err != nil {
		t.Fatal(err)
	}
	in := openFiles(t, dir)
	defer in.Close()
	if in.Len() != 3 {
		t.Errorf("%d frames, want 3", in.Len())
	}
}
