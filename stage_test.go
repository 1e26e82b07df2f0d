package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	kafka "github.com/segmentio/kafka-go"

	"entropipe/cmd"
	"entropipe/cmd/command"
	"entropipe/ingest"
	"entropipe/models"
	"entropipe/schemas"
)

// writeSeeds writes a seed model of k directions for hull3d, turned by angle.
func writeSeeds(t *testing.T, path string, k int, angle float64, meta models.Meta) *models.EntropyNet {
	t.Helper()
	m := &models.EntropyNet{Meta: meta, Tensors: map[string]models.Tensor{"directions3": {Shape: []int{k, 3}}}}
	m.Meta.Mode, m.Meta.Dims, m.Meta.Ops, m.Meta.Normalise = models.Seed, 3, []string{"hull3d"}, models.NormaliseBox
	if m.Meta.Survivors == nil {
		m.Meta.Survivors = map[string]float64{"hull3d": 0.5}
	}
	var d []float32
	for i := range k { // a spiral on the sphere
		z := 1 - (2*float64(i)+1)/float64(k)
		r, a := math.Sqrt(1-z*z), 2.399963*float64(i)+angle
		d = append(d, float32(r*math.Cos(a)), float32(r*math.Sin(a)), float32(z))
	}
	m.Tensors["directions3"] = models.Tensor{Shape: []int{k, 3}, Data: d}
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	return m
}

// What does not fit together is a mistake of the command line, a model that
// cannot be used one of the configuration; neither leaves an output behind.
func TestStagesThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	network, seeds, cut, big := writeModel(t, dir, models.Perturb), filepath.Join(dir, "seeds.safetensors"),
		filepath.Join(dir, "cut.safetensors"), filepath.Join(dir, "big.safetensors")
	writeSeeds(t, seeds, 16, 0, models.Meta{})
	whole, err := os.ReadFile(seeds)
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{cut: whole[:len(whole)-3],
		big: append([]byte{0, 0, 0, 0, 0, 0, 0, 0x80}, whole[8:]...)} {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		args   string
		status int
		want   string // in stderr
	}{
		{"--stage seed", command.ExitUsage, "--stage seed needs --model"},
		{"--stage denoise", command.ExitUsage, "--stage denoise needs --model"},
		{"--model x.safetensors", command.ExitUsage, "--model x.safetensors: --stage says what to do with it"},
		{"--stage prune", command.ExitUsage, "--stage prune needs --publish"},
		{"--publish survivors", command.ExitUsage, "--publish needs --for"},
		{"--for hull2d", command.ExitUsage, "--for needs --publish"},
		{"--publish points --for hull2d", command.ExitUsage, "--publish points: this topic is read"},
		{"--publish-results points", command.ExitConfig, "publish-results: points: this topic is read"},
		{"--publish-results a --publish a --for hull2d", command.ExitUsage, "--publish sends survivors there"},
		{"--publish-results a/b", command.ExitUsage, `--publish-results: "a/b" is no name of a topic`},
		{"--dead-letter points", command.ExitConfig, "dead-letter: points: this topic is read"},
		{"--topic tokens,points --dead-letter points", command.ExitConfig, "dead-letter: points: this topic is read"},
		{"--dead-letter a --publish a --for hull2d", command.ExitConfig, "dead-letter: a: --publish sends"},
		{"--dead-letter a --publish-results a", command.ExitConfig, "dead-letter: a: --publish-results sends"},
		{"--dead-letter a/b", command.ExitUsage, `--dead-letter: "a/b" is no name of a topic`},
		{"--publish a/b --for hull2d", command.ExitUsage, `--publish: "a/b" is no name of a topic`},
		{"--publish a --for delaunay2d", command.ExitUsage, "--for must be one of"},
		{"--ops none,hull2d", command.ExitUsage, "--ops none: it stands alone"},
		{"--stage seed --model " + filepath.Join(dir, "absent.safetensors"), command.ExitConfig, "model: open " + dir},
		{"--stage seed --model " + dir, command.ExitConfig, "not a regular file"},
		{"--stage seed --model " + cut, command.ExitConfig, "cut.safetensors: "},
		{"--stage seed --model " + big, command.ExitConfig, "big.safetensors: "},
		{"--stage seed --model " + network, command.ExitConfig, "this is a perturb model"},
		{"--stage denoise --model " + network, command.ExitConfig, "this is a perturb model"},
		{"--stage perturb --model " + seeds, command.ExitConfig, "this is a seed model"},
		{"--stage prune --publish a --for hull2d --model " + network, command.ExitConfig, "this is a perturb model"},
	} {
		var stdout, stderr bytes.Buffer
		out := filepath.Join(dir, "out")
		args := append([]string{"run", "--brokers", "127.0.0.1:1", "--out", out}, strings.Fields(c.args)...)
		if status := cmd.Main(args, &stdout, &stderr); status != c.status ||
			!strings.Contains(stderr.String(), c.want) || strings.Count(stderr.String(), "\n") > 2 {
			t.Errorf("row %d, %s: exit status %d, want %d with %q: %s", i, c.args, status, c.status, c.want, &stderr)
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("row %d: an output is left", i)
		}
	}
}

