package replay

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const pointerText = "version https://git-lfs.github.com/spec/v1\n" +
	"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"

// drainItems reads a source to its end and returns the number of items.
func drainItems(src Source) (items int, err error) {
	var it Item
	for {
		if err := src.Next(&it); err == io.EOF {
			return items, nil
		} else if err != nil {
			return items, err
		}
		items++
	}
}

// A pointer of Git LFS in the place of a file is named as one, by every format, and is a bad
// input where those are passed over.
func TestPointersOfGitLFS(t *testing.T) {
	files := func(format, name string) func(string, bool) (Source, error) {
		return func(dir string, skip bool) (Source, error) {
			return Files{Format: format, Paths: []string{filepath.Join(dir, name)}, SkipBad: skip,
				Log: slog.New(slog.DiscardHandler)}.Open()
		}
	}
	tokens := func(dir string, skip bool) (Source, error) {
		paths, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			return nil, err
		}
		return Tokens{Files: paths, SkipBad: skip}.Open()
	}
	cloud := map[string]string{"points/good.csv": "x,y\n1,2\n"}
	for _, c := range []struct {
		name  string
		at    string // the pointer's path
		more  map[string]string
		open  func(dir string, skip bool) (Source, error)
		items int // read with SkipBad; -1: it opens nothing
	}{
		{"bin", "points/a.bin", cloud, files("", "points"), 1},
		{"bin named", "points/a.bin", nil, files("", "points/a.bin"), -1},
		{"bin of five", "points/a.pcd.bin", cloud, files("", "points"), 1},
		{"pcd", "points/a.pcd", cloud, files("", "points"), 1},
		{"pcd by format", "points/a.pcd", nil, files("pcd", "points/a.pcd"), -1},
		{"packed pcd", "points/a.pcd.gz", cloud, files("", "points"), 1},
		{"ply", "points/a.ply", cloud, files("", "points"), 1},
		{"las", "points/a.las", cloud, files("", "points"), 1},
		{"laz", "points/a.laz", cloud, files("", "points"), 1},
		{"mcap", "points/a.mcap", cloud, files("", "points"), 1},
		{"mcap named", "points/a.mcap", nil, files("mcap", "points/a.mcap"), -1},
		{"parquet", "points/a.parquet", cloud, files("", "points"), 1},
		{"csv", "points/a.csv", cloud, files("", "points"), 1},
		{"arrow", "points/a.arrow", cloud, files("", "points"), 1},
		{"drawings", "points/a.ndjson", cloud, files("", "points"), 1},
		{"any name", "points/a", nil, files("", "points/a"), -1},
		{"KITTI", "drive/velodyne_points/data/0000000000.bin",
			map[string]string{"drive/velodyne_points/data/0000000001.bin": strings.Repeat("\x00", 48)},
			files("", "drive"), 1},
		{"times of KITTI", "drive/velodyne_points/timestamps.txt",
			map[string]string{"drive/velodyne_points/data/0000000000.bin": strings.Repeat("\x00", 48)},
			files("", "drive"), 0},
		{"bag", "bag/a.db3", map[string]string{"bag/metadata.yaml": "rosbag2_bagfile_information:\n" +
			"  relative_file_paths: [a.db3]\n"}, files("", "bag"), 0},
		{"metadata of a bag", "bag/metadata.yaml", map[string]string{"bag/a.db3": "SQLite format 3\x00"},
			files("", "bag"), 0},
		{"Waymo", "split/a.tfrecord", cloud, files("", "."), 1},
		{"Waymo's folder of components", "split/lidar/a.parquet", nil, func(dir string, skip bool) (Source, error) {
			return Waymo{Paths: []string{filepath.Join(dir, "split")}, SkipBad: skip}.Open()
		}, 0},
		{"Waymo's records", "split/a.tfrecord", nil, func(dir string, skip bool) (Source, error) {
			return Waymo{Paths: []string{filepath.Join(dir, "split")}, SkipBad: skip}.Open()
		}, 0},
		{"table by format", "points/a.feather", map[string]string{"points/b.feather": "no table"},
			files("arrow", "points"), -1},
		{"tables of nuScenes", "set/v1.0-mini/sensor.json", map[string]string{"set/v1.0-mini/sample_data.json": "[]"},
			files("nuscenes", "set"), 0},
		{"tokens as lines", "a.jsonl", map[string]string{"b.jsonl": `{"input_ids":[1,2]}`}, tokens, 1},
		{"tokens as text", "a.txt", map[string]string{"b.jsonl": `{"input_ids":[1,2]}`}, tokens, 1},
		{"tokens as Parquet", "a.parquet", map[string]string{"b.jsonl": `{"input_ids":[1,2]}`}, tokens, 1},
		{"one file of tokens", "a.txt", nil, tokens, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			put := func(name, text string) {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			put(c.at, pointerText)
			for name, text := range c.more {
				put(name, text)
			}
			src, err := c.open(dir, false)
			if err == nil {
				_, err = drainItems(src)
				src.Close()
			}
			var bad *BadInputError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), filepath.Base(c.at)) ||
				!strings.Contains(err.Error(), "this is a Git LFS pointer") ||
				strings.Count(err.Error(), "git lfs pull") != 1 {
				t.Errorf("without SkipBad: %v", err)
			}
			src, err = c.open(dir, true)
			switch {
			case c.items < 0 && err == nil:
				src.Close()
				t.Error("nothing but a pointer was opened")
			case c.items < 0:
			case err != nil:
				t.Errorf("with SkipBad: %v", err)
			default:
				items, err := drainItems(src)
				if err != nil || items != c.items || skippedBy(src) != 1 {
					t.Errorf("with SkipBad: %d items and %d bad inputs, want %d and 1; %v", items, skippedBy(src),
						c.items, err)
				}
				src.Close()
			}
		})
	}
}

// Pointers below a folder are passed over where no format has their names.
func TestPointersOfOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.png": pointerText, "good.csv": "x,y\n1,2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if items, err := drainItems(openFiles(t, dir)); items != 1 || err != nil {
		t.Errorf("%d items, %v", items, err)
	}
}
