package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// form is a format with its compression.
type form struct {
	name   string
	title  string
	reader string // format of the Python readers
	// least is about how many bytes a point takes, for the number of frames.
	least int
	write func(w *writer) error
	// real are patterns of real files below the folder of data; nil: there are none.
	real []string
	goal goal
}

// goal is what a form must reach on one core; 0: no goal beside the ratio.
type goal struct {
	Megabytes float64 `json:"megabytes,omitempty"` // 10^6 bytes of files a second
	Frames    float64 `json:"frames,omitempty"`    // frames a second
}

// Goals of every form: the rate is at least so many times Python's, and memory stays below.
const (
	goalRatio  = 10
	goalMemory = 300e6 // bytes
)

// forms are all forms in the order of the page.
var forms = []*form{
	{name: "mcap", title: "MCAP, PointCloud2", reader: "mcap", least: 16, write: writeMCAP(""),
		goal: goal{Megabytes: 300}},
	{name: "mcap-lz4", title: "MCAP, PointCloud2, lz4", reader: "mcap", least: 13, write: writeMCAP("lz4"),
		goal: goal{Megabytes: 300}},
	{name: "mcap-zstd", title: "MCAP, PointCloud2, zstd", reader: "mcap", least: 8, write: writeMCAP("zstd"),
		goal: goal{Megabytes: 300}},
	{name: "rosbag", title: "ROS 2 bag, SQLite", reader: "rosbag", least: 16, write: writeRosbag},
	{name: "pcd", title: "PCD binary", reader: "pcd", least: 16, write: writeClouds("pcd", "%d.pcd"),
		goal: goal{Megabytes: 500}, real: []string{"kitti/pcd_originals/data_2_0000000153.pcd"}},
	{name: "pcd-packed", title: "PCD binary_compressed", reader: "pcd", least: 11, write: writePackedPCD,
		real: []string{"pcd/pcl_grabber_sequence/*.pcd"}},
	{name: "las", title: "LAS 1.4, point format 6", reader: "las", least: 30, write: writeLAS,
		goal: goal{Megabytes: 500}, real: []string{"las/pdal_autzen/autzen-thin.las"}},
	{name: "ply", title: "PLY binary", reader: "ply", least: 16, write: writeClouds("ply", "%d.ply")},
	{name: "nuscenes", title: "nuScenes .pcd.bin", reader: "nuscenes", least: 20,
		write: writeClouds("nuscenes", "n015__LIDAR_TOP__15324029%08d.pcd.bin"), goal: goal{Megabytes: 500},
		real: []string{"nuscenes/*.pcd.bin"}},
	{name: "kitti", title: "KITTI .bin", reader: "kitti", least: 16, write: writeClouds("kitti", "%010d.bin"),
		real: []string{"kitti/raw_2011_09_26_drive_0005/*.bin"}},
	{name: "csv", title: "CSV", reader: "csv", least: 27, write: writeCSV},
	{name: "parquet", title: "Parquet", reader: "parquet", least: 8, write: writeParquet},
	{name: "argoverse2", title: "Argoverse 2 feather, lz4", reader: "argoverse2", least: 9, write: writeFeather,
		real: []string{"argoverse2/*/lidar/*.feather"}},
	{name: "waymo", title: "Waymo v2", reader: "waymo", least: 70, write: writeWaymo, goal: goal{Frames: 20}},
}

func formNames() []string {
	names := make([]string, len(forms))
	for i, f := range forms {
		names[i] = f.name
	}
	return names
}

// formsNamed returns the forms of the names, all without names.
func formsNamed(names []string) ([]*form, error) {
	if len(names) == 0 {
		return forms, nil
	}
	var found []*form
	for _, name := range names {
		i := slices.IndexFunc(forms, func(f *form) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no form %q; there are %s", name, strings.Join(formNames(), ", "))
		}
		found = append(found, forms[i])
	}
	return found, nil
}

// input is a form's files.
type input struct {
	*form
	path  string   // arguments of `produce`
	files []string // arguments of Python's readers
	bytes int64    // all files read
	real  bool
}

// newInput looks at the files below a folder.
func newInput(f *form, dir string) (*input, error) {
	in := &input{form: f, path: dir}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		in.bytes += info.Size()
		if f.name != "waymo" || filepath.Base(filepath.Dir(path)) == "lidar" {
			in.files = append(in.files, path)
		}
		return nil
	})
	return in, err
}

// realInput returns the real files of a form below data; nil if there are none.
func realInput(f *form, data string) (*input, error) {
	in := &input{form: f, real: true}
	for _, pattern := range f.real {
		found, err := filepath.Glob(filepath.Join(data, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		in.files = append(in.files, found...)
	}
	if len(in.files) == 0 {
		return nil, nil
	}
	for _, file := range in.files {
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		in.bytes += info.Size()
	}
	return in, nil
}

// paths are what `produce` is given.
func (in *input) paths() []string {
	if in.real {
		return in.files
	}
	return []string{in.path}
}

// frames is the number of synthetic frames that take about size bytes.
func (f *form) frames(size int64, points int) int {
	return int(max(3, size/int64(f.least*points)))
}
