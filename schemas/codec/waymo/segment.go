package waymo

import (
	"cmp"
	"fmt"
	"io"
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
