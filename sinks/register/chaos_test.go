//go:build chaos

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"
	"github.com/minio/minio-go/v7"

	"entropipe/ingest/bucket"
)

var (
	kills   = flag.Int("register.kills", 6, "kills of registrars")
	seed    = flag.Uint64("register.seed", 1, "seed of the kills")
	place   = flag.String("register.out", "folder", "where the outputs are: folder or s3")
	results = flag.String("register.results", "", "file to which a line of results is added")
)

// lakeServer is a SeaweedFS with its catalog, in a process of its own.
type lakeServer struct{ s3, catalog string }

func startLakeServer(t *testing.T) *lakeServer {
	weed := os.Getenv("ENTROPIPE_WEED")
	if weed == "" {
		t.Skip("ENTROPIPE_WEED does not name a weed program")
	}
	ports := freePorts(t, 6)
	start(t, "weed", weed, "mini", "-dir="+t.TempDir(), "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-webdav=false",
		"-master.port="+ports[0], "-volume.port="+ports[1], "-filer.port="+ports[2], "-s3.port="+ports[3],
		"-s3.port.iceberg="+ports[4], "-s3.port.lance=0", "-admin.port="+ports[5], "-tableBucket", "lake")
	s := &lakeServer{"http://127.0.0.1:" + ports[3], "http://127.0.0.1:" + ports[4]}
	for begin := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		if _, err := s.open(); err == nil {
			return s
		} else if time.Since(begin) > 2*time.Minute {
			t.Fatal(err)
		}
	}
}

// open logs in to the catalog.
func (s *lakeServer) open() (*rest.Catalog, error) {
	return rest.NewCatalog(context.Background(), "lake", s.catalog, rest.WithCredential("ak:sk"),
		rest.WithScope("PRINCIPAL_ROLE:ALL"), rest.WithWarehouseLocation("lake"),
		rest.WithAdditionalProps(map[string]string{"s3.endpoint": s.s3, "s3.region": "us-east-1"}))
}

// freePorts returns ports below those of outgoing connections, each with the one that SeaweedFS
// takes besides (+10000) free, too.
func freePorts(t *testing.T, n int) (ports []string) {
	for len(ports) < n {
		port := 11000 + rand.IntN(9000)
		if slices.Contains(ports, fmt.Sprint(port)) {
			continue
		}
		a, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		a.Close()
		if b, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+10000)); err == nil {
			b.Close()
			ports = append(ports, fmt.Sprint(port))
		}
	}
	return ports
}

// process is a program that runs beside the test.
type program struct {
	cmd *exec.Cmd
	end chan struct{}
	err error
	log *bytes.Buffer
	out bytes.Buffer
}

// start starts a program, which ends with the test.
func start(t *testing.T, name string, args ...string) *program {
	p := &program{cmd: exec.Command(args[0], args[1:]...), end: make(chan struct{}), log: new(bytes.Buffer)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, p.log
	p.cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=ak", "AWS_SECRET_ACCESS_KEY=sk", credentialVariable+"=ak:sk")
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.end)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.end
		if t.Failed() {
			text := p.log.String()
			t.Logf("%s: …%s", name, text[max(0, len(text)-2000):])
		}
	})
	return p
}

// ends waits for the end of a program.
func (p *program) ends(t *testing.T, name string) string {
	select {
	case <-p.end:
	case <-time.After(5 * time.Minute):
		t.Fatalf("%s does not end", name)
	}
	if p.err != nil {
		t.Fatalf("%s: %v: %s", name, p.err, p.log)
	}
	return p.out.String()
}

// alive tells whether a program runs.
func (p *program) alive() bool {
	select {
	case <-p.end:
		return false
	default:
		return true
	}
}

