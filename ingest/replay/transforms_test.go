package replay

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/tfmessage"
)

// turn is a transform: a turn about z by an angle, then a step.
func turn(parent, child string, ms int64, angle, x, y, z float64) tfmessage.Transform {
	return tfmessage.Transform{Parent: parent, Child: child, TimeNs: ms * 1e6, Translation: [3]float64{x, y, z},
		Rotation: [4]float64{2: math.Sin(angle / 2), 3: math.Cos(angle / 2)}}
}

// addROS adds a transform as ROS sends it.
func addROS(tf *transforms, static bool, m tfmessage.Transform) error {
	return tf.add(static, tfmessage.Decode, rosTransforms(m))
}

// near reports whether two poses differ by rounding only.
func near(a *codec.Pose, b codec.Pose) bool {
	for i := range a {
		if !(math.Abs(a[i]-b[i]) < 1e-12) {
			return false
		}
	}
	return true
}

func TestTransforms(t *testing.T) {
	type add struct {
		static bool
		m      tfmessage.Transform
	}
	mount := add{true, turn("base_link", "/velodyne", 0, math.Pi/2, 1, 0, 2)}
	odom := func(ms int64, x float64) add { return add{false, turn("odom", "base_link", ms, math.Pi/2, x, 0, 0)} }
	mounted := codec.Pose{0, -1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 2}
	inOdom := func(x float64) codec.Pose { return codec.Pose{-1, 0, 0, x, 0, -1, 0, 1, 0, 0, 1, 2} }
	for name, c := range map[string]struct {
		adds   []add
		moving bool
		frame  string
		ms     int64
		want   codec.Pose
		fails  string
	}{
		"static alone": {adds: []add{mount}, frame: "velodyne", want: mounted},
		"no moving one yet": {adds: []add{mount}, moving: true, frame: "velodyne",
			fails: "static transforms only so far"},
		"chain": {adds: []add{mount, odom(100, 5)}, moving: true, frame: "velodyne", ms: 100,
			want: inOdom(5)},
		"between the newest": {adds: []add{mount, odom(60, 4), odom(100, 5), odom(140, 6)}, frame: "velodyne",
			ms: 120, want: inOdom(5.5)},
		"out of order": {adds: []add{mount, odom(140, 6), odom(100, 5), odom(60, 4)}, frame: "velodyne",
			ms: 120, want: inOdom(5.5)},
		"a quarter of a second": {adds: []add{mount, odom(1000, 4), odom(2000, 8)}, frame: "velodyne", ms: 1250,
			want: inOdom(5)},
		"half of a turn": {adds: []add{{false, turn("odom", "base_link", 100, 0, 2, 0, 0)},
			{false, turn("odom", "base_link", 200, math.Pi/2, 4, 8, -2)}}, frame: "base_link", ms: 150,
			want: codec.Pose{math.Sqrt2 / 2, -math.Sqrt2 / 2, 0, 3, math.Sqrt2 / 2, math.Sqrt2 / 2, 0, 4, 0, 0, 1, -1}},
		"a third of the shorter way": {adds: []add{{false, turn("odom", "base_link", 100, 0, 0, 0, 0)},
			{false, turn("odom", "base_link", 400, 2*math.Pi+math.Pi/2, 3, 0, 0)}}, frame: "base_link", ms: 200,
			want: codec.Pose{math.Sqrt(3) / 2, -0.5, 0, 1, 0.5, math.Sqrt(3) / 2, 0, 0, 0, 0, 1, 0}},
		"a small turn": {adds: []add{{false, turn("odom", "base_link", 100, 0, 0, 0, 0)},
			{false, turn("odom", "base_link", 200, 2e-7, 0, 0, 0)}}, frame: "base_link", ms: 150,
			want: codec.Pose{1, -1e-7, 0, 0, 1e-7, 1, 0, 0, 0, 0, 1, 0}},
		"1 s and 1 ms apart": {adds: []add{mount, odom(1000, 4), odom(2001, 8)}, frame: "velodyne", ms: 1500,
			fails: "500 ms older than the cloud"},
		"the nearer one": {adds: []add{mount, odom(1000, 4), odom(3000, 8)}, frame: "velodyne", ms: 2960,
			want: inOdom(8)},
		"the same time": {adds: []add{mount, odom(100, 4), odom(100, 5)}, frame: "velodyne", ms: 100,
			want: inOdom(5)},
		"50 ms old": {adds: []add{mount, odom(50, 5)}, frame: "velodyne", ms: 100, want: inOdom(5)},
		"51 ms old": {adds: []add{mount, odom(49, 5)}, frame: "velodyne", ms: 100,
			fails: "51 ms older than the cloud"},
		"50 ms newer": {adds: []add{mount, odom(150, 5)}, frame: "velodyne", ms: 100, want: inOdom(5)},
		"51 ms newer": {adds: []add{mount, odom(151, 5)}, frame: "velodyne", ms: 100,
			fails: "no transform to odom is as old"},
		"another frame":   {adds: []add{mount}, frame: "camera", fails: `no transform of frame "camera"`},
		"without frame":   {adds: []add{mount}, frame: "", fails: `no transform of frame ""`},
		"the root itself": {adds: []add{mount}, moving: true, frame: "map", want: codec.Pose{0: 1, 5: 1, 10: 1}},
		"odom, and map late": {adds: []add{mount, odom(100, 5), {false, turn("map", "odom", 160, 1, 9, 9, 9)}},
			frame: "velodyne", ms: 100, want: inOdom(5)},
		"map": {adds: []add{mount, odom(100, 5), {false, turn("map", "odom", 90, 0, 9, 8, 7)}},
			frame: "velodyne", ms: 100,
			want: codec.Pose{-1, 0, 0, 14, 0, -1, 0, 9, 0, 0, 1, 9}},
		"a new parent": {adds: []add{mount, {true, turn("truck", "velodyne", 0, 0, 7, 0, 0)}}, frame: "velodyne",
			want: codec.Pose{1, 0, 0, 7, 0, 1, 0, 0, 0, 0, 1, 0}},
		"a cycle": {adds: []add{mount, {true, turn("velodyne", "base_link", 0, 0, 0, 0, 0)}}, frame: "velodyne",
			fails: "more than 64 parents"},
	} {
		tf := transforms{moving: c.moving}
		for _, a := range c.adds {
			if err := addROS(&tf, a.static, a.m); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		got, err := tf.pose(c.frame, c.ms*1e6)
		switch {
		case c.fails != "":
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v, %v; want %q", name, got, err, c.fails)
			}
		case err != nil || !near(got, c.want):
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

// Poses lead to the root of the first one, or are unknown.
func TestTransformsKeepTheirRoot(t *testing.T) {
	tf := transforms{moving: true}
	for _, m := range []tfmessage.Transform{turn("odom", "velodyne", 100, 0, 1, 0, 0),
		turn("map", "odom", 200, 0, 5, 0, 0),
		turn("odom", "velodyne", 200, 0, 2, 0, 0)} {
		if err := addROS(&tf, false, m); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		ms   int64
		want float64
	}{{100, 1}, {200, 2}} {
		if p, err := tf.pose("velodyne", c.ms*1e6); err != nil || p[3] != c.want || tf.root != "odom" {
			t.Errorf("at %d ms: %v, %v, root %s", c.ms, p, err, tf.root)
		}
	}
	tf = transforms{root: "map"}
	if err := addROS(&tf, true, turn("odom", "velodyne", 0, 0, 1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	p, err := tf.pose("velodyne", 0)
	if err == nil || !strings.Contains(err.Error(), `ends at frame "odom", not at "map"`) {
		t.Errorf("%v, %v", p, err)
	}
}

// Numbers that are no motion are left out, and memory is bounded whatever comes.
func TestTransformsAreBounded(t *testing.T) {
	for name, m := range map[string]tfmessage.Transform{
		"no rotation": {Parent: "a", Child: "b"},
		"long":        {Parent: "a", Child: "b", Rotation: [4]float64{0, 0, 0, 1.1}},
		"NaN":         {Parent: "a", Child: "b", Rotation: [4]float64{0, 0, math.NaN(), 1}},
		"infinite":    {Parent: "a", Child: "b", Rotation: [4]float64{3: 1}, Translation: [3]float64{1: math.Inf(1)}},
	} {
		tf := transforms{}
		if err := addROS(&tf, true, m); err == nil || !strings.Contains(err.Error(), "is no motion") {
			t.Errorf("%s: %v", name, err)
		}
		if p, err := tf.pose("b", 0); err == nil {
			t.Errorf("%s: %v", name, p)
		}
	}
	tf := transforms{}
	if err := tf.add(true, tfmessage.Decode, []byte{0, 1, 0, 0, 5, 0, 0, 0}); err == nil {
		t.Error("a message that is cut off")
	}
	for i := range int64(3 * maxRecent) {
		if err := addROS(&tf, false, turn("odom", "base", i, 0, float64(i), 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := addROS(&tf, false, turn("odom", "base", 5, 0, 5, 0, 0)); err != nil { // older than all
		t.Fatal(err)
	}
	if n := len(tf.links["base"].recent); n != maxRecent {
		t.Errorf("%d transforms are kept", n)
	}
	if p, err := tf.pose("base", (2*maxRecent+7)*1e6); err != nil || p[3] != 2*maxRecent+7 {
		t.Errorf("%v, %v", p, err)
	}
	var err error
	for i := range maxFrames + 5 {
		if err = addROS(&tf, true, turn("base", fmt.Sprint(i), 0, 0, 0, 0, 0)); err != nil {
			break
		}
	}
	if err == nil || len(tf.links) != maxFrames {
		t.Errorf("%d frames, %v", len(tf.links), err)
	}
}

// A bag gives its clouds the poses that came before them, and says once why one is unknown.
func TestRosbagPoses(t *testing.T) {
	const second = 1_700_000_000_000 // milliseconds
	tf := func(topic int, ms int64, m tfmessage.Transform) bagRow {
		m.TimeNs = ms * 1e6
		return bagRow{topic, ms * 1e6, rosTransforms(m)}
	}
	cloud := func(ms int64) bagRow { return bagRow{0, (ms + 5) * 1e6, rosCloud(ms*1e6, "velodyne", 0, 5)} }
	spec := bagSpec{topics: []topicInfo{lidarTopic, {"/tf", tfmessage.Schema, "cdr"}, {"/tf_static", tfmessage.Schema,
		"cdr"}, {"/imu", "sensor_msgs/msg/Imu", "cdr"}}, rows: []bagRow{
		tf(2, second, turn("base_link", "velodyne", 0, 0, 0, 0, 2)), cloud(second + 10),
		tf(1, second+100, turn("odom", "base_link", 0, 0, 1, 0, 0)), cloud(second + 110),
		tf(1, second+200, turn("odom", "base_link", 0, 0, 2, 0, 0)), cloud(second + 249), cloud(second + 251)}}
	path := filepath.Join(t.TempDir(), "b.db3")
	spec.write(t, path)()
	var log bytes.Buffer
	s, err := Rosbag{Paths: []string{path}, Log: slog.New(slog.NewTextHandler(&log, nil))}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for pass := range 2 {
		var got []string
		for {
			var it Item
			if err := s.Next(&it); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			text := "none"
			if it.Pose != nil {
				text = fmt.Sprint(it.Pose[3], it.Pose[11])
			}
			got = append(got, text)
		}
		if want := "none, 1 2, 2 2, none"; strings.Join(got, ", ") != want {
			t.Errorf("pass %d: %q, want %s", pass, got, want)
		}
		if err := s.Rewind(); err != nil {
			t.Fatal(err)
		}
	}
	n := strings.Count(log.String(), "\n")
	if n != 2 || !strings.Contains(log.String(), "static transforms only so far") ||
		!strings.Contains(log.String(), "clouds=2 of=4") {
		t.Errorf("the log: %s", &log)
	}
}
