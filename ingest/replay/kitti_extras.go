package replay

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"

	"entropipe/ingest/filesys"
	"entropipe/schemas/codec"
)

// kittiExtras are the files beside the scans: SemanticKITTI's labels and the poses.
type kittiExtras struct {
	labels string // folder of the labels; empty: there are none
	poses  kittiPoses
	files  []string // files of the poses, without those of single scans
}

// labelReader reads the labels of one scan after the other into the same memory.
type labelReader struct {
	scanReader
	classes []int32
}

// kittiPoses returns the pose of scan number n; nil: unknown. Any goroutine may call it.
type kittiPoses interface {
	pose(n int64) (*codec.Pose, error)
}

// openExtras looks for files beside the scans in data: labels in the folder labels or among the
// scans; poses of an odometry sequence in poses.txt or ../../poses/NN.txt, with calib.txt; poses of
// a raw drive in oxts, with calib_imu_to_velo.txt.
func openExtras(data string, log *slog.Logger) (*kittiExtras, error) {
	x := &kittiExtras{}
	parent := filesys.Dir(data)
	switch {
	case filesys.Base(data) == "velodyne" && isDir(parent, "labels"):
		x.labels = filesys.Join(parent, "labels")
	case hasLabels(data):
		x.labels = data
	}
	var err error
	switch {
	case filesys.Base(data) == "velodyne":
		x.poses, x.files, err = openOdometry(parent, log)
	case filesys.Base(parent) == "velodyne_points":
		x.poses, x.files, err = openOxts(filesys.Dir(parent), log)
	}
	return x, err
}

// hasLabels reports whether a folder of scans has labels, too.
func hasLabels(dir string) bool {
	names, err := readFolder(dir)
	return err == nil && names.anyEnds(".label")
}

// add gives the item of a scan its labels and its pose.
func (x *kittiExtras) add(it *Item, sc *scan, r *labelReader, max int64) error {
	if x.labels != "" {
		if err := x.addLabels(it, sc, r, max); err != nil {
			return err
		}
	}
	if x.poses == nil {
		return nil
	}
	pose, err := x.poses.pose(sc.number)
	it.Pose = pose
	return err
}

// addLabels reads the labels of a scan: a little-endian uint32 for each point, whose low 16 bits
// are the class and whose high 16 bits are the instance. A scan without a file has no labels.
func (x *kittiExtras) addLabels(it *Item, sc *scan, r *labelReader, max int64) error {
	path := x.labelsOf(sc)
	if path == "" {
		return nil
	}
	if err := r.load(path, max); err != nil {
		return err
	}
	raw, n := r.raw, it.Cloud.Len()
	if len(raw) != 4*n {
		return &BadInputError{File: path,
			Detail: fmt.Sprintf("%d bytes are the labels of %d points, but the scan %s has %d",
				len(raw), len(raw)/4, sc.name, n)}
	}
	r.classes = resize(r.classes, n)
	for i := range r.classes {
		r.classes[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]) & 0xffff)
	}
	it.Cloud.Label = r.classes
	return nil
}

// odometry holds the poses of an odometry sequence by line, each of the scanner.
type odometry []rigid

func (o odometry) pose(n int64) (*codec.Pose, error) {
	if n >= int64(len(o)) {
		return nil, nil
	}
	return o[n].pose(), nil
}

// openOdometry reads the poses of the left camera, and moves them to the scanner:
// T(world, velodyne) = Tr⁻¹ · T(world, camera) · Tr, in the world of the first scan.
func openOdometry(root string, log *slog.Logger) (_ kittiPoses, files []string, err error) {
	sequence := filesys.Base(root)
	path := firstFile(filesys.Join(root, "..", "..", "poses", sequence+".txt"), filesys.Join(root, "poses.txt"))
	if path == "" {
		return nil, nil, nil
	}
	calib := filesys.Join(root, "calib.txt")
	values, err := readCalibration(calib)
	if err != nil {
		return nil, nil, err
	}
	tr, ok := matrixOf(values["Tr"])
	if !ok {
		if log != nil {
			log.Warn("the scans have no poses: calib.txt has no matrix Tr of the scanner", "file", calib)
		}
		return nil, nil, nil
	}
	back := tr.inverse()
	var poses odometry
	err = eachLine(path, func(line string) error {
		camera, ok := matrixOf(numbersOf(line))
		if !ok {
			return fmt.Errorf("want the 12 numbers of a pose, got %.80q", line)
		}
		left := back.times(&camera)
		poses = append(poses, left.times(&tr))
		return nil
	})
	return poses, []string{path, calib}, err
}

// matrixOf returns the motion of 12 numbers, the first three rows of a matrix.
func matrixOf(v []float64) (rigid, bool) {
	if len(v) != 12 {
		return rigid{}, false
	}
	return rigidRows([12]float64(v))
}

// numbersOf returns the numbers of a line; nil if some field is none.
func numbersOf(line string) (v []float64) {
	for field := range strings.FieldsSeq(line) {
		f, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil
		}
		v = append(v, f)
	}
	return v
}

// maxPoses bounds a file of poses: scans of a day.
const maxPoses = 1 << 20