// binaries returns the programs entropipe and register.
func binaries(t *testing.T) (entropipe, register string) {
	entropipe = os.Getenv("ENTROPIPE_BIN")
	if entropipe == "" {
		t.Skip("ENTROPIPE_BIN does not name the program entropipe")
	}
	if register = os.Getenv("ENTROPIPE_REGISTER"); register == "" {
		register = filepath.Join(t.TempDir(), "register")
		if out, err := exec.Command("go", "build", "-o", register, ".").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return entropipe, register
}

// cutter is a proxy of a catalog that loses one answer in ten to a change, after it was made, and
// refuses one in twenty.
type cutter struct {
	next       *httputil.ReverseProxy
	cut, again atomic.Int64
}

func (c *cutter) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	dice := rand.IntN(20)
	if q.Method != http.MethodPost || !strings.Contains(q.URL.Path, "/tables") || dice > 2 {
		c.next.ServeHTTP(w, q)
		return
	}
	if dice == 0 {
		c.again.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	c.cut.Add(1)
	c.next.ServeHTTP(httptest.NewRecorder(), q)
	panic(http.ErrAbortHandler) // closes the connection
}

// watcher counts files of tables again and again: none may be there twice, and rows never get less.
func watch(t *testing.T, s *lakeServer, space string, ctx context.Context) (looks int) {
	c, err := s.open()
	if err != nil {
		t.Error(err)
		return 0
	}
	rows := map[string]int64{}
	for ctx.Err() == nil {
		for _, name := range []string{"frames", "hulls", "maxima", "triangles"} {
			files, n := snapshotOf(t, c, space, name)
			if files == nil {
				continue
			}
			slices.Sort(files)
			if unique := slices.Compact(slices.Clone(files)); len(unique) != len(files) {
				t.Errorf("table %s.%s has %d files, %d different ones", space, name, len(files), len(unique))
			}
			if n < rows[name] {
				t.Errorf("table %s.%s had %d rows, and has %d", space, name, rows[name], n)
			}
			rows[name] = n
			looks++
		}
		pause(ctx, 300*time.Millisecond)
	}
	return looks
}

// snapshotOf returns the files and rows of a table; nil: there is no table, or nothing in it.
func snapshotOf(t *testing.T, c *rest.Catalog, space, name string) (files []string, rows int64) {
	ctx := context.Background()
	tab, err := c.LoadTable(ctx, table.Identifier{space, name})
	if err != nil || tab.CurrentSnapshot() == nil {
		return nil, 0
	}
	fs, err := tab.FS(ctx)
	if err != nil {
		t.Error(err)
		return nil, 0
	}
	manifests, err := tab.CurrentSnapshot().Manifests(fs)
	for _, m := range manifests {
		entries, fetchErr := m.FetchEntries(fs, true)
		if fetchErr != nil {
			err = fetchErr
		}
		for _, e := range entries {
			files = append(files, e.DataFile().FilePath())
			rows += e.DataFile().Count()
		}
	}
	if err != nil {
		t.Errorf("table %s.%s: %v", space, name, err)
		return nil, 0
	}
	return files, rows
}

// Registrars of a live output and of its compaction are killed again and again, beside the writer,
// the compactor (which is killed, too) and a reader, and the catalog loses answers. In the end the
// tables of both have each row of the output once.
func TestChaos(t *testing.T) {
	entropipe, register := binaries(t)
	s := startLakeServer(t)
	dice := rand.New(rand.NewPCG(*seed, 22))
	begin := time.Now()
	os.Setenv("AWS_ACCESS_KEY_ID", "ak")
	os.Setenv("AWS_SECRET_ACCESS_KEY", "sk")

	u, _ := url.Parse(s.catalog)
	proxy := &cutter{next: httputil.NewSingleHostReverseProxy(u)}
	between := httptest.NewServer(proxy)
	defer between.Close()
	between.Config.ErrorLog = nil

	out, large := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "large")
	if *place == "s3" {
		out, large = "s3://outputs/live", "s3://outputs/large"
		makeBucket(t, s.s3, "outputs")
	}
	endpoint := []string{"--s3-endpoint", s.s3, "--s3-path-style"}
	address := "127.0.0.1:" + freePorts(t, 1)[0]
	start(t, "broker", entropipe, "broker", "--listen", address)
	waitFor(t, address)
	producer := start(t, "produce", entropipe, "produce", "synthetic", "--kind", "lidar", "--points", "300", "--rate",
		"40hz", "--key", "frame", "--brokers", address, "--dataset", "a b", "--log-level", "warn")
	writing := append([]string{entropipe, "run", "--brokers", address, "--topic", "points", "--out", out, "--roll-age",
		"300ms", "--log-level", "warn"}, endpoint...)
	for !topicIsThere(entropipe, address) {
		time.Sleep(100 * time.Millisecond)
	}
	writer := start(t, "run", writing...)
	compacting := append([]string{entropipe, "compact", out, "--into", large, "--log-level", "error"}, endpoint...)
	for {
		time.Sleep(200 * time.Millisecond)
		if exec := start(t, "compact", compacting...); true {
			<-exec.end
			if exec.err == nil {
				break
			}
		}
		if time.Since(begin) > 3*time.Minute || !writer.alive() {
			t.Fatal("there is no output to compact")
		}
	}
	follow := append(slices.Clone(compacting), "--follow", "--max-age", "1s", "--poll", "100ms")
	registering := func(of, space string, more ...string) []string {
		return append(append([]string{register, of, "--catalog", between.URL, "--warehouse", "lake", "--scope",
			"PRINCIPAL_ROLE:ALL", "--namespace", space, "--json"}, endpoint...), more...)
	}
	commands := [][]string{registering(out, "live", "--follow", "--poll", "50ms"),
		registering(out, "live", "--follow", "--poll", "50ms", "--batch", "3"),
		registering(large, "large", "--follow", "--poll", "50ms"),
		registering(large, "large", "--follow", "--poll", "50ms"), follow}
	names := []string{"live", "live", "large", "large", "compact"}

	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	looks := make([]int, 2)
	for i, space := range []string{"live", "large"} {
		wg.Go(func() { looks[i] = watch(t, s, space, ctx) })
	}
	killed := map[string]int{}
	running := make([]*program, len(commands))
	for n := 0; n < *kills; {
		for i, args := range commands {
			if running[i] == nil || !running[i].alive() {
				running[i] = start(t, names[i], args...)
			}
		}
		time.Sleep(time.Duration(100+dice.IntN(700)) * time.Millisecond)
		i := dice.IntN(len(running))
		if !running[i].alive() {
			t.Fatalf("%s ended by itself: %v: %s", names[i], running[i].err, running[i].log)
		}
		running[i].cmd.Process.Kill()
		<-running[i].end
		if killed[names[i]]++; names[i] != "compact" {
			n++
		}
	}
	for _, p := range append([]*program{producer, writer}, running...) {
		p.cmd.Process.Signal(syscall.SIGTERM)
		<-p.end
	}
	start(t, "run", append(slices.Clone(writing), "--until-end")...).ends(t, "the last run")
	start(t, "compact", compacting...).ends(t, "the last compaction")
	last := map[string]done{}
	for i, of := range []string{out, large} {
		var d done
		space := []string{"live", "large"}[i]
		text := start(t, "register", registering(of, space)...).ends(t, "the last registrar")
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		last[space] = d
	}
	stop()
	wg.Wait()
	verdict := judge(t, s, entropipe, out, endpoint)
	verdict["kills"], verdict["looks"], verdict["answers_cut"] = killed, looks, proxy.cut.Load()
	verdict["refused"], verdict["seconds"] = proxy.again.Load(), time.Since(begin).Seconds()
	verdict["left_to_last"] = last
	report(t, verdict)
}