// A model changes no row but what frames says of it; while the stream runs it
// can be replaced, by a good one.
func TestSeededRunWritesTheSameRows(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	model := filepath.Join(dir, "model.safetensors")
	first := writeSeeds(t, model, 64, 0, models.Meta{Dataset: "synthetic"})
	must(t, dir, "produce", "synthetic", "--frames", "10", "--points", "40000", "--rate", "max", "--brokers", brokers)
	plain := []string{"run", "--brokers", brokers, "--ops", "hull3d,maxima3d", "--roll-records", "5",
		"--roll-age", "100ms", "--tables", "hulls3d,maxima,entropy", "--entropy-every", "3"}
	must(t, dir, append(plain, "--out", "off", "--until-end")...)
	r := launch(t, dir, append(plain, "--out", "seed", "--stage", "seed", "--model", model,
		"--listen", "127.0.0.1:0")...)
	url := r.until(`metrics=(http://\S+)`)[1]
	out := filepath.Join(dir, "seed")
	waitFor(t, "the frames", func() bool { return published(t, out, 10) })
	for _, table := range []string{"hulls3d", "maxima", "entropy"} {
		if diff := cmp.Diff(rowsOf(t, filepath.Join(dir, "off"), table), rowsOf(t, out, table)); diff != "" {
			t.Errorf("%s (-off +seed):\n%.2000s", table, diff)
		}
	}
	if n := metric(t, url, "entropipe_stage_streams", `hints="on"`); n != 1 {
		t.Errorf("%v streams with hints", n)
	}

	// Put in its place in one step: an empty file that is about to be written would be
	// another one that cannot be used.
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("no model"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(bad, model); err != nil {
		t.Fatal(err)
	}
	r.until("model's file has changed, but cannot be used; going on with the old one")
	must(t, dir, "produce", "synthetic", "--frames", "5", "--points", "40000", "--rate", "max", "--brokers", brokers)
	waitFor(t, "more frames", func() bool { return reached(t, out) >= 15 })
	second := writeSeeds(t, model, 48, 0.3, models.Meta{Dataset: "synthetic"})
	r.until("model's file has changed: it is in use now\" .*sha256=" + second.SHA256)
	must(t, dir, "produce", "synthetic", "--frames", "7", "--points", "40000", "--rate", "max", "--brokers", brokers)
	waitFor(t, "the last frames", func() bool { return reached(t, out) >= 22 })
	if ok, failed := metric(t, url, "entropipe_stage_model_loads_total", `result="ok"`),
		metric(t, url, "entropipe_stage_model_loads_total", `result="failed"`); ok != 1 || failed != 1 {
		t.Errorf("%v loads, %v failures", ok, failed)
	}
	r.signal(syscall.SIGTERM)
	r.exits(0, patience)
	holds(t, out, 22)
	models, err := countValues(filepath.Join(out, "frames"), "model_sha256")
	if err != nil {
		t.Fatal(err)
	}
	// Of every 64 offsets one is not hinted, for comparison: the first.
	if diff := cmp.Diff(map[string]int{"null": 1, first.SHA256: 14, second.SHA256: 7}, models); diff != "" {
		t.Errorf("models (-want +have):\n%s", diff)
	}
}

// A network that moves all points alike is never wrong, and rows say so; what it
// does not serve stays as it is.
func TestPerturbedRun(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	model := writeModel(t, dir, models.Perturb)
	must(t, dir, "produce", "synthetic", "--frames", "3", "--points", "2000", "--rate", "max", "--brokers", brokers,
		"--dataset", "kitti")
	plain := []string{"run", "--brokers", brokers, "--until-end", "--tables", "hulls,maxima,triangles,entropy",
		"--entropy-every", "1"}
	must(t, dir, append(plain, "--out", "off")...)
	must(t, dir, append(plain, "--out", "perturb", "--stage", "perturb", "--model", model)...)
	for _, table := range []string{"hulls", "maxima", "triangles"} {
		if diff := cmp.Diff(rowsOf(t, filepath.Join(dir, "off"), table, "error_bound"),
			rowsOf(t, filepath.Join(dir, "perturb"), table, "error_bound")); diff != "" {
			t.Errorf("%s (-off +perturb):\n%.2000s", table, diff)
		}
	}
	for _, c := range []struct {
		table, column string
		want          map[string]int
	}{{"hulls", "error_bound", map[string]int{"0": 3}}, {"maxima", "error_bound", map[string]int{"null": 3}},
		{"frames", "stage", map[string]int{"perturb": 3}},
		{"entropy", "op", map[string]int{"hull2d": 6, "maxima3d": 3}},
		{"entropy", "stage", map[string]int{"before": 3, "after": 3, "null": 3}}} {
		if got, err := countValues(filepath.Join(dir, "perturb", c.table), c.column); err != nil ||
			!cmp.Equal(c.want, got) {
			t.Errorf("%s of %s: %v, %v", c.column, c.table, got, err)
		}
	}
	r := launch(t, dir, "run", "--brokers", brokers, "--until-end", "--out", "empty", "--ops", "hull2d", "--tables",
		"hulls,maxima,entropy", "--entropy-every", "0")
	r.exits(0, patience)
	for _, want := range []string{"no operator of --ops writes it\" table=maxima",
		"this table stays empty: --entropy-every is 0", "got no row of this run\" table=maxima frames=3",
		"got no row of this run\" table=entropy frames=3"} {
		if !strings.Contains(r.log(), want) {
			t.Errorf("the log lacks %s:\n%s", want, r.log())
		}
	}
	if strings.Contains(r.log(), "table=hulls") {
		t.Errorf("a table with rows is said to be empty:\n%s", r.log())
	}
}

// Frames of another stream go without hints, and the log says so once; or they
// end the run, as configured.
func TestModelOfAnotherStream(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	model := filepath.Join(dir, "model.safetensors")
	writeSeeds(t, model, 64, 0, models.Meta{Dataset: "kitti", Sensor: "velodyne"})
	must(t, dir, "produce", "synthetic", "--frames", "10", "--points", "9000", "--rate", "max", "--brokers", brokers)
	must(t, dir, "produce", "synthetic", "--kind", "sketch", "--frames", "10", "--rate", "max", "--brokers", brokers)
	args := []string{"run", "--brokers", brokers, "--ops", "hull3d", "--until-end", "--stage", "seed", "--model",
		model, "--workers", "1"}
	r := launch(t, dir, append(args, "--out", "go-on")...)
	r.exits(0, patience)
	for _, want := range []string{`is for data set \\"kitti\\", and this is \\"synthetic\\"`,
		"points of 3 dimensions, and these have 2"} {
		if n := strings.Count(r.log(), strings.ReplaceAll(want, `\\`, `\`)); n != 1 {
			t.Errorf("%d times: %s", n, want)
		}
	}
	if shas, err := countValues(filepath.Join(dir, "go-on", "frames"), "model_sha256"); err != nil ||
		shas["null"] != 20 {
		t.Errorf("models %v, %v", shas, err)
	}
	r = launch(t, dir, append(args, "--out", "stop", "--on-foreign", "stop")...)
	r.exits(command.ExitRuntime, patience)
	r.says(`^entropipe: points/[0-3]@[0-9]+: the model is for `)
	verified(t, filepath.Join(dir, "stop"))
}

// rowsOf returns all rows of a table as text, without the columns named, in
// order of partition and offset.
func rowsOf(t *testing.T, out, table string, without ...string) []string {
	t.Helper()
	var lines []string
	err := eachTable(filepath.Join(out, table), func(f *parquet.File) error {
		names := f.Schema().Columns()
		rows := parquet.NewReader(f)
		defer rows.Close()
		for {
			row := make([]parquet.Row, 1)
			n, err := rows.ReadRows(row)
			if n > 0 {
				var line strings.Builder
				var key [2]int64
				for _, v := range row[0] {
					name := strings.Join(names[v.Column()], ".")
					switch name {
					case "partition":
						key[0] = int64(v.Int32())
					case "offset":
						key[1] = v.Int64()
					}
					if !slices.Contains(without, name) {
						fmt.Fprintf(&line, " %s=%x", name, v.Bytes())
					}
				}
				lines = append(lines, fmt.Sprintf("%d/%020d%s", key[0], key[1], &line))
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

// records returns what a topic holds, by partition in order.
func records(t *testing.T, brokers, topic string) (all []schemas.Message) {
	t.Helper()
	d, err := ingest.Describe(t.Context(), []string{brokers}, ingest.Security{}, topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Partitions {
		r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{brokers}, Topic: topic, Partition: int(p.ID),
			MaxWait: 100 * time.Millisecond})
		for next := p.Start; next < p.End; {
			m, err := r.ReadMessage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			msg := schemas.Message{Topic: topic, Partition: p.ID, Offset: m.Offset, Time: m.Time,
				Key: m.Key, Value: m.Value}
			for _, h := range m.Headers {
				msg.Headers = append(msg.Headers, schemas.Header{Key: h.Key, Value: h.Value})
			}
			all = append(all, msg)
			next = m.Offset + 1
		}
		r.Close()
	}
	return all
}

// What a consumer of the survivors writes is what a run on the whole frames
// writes, row for row; the rest of frames is times.
func TestConsumersOfSurvivorsWriteTheSameRows(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	for _, name := range []string{"a", "b", "e"} {
		must(t, dir, "produce", "synthetic", "--frames", "6", "--points", "9000", "--rate", "max", "--brokers", brokers,
			"--sequence", name)
	}
	must(t, dir, "produce", "synthetic", "--kind", "sketch", "--frames", "50", "--rate", "max", "--brokers", brokers)
	run := func(topic, out string, more ...string) string {
		p := launch(t, dir, append([]string{"run", "--brokers", brokers, "--topic", topic, "--out", out, "--until-end"},
			more...)...)
		p.exits(0, patience)
		return p.log()
	}
	tables := []string{"--ops", "hull2d,hull3d,maxima2d,maxima3d,delaunay2d"}
	log := run("points", "whole", append(tables, "--publish", "survivors", "--for", "hull2d,hull3d,maxima3d")...)
	if want := fmt.Sprintf("published=%d ", sent(t, brokers, "points")); !strings.Contains(log, want) {
		t.Errorf("the log does not say %s", want)
	}
	run("points", "none", "--ops", "none", "--publish", "pruned", "--for", "hull2d,hull3d,maxima3d")
	for _, topic := range []string{"survivors", "pruned"} {
		run(topic, topic, tables...)
		whole, part := filepath.Join(dir, "whole"), filepath.Join(dir, topic)
		holdsAll(t, part)
		for _, table := range []string{"hulls", "hulls3d"} {
			if diff := cmp.Diff(rowsOf(t, whole, table), rowsOf(t, part, table)); diff != "" {
				t.Errorf("%s of %s (-whole +survivors):\n%.2000s", table, topic, diff)
			}
		}
		pruned := func(s string) bool { // maxima2d of what was pruned for other operators
			return strings.Contains(s, fmt.Sprintf("directions=%x ", "x:max,y:max")) &&
				strings.Contains(s, fmt.Sprintf("sensor=%x", "lidar64"))
		}
		if diff := cmp.Diff(slices.DeleteFunc(rowsOf(t, whole, "maxima"), pruned),
			rowsOf(t, part, "maxima")); diff != "" {
			t.Errorf("maxima of %s (-whole +survivors):\n%.2000s", topic, diff)
		}
		status := map[string]map[string]int{}
		for _, op := range []string{"hull2d", "hull3d", "maxima2d", "maxima3d", "delaunay2d"} {
			counts, err := countValues(filepath.Join(part, "frames"), "status_"+op)
			if err != nil {
				t.Fatal(err)
			}
			status[op] = counts
		}
		want := map[string]map[string]int{"hull2d": {"ok": 67, "degenerate_line": 1},
			"hull3d": {"ok": 18, "not_run": 50}, "maxima3d": {"ok": 18, "not_run": 50},
			"maxima2d":   {"ok": 50, "pruned_input": 18},
			"delaunay2d": {"ok": 49, "degenerate_line": 1, "pruned_input": 18}}
		if diff := cmp.Diff(want, status); diff != "" {
			t.Errorf("statuses of %s (-want +have):\n%s", topic, diff)
		}
	}
}

// Survivors that a producer sends are those that run would publish.
func TestProducedSurvivorsWriteTheSameRows(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	scene := []string{"produce", "synthetic", "--frames", "12", "--points", "12000", "--rate", "max",
		"--brokers", brokers}
	model := filepath.Join(dir, "model.safetensors")
	writeSeeds(t, model, 64, 0, models.Meta{})
	must(t, dir, scene...)
	summary := must(t, dir, append(scene, "--topic", "survivors", "--stage", "prune", "--for", "hull2d,hull3d,maxima3d",
		"--model", model)...)
	if frames(t, summary) != 12 {
		t.Errorf("the producer says %s", summary)
	}
	for _, topic := range []string{"points", "survivors"} {
		must(t, dir, "run", "--brokers", brokers, "--topic", topic, "--out", topic, "--until-end", "--ops",
			"hull2d,hull3d,maxima3d")
	}
	for _, table := range []string{"hulls", "hulls3d", "maxima"} {
		rows := rowsOf(t, filepath.Join(dir, "points"), table)
		if diff := cmp.Diff(rows, rowsOf(t, filepath.Join(dir, "survivors"), table)); diff != "" || len(rows) != 12 {
			t.Errorf("%s, %d rows (-whole +survivors):\n%.2000s", table, len(rows), diff)
		}
	}
	whole, part := 0, 0
	for _, m := range records(t, brokers, "points") {
		whole += len(m.Value)
	}
	for _, m := range records(t, brokers, "survivors") {
		part += len(m.Value)
	}
	if whole < 10*part {
		t.Errorf("%d bytes became %d", whole, part)
	}
}

// holdsAll checks that the three sequences and the drawings are all there.
func holdsAll(t *testing.T, out string) {
	t.Helper()
	verified(t, out)
	if rows, err := countRows(filepath.Join(out, "frames")); err != nil || rows != 68 {
		t.Fatalf("%d frames, %v", rows, err)
	}
}

// Whatever dies, each record's survivors are in the topic, again and again but
// always the same, and in order where they are there for the first time.
func TestSurvivorsArePublishedWhateverDies(t *testing.T) {
	t.Parallel()
	publishesWhateverDies(t, 4, "survivors", "--publish", "survivors", "--for", "hull2d,maxima3d")
}

// publishesWhateverDies kills processes while run publishes to a topic: the broker in the
// round before the last one, run in the others. Each record's message must be there.
func publishesWhateverDies(t *testing.T, rounds int, topic string, flags ...string) {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	address := ownAddress(t)
	b := brokerProcess(t, dir, address)
	feeding := feed(t, dir, address, "points")
	args := fast(address, "points", flags...)
	r := launch(t, dir, args...)
	for i := range rounds {
		seen := manifests(t, out)
		waitFor(t, "commits", func() bool { return manifests(t, out) > seen+3 })
		if i == rounds-2 {
			b.killed()
			time.Sleep(200 * time.Millisecond) // long enough to be missed
			b = brokerProcess(t, dir, address)
			continue
		}
		r.killed()
		r = launch(t, dir, args...)
	}
	n := stopFeed(t, address, "points", feeding)
	reaches(t, out, n)
	r.signal(syscall.SIGTERM)
	r.exits(0, patience)
	holds(t, out, n)
	if values := publishedOnce(t, address, topic); int64(len(values)) != n {
		t.Errorf("messages of %d records are in topic %s, want %d", len(values), topic, n)
	}
}

// publishedOnce returns the values of a topic that "points" is published to, by
// HeaderPublishedFrom. Records with equal headers must be equal, and the offsets of a key
// ascend where they are there for the first time.
func publishedOnce(t *testing.T, brokers, topic string) map[string]string {
	t.Helper()
	values, next := map[string]string{}, map[int32]map[string]int64{}
	for _, m := range records(t, brokers, topic) {
		var from string
		for _, h := range m.Headers {
			if h.Key == schemas.HeaderPublishedFrom {
				from = string(h.Value)
			}
		}
		if old, ok := values[from]; ok {
			if old != string(m.Value) {
				t.Fatalf("%s was published twice, and differently", from)
			}
			continue
		}
		values[from] = string(m.Value)
		var partition int32
		var offset int64
		if _, err := fmt.Sscanf(from, "points/%d/%d", &partition, &offset); err != nil {
			t.Fatalf("%s: %q", schemas.HeaderPublishedFrom, from)
		}
		if next[partition] == nil {
			next[partition] = map[string]int64{}
		}
		if last := next[partition][string(m.Key)]; offset < last {
			t.Fatalf("%s follows offset %d", from, last)
		}
		next[partition][string(m.Key)] = offset
	}
	return values
}
