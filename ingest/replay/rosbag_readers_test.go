//go:build readers

package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The Python package rosbags reads the same values from the bags that it writes.
func TestRosbagInPython(t *testing.T) {
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	root := t.TempDir()
	python := func(args ...string) string {
		args = append([]string{"../../.ci/readers/rosbag.py"}, args...)
		out, err := exec.Command(interpreter, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	python("write", root)
	for _, kind := range []string{"plain", "file", "message", "mcap"} {
		bag := filepath.Join(root, kind)
		s, err := Rosbag{Paths: []string{bag}}.Open()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		values := 0
		for {
			var it Item
			if err := s.Next(&it); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			h := sha256.New()
			c := &it.Cloud
			for _, column := range [][]float32{c.Cloud32.X, c.Cloud32.Y, c.Cloud32.Z, c.Intensity} {
				binary.Write(h, binary.LittleEndian, column)
				values += len(column)
			}
			binary.Write(h, binary.LittleEndian, c.Ring)
			values += len(c.Ring)
			got = append(got, fmt.Sprintf("%s %d %d %x", it.Sensor, it.TimeNs, c.Len(), h.Sum(nil)))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		want := strings.Split(python("read", bag), "\n")
		if !slices.Equal(got, want) || len(want) != 40 || values == 0 {
			t.Errorf("%s: got\n%s\nwant\n%s", kind, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		t.Logf("%s: %d values of %d clouds equal", kind, values, len(got))
	}
}
