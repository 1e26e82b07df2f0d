//go:build readers

package foxglove

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"entropipe/ops/live"
	"entropipe/schemas/codec"
)

// scenes returns a scene near the origin with a pose and one far from it without, and what
// clients are to find in them.
func scenes(t *testing.T) (all []*live.Scene, file string) {
	t.Helper()
	near, far := drive(7, 50, [3]float64{}), drive(9, 60, [3]float64{500_000, 4_000_000, 0})
	near.Pose = &codec.Pose{1, 0, 0, 4.25, 0, 1, 0, 5.5, 0, 0, 1, -6}
	far.Sequence = "map of Köln"
	all = []*live.Scene{near, far}
	var told []map[string]any
	for i, s := range all {
		at := func(numbers []int32) (flat []float64) {
			for _, k := range numbers {
				v := vectorAt(s, int(k))
				flat = append(flat, s.Origin[0]+v.X, s.Origin[1]+v.Y, s.Origin[2]+v.Z)
			}
			return flat
		}
		var every []int32
		for k := range s.X {
			every = append(every, int32(k))
		}
		line := at(s.Hull.Idx)
		for k := range s.Hull.X { // the hull's own coordinates
			line[3*k], line[3*k+1] = s.Hull.X[k], s.Hull.Y[k]
		}
		told = append(told, map[string]any{"topic": []string{"points/drive", "points/map_of_K_ln"}[i],
			"frame":       []string{"points/drive/lidar_top", "world"}[i],
			"translation": []float64{4.25, 5.5, -6}, "captured": strconv.FormatInt(s.CapturedNs, 10),
			"time": strconv.FormatInt(s.TimeNs, 10), "origin": s.Origin, "sequence": s.Sequence, "offset": s.Offset,
			"n": s.NPoints, "area": s.Hull.Area, "points": at(every), "intensity": s.Intensity, "return": s.Return,
			"hull": line, "faces": at(s.Hull3.Faces), "mesh": at(s.Triangles), "maxima": len(s.Maxima[0].Idx)})
	}
	text, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "scenes.json")
	if err := os.WriteFile(file, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return all, file
}

func served(t *testing.T) (url, file string) {
	t.Helper()
	tap := &live.Tap{}
	all, file := scenes(t)
	for _, s := range all {
		tap.Offer(s)
	}
	_, url = start(t, tap)
	return strings.Replace(url, "http", "ws", 1), file
}

// Foxglove's client library of npm, which speaks foxglove.websocket.v1, reads every channel,
// and finds the coordinates of hulls, meshes and points bit for bit.
func TestClientOfNPM(t *testing.T) {
	modules := os.Getenv("ENTROPIPE_NODE_MODULES")
	if modules == "" {
		t.Fatal("ENTROPIPE_NODE_MODULES does not name a folder of modules")
	}
	url, file := served(t)
	node := exec.Command("node", "../../.ci/readers/foxglove/client.cjs", url, file)
	node.Env = append(os.Environ(), "NODE_PATH="+modules)
	said, err := node.CombinedOutput()
	t.Logf("%s", bytes.TrimSpace(said))
	if err != nil {
		t.Error(err)
	}
}

// Every message has the bytes that Foxglove's SDK sends by foxglove.sdk.v1, and every answer
// its text.
func TestServerOfTheSDK(t *testing.T) {
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	url, file := served(t)
	said, err := exec.Command(interpreter, "../../.ci/readers/foxglove/server.py", url, file).CombinedOutput()
	t.Logf("%s", bytes.TrimSpace(said))
	if err != nil {
		t.Error(err)
	}
}
