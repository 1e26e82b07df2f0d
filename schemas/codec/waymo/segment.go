package waymo

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/parquetfile"
)

// Components are the files of a segment of version 2. Each holds a component of all frames.
type Components struct {
	LiDAR       *parquetfile.File
	Calibration *parquetfile.File
	LiDARPose   *parquetfile.File // nil: points of TOP are not motion compensated
	VehiclePose *parquetfile.File // nil: frames have no pose, and TOP is not compensated
	Lasers      LaserSet
	Returns     ReturnSet
	// MaxImageBytes bounds the values of an image; 0: 64 MiB.
	MaxImageBytes int64
}

// Columns of the keys.
const (
	keyContext = "key.segment_context_name"
	keyTime    = "key.frame_timestamp_micros"
	keyLaser   = "key.laser_name"
)

const (
	lidarColumn       = "[LiDARComponent].range_image_return%d"
	poseColumn        = "[LiDARPoseComponent].range_image_return1"
	worldColumn       = "[VehiclePoseComponent].world_from_vehicle.transform"
	calibrationColumn = "[LiDARCalibrationComponent]."
)

// Budgets of images that were read before their frame came.
const (
	imageBudget = 32 << 20 // for each return
	poseBudget  = 24 << 20
)

// key names a row of the components of a segment.
type key struct {
	micros int64
	laser  Laser
}

// Segment reads the frames of a segment of version 2, in the order of their times. It joins
// components by key. A Segment is for one goroutine. Memory: an image of each laser and
// return, some pages, and budgets for images that are not in the order of their frames.
type Segment struct {
	context      string
	calibrations Calibrations
	worlds       map[int64]Transform
	micros       []int64 // times of the frames, ascending
	rows         map[key]int
	poseRows     map[key]int
	lasers       LaserSet
	images       [2]*stock[Image] // nil: not asked for, or not there
	poses        *stock[PoseImage]
	next         int
	taken        []int // rows of images that the last frame has
	takenPose    int   // -1: none
}

// OpenSegment reads keys, shapes, calibrations and vehicle poses. An error names component
// and row.
func OpenSegment(in Components) (*Segment, *codec.Error) {
	s := &Segment{lasers: in.Lasers, takenPose: -1}
	limit := in.MaxImageBytes
	if limit <= 0 {
		limit = 64 << 20
	}
	if err := s.openLiDAR(in.LiDAR, in.Returns, limit); err != nil {
		return nil, within("lidar", err)
	}
	if err := s.openCalibration(in.Calibration); err != nil {
		return nil, within("lidar_calibration", err)
	}
	if in.VehiclePose != nil {
		if err := s.openVehiclePose(in.VehiclePose); err != nil {
			return nil, within("vehicle_pose", err)
		}
	}
	if in.LiDARPose != nil && in.Lasers.Has(Top) {
		if err := s.openPose(in.LiDARPose, limit); err != nil {
			return nil, within("lidar_pose", err)
		}
	}
	return s, nil
}

// within names the component in an error.
func within(component string, err *codec.Error) *codec.Error {
	return &codec.Error{Reason: err.Reason, Detail: "component " + component + ": " + err.Detail, At: err.At}
}

// Len returns the number of frames.
func (s *Segment) Len() int { return len(s.micros) }

// Context returns the name of the segment; empty if no row has one.
func (s *Segment) Context() string { return s.context }

// HasPoses reports which poses the segment has: those of the vehicle, and those of the
// pixels of TOP.
func (s *Segment) HasPoses() (vehicle, pixels bool) { return len(s.worlds) > 0, s.poses != nil }

// Close drops the memory of pages.
func (s *Segment) Close() {
	for _, images := range s.images {
		if images != nil {
			images.lists.close()
		}
	}
	if s.poses != nil {
		s.poses.lists.close()
	}
}

// Rewind makes the first frame the next one.
func (s *Segment) Rewind() { s.next = 0 }

