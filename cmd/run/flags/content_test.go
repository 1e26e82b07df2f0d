package flags

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/sinks"
)

// Law: every flag of run says whether it decides rows, so that nobody adds one
// without having thought about two processes that differ in it; and the names that
// contents use are the flags'.
func TestEveryFlagOfRunSaysWhetherItDecidesRows(t *testing.T) {
	var grammar struct {
		Run Flags `cmd:""`
	}
	k, err := config.NewParser(&grammar, nil)
	if err != nil {
		t.Fatal(err)
	}
	var tagged []string
	for name, flag := range config.KeysOf(config.NodeOf(k.Model.Node, &grammar.Run)) {
		switch class := flag.Tag.Get("content"); class {
		case "yes":
			tagged = append(tagged, name)
		case "no":
		default:
			t.Errorf("--%s: its field needs the tag content:\"yes\" if another value makes other rows of the same "+
				"records, content:\"no\" if not; it has %q", name, class)
		}
	}
	found := sinks.Content{}
	contentFlags(reflect.ValueOf(&grammar.Run).Elem(), found)
	slices.Sort(tagged)
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, tagged) || len(got) < 10 {
		t.Errorf("contents have the flags\n%q, tagged are\n%q", got, tagged)
	}
	for _, name := range []string{"workers", "listen", "brokers", "memory", "roll-age", "roll-bytes",
		"roll-records", "out", "group"} {
		if slices.Contains(tagged, name) {
			t.Errorf("--%s decides rows", name)
		}
	}
}

// contentOf is the content of a command line of run.
func contentOf(t *testing.T, args ...string) sinks.Content {
	t.Helper()
	var grammar struct {
		Run Flags `cmd:""`
	}
	k, err := config.NewParser(&grammar, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.Parse(k, append([]string{"run"}, args...)); err != nil {
		t.Fatal(err)
	}
	c := &grammar.Run
	frames, tables, err := c.FrameConfig(command.NewLogger(&strings.Builder{}, "error", "text"))
	if err != nil {
		t.Fatal(err)
	}
	return c.Content(&frames, tables, "")
}

// Law: what cannot change a row leaves the content as it is: places, sizes of
// batches, defaults that are written out, orders of lists, flags that do nothing.
func TestContentIsWhatDecidesRows(t *testing.T) {
	plain := contentOf(t)
	if plain["ops"] != "delaunay2d,hull2d,maxima2d (without z),maxima3d (with z)" ||
		plain["tables"] != "hulls,maxima,triangles" || plain["max-frame-bytes"] != "64MiB" || plain["stage"] != "off" {
		t.Errorf("%v", plain)
	}
	for _, args := range []string{
		"--workers 7 --listen 127.0.0.1:0 --brokers kafka1,kafka2 --memory 1GiB --roll-age 1s --roll-bytes 1MiB " +
			"--roll-records 5 --group x --out y --topic a,b --progress --pprof",
		"--tables hulls,maxima,triangles", "--tables triangles,hulls,maxima,hulls,rejects,frames",
		"--max-frame-bytes 65536KiB",
		"--top-k 9 --max-new 7 --truncate --audit-every 1 --device cuda --token-budget 9", "--entropy-every 7",
		"--content-type arrow", "--content-type points=application/vnd.apache.arrow.stream",
		"--strict-config --new-config --max-rejects none", "--tls --sasl plain --sasl-user a --sasl-password b",
	} {
		if got := contentOf(t, strings.Fields(args)...); got.Hash() != plain.Hash() {
			t.Errorf("%s: %q", args, plain.Changes(got))
		}
	}
	for args, want := range map[string]string{
		"--ops hull2d": "ops: delaunay2d,hull2d,maxima2d (without z),maxima3d (with z) -> " +
			"hull2d; tables: hulls,maxima,triangles -> hulls",
		"--ops none": "ops: delaunay2d,hull2d,maxima2d (without z),maxima3d (with z) -> " +
			"none; tables: hulls,maxima,triangles -> (none)",
		"--tables hulls,hulls3d": "ops: delaunay2d,hull2d,maxima2d (without z),maxima3d (with z) -> " +
			"delaunay2d,hull2d,hull3d (with z),maxima2d (without z),maxima3d (with z); tables: " +
			"hulls,maxima,triangles -> hulls,hulls3d",
		"--tables hulls,maxima,triangles,points": "tables: hulls,maxima,triangles -> hulls,maxima,points,triangles",
		"--tables hulls,maxima,triangles,entropy --entropy-every 5": "entropy-every: (none) -> 5; tables: " +
			"hulls,maxima,triangles -> entropy,hulls,maxima,triangles",
		"--max-frame-bytes 1MiB":                 "max-frame-bytes: 64MiB -> 1MiB",
		"--content-type kitti":                   "content-type: (none) -> kitti",
		"--stage prune --publish x --for hull2d": "stage: off -> prune",
	} {
		if got := strings.Join(plain.Changes(contentOf(t, strings.Fields(args)...)), "; "); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", args, got, want)
		}
	}
	for _, same := range [][]string{
		{"kitti", "KITTI", "application/vnd.kitti.velodyne", "kitti,points=kitti",
			"points=application/vnd.kitti.velodyne,application/vnd.kitti.velodyne"},
		{"pointcloud2", "application/vnd.ros2.cdr", "application/vnd.ros2.cdr;type=sensor_msgs/msg/PointCloud2"},
		{"points=las,pcd", "application/x-pcd,points=application/vnd.las"},
		{"points=arrow,pcd", "pcd,points=application/vnd.apache.arrow.stream"},
	} {
		want := contentOf(t, "--content-type", same[0])
		for _, other := range same[1:] {
			if got := contentOf(t, "--content-type", other); got.Hash() != want.Hash() {
				t.Errorf("--content-type %s: %q, unlike %s", other, want.Changes(got), same[0])
			}
		}
		if plain.Hash() == want.Hash() {
			t.Errorf("--content-type %s changes nothing", same[0])
		}
	}
	lm := contentOf(t, "--lm", "a/b/gpt2", "--task", "logits")
	if got := contentOf(t, "--lm", "c/gpt2", "--task", "logits", "--max-new", "3", "--audit-every",
		"2"); got.Hash() != lm.Hash() || lm["lm"] != "gpt2" || lm["top-k"] != "5" {
		t.Errorf("%q of %v", lm.Changes(got), lm)
	}
	var c Flags
	frames, tables, _ := c.FrameConfig(command.NewLogger(&strings.Builder{}, "error", "text"))
	if got := c.Content(&frames, tables,
		"model_sha256: abc\ndevice: cuda\nmask_sha256: def\n"); got["model_sha256"] != "abc" ||
		got["mask_sha256"] != "def" {
		t.Errorf("%v has not the hashes of models", got)
	}
}
