package replay

import (
	"bytes"
	"path/filepath"
	"strings"
)

// form is a format of data on disk that Files finds.
type form struct {
	name string // as in --format
	// layout reports whether a folder is the root of a recording or a data set of the
	// format; nil: the format has files only.
	layout func(dir string, names listing) bool
	// file reports whether a file is of the format; nil: the format has folders only.
	file func(s *sample) bool
	// alone: each file is an input of its own; else all files of one folder are one.
	alone bool
	// plain: compressed files of the format are not read.
	plain bool
	open  func(f *Files, in *Input) (Source, error)
}

// formats are in the order in which they are tried.
var formats = []*form{formatKITTI, formatNuScenes, formatWaymo, formatArgoverse2, formatMCAP, formatRosbag,
	formatQuickDraw, cloudForm(PCD), cloudForm(PLY), cloudForm(LAS), tableForm(FormatCSV), tableForm(FormatParquet),
	tableForm(FormatArrow)}

// Formats returns the names of the formats that Files reads.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// formatNamed returns nil if there is none.
func formatNamed(name string) *form {
	for _, f := range formats {
		if f.name == name {
			return f
		}
	}
	return nil
}

var formatKITTI = &form{
	name: FormatKITTI,
	layout: func(dir string, names listing) bool {
		return names.has("velodyne_points") && isDir(dir, "velodyne_points", "data") || names.has("velodyne") &&
			isDir(dir, "velodyne")
	},
	file: func(s *sample) bool { return strings.HasSuffix(s.plain, ".bin") && !s.isFive() },
	open: func(f *Files, in *Input) (Source, error) {
		return KITTI{Dir: in.Path, Files: in.Files, SkipBad: f.SkipBad, MaxFrameBytes: f.MaxFrameBytes,
			Log: f.Log}.Open()
	},
}

var formatQuickDraw = &form{
	name: FormatQuickDraw,
	file: func(s *sample) bool {
		return bytes.HasPrefix(s.head, []byte("{")) && bytes.Contains(s.head, []byte(`"drawing"`))
	},
	alone: true,
	open: func(f *Files, in *Input) (Source, error) {
		q := QuickDraw{Files: in.paths(), SkipBad: f.SkipBad, Pack: f.Pack, Log: f.Log}
		if err := q.check(); err != nil {
			return nil, err
		}
		return q.source(), nil
	},
}

var formatMCAP = &form{
	name: FormatMCAP,
	layout: func(_ string, names listing) bool {
		return names.has("metadata.yaml") && names.anyEnds(".mcap", ".mcap.zstd", ".mcap.zst")
	},
	file:  func(s *sample) bool { return s.kind == "an MCAP file" },
	alone: true,
	open: func(f *Files, in *Input) (Source, error) {
		return MCAP{Paths: in.paths(), Topics: f.Topics, Time: f.Time, SkipBad: f.SkipBad,
			MaxFrameBytes: f.MaxFrameBytes, Log: f.Log, sequence: in.Sequence}.Open()
	},
}

var formatNuScenes = &form{
	name: FormatNuScenes,
	layout: func(dir string, names listing) bool {
		for i := range names {
			if name := names[i].name; strings.HasPrefix(name, "v1.0-") && isDir(dir, name) {
				return true
			}
		}
		return names.has("samples") && isDir(dir, "samples", "LIDAR_TOP")
	},
	file: func(s *sample) bool { return strings.HasSuffix(s.plain, ".bin") && s.isFive() },
	open: func(f *Files, in *Input) (Source, error) {
		return NuScenes{Paths: in.paths(), Tables: f.Tables, Scenes: f.Scenes, SkipBad: f.SkipBad,
			MaxFrameBytes: f.MaxFrameBytes, Log: f.Log}.Open()
	},
}

var formatWaymo = &form{
	name: FormatWaymo,
	layout: func(dir string, names listing) bool {
		return names.has("lidar") && names.has("lidar_calibration") && isDir(dir, "lidar_calibration")
	},
	file:  func(s *sample) bool { return s.kind == "a TFRecord file" },
	plain: true,
	open: func(f *Files, in *Input) (Source, error) {
		return Waymo{Paths: in.paths(), Lasers: f.Lasers, Returns: f.Returns, PerLaser: f.PerLaser, SkipBad: f.SkipBad,
			MaxFrameBytes: f.MaxFrameBytes, Log: f.Log}.Open()
	},
	alone: true,
}

var formatArgoverse2 = &form{
	name: FormatArgoverse2,
	layout: func(dir string, names listing) bool {
		return names.has("city_SE3_egovehicle.feather") || names.has("sensors") && isDir(dir, "sensors", "lidar")
	},
	file: func(s *sample) bool {
		stem, ok := strings.CutSuffix(s.plain, ".feather")
		return ok && stem != "" && digits(stem) == len(stem)
	},
	open: func(f *Files, in *Input) (Source, error) {
		return Argoverse2{Paths: in.paths(), SkipBad: f.SkipBad, MaxFrameBytes: f.MaxFrameBytes, Log: f.Log}.Open()
	},
}

