package replay

import (
	"encoding/binary"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"entropipe/schemas/codec"
)

// labelsOf is a file of labels, each an instance and a class.
func labelsOf(labels ...uint32) (b []byte) {
	for _, v := range labels {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func TestSemanticKITTI(t *testing.T) {
	root := filepath.Join(t.TempDir(), "sequences", "00")
	for _, name := range []string{"000000.bin", "000001.bin", "000002.bin", "000003.bin"} {
		write(t, golden(t), root, "velodyne", name)
	}
	write(t, labelsOf(40, 7<<16|10, 0xffffffff), root, "labels", "000000.label")
	write(t, labelsOf(1, 2), root, "labels", "000001.label")
	write(t, zipped(t, labelsOf(1, 2, 3)), root, "labels", "000003.label.gz")
	src := open(t, KITTI{Dir: root})
	var it Item
	if err := src.Next(&it); err != nil || !slices.Equal(it.Cloud.Label, []int32{40, 10, 0xffff}) {
		t.Errorf("labels %v, %v", it.Cloud.Label, err)
	}
	failsWith(t, src.Next(&it), "000001.label", "labels of 2 points", "000001.bin has 3")
	if err := src.Next(&it); err != nil || it.Cloud.Label != nil || it.Number != 2 {
		t.Errorf("a scan without labels: %v, %v", it.Cloud.Label, err)
	}
	if err := src.Next(&it); err != nil || !slices.Equal(it.Cloud.Label, []int32{1, 2, 3}) {
		t.Errorf("labels in gzip: %v, %v", it.Cloud.Label, err)
	}
	beside := t.TempDir()
	write(t, golden(t), beside, "000000.bin")
	write(t, labelsOf(1, 2, 3), beside, "000000.label")
	if err := open(t, KITTI{Dir: beside}).Next(&it); err != nil || !slices.Equal(it.Cloud.Label, []int32{1, 2, 3}) {
		t.Errorf("labels among the scans: %v, %v", it.Cloud.Label, err)
	}
}

// A label file cut at any byte is a fault of its scan.
func TestTruncatedLabels(t *testing.T) {
	root := filepath.Join(t.TempDir(), "sequences", "00")
	write(t, golden(t), root, "velodyne", "000000.bin")
	for n := range 16 {
		write(t, make([]byte, n), root, "labels", "000000.label")
		var it Item
		if err := open(t, KITTI{Dir: root}).Next(&it); (err == nil) != (n == 12) {
			t.Errorf("%d bytes of labels for 3 points: %v", n, err)
		}
	}
}

const (
	sequence00Tr = "Tr: 4.276802385584e-04 -9.999672484946e-01 -8.084491683471e-03 -1.198459927713e-02 " +
		"-7.210626507497e-03 8.081198471645e-03 -9.999413164504e-01 -5.403984729748e-02 9.999738645903e-01 " +
		"4.859485810390e-04 -7.206933692422e-03 -2.921968648686e-01\n"
	sequence00Pose1 = "9.999978e-01 5.272628e-04 -2.066935e-03 -4.690294e-02 -5.296506e-04 9.999992e-01 " +
		"-1.154865e-03 -2.839928e-02 2.066324e-03 1.155958e-03 9.999971e-01 8.586941e-01\n"
)

// The poses are those that numpy.linalg computes from the same files.
func TestOdometryPoses(t *testing.T) {
	const identity = "1 0 0 0 0 1 0 0 0 0 1 0\n"
	for name, poses := range map[string][]string{"benchmark": {"..", "..", "poses", "00.txt"},
		"SemanticKITTI": {"poses.txt"}} {
		root := filepath.Join(t.TempDir(), "dataset", "sequences", "00")
		for _, scan := range []string{"000000.bin", "000001.bin", "000002.bin"} {
			write(t, golden(t), root, "velodyne", scan)
		}
		write(t, []byte("P0: 1 2 3\n"+sequence00Tr), root, "calib.txt")
		write(t, []byte(identity+sequence00Pose1), append([]string{root}, poses...)...)
		log, book := logBook()
		items := all(t, open(t, KITTI{Dir: root, Log: log}))
		nearPose(t, name, items[0].Pose, codec.Pose{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, 1e-12)
		nearPose(t, name, items[1].Pose, codec.Pose{0.9999970919755979, -0.0020606752040369185, -0.0011728596738218135,
			0.8587678402508788, 0.002061276651318104, 0.9999978196865914, 0.0005118395254601801, 0.04651645409095304,
			0.001171802889678936, -0.0005142546217611089, 0.9999991883378105, 0.02224040087625296}, 1e-12)
		if items[2].Pose != nil || !strings.Contains(book.String(), "scans have no pose") {
			t.Errorf("%s: a scan without a line has %v; the log: %s", name, items[2].Pose, book)
		}
	}
}

func nearPose(t *testing.T, name string, got *codec.Pose, want codec.Pose, within float64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s: there is no pose, want %v", name, want)
		return
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= within) {
			t.Errorf("%s: number %d of the pose is %v, want %v", name, i, got[i], want[i])
		}
	}
}

// The pose is that of numpy by the formula of the devkit, within 0.1 micrometres: the projection is the
// logarithm of a number near 1, times the radius of the earth.
func TestRawPoses(t *testing.T) {
	date := t.TempDir()
	root := filepath.Join(date, "2011_09_26_drive_0005_sync")
	drive(t, root, []string{"0000000002.bin", "0000000003.bin", "0000000004.bin"})
	write(t, []byte("49.015003823272 8.4342971002335 116.43032836914 0.035752 0.00903 -2.6087069803847 1 2 3\n"), root,
		"oxts", "data", "0000000002.txt")
	write(t, []byte("49.014996 8.4343001 116.45 0.0351 0.0095 -2.61 1 2 3\n"), root, "oxts", "data", "0000000003.txt")
	write(t, []byte("calib_time: 25-May-2012 16:47:16\nR: 9.999976e-01 7.553071e-04 -2.035826e-03 -7.854027e-04 "+
		"9.998898e-01 -1.482298e-02 2.024406e-03 1.482454e-02 9.998881e-01\nT: -8.086759e-01 3.195559e-01 "+
		"-7.997231e-01\n"), date, "calib_imu_to_velo.txt")
	items := all(t, open(t, KITTI{Dir: root}))
	nearPose(t, "frame 3", items[1].Pose, codec.Pose{-0.8615246508770151, 0.5073134655345951, -0.02020889653679186,
		-0.6559573404050679, -0.5075853929508963, -0.8615229268581572, 0.011635049841231565, -0.9967451091226487,
		-0.011507810914811739, 0.02028162832502951, 0.9997280372123656, 0.803390032594956}, 1e-7)
	if items[0].Pose == nil || items[2].Pose != nil {
		t.Errorf("poses %v, %v", items[0].Pose, items[2].Pose)
	}
}

func TestBrokenPoses(t *testing.T) {
	root := filepath.Join(t.TempDir(), "dataset", "sequences", "00")
	write(t, golden(t), root, "velodyne", "000000.bin")
	poses := write(t, []byte(sequence00Pose1+"1 2 3\n"), root, "poses.txt")
	log, book := logBook()
	if items := all(t, open(t, KITTI{Dir: root, Log: log})); items[0].Pose != nil ||
		!strings.Contains(book.String(), "no matrix Tr") {
		t.Errorf("without calib.txt: %v, %s", items[0].Pose, book)
	}
	write(t, []byte(sequence00Tr), root, "calib.txt")
	_, err := KITTI{Dir: root}.Open()
	failsWith(t, err, "poses.txt:2:", "12 numbers")
	write(t, []byte(strings.Repeat("7 ", 12)), poses)
	_, err = KITTI{Dir: root}.Open()
	failsWith(t, err, "poses.txt:1:", "12 numbers")

	write(t, []byte("1 0 0 0 1 0 0 0 1 0 0 0\n"), poses)
	_, err = KITTI{Dir: root}.Open()
	failsWith(t, err, "poses.txt:1:", "12 numbers")

	raw := filepath.Join(t.TempDir(), "drive")
	drive(t, raw, []string{"0000000000.bin", "0000000001.bin"})
	write(t, []byte("49 8 100 0 0 0\n"), raw, "oxts", "data", "0000000000.txt")
	write(t, []byte("ninety 8 100 0 0 0\n"), raw, "oxts", "data", "0000000001.txt")
	log, book = logBook()
	if items := all(t, open(t, KITTI{Dir: raw, Log: log})); items[0].Pose != nil ||
		!strings.Contains(book.String(), "no calib_imu_to_velo.txt") {
		t.Errorf("without the calibration: %v, %s", items[0].Pose, book)
	}
	calib := write(t, []byte("R: 1 0 0 0 1 0 0 0 1\nT: 0 0\n"), raw, "calib_imu_to_velo.txt")
	_, err = KITTI{Dir: raw}.Open()
	failsWith(t, err, "calib_imu_to_velo.txt", "R with 9 numbers")
	write(t, []byte("R 1 0 0 0 1 0 0 0 1\nT 1 2 3\n"), calib)
	src := open(t, KITTI{Dir: raw})
	var it Item
	if err := src.Next(&it); err != nil {
		t.Fatal(err)
	}
	nearPose(t, "a calibration without colons", it.Pose, codec.Pose{1, 0, 0, -1, 0, 1, 0, -2, 0, 0, 1, -3}, 1e-12)
	failsWith(t, src.Next(&it), "0000000001.txt:1:", "want latitude")
	if err := src.Next(&it); err != io.EOF {
		t.Error(err)
	}
}

// A text scan of an unsynchronised drive may be compressed, and has the times of its drive.
func TestTextScansInGzip(t *testing.T) {
	root := filepath.Join(t.TempDir(), "2011_09_26_drive_0001_extract")
	text := []byte("1.000 2.000 3.000 0.50\n-1.500 0.000 -1.730 0.00\n49.520 22.668 2.051 0.99\n")
	write(t, zipped(t, text), root, "velodyne_points", "data", "0000000000.txt.gz")
	write(t, text, root, "velodyne_points", "data", "0000000002.txt")
	write(t, []byte("2011-09-26 13:02:25.951199337\n\n2011-09-26 13:02:26.2\n"), root, "velodyne_points",
		"timestamps.txt")
	items := all(t, open(t, KITTI{Dir: root}))
	if len(items) != 2 || items[0].TimeNs != 1317042145951199337 || items[1].Number != 2 ||
		items[1].TimeNs != 1317042146200000000 {
		t.Fatalf("%+v", items)
	}
	for i := range items {
		checkGolden(t, &items[i])
	}
}