// eachLine calls take for the lines of a file that are not empty. The error names file and line.
func eachLine(path string, take func(line string) error) error {
	f, err := openPlain(path)
	if err != nil {
		return badFile(path, err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	n := 1
	for ; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		err := take(line)
		if n > maxPoses {
			err = fmt.Errorf("more than %d lines", maxPoses)
		}
		if err != nil {
			return &BadInputError{File: path, Line: n, Detail: err.Error(), Err: err}
		}
	}
	if err := lines.Err(); err != nil {
		return &BadInputError{File: path, Line: n, Detail: err.Error(), Err: err}
	}
	return nil
}

// readCalibration reads lines "key: numbers", also without the colon. Lines of other values are
// left out. A file that is not there has no line.
func readCalibration(path string) (map[string][]float64, error) {
	values := map[string][]float64{}
	if firstFile(path) == "" {
		return values, nil
	}
	err := eachLine(path, func(line string) error {
		key, rest, _ := strings.Cut(line, " ")
		if v := numbersOf(rest); v != nil {
			values[strings.TrimSuffix(key, ":")] = v
		}
		return nil
	})
	return values, err
}

// oxts are the poses of a raw drive, of which the files of the inertial sensor are read one by one.
type oxts struct {
	folder string
	toIMU  rigid // scanner to inertial sensor
	origin [3]float64
	scale  float64
}

// openOxts finds the files and reads the first one, where the world begins.
func openOxts(root string, log *slog.Logger) (_ kittiPoses, files []string, err error) {
	folder := filesys.Join(root, "oxts", "data")
	entries, err := filesys.ReadDir(folder)
	if err != nil {
		return nil, nil, nil // many users have the scans alone
	}
	first := int64(math.MaxInt64)
	for _, e := range entries {
		if n, err := strconv.ParseUint(strings.TrimSuffix(e.Name(), ".txt"), 10, 63); err == nil {
			first = min(first, int64(n))
		}
	}
	const name = "calib_imu_to_velo.txt"
	calib := firstFile(filesys.Join(root, name), filesys.Join(root, "..", name))
	if calib == "" || first == math.MaxInt64 {
		if log != nil {
			log.Warn("the scans have no poses: the drive has oxts, but no "+name+" beside or above", "folder", root)
		}
		return nil, nil, nil
	}
	values, err := readCalibration(calib)
	if err != nil {
		return nil, nil, err
	}
	r, t := values["R"], values["T"]
	if len(r) != 9 || len(t) != 3 {
		return nil, nil, &BadInputError{File: calib, Detail: "want R with 9 numbers and T with 3"}
	}
	imu, ok := rigidRows([12]float64{r[0], r[1], r[2], t[0], r[3], r[4], r[5], t[1], r[6], r[7], r[8], t[2]})
	if !ok {
		return nil, nil, &BadInputError{File: calib, Detail: "R is no rotation"}
	}
	o := &oxts{folder: folder, toIMU: imu.inverse()}
	v, err := o.read(first)
	if err != nil {
		return nil, nil, err
	}
	o.scale = math.Cos(v[0] * math.Pi / 180)
	o.origin = o.mercator(v)
	return o, []string{calib, o.fileOf(first)}, nil
}

// read returns latitude, longitude (degrees), altitude, roll, pitch and yaw (radians) of a frame;
// nil if it has no file.
func (o *oxts) read(n int64) (v []float64, err error) {
	path := o.fileOf(n)
	if path == "" {
		return nil, nil
	}
	err = eachLine(path, func(line string) error {
		if v = numbersOf(line); len(v) < 6 || math.Abs(v[0]) > 89 {
			return fmt.Errorf("want latitude, longitude, altitude, roll, pitch, yaw and more, got %.80q", line)
		}
		return nil
	})
	if err == nil && v == nil {
		err = &BadInputError{File: path, Detail: "the file has no line"}
	}
	return v, err
}

// mercator returns metres to the east, to the north and up, as the devkit of KITTI computes them.
func (o *oxts) mercator(v []float64) [3]float64 {
	const radius = 6378137 // radius of the earth in metres
	return [3]float64{o.scale * v[1] * math.Pi * radius / 180,
		o.scale * radius * math.Log(math.Tan((90+v[0])*math.Pi/360)), v[2]}
}

// pose returns the pose of the scanner; x of the world points to the east, y to the north, and the
// first frame's inertial sensor is the origin.
func (o *oxts) pose(n int64) (*codec.Pose, error) {
	v, err := o.read(n)
	if v == nil || err != nil {
		return nil, err
	}
	sr, cr := math.Sincos(v[3])
	sp, cp := math.Sincos(v[4])
	sy, cy := math.Sincos(v[5])
	at := o.mercator(v)
	imu := rigid{r: [9]float64{
		cy * cp, float64(cy*sp*sr) - float64(sy*cr), float64(cy*sp*cr) + float64(sy*sr),
		sy * cp, float64(sy*sp*sr) + float64(cy*cr), float64(sy*sp*cr) - float64(cy*sr),
		-sp, cp * sr, cp * cr},
		t: [3]float64{at[0] - o.origin[0], at[1] - o.origin[1], at[2] - o.origin[2]}}
	world := imu.times(&o.toIMU)
	return world.pose(), nil
}
