package main

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"entropipe/sinks/record"
	"entropipe/sinks/s3/s3test"
)

// withFlags are args with those that a bucket needs.
func withFlags(args []string, flags []string) []string { return append(slices.Clone(args), flags...) }

// What was refused into a bucket is sent again once each, by replays that are killed, too.
func TestReplayOfABucket(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	t.Parallel()
	_, out, flags := inBucket(t)
	brokers, dir := startBroker(t), t.TempDir()
	const scans = 300
	sendScans(t, brokers, "scans", 0, scans)
	run := func(topic string, more ...string) {
		must(t, dir, withFlags(append([]string{"run", "--brokers", brokers, "--topic", topic,
			"--until-end", "--out", out,
			"--ops", "hull2d", "--max-rejects", "none", "--roll-records", "50"}, more...), flags)...)
	}
	run("scans")
	ready(t, brokers, "mended", 2)
	args := withFlags([]string{"replay", out, "--brokers", brokers, "--to", "mended", "--json"}, flags)
	if dry := summaryOf(t, must(t, dir, append(args, "--dry-run")...)); dry != (replaySummary{Sent: scans}) {
		t.Errorf("a dry run says %+v", dry)
	}
	eachOnce(t, brokers, "mended", 0)
	for pause := time.Duration(0); pause < time.Second; pause += 100*time.Millisecond + pause/2 {
		p := launch(t, dir, args...)
		time.Sleep(pause)
		p.killed()
	}
	must(t, dir, args...)
	if again := summaryOf(t, must(t, dir, args...)); again != (replaySummary{Before: scans}) {
		t.Errorf("the last replay says %+v", again)
	}
	eachOnce(t, brokers, "mended", scans)
	run("mended", "--content-type", "mended=kitti")
	text := must(t, dir, withFlags([]string{"info", out}, flags)...)
	if !regexp.MustCompile(`frames +\d+ files, 300 rows`).MatchString(text) {
		t.Errorf("info: %s", text)
	}
	must(t, dir, withFlags([]string{"verify", out}, flags)...)
}