// Next sets f to the next frame, whose images are valid until the next call. io.EOF: there
// is none. After a *codec.Error the next call returns the frame behind.
func (s *Segment) Next(f *Frame) error {
	s.release()
	if s.next == len(s.micros) {
		return io.EOF
	}
	now := s.next
	s.next++
	micros := s.micros[now]
	*f = Frame{Context: s.context, TimeMicros: micros, Calibrations: &s.calibrations, Ignored: []string{ignoredZone}}
	if world, ok := s.worlds[micros]; ok {
		f.World = &world
	}
	for laser := Top; laser < numLasers; laser++ {
		row, ok := s.rows[key{micros, laser}]
		if !ok {
			continue
		}
		f.Listed |= 1 << laser
		if !s.lasers.Has(laser) {
			continue
		}
		if err := s.sweep(&f.Sweeps[laser], row, now); err != nil {
			return within("lidar", err)
		}
	}
	row, ok := s.poseRows[key{micros, Top}]
	if top := &f.Sweeps[Top]; ok && s.poses != nil && (top.Returns[0] != nil || top.Returns[1] != nil) {
		pose, err := s.poses.get(row, now)
		if err != nil {
			return within("lidar_pose", err)
		}
		top.Pose, s.takenPose = pose, row
	}
	return nil
}

func (s *Segment) sweep(sweep *Sweep, row, now int) *codec.Error {
	s.taken = append(s.taken, row)
	for k, images := range s.images {
		if images == nil {
			continue
		}
		image, err := images.get(row, now)
		if err != nil {
			return err
		}
		if image.H > 0 {
			sweep.Returns[k] = image
		}
	}
	return nil
}

// release gives the images of the last frame back.
func (s *Segment) release() {
	for _, row := range s.taken {
		for _, images := range s.images {
			if images != nil {
				images.drop(row)
			}
		}
	}
	s.taken = s.taken[:0]
	if s.takenPose >= 0 {
		s.poses.drop(s.takenPose)
		s.takenPose = -1
	}
}

// openLiDAR reads keys and shapes of component lidar.
func (s *Segment) openLiDAR(f *parquetfile.File, returns ReturnSet, limit int64) *codec.Error {
	keys, context, err := readKeys(f)
	if err != nil {
		return err
	}
	s.context = context
	if s.rows, err = byKey(keys); err != nil {
		return err
	}
	times := map[int64]bool{}
	for _, k := range keys {
		if !times[k.micros] {
			times[k.micros] = true
			s.micros = append(s.micros, k.micros)
		}
	}
	slices.Sort(s.micros)
	rank := ranks(keys, s.micros, s.lasers)
	for k := range s.images {
		if returns>>k&1 == 0 {
			continue
		}
		name := fmt.Sprintf(lidarColumn, k+1)
		if c, err := findColumn(f, name+".values"); c == nil && k == 1 {
			if err != nil {
				return err
			}
			continue // no second returns at all
		}
		values, shapes, err := imageColumns(f, name, limit)
		if err != nil {
			return err
		}
		images := newStock[Image](values, rank, imageBudget)
		images.most = shapes.values
		images.fill = func(m *Image, row int, values []float32) *codec.Error { return m.set(shapes.dims(row), values) }
		images.size = func(m *Image) int64 { return 16 * int64(cap(m.At)) }
		s.images[k] = images
	}
	return nil
}

// openPose reads keys and shapes of component lidar_pose.
func (s *Segment) openPose(f *parquetfile.File, limit int64) *codec.Error {
	keys, context, err := readKeys(f)
	if err != nil {
		return err
	}
	if err := s.sameContext(context); err != nil {
		return err
	}
	if s.poseRows, err = byKey(keys); err != nil {
		return err
	}
	values, shapes, err := imageColumns(f, poseColumn, limit)
	if err != nil {
		return err
	}
	s.poses = newStock[PoseImage](values, ranks(keys, s.micros, 1<<Top), poseBudget)
	s.poses.most = shapes.values
	s.poses.fill = func(m *PoseImage, row int, values []float32) *codec.Error { return m.set(shapes.dims(row), values) }
	s.poses.size = func(m *PoseImage) int64 { return 4 * int64(cap(m.Values)) }
	return nil
}

func (s *Segment) sameContext(context string) *codec.Error {
	if context != "" && s.context != "" && context != s.context {
		return codec.Errorf(codec.BadValue, -1, "its segment is %.100q, that of component lidar %.100q", context,
			s.context)
	}
	return nil
}

// ranks returns the position of each row's frame in time; -1 for rows that are not needed.
func ranks(keys []key, micros []int64, lasers LaserSet) []int {
	rank := make([]int, len(keys))
	for row, k := range keys {
		at, ok := slices.BinarySearch(micros, k.micros)
		if !ok || !lasers.Has(k.laser) {
			at = -1
		}
		rank[row] = at
	}
	return rank
}