// judge compares the tables of both namespaces with what verify counts, by their manifests and by
// readers.
func judge(t *testing.T, s *lakeServer, entropipe, out string, endpoint []string) map[string]any {
	text := start(t, "verify", append([]string{entropipe, "verify", out, "--json"}, endpoint...)...).ends(t, "verify")
	var report struct {
		Tables []struct {
			Table string
			Rows  int64
		}
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{}
	for _, found := range report.Tables {
		want[found.Table] = found.Rows
	}
	if want["frames"] == 0 {
		t.Fatalf("verify counts %v: %s", want, text)
	}
	c, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	missing, doubled := int64(0), int64(0)
	for _, space := range []string{"live", "large"} {
		for name, n := range want {
			_, rows := snapshotOf(t, c, space, name)
			if rows != n {
				t.Errorf("table %s.%s has %d rows, verify counts %d", space, name, rows, n)
			}
			missing, doubled = missing+max(0, n-rows), doubled+max(0, rows-n)
		}
	}
	verdict := map[string]any{"bench": "register chaos", "rows": want, "missing": missing, "doubled": doubled,
		"out": *place, "seed": *seed, "server": "SeaweedFS mini"}
	python := os.Getenv("ENTROPIPE_LAKE_PYTHON")
	if python == "" {
		return verdict
	}
	found := start(t, "readers", python, "testdata/count.py", s.s3, s.catalog, "live", "large").ends(t, "readers")
	var counts map[string]map[string]map[string]int64 // by reader, namespace, table
	if err := json.Unmarshal([]byte(found), &counts); err != nil {
		t.Fatal(err)
	}
	var readers []string
	for reader, spaces := range counts {
		readers = append(readers, reader)
		for space, tables := range spaces {
			for name, n := range want {
				if tables[name] != n {
					t.Errorf("%s counts %d rows in table %s.%s, verify %d", reader, tables[name], space, name, n)
				}
			}
		}
	}
	slices.Sort(readers)
	verdict["readers"] = readers
	return verdict
}

// report adds a line to the results.
func report(t *testing.T, verdict map[string]any) {
	verdict["time"], verdict["cores"] = time.Now().UTC().Format(time.RFC3339), runtime.NumCPU()
	verdict["go"], verdict["failed"] = runtime.Version(), t.Failed()
	commit, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		commit = nil // no checkout
	}
	verdict["commit"], verdict["cpu"] = strings.TrimSpace(string(commit)), processor()
	line, err := json.Marshal(verdict)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", line)
	if *results == "" {
		return
	}
	f, err := os.OpenFile(*results, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s\n", line)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// processor returns the name of this machine's processor, as Linux has it.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	_, name, _ := strings.Cut(string(text), "model name")
	name, _, _ = strings.Cut(name, "\n")
	return strings.Trim(name, "\t :")
}

// makeBucket makes a bucket of a server.
func makeBucket(t *testing.T, server, name string) {
	c, err := bucket.New(bucket.Config{Address: bucket.Address{Bucket: name}, Endpoint: server, PathStyle: true})
	if err == nil {
		err = c.Core.MakeBucket(context.Background(), name, minio.MakeBucketOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, address string) {
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return
		} else if time.Since(begin) > time.Minute {
			t.Fatal(err)
		}
	}
}

func topicIsThere(entropipe, address string) bool {
	return exec.Command(entropipe, "info", "kafka://"+address+"/points").Run() == nil
}
