//go:build readers

package replay

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"entropipe/schemas/codec"
)

// foreignFaults are the files of real data that another library does not read, or reads
// only with a hint: their names, with what is the matter.
var foreignFaults = map[string]string{
	"utm17_comma.pcd":   "commas between the numbers",
	"bunny.pcd":         "no line VIEWPOINT",
	"nhood_test.pcd":    "no line VIEWPOINT",
	"1.2-no-points.las": "points that the header counts are not there, which we refuse",
	"utm17_tab.pcd":     "tabs between the numbers",
	"simple_text.ply":   "a blank after the magic",
	"missingheader.pcd": "no header, which we refuse, too",
	"no_vertex.ply":     "no element vertex, which we refuse, too",
}

// The columns of every real PCD, PLY and LAS file have the bits that pypcd4, plyfile and
// laspy read. ENTROPIPE_PYTHON names an interpreter that has what
// .ci/readers/requirements.txt lists.
func TestCloudFilesInPython(t *testing.T) {
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(root); err != nil {
		t.Skipf("real data: %v (set ENTROPIPE_TESTDATA)", err)
	}
	files, values := 0, 0
	for _, folder := range []string{"pcd", "las", filepath.Join("kitti", "pcd_originals")} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			for _, format := range []CloudFormat{PCD, PLY, LAS} {
				if format.owns(path) {
					if n := compareWithPython(t, interpreter, format, path); n >= 0 {
						files, values = files+1, values+n
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d files, %d values with equal bits", files, values)
	if files < 40 {
		t.Errorf("%d files were compared, want 40 at least", files)
	}
}

// compareWithPython returns the number of values that were compared; -1: another library
// does not read the file.
func compareWithPython(t *testing.T, interpreter string, format CloudFormat, path string) int {
	why, faulty := foreignFaults[filepath.Base(path)]
	if faulty {
		t.Logf("%s: not compared: %s", filepath.Base(path), why)
		return -1
	}
	cmd := exec.Command(interpreter, "../../.ci/readers/clouds.py", path)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	said, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v: %s", path, err, complaint.String())
		return -1
	}
	value, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return -1
	}
	var c codec.Cloud
	if err := format.Decode(&c, value, 1<<30); err != nil {
		t.Errorf("%s: %v", path, err)
		return -1
	}
	ours, total := bitsOf(&c), 0
	for len(said) > 0 {
		line, rest, _ := bytes.Cut(said, []byte{'\n'})
		var name, kind string
		var n int
		if _, err := fmt.Sscan(string(line), &name, &kind, &n); err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
		size := int(kind[1] - '0')
		theirs := rest[:n*size]
		said = rest[n*size:]
		if !bytes.Equal(ours[name], theirs) {
			t.Errorf("%s: column %s of %d bytes differs from ours of %d bytes, at byte %d", path, name, len(theirs),
				len(ours[name]), firstDifference(ours[name], theirs))
		}
		delete(ours, name)
		total += n
	}
	if len(ours) > 0 {
		var names []string
		for name := range ours {
			names = append(names, name)
		}
		slices.Sort(names)
		t.Errorf("%s: columns %s are ours alone", path, strings.Join(names, ", "))
	}
	return total
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// bitsOf returns the columns of c as little-endian bytes, by name.
func bitsOf(c *codec.Cloud) map[string][]byte {
	bits := map[string][]byte{}
	put := func(name string, column any, absent bool) {
		if !absent {
			bits[name], _ = binary.Append(nil, binary.LittleEndian, column)
		}
	}
	if c.Double {
		put("x", c.Cloud64.X, false)
		put("y", c.Cloud64.Y, false)
		put("z", c.Cloud64.Z, c.Cloud64.Z == nil)
	} else {
		put("x", c.Cloud32.X, false)
		put("y", c.Cloud32.Y, false)
		put("z", c.Cloud32.Z, c.Cloud32.Z == nil)
	}
	put("intensity", c.Intensity, c.Intensity == nil)
	put("t_offset_ns", c.TOffsetNs, c.TOffsetNs == nil)
	for i, column := range c.Extra.Int32s() {
		put(codec.Int32Names[i], *column, *column == nil)
	}
	return bits
}
