package replay

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas/codec/waymo/waymotest"
)

// residentVariable names the segment that a child process reads.
const residentVariable = "ENTROPIPE_TEST_WAYMO_SEGMENT"

// A process that reads a segment holds less than 300 MB, although its only row group unpacks
// to 350 MB and has its rows in another order than the frames.
func TestWaymoReadsWithin300MB(t *testing.T) {
	if path := os.Getenv(residentVariable); path != "" {
		readResident(t, path)
		return
	}
	info, _ := debug.ReadBuildInfo()
	if testing.Short() || info != nil && slices.Contains(info.Settings,
		debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("writes 350 MB of range images; the race detector takes memory of its own")
	}
	frames := 5 // more would only be more row groups
	if os.Getenv(longTests) != "" {
		frames = 14
	}
	s := waymotest.New(1)
	s.Noisy = true
	lidar := writeSegment(t, t.TempDir(), s, waymotest.Files{Frames: frames, Shuffle: true, Codec: &parquet.Zstd})
	child := exec.Command(os.Args[0], "-test.run=^TestWaymoReadsWithin300MB$", "-test.v")
	child.Env = append(os.Environ(), residentVariable+"="+lidar, "GOGC=100")
	said, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	_, text, _ := strings.Cut(string(said), "read ")
	var read, most int
	if _, err := fmt.Sscanf(text, "%d frames in %d kB", &read, &most); err != nil || read != frames {
		t.Fatalf("%v\n%s", err, said)
	}
	if most > 300_000 {
		t.Errorf("%d kB were resident, want at most 300 MB", most)
	}
	t.Logf("%d kB were resident", most)
}

// readResident reads a segment, and prints the frames and the most memory of the process.
func readResident(t *testing.T, path string) {
	src, err := Waymo{Paths: []string{path}}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	frames := 0
	var it Item
	for err = src.Next(&it); err == nil; err = src.Next(&it) {
		frames++
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(status), "VmHWM:")
	var most int
	if _, err := fmt.Sscan(text, &most); err != nil {
		t.Fatal(err)
	}
	t.Logf("read %d frames in %d kB", frames, most)
}