// byKey returns the row of each key; rows of unknown lasers have none.
func byKey(keys []key) (map[key]int, *codec.Error) {
	rows := make(map[key]int, len(keys))
	for row, k := range keys {
		if k.laser == Unknown {
			continue
		}
		if old, ok := rows[k]; ok {
			return nil, codec.Errorf(codec.Duplicate, -1, "rows %d and %d both hold laser %s of the frame at %d",
				old, row,
				k.laser, k.micros)
		}
		rows[k] = row
	}
	return rows, nil
}

// readKeys returns the key of each row, and the segment, which is that of all rows. A
// component without a laser has keys without a laser.
func readKeys(f *parquetfile.File) (keys []key, context string, err *codec.Error) {
	if err := checkRows(f); err != nil {
		return nil, "", err
	}
	keys = make([]key, f.NumRows())
	names, err := findColumn(f, keyContext)
	if err != nil {
		return nil, "", err
	}
	if names != nil && !names.list && names.kind == parquet.ByteArray {
		context, err = names.only()
	}
	if err != nil {
		return nil, "", err
	}
	for _, c := range []struct {
		name string
		set  func(*key, parquet.Value) bool
	}{{keyTime, func(k *key, v parquet.Value) bool {
		var ok bool
		k.micros, ok = integer(v)
		return ok && k.micros > math.MinInt64/1000 && k.micros < math.MaxInt64/1000
	}}, {keyLaser, func(k *key, v parquet.Value) bool {
		k.laser = laserOf(v)
		return !v.IsNull()
	}}} {
		found, err := findColumn(f, c.name)
		if found == nil && err == nil && c.name == keyLaser {
			continue
		}
		if err == nil && found == nil {
			err = codec.Errorf(codec.Missing, -1, "there is no column %s", c.name)
		}
		if err == nil && found.list {
			err = codec.Errorf(codec.BadType, -1, "column %s is a list", c.name)
		}
		if err == nil {
			err = found.each(func(row int, v parquet.Value, _ bool) *codec.Error {
				if !c.set(&keys[row], v) {
					return codec.Errorf(codec.BadValue, -1, "row %d, column %s: %.100s is no key", row, c.name, v)
				}
				return nil
			})
		}
		if err != nil {
			return nil, "", err
		}
	}
	return keys, context, nil
}

// only returns the text that all rows of a column have.
func (c *column) only() (text string, err *codec.Error) {
	err = c.each(func(row int, v parquet.Value, _ bool) *codec.Error {
		switch {
		case row == 0:
			text = string(v.ByteArray())
		case string(v.ByteArray()) != text:
			return codec.Errorf(codec.BadValue, -1, "row %d: the segment is %.100q, in row 0 %.100q", row,
				v.ByteArray(), text)
		}
		return nil
	})
	return text, err
}

// integer returns v as one. Writers that have met a missing value store integers as floats.
func integer(v parquet.Value) (int64, bool) {
	if v.IsNull() {
		return 0, false
	}
	switch v.Kind() {
	case parquet.Int32:
		return int64(v.Int32()), true
	case parquet.Int64:
		return v.Int64(), true
	case parquet.Double:
		d := v.Double()
		return int64(d), d == math.Trunc(d) && math.Abs(d) < 1<<53
	}
	return 0, false
}

// laserOf returns the laser that v names, by number or by text.
func laserOf(v parquet.Value) Laser {
	if v.Kind() == parquet.ByteArray {
		return ParseLaser(string(v.ByteArray()))
	}
	if n, ok := integer(v); ok && n > 0 && n < int64(numLasers) {
		return Laser(n)
	}
	return Unknown
}

// shapes are the dimensions of a column's images, by row; nil: none.
type shapes [][]int

func (s shapes) dims(row int) []int { return s[row] }

// values returns the number of values of an image.
func (s shapes) values(row int) int {
	n := 1
	for _, dim := range s[row] {
		n *= dim
	}
	if len(s[row]) == 0 {
		return 0
	}
	return n
}

// imageColumns finds the columns of values and reads those of shapes. limit bounds the bytes
// of an image.
func imageColumns(f *parquetfile.File, name string, limit int64) (values *column, all shapes, err *codec.Error) {
	if values, err = needColumn(f, name+".values", true, parquet.Float, parquet.Double); err != nil {
		return nil, nil, err
	}
	dims, err := needColumn(f, name+".shape", true, parquet.Int32, parquet.Int64)
	if err != nil {
		return nil, nil, err
	}
	all = make(shapes, f.NumRows())
	err = dims.each(func(row int, v parquet.Value, _ bool) *codec.Error {
		if v.IsNull() {
			return nil
		}
		dim, _ := integer(v)
		product := int64(all.values(row))
		if dim < 0 || len(all[row]) == 3 || product > 0 && dim > limit/4/product || dim > maxPixels {
			return codec.Errorf(codec.BadLength, -1,
				"row %d, column %s.shape: %v and %d are no shape of at most %d bytes",
				row, name, all[row], dim, limit)
		}
		all[row] = append(all[row], int(dim))
		return nil
	})
	return values, all, err
}

