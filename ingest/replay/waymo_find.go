package replay

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"entropipe/ingest/filesys"
	"entropipe/schemas/codec"
	"entropipe/schemas/codec/parquetfile"
	"entropipe/schemas/codec/tfrecord"
	"entropipe/schemas/codec/waymo"
)

// waymoInput is a segment: a .tfrecord file, or the file of component lidar.
type waymoInput struct {
	path   string
	second bool // version 2
}

// name returns the name of a segment that its file does not name.
func (in waymoInput) name() string {
	name := filesys.Base(in.path)
	name, _, _ = strings.Cut(name, ".")
	return strings.TrimSuffix(strings.TrimPrefix(name, "segment-"), "_with_camera_labels")
}

// context returns the name of the segment that the first frame tells, else that of the file.
func (in waymoInput) context() string {
	s := &waymoSource{max: DefaultMaxFrameBytes}
	r, err := in.open(s)
	if err != nil {
		return in.name()
	}
	defer r.close()
	var f waymo.Frame
	if _, err := r.next(&f); err != nil || f.Context == "" {
		return in.name()
	}
	return f.Context
}

// findWaymo returns the segments at path, by name.
func findWaymo(path string) ([]waymoInput, error) {
	info, err := filesys.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return findWaymoFolder(path)
	}
	head, err := firstBytes(path)
	switch {
	case err != nil:
		return nil, err
	case strings.HasPrefix(string(head), "PAR1"):
		if base := filesys.Base(filesys.Dir(path)); base != "lidar" {
			return nil, fmt.Errorf("%s is in folder %s; name the file of the segment in folder lidar", path, base)
		}
		return []waymoInput{{path, true}}, nil
	case tfrecord.Is(head) || len(head) == 0:
		return []waymoInput{{path, false}}, nil
	}
	if kind := codec.Name(head); kind != "" {
		return nil, fmt.Errorf("%s is %s, neither a TFRecord nor a Parquet file", path, kind)
	}
	return nil,
		fmt.Errorf("%s is neither a TFRecord nor a Parquet file: the checksum of its first length does not match",
			path)
}

func firstBytes(path string) ([]byte, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return head[:n], nil
}

// findWaymoFolder returns the segments of a folder: the .tfrecord files in it, the files of
// its folder lidar, or those of the folders of splits in it.
func findWaymoFolder(dir string) (found []waymoInput, err error) {
	entries, err := filesys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	add := func(entries []fs.DirEntry, dir, part string, second bool) {
		for _, e := range entries {
			if name := e.Name(); !e.IsDir() && strings.Contains(name, part) && !strings.HasPrefix(name, ".") {
				found = append(found, waymoInput{filesys.Join(dir, name), second})
			}
		}
	}
	if add(entries, dir, ".tfrecord", false); len(found) > 0 {
		return found, nil
	}
	if filesys.Base(dir) == "lidar" {
		add(entries, dir, ".parquet", true)
		return found, oneSegment(dir, found)
	}
	lidar := []string{filesys.Join(dir, "lidar")}
	for _, e := range entries {
		if isDir(dir, e.Name(), "lidar") {
			lidar = append(lidar, filesys.Join(dir, e.Name(), "lidar"))
		}
	}
	for _, dir := range lidar {
		if !isDir(dir) {
			continue
		}
		entries, err := filesys.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		add(entries, dir, ".parquet", true)
	}
	return found, oneSegment(dir, found)
}

func oneSegment(dir string, found []waymoInput) error {
	if len(found) > 0 {
		return nil
	}
	return fmt.Errorf("%s has neither a .tfrecord file nor a folder lidar with .parquet files", dir)
}

// open opens the segment.
func (in waymoInput) open(s *waymoSource) (waymoReader, error) {
	if in.second {
		return openComponents(in.path, s)
	}
	f, err := openPlain(in.path)
	if err != nil {
		return nil, badFile(in.path, err)
	}
	return &waymoRecords{file: f, path: in.path, max: s.max, records: tfrecord.NewReader(f, s.max),
		decoder: waymo.Decoder{Lasers: s.lasers, Returns: s.returns}}, nil
}

// waymoRecords reads a .tfrecord file.
type waymoRecords struct {
	file    filesys.File
	path    string
	max     int64
	records *tfrecord.Reader
	decoder waymo.Decoder
}

func (r *waymoRecords) close() error { return r.file.Close() }

func (r *waymoRecords) next(f *waymo.Frame) (int64, error) {
	record, err := r.read()
	if err != nil {
		return 0, err
	}
	number := r.records.Number()
	if fault := r.decoder.Decode(f, record, r.max); fault != nil {
		return 0, badRecord(r.path, number, r.records.Offset(), fault)
	}
	return number, nil
}

// read returns the next record, which is valid until the next call.
func (r *waymoRecords) read() ([]byte, error) {
	record, err := r.records.Next()
	return record, r.fault(err)
}

// fault names the file in an error of its records.
func (r *waymoRecords) fault(err error) error {
	var fault *codec.Error
	switch {
	case errors.As(err, &fault):
		return &BadInputError{File: r.path, Detail: fault.Error()}
	case err != nil && err != io.EOF:
		return badFile(r.path, err)
	}
	return err
}

// badRecord is the fault of a record that is no frame.
func badRecord(path string, number, offset int64, fault *codec.Error) error {
	return &BadInputError{File: path, Detail: fmt.Sprintf("record %d, at byte %d: %s", number, offset, fault)}
}

// waymoComponents reads the components of a segment.
type waymoComponents struct {
	files   []filesys.File
	path    string // component lidar
	segment *waymo.Segment
	number  int64
}

// openComponents opens the files that have the name of path in the folders beside its own.
func openComponents(path string, s *waymoSource) (waymoReader, error) {
	r := &waymoComponents{path: path}
	in := waymo.Components{Lasers: s.lasers, Returns: s.returns, MaxImageBytes: s.max}
	for _, c := range []struct {
		folder string
		to     **parquetfile.File
		needed bool
	}{{"lidar", &in.LiDAR, true}, {"lidar_calibration", &in.Calibration, true}, {"lidar_pose", &in.LiDARPose, false},
		{"vehicle_pose", &in.VehiclePose, false}} {
		name := filesys.Join(filesys.Dir(filesys.Dir(path)), c.folder, filesys.Base(path))
		file, err := r.openFile(name)
		if errors.Is(err, fs.ErrNotExist) && !c.needed {
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no %s, which holds component %s of the segment", name, c.folder)
		}
		if err != nil {
			r.close()
			return nil, &BadInputError{File: path, Detail: err.Error(), Err: err}
		}
		*c.to = file
	}
	segment, fault := waymo.OpenSegment(in)
	if fault != nil {
		r.close()
		return nil, &BadInputError{File: path, Detail: fault.Error()}
	}
	r.segment = segment
	return r, nil
}

func (r *waymoComponents) openFile(name string) (*parquetfile.File, error) {
	f, err := openPlain(name)
	if err != nil {
		return nil, err
	}
	r.files = append(r.files, f)
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := parquetfile.Open(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return file, nil
}

func (r *waymoComponents) close() (err error) {
	if r.segment != nil {
		r.segment.Close()
	}
	for _, f := range r.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

func (r *waymoComponents) next(f *waymo.Frame) (int64, error) {
	err := r.segment.Next(f)
	if err == io.EOF {
		return 0, err
	}
	number := r.number
	r.number++
	if err != nil {
		return 0, &BadInputError{File: r.path, Detail: fmt.Sprintf("frame %d: %v", number, err)}
	}
	return number, nil
}
