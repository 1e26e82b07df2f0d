//go:build readers

package replay

import (
	"encoding/binary"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go/compress/brotli"

	"entropipe/schemas/codec/waymo/waymotest"
)

// processorTime returns the time that the process has computed.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// pyarrow and numpy compute the same points of a segment of version 2, to 1e-5 m. The test
// prints how many frames a second either computes, by the processor's time.
// ENTROPIPE_PYTHON names an interpreter that has both.
func TestWaymoEqualsPyarrow(t *testing.T) {
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	const frames = 12
	s := waymotest.New(1)
	s.Noisy = true
	dir := t.TempDir()
	lidar := writeSegment(t, dir, s, waymotest.Files{Frames: frames, GroupRows: 256, Codec: &brotli.Codec{Quality: 5}})
	size := int64(0)
	for _, component := range waymotest.Components {
		info, err := os.Stat(filepath.Join(dir, component, s.Context+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	theirs := filepath.Join(dir, "points")
	said, err := exec.Command(interpreter, filepath.Join("..", "..", ".ci", "readers", "waymo.py"), dir, s.Context,
		theirs).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	theirRate, err := strconv.ParseFloat(strings.TrimSpace(string(said)), 64)
	if err != nil {
		t.Fatal(err)
	}
	ourRate := timeWaymo(t, lidar, frames)
	values, worst := comparePoints(t, lidar, theirs)
	t.Logf("%d values of %d frames, at most %.1e m apart; %.1f MB a frame", values, frames, worst,
		float64(size)/frames/1e6)
	t.Logf("on one core: %.1f frames/s, pyarrow and numpy %.1f frames/s: %.1f times", ourRate, theirRate,
		ourRate/theirRate)
}

// timeWaymo returns the frames a second of processor time, after a first pass that makes
// the memory.
func timeWaymo(t *testing.T, path string, frames int) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	src, err := Waymo{Paths: []string{path}}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	const passes = 3
	var begin time.Duration
	for pass := range 1 + passes {
		if pass == 1 {
			begin = processorTime(t)
		}
		var it Item
		for err = src.Next(&it); err == nil; err = src.Next(&it) {
		}
		if err != io.EOF {
			t.Fatal(err)
		}
		if err := src.Rewind(); err != nil {
			t.Fatal(err)
		}
	}
	return float64(passes*frames) / (processorTime(t) - begin).Seconds()
}

// comparePoints compares the points of path with those in file theirs.
func comparePoints(t *testing.T, path, theirs string) (values int, worst float64) {
	data, err := os.ReadFile(theirs)
	if err != nil {
		t.Fatal(err)
	}
	src, err := Waymo{Paths: []string{path}}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var it Item
	for err = src.Next(&it); err == nil; err = src.Next(&it) {
		n := int(binary.LittleEndian.Uint64(data))
		data = data[8:]
		if n != it.Cloud.Len() {
			t.Fatalf("frame %d: %d points, want %d", it.Number, it.Cloud.Len(), n)
		}
		for i := range n {
			for k, v := range [3]float32{it.Cloud.Cloud32.X[i], it.Cloud.Cloud32.Y[i], it.Cloud.Cloud32.Z[i]} {
				want := math.Float64frombits(binary.LittleEndian.Uint64(data[8*k:]))
				if worst = max(worst, math.Abs(float64(v)-want)); !(math.Abs(float64(v)-want) < 1e-5) {
					t.Fatalf("frame %d, point %d, coordinate %d: %g, want %g", it.Number, i, k, v, want)
				}
			}
			data = data[24:]
			values += 3
		}
	}
	if err != io.EOF || len(data) > 0 {
		t.Fatalf("%v, %d bytes of points are left", err, len(data))
	}
	return values, worst
}