// openVehiclePose reads the poses of all frames.
func (s *Segment) openVehiclePose(f *parquetfile.File) *codec.Error {
	keys, context, err := readKeys(f)
	if err == nil {
		err = s.sameContext(context)
	}
	if err != nil {
		return err
	}
	matrices, err := readMatrices(f, worldColumn)
	if err != nil {
		return err
	}
	s.worlds = make(map[int64]Transform, len(keys))
	for row, k := range keys {
		if _, ok := s.worlds[k.micros]; ok {
			return codec.Errorf(codec.Duplicate, -1, "row %d: the frame at %d has a pose already", row, k.micros)
		}
		s.worlds[k.micros] = matrices[row]
	}
	return nil
}

// readMatrices reads a column of lists of 16 values.
func readMatrices(f *parquetfile.File, name string) ([]Transform, *codec.Error) {
	values, err := readNumbers(f, name, true, len(Transform{}))
	if err != nil {
		return nil, err
	}
	all := make([]Transform, f.NumRows())
	for row := range all {
		if err := all[row].set(fmt.Sprintf("matrix in row %d of column %s", row, name), values[row]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// readNumbers reads a small column of numbers, or of lists with at most most numbers. A row
// without a value has none.
func readNumbers(f *parquetfile.File, name string, list bool, most int) ([][]float64, *codec.Error) {
	c, err := needColumn(f, name, list, parquet.Float, parquet.Double)
	if err != nil {
		return nil, err
	}
	if err := checkRows(f); err != nil {
		return nil, err
	}
	all := make([][]float64, f.NumRows())
	err = c.each(func(row int, v parquet.Value, _ bool) *codec.Error {
		if v.IsNull() {
			return nil
		}
		if len(all[row]) == most {
			return codec.Errorf(codec.BadLength, -1, "row %d, column %s has more than %d values", row, name, most)
		}
		n := v.Double
		if v.Kind() == parquet.Float {
			n = func() float64 { return float64(v.Float()) }
		}
		all[row] = append(all[row], n())
		return nil
	})
	return all, err
}

// maxBeams bounds the beams of a laser.
const maxBeams = 1 << 16

// openCalibration reads the calibration of each laser.
func (s *Segment) openCalibration(f *parquetfile.File) *codec.Error {
	lasers, err := needColumn(f, keyLaser, false, parquet.Int32, parquet.Int64, parquet.Double, parquet.ByteArray)
	if err != nil {
		return err
	}
	if context, err := findColumn(f, keyContext); err != nil {
		return err
	} else if context != nil && context.kind == parquet.ByteArray && !context.list {
		name, err := context.only()
		if err = cmp.Or(err, s.sameContext(name)); err != nil {
			return err
		}
	}
	matrices, err := readMatrices(f, calibrationColumn+"extrinsic.transform")
	if err != nil {
		return err
	}
	var numbers [3][][]float64
	for i, part := range []string{"min", "max", "values"} {
		name := calibrationColumn + "beam_inclination." + part
		most := 1
		if part == "values" {
			most = maxBeams
		}
		if numbers[i], err = readNumbers(f, name, part == "values", most); err != nil {
			return err
		}
	}
	return lasers.each(func(row int, v parquet.Value, _ bool) *codec.Error {
		laser := laserOf(v)
		if laser == Unknown {
			return nil
		}
		if s.calibrations[laser] != nil {
			return codec.Errorf(codec.Duplicate, -1, "row %d: laser %s has a calibration already", row, laser)
		}
		c := &Calibration{Extrinsic: matrices[row], Inclinations: numbers[2][row]}
		if len(numbers[0][row]) > 0 && len(numbers[1][row]) > 0 {
			c.Min, c.Max = numbers[0][row][0], numbers[1][row][0]
		} else if len(c.Inclinations) == 0 {
			return codec.Errorf(codec.Missing, -1, "row %d: laser %s has no inclinations", row, laser)
		}
		s.calibrations[laser] = c
		return nil
	})
}