// A copy publishes a file before the staged one is removed: whoever verifies between the two finds
// no fault, unless another file has the name.
func TestVerifyBetweenCopyAndDelete(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	t.Parallel()
	s, out, flags := inBucket(t)
	brokers, dir := startBroker(t), t.TempDir()
	must(t, dir, "produce", "synthetic", "--brokers", brokers, "--rate", "max", "--frames", "20", "--points", "20",
		"--partitions", "1")
	must(t, dir, withFlags([]string{"run", "--brokers", brokers, "--topic", "points", "--out", out, "--ops", "hull2d",
		"--until-end", "--listen", "off"}, flags)...)
	store := s.Open(t, "lidar/out 1")
	contents := func(name string) string {
		o, err := store.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		data, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	keys := s.Keys(t, "lidar/out 1/_commits/topics/points/0/")
	name := strings.TrimPrefix(keys[len(keys)-1], "lidar/out 1/")
	m, err := record.ParseManifest(name, []byte(contents(name)))
	if err != nil {
		t.Fatalf("%q: %v", keys, err)
	}
	if len(m.Files) == 0 {
		t.Fatal("the newest commit has no file")
	}
	for _, f := range m.Files {
		s.Put(t, "lidar/out 1/"+f.Staged, contents(f.Path), map[string]string{})
	}
	must(t, dir, withFlags([]string{"verify", out}, flags)...)
	f := m.Files[0]
	s.Remove(t, "lidar/out 1/"+f.Path) // and its metadata
	s.Put(t, "lidar/out 1/"+f.Path, strings.Repeat("?", int(f.Bytes)), map[string]string{})
	p := launch(t, dir, withFlags([]string{"verify", out}, flags)...)
	p.exits(1, patience)
	if !strings.Contains(p.out(), f.Path+": another file has this name") {
		t.Errorf("verify says\n%s", p.out())
	}
}

// What commits cost is printed by info, by run at its end, and by its metrics; they agree.
func TestRequestsArePrinted(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	t.Parallel()
	s, out, flags := inBucket(t)
	brokers, dir := startBroker(t), t.TempDir()
	must(t, dir, "produce", "synthetic", "--brokers", brokers, "--rate", "max", "--frames", "40", "--points", "200",
		"--partitions", "1")
	p := launch(t, dir, withFlags([]string{"run", "--brokers", brokers, "--topic", "points", "--out", out, "--ops",
		"hull2d,maxima3d", "--roll-records", "10", "--listen", "127.0.0.1:0"}, flags)...)
	base := p.until(`(http://127\.0\.0\.1:\d+)`)[1]
	waitFor(t, "four commits", func() bool {
		return metric(t, base+"/metrics", "entropipe_store_requests_total", `op="delete"`) >= 4
	})
	body, _ := get(t, base+"/metrics")
	for _, name := range []string{"entropipe_store_sent_bytes_total", "entropipe_store_received_bytes_total"} {
		if !regexp.MustCompile(`(?m)^` + name + ` \d`).MatchString(body) {
			t.Errorf("there is no metric %s", name)
		}
	}
	p.signal(os.Interrupt)
	p.exits(0, patience)
	found := regexp.MustCompile(`\brequests=(\d+).*\brequests_a_commit=`).FindStringSubmatch(p.log())
	if found == nil {
		t.Fatalf("the end of run: %s", p.log())
	}
	if n, _ := strconv.Atoi(found[1]); n < 4*6 || n > s.Requests() {
		t.Errorf("%d requests were counted here, %d there", n, s.Requests())
	}
	text := must(t, dir, withFlags([]string{"info", out}, flags)...)
	if !strings.Contains(text, "a commit takes 4 PUT, 3 COPY and 1 DELETE") ||
		!strings.Contains(text, "the requests of 10^6 such commits cost 35 $ (0.005 $ a 1,000 PUT") {
		t.Errorf("info: %s", text)
	}
	for _, file := range []string{"a.svg", "a.png", "a.ply", "a.geojson", "a.gpkg", "a.mcap"} {
		must(t, dir, withFlags([]string{"export", out, "-o", file}, flags)...)
	}
}

// A run that goes on lists manifests from the one on that the group's committed offset names.
func TestListingsOfARestart(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	t.Parallel()
	s, out, flags := inBucket(t)
	brokers, dir := startBroker(t), t.TempDir()
	must(t, dir, "produce", "synthetic", "--brokers", brokers, "--rate", "max", "--frames", "20", "--points", "20",
		"--partitions", "1")
	args := withFlags([]string{"run", "--brokers", brokers, "--topic", "points", "--out", out, "--ops", "hull2d",
		"--roll-records", "2", "--until-end", "--listen", "off"}, flags)
	must(t, dir, args...)
	lists := listings(s)
	must(t, dir, args...)
	manifests, staging := lists("/_commits/topics/points/0/"), lists("/_staging/")
	if len(manifests) != 1 || len(staging) > 1 {
		t.Errorf("%d listings of manifests and %d of staging", len(manifests), len(staging))
	}
	if len(manifests) == 1 && !strings.HasSuffix(manifests[0].Get("start-after"), "00000000000000000017.json") {
		t.Errorf("the listing begins after %q", manifests[0].Get("start-after"))
	}
}

// listings collects listings from now on; of returns those whose prefixes contain a text.
func listings(s *s3test.Server) (of func(prefix string) []url.Values) {
	var mu sync.Mutex
	var all []url.Values
	s.Ask(func(r *http.Request) *s3test.Refusal {
		if query := r.URL.Query(); query.Has("list-type") {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, query)
		}
		return nil
	}, nil)
	return func(prefix string) (found []url.Values) {
		mu.Lock()
		defer mu.Unlock()
		for _, query := range all {
			if strings.Contains(query.Get("prefix"), prefix) {
				found = append(found, query)
			}
		}
		return found
	}
}

// Outputs whose prefixes have odd characters are written, continued and read; addresses that S3
// forbids are refused with a line that says why.
func TestOddAddresses(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	t.Parallel()
	_, _, flags := inBucket(t)
	dir := drives(t, 12, 1, 1)
	for _, prefix := range []string{"a b+c", "100%/%2F", "ünïcode/点", "a[1]{2}", "what?x=1&y#z", "it's =b,c;d",
		"~tilde*(x)!$", `back\slash`} {
		out := "s3://" + s3test.Bucket + "/" + prefix
		must(t, dir, withFlags([]string{"backfill", ".", "--ops", "hull2d", "--out", out}, flags)...)
		if text := must(t, dir, withFlags([]string{"verify", out}, flags)...); !strings.Contains(text,
			"2 of 2 lanes done") {
			t.Errorf("%s: %s", out, text)
		}
	}
	for address, want := range map[string]string{
		"s3://ab/x": "want 3 to 63", "s3://Upper/x": "is no name of a bucket",
		"s3://under_score/x": "is no name of a bucket",
		"s3://-begin/x":      "is no name of a bucket", "s3://a..b/x": "is no name of a bucket",
		"s3://10.0.0.1/x": "is no name of a bucket", "s3://archive/a//b": "between two slashes",
		"s3://archive/./b": "one dot", "s3://archive/" + strings.Repeat("x", 301): "leave room",
		"s3://archive/a\tb": "control characters", "s3://me:pass@archive/b": "credentials come from variables",
	} {
		status, _, said := runCommand(t, "run", "--topic", "points", "--out", address)
		if status != 78 && status != 2 || !strings.Contains(said, want) || strings.Contains(said, "pass@") {
			t.Errorf("%q: exit status %d: %s", address, status, said)
		}
	}
}