// cloudForm returns a format whose files hold one cloud each.
func cloudForm(of CloudFormat) *form {
	return &form{
		name: of.Name,
		file: func(s *sample) bool { return of.Is(s.head) && s.kind != "a LAZ file" },
		open: func(f *Files, in *Input) (Source, error) {
			return CloudFiles{Format: of, Paths: in.whole(), SkipBad: f.SkipBad, MaxFrameBytes: f.MaxFrameBytes,
				Log: f.Log, dir: in.Path, names: in.Files}.Open()
		},
	}
}

// tableForm returns a format of tables of points. Text has no magic: its name decides.
func tableForm(name string) *form {
	return &form{
		name: name,
		file: func(s *sample) bool {
			switch name {
			case FormatParquet:
				return s.kind == "a Parquet file"
			case FormatArrow:
				return s.kind == "an Arrow IPC file" || s.kind == "an Arrow IPC stream"
			}
			ext := filepath.Ext(s.plain)
			return s.kind == "" && (ext == ".csv" || ext == ".tsv" || ext == ".xyz" || ext == ".asc")
		},
		open: func(f *Files, in *Input) (Source, error) {
			return Table{Paths: in.paths(), Format: name, Columns: f.Columns, GroupBy: f.GroupBy, SkipBad: f.SkipBad,
				MaxFrameBytes: f.MaxFrameBytes, Log: f.Log}.Open()
		},
	}
}

var formatRosbag = &form{
	name: FormatRosbag,
	layout: func(_ string, names listing) bool {
		return names.has("metadata.yaml") && names.anyEnds(".db3", ".db3.zstd", ".db3.zst")
	},
	file:  func(s *sample) bool { return s.kind == "an SQLite database" && strings.HasSuffix(s.plain, ".db3") },
	alone: true,
	open: func(f *Files, in *Input) (Source, error) {
		return Rosbag{Paths: in.paths(), Topics: f.Topics, Time: f.Time, SkipBad: f.SkipBad,
			MaxFrameBytes: f.MaxFrameBytes, Log: f.Log, sequence: in.Sequence}.Open()
	},
}

// isFive reports whether a .bin holds five numbers a point, as nuScenes' do, where KITTI's
// hold four. Where the length fits both, the name decides.
func (s *sample) isFive() bool {
	return strings.HasSuffix(s.plain, ".pcd.bin") || s.size > 0 && s.size%20 == 0 && s.size%16 != 0
}

const (
	writeColumns   = "write its points as Parquet, Arrow, CSV or PCD first"
	sensorSoftware = "write its points as MCAP, PCD or LAS with the sensor's software first"
)

// adviceOn is what to do with content that Files names and does not read. FILE is its path,
// STEM the path without its ending.
var adviceOn = map[string]string{
	"a LAZ file":         "convert it first: pdal translate FILE STEM.las",
	"a Draco file":       "convert it first: draco_decoder -i FILE -o STEM.ply",
	"an E57 file":        "convert it first: pdal translate FILE STEM.las",
	"a ROS 1 bag":        "convert it first: rosbags-convert --src FILE --dst STEM",
	"an HDF5 file":       writeColumns,
	"a NumPy file":       writeColumns,
	"a MATLAB file":      writeColumns,
	"a ZIP archive":      "unpack it first: unzip FILE -d STEM",
	"a 7z archive":       "unpack it first: 7z x FILE",
	"an LZ4 file":        "unpack it first: lz4 -d FILE STEM",
	"an xz file":         "unpack it first: xz -dk FILE",
	"a bzip2 file":       "unpack it first: bzip2 -dk FILE",
	"a pcap capture":     sensorSoftware,
	"a pcapng capture":   sensorSoftware,
	"an Ouster OSF file": sensorSoftware,
	rosbagMetadata: "its clouds stand in the files that it names (.db3, .mcap): put them beside it, and name " +
		"the folder",
	"an OFF file": "convert it to PLY first, for example with MeshLab",
	lfsPointer:    "fetch the file first: git lfs pull",
}

// advice says how to read content that Files does not read itself; "" if it is unknown.
func (s *sample) advice() string {
	ext := filepath.Ext(s.path)
	if filepath.Ext(s.plain) == ".txt" || bytes.Contains(s.head, []byte(`"text"`)) ||
		bytes.Contains(s.head, []byte(`"input_ids"`)) {
		return "; texts and token ids are sent by: entropipe produce tokens " + s.path
	}
	if what := adviceOn[s.kind]; what != "" {
		return "; " + strings.NewReplacer("FILE", s.path, "STEM", strings.TrimSuffix(s.path, ext)).Replace(what)
	}
	return ""
}
