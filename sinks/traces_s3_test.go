package sinks_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"entropipe/ingest/bucket"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/protocol"
	"entropipe/sinks/record"
	"entropipe/sinks/s3"
	"entropipe/sinks/s3/s3test"
)

// The code of the store in a bucket runs paths of the model, as that of a local one does: each
// request that the model knows waits for its turn and ends as the path says, and then the
// bucket holds what the model says. A server in memory executes the requests; the transport
// loses answers, and keeps requests for later.

// bucketTurn is a request that waits.
type bucketTurn struct {
	op   string
	file int
	how  chan string // an outcome of the model, or crash
}

// bucketWriter is a process, and the transport of its store.
type bucketWriter struct {
	run    *bucketRun
	out    *sinks.Output
	pos    schemas.Position
	cancel func() // ends the call

	mu      sync.Mutex
	waiting []*bucketTurn
	runs    bool
	err     error // result of the last call
	dead    bool
	commits bool            // the call is Commit, not Resume
	copies  bool            // it has copied a file
	cleans  bool            // it has listed staging
	asked   bool            // it has read the manifest since the last PUT
	looked  [2]bool         // files whose staged objects it has begun to read
	sighted map[string]bool // manifests that it knows to be there
	created string          // the manifest that it has asked for last
	staging string          // uuid of the attempt that it has staged last
}

// folder returns the uuid of the attempt that the writer stages.
func (w *bucketWriter) folder() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.staging
}

// keptRequest is a request in the air.
type keptRequest struct {
	attempt int
	what    int // as in the model
	execute func()
}

// bucketRun runs one path.
type bucketRun struct {
	t       *testing.T
	server  *s3test.Server
	prefix  string
	writers [2]*bucketWriter
	uuids   []string // by attempt
	kept    []keptRequest
	found   map[string]*record.Manifest // manifests read from the bucket; they do not change
}

// kindOf says which step of the model a request is; empty: none.
func (w *bucketWriter) kindOf(r *http.Request, key string) (op string, file int) {
	_, manifest := record.ManifestStart(key[strings.LastIndexByte(key, '/')+1:])
	staged := strings.HasPrefix(key, record.StagingFolder+"/")
	if strings.HasPrefix(key, record.Frames+"/") || strings.Contains(key, "/"+record.Frames+"-") {
		file = 1
	}
	query := r.URL.Query()
	switch {
	case query.Has("list-type") && strings.Contains(query.Get("prefix"), record.StagingFolder):
		w.cleans = true
		return "", 0
	case query.Has("list-type"):
		return "resume", 0
	case query.Has("delete") && w.commits && !w.copies:
		return "lose", 0
	case query.Has("delete") && w.cleans:
		return "clean", 0
	case query.Has("delete"):
		return "remove", 0
	case r.Header.Get("X-Amz-Copy-Source") != "":
		w.copies, w.looked[file] = true, false
		return "copy", file
	case r.Method == http.MethodPut && manifest:
		w.asked, w.created = false, key
		return "create", 0
	case r.Method == http.MethodPut && staged:
		folder := key[:strings.LastIndexByte(key, '/')]
		w.asked, w.staging = false, folder[len(folder)-record.UUIDSize:]
		return "put", file
	case r.Method == http.MethodGet && manifest && !w.cleans:
		return w.reading(key), 0
	case staged && w.looked[file]: // the store tells no checksum: the bytes follow
		return "", 0
	case staged:
		w.looked[file] = true
		return "look", file
	case r.Method == http.MethodHead && !strings.HasPrefix(key, "_"):
		return "head", file
	}
	return "", 0
}

// reading is the step that the reading of a manifest is.
func (w *bucketWriter) reading(key string) string {
	switch {
	case w.commits && w.asked, !w.commits && w.sighted[key]:
		return ""
	case w.commits:
		w.asked = true
		return "ask"
	}
	w.sighted[key] = true
	return "follow"
}

// RoundTrip implements http.RoundTripper.
func (w *bucketWriter) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/"+s3test.Bucket+"/"), w.run.prefix+"/")
	w.mu.Lock()
	op, file := w.kindOf(r, key)
	how, turn := "done", &bucketTurn{op, file, make(chan string, 1)}
	if w.dead {
		how = "crash"
	} else if op != "" {
		w.waiting = append(w.waiting, turn)
	}
	w.mu.Unlock()
	if op != "" && how == "done" {
		how = <-turn.how
	}
	execute := func() *http.Response { return w.run.execute(r, body) }
	switch how {
	case "crash":
		return nil, errCrashed
	case "dropped":
		return nil, errUnsure
	case "unsure":
		execute()
		return nil, errUnsure
	case "in the air":
		w.run.keep(op, file, r, body)
		return nil, errUnsure
	case "conflict":
		return answer(r, http.StatusConflict, "ConditionalRequestConflict"), nil
	case "refused":
		return answer(r, http.StatusForbidden, "AccessDenied"), nil
	case "partly":
		keys := keysOf(body)
		w.run.server.Remove(w.run.t, keys[0])
		return answer(r, http.StatusServiceUnavailable, "SlowDown"), nil
	}
	response := execute()
	if op == "resume" {
		w.list(response)
	}
	return response, nil
}

// list notes the names of a listing of manifests: that these are there is known.
func (w *bucketWriter) list(response *http.Response) {
	data, _ := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(data))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keysOf(data) {
		w.sighted[strings.TrimPrefix(key, w.run.prefix+"/")] = true
	}
}

var keyElement = regexp.MustCompile(`<Key>([^<]*)</Key>`)

// keysOf returns the keys that a body of XML names.
func keysOf(body []byte) (keys []string) {
	for _, match := range keyElement.FindAllSubmatch(body, -1) {
		keys = append(keys, string(match[1]))
	}
	return keys
}

func answer(r *http.Request, status int, code string) *http.Response {
	rec := httptest.NewRecorder()
	rec.Header().Set("Content-Type", "application/xml")
	rec.WriteHeader(status)
	fmt.Fprintf(rec, "<Error><Code>%s</Code><Message>the path says so</Message></Error>", code)
	response := rec.Result()
	response.Request = r
	return response
}

// execute has the server execute a request.
func (r *bucketRun) execute(request *http.Request, body []byte) *http.Response {
	in := request.Clone(context.Background())
	in.Body, in.RequestURI = io.NopCloser(bytes.NewReader(body)), request.URL.RequestURI()
	in.Header.Set("Content-Length", strconv.Itoa(len(body)))
	rec := httptest.NewRecorder()
	r.server.Config.Handler.ServeHTTP(rec, in)
	response := rec.Result()
	response.Request = request
	if request.Method == http.MethodHead {
		response.Body = http.NoBody
	}
	return response
}

// keep keeps a request that nobody waits for.
func (r *bucketRun) keep(op string, file int, request *http.Request, body []byte) {
	k := keptRequest{execute: func() { r.execute(request, body) }}
	switch op {
	case "create":
		k.what = int(protocol.LatePut)
	case "put":
		k.what = int(protocol.LateStage) + file
	case "copy":
		k.what = int(protocol.LateCopy) + file
	default:
		k.what = int(protocol.LateDelete)
	}
	text := request.URL.Path + request.Header.Get("X-Amz-Copy-Source") + string(body)
	k.attempt = slices.IndexFunc(r.uuids, func(uuid string) bool { return strings.Contains(text, uuid) })
	r.kept = append(r.kept, k)
}

// late executes what was kept.
func (r *bucketRun) late(attempt, what int) error {
	before := len(r.kept)
	r.kept = slices.DeleteFunc(r.kept, func(k keptRequest) bool {
		is := k.attempt == attempt && k.what == what
		if is {
			k.execute()
		}
		return is
	})
	if len(r.kept) == before {
		return fmt.Errorf("request %d of attempt %d was not kept", what, attempt)
	}
	return nil
}

// begin starts a call of the output.
func (w *bucketWriter) begin(commits bool, call func(context.Context) error) {
	w.runs, w.commits, w.copies, w.cleans, w.asked, w.looked = true, commits, false, false, false, [2]bool{}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	go func() {
		err := call(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.runs, w.err = false, err
		if commits && err == nil {
			w.sighted[w.created] = true
		}
	}()
}

// settle waits until the call of a writer has ended, or waits for its turn.
func (w *bucketWriter) settle() {
	for range 1000 {
		synctest.Wait()
		w.mu.Lock()
		rests := !w.runs || len(w.waiting) > 0
		w.mu.Unlock()
		if rests {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// allow lets a request that waits go on.
func (w *bucketWriter) allow(op string, file int, how string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.waiting, func(t *bucketTurn) bool { return t.op == op && t.file == file })
	if i < 0 {
		return fmt.Errorf("the code does not send %s %d; it waits with %s", op, file, w.waits())
	}
	turn := w.waiting[i]
	w.waiting = slices.Delete(w.waiting, i, i+1)
	turn.how <- how
	return nil
}

func (w *bucketWriter) waits() string {
	text := fmt.Sprintf("%d requests", len(w.waiting))
	for _, turn := range w.waiting {
		text += fmt.Sprintf(", %s %d", turn.op, turn.file)
	}
	return text + fmt.Sprintf(" (a call runs: %t, error %v)", w.runs, w.err)
}

// die ends the process: no request of it is sent any more.
func (w *bucketWriter) die() {
	w.mu.Lock()
	w.dead = true
	for _, turn := range w.waiting {
		turn.how <- "crash"
	}
	w.waiting = nil
	w.mu.Unlock()
	if w.cancel != nil {
		w.cancel()
	}
	w.settle()
}

// open opens the output, as a new process.
func (r *bucketRun) open(number int) (*bucketWriter, error) {
	w := &bucketWriter{run: r, sighted: map[string]bool{}}
	store, err := s3.New(bucket.Config{Address: bucket.Address{Bucket: s3test.Bucket, Prefix: r.prefix},
		Endpoint: r.server.URL, Wait: time.Microsecond, Transport: w})
	if err != nil {
		return nil, err
	}
	r.writers[number] = w
	if w.out, err = sinks.Open(context.Background(), store, twoFiles{}, sinks.Config{}); err != nil {
		return nil, err
	}
	return w, w.out.Base(context.Background(), modelTopic, schemas.TopicID{}, map[int32]int64{0: 0})
}

// step makes the code do a step of the model.
func (r *bucketRun) step(s protocol.Step, after *protocol.BucketView) (err error) {
	switch s.Op {
	case "late":
		return r.late(s.Writer, s.What)
	case "meddle":
		return r.meddle(after, s)
	}
	w := r.writers[s.Writer]
	switch s.Op {
	case "resume":
		if w == nil {
			if w, err = r.open(s.Writer); err != nil {
				return err
			}
		}
		w.begin(false, func(ctx context.Context) (err error) {
			w.pos, err = w.out.Resume(ctx, modelTopic, 0)
			return err
		})
		w.settle()
		if s.Outcome == "done" {
			err = w.allow("resume", 0, "done")
		}
	case "begin":
		w.begin(true, func(ctx context.Context) error {
			b := modelBatch(w.pos.Next, int64(s.What))
			_, err := w.out.Commit(ctx, b)
			w.pos.Next = b.End
			return err
		})
	case "crash":
		w.die()
		r.writers[s.Writer] = nil
		return nil
	default:
		file := 0
		if slices.Contains([]string{"put", "look", "head", "copy"}, s.Op) {
			file = s.What
		}
		err = w.allow(s.Op, file, s.Outcome)
	}
	w.settle()
	if after.Stuck[s.Writer] && err == nil { // its other reads end first
		for w.allow("look", 0, "done") == nil || w.allow("look", 1, "done") == nil {
			w.settle()
		}
	}
	return err
}

func modelBatch(start, end int64) *schemas.Batch {
	b := &schemas.Batch{Topic: modelTopic, Start: start, End: end, Messages: end - start,
		Last: &schemas.RecordID{Offset: end - 1}}
	for o := start; o < end; o++ {
		b.Results = append(b.Results, schemas.Result{FrameKey: schemas.FrameKey{Topic: modelTopic, Offset: o}})
	}
	return b
}

// meddle replaces an object by one of the same size, as another program would.
func (r *bucketRun) meddle(after *protocol.BucketView, s protocol.Step) error {
	keys := r.server.Keys(r.t, r.prefix+"/"+record.StagingFolder+"/")
	table := []string{"hulls", record.Frames}[s.What]
	for _, key := range keys {
		if strings.Contains(key, r.uuids[s.Writer]) && strings.Contains(key, "/"+table+"-") && s.Outcome == "done" {
			r.server.Remove(r.t, key) // the server would keep its metadata
			r.server.Put(r.t, key, strings.Repeat("x", len(table+" 0 1")), nil)
			return nil
		}
	}
	for _, o := range after.Published {
		if o.Attempt < 0 {
			key := fmt.Sprintf("%s/%s/part-0-%d-%d%s", r.prefix, table, o.Start, o.End, record.DataSuffix)
			var metadata map[string]string // such as entropipe gives, for one table
			if s.What == 0 {
				metadata = map[string]string{"X-Amz-Meta-Entropipe-Uuid": record.NewUUID(),
					"X-Amz-Meta-Entropipe-Sha256": strings.Repeat("0", 64)}
			}
			r.server.Put(r.t, key, strings.Repeat("x", len(table+" 0 1")), metadata)
			return nil
		}
	}
	return errors.New("there is nothing to replace")
}

// view returns what the bucket holds.
func (r *bucketRun) view() (v protocol.BucketView) {
	v.Manifests = map[int]int{}
	for _, key := range r.server.Keys(r.t, r.prefix+"/") {
		name := strings.TrimPrefix(key, r.prefix+"/")
		start, manifest := record.ManifestStart(name[strings.LastIndexByte(name, '/')+1:])
		switch {
		case manifest:
			v.Manifests[int(start)] = slices.Index(r.uuids, r.manifest(name).UUID)
		case strings.HasPrefix(name, record.CommitsFolder):
		default:
			r.object(&v, name)
		}
	}
	return v
}

// manifest reads a manifest from the bucket, once.
func (r *bucketRun) manifest(name string) *record.Manifest {
	if r.found[name] == nil {
		rec := r.do(http.MethodGet, name)
		m, err := record.ParseManifest(name, rec.Body.Bytes())
		if err != nil {
			r.t.Fatal(err)
		}
		r.found[name] = m
	}
	return r.found[name]
}

func (r *bucketRun) do(method, name string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	r.server.Config.Handler.ServeHTTP(rec, httptest.NewRequest(method, "/"+s3test.Bucket+"/"+r.prefix+"/"+name, nil))
	return rec
}

var partName = regexp.MustCompile(`part-0-(\d+)-(\d+)`)

// object notes an object of a table.
func (r *bucketRun) object(v *protocol.BucketView, name string) {
	o := protocol.BucketObject{
		Attempt: slices.Index(r.uuids, r.do(http.MethodHead, name).Header().Get("X-Amz-Meta-Entropipe-Uuid"))}
	if strings.HasPrefix(name, record.Frames+"/") || strings.Contains(name, "/"+record.Frames+"-") {
		o.File = 1
	}
	if match := partName.FindStringSubmatch(name); match != nil {
		fmt.Sscan(match[1]+" "+match[2], &o.Start, &o.End)
		v.Published = append(v.Published, o)
		return
	}
	v.Staged = append(v.Staged, o)
}

// differ says how what the bucket holds differs from what the model does.
func differ(got, want *protocol.BucketView) string {
	objects := func(all []protocol.BucketObject, staged bool) string {
		all = slices.Clone(all)
		if staged {
			for i := range all { // their names have no end
				all[i].Start, all[i].End = 0, 0
			}
		}
		slices.SortFunc(all, func(a, b protocol.BucketObject) int {
			return cmp.Or(a.Start-b.Start, a.End-b.End, a.Attempt-b.Attempt, a.File-b.File)
		})
		return fmt.Sprint(all)
	}
	if !maps.Equal(got.Manifests, want.Manifests) || objects(got.Published, false) != objects(want.Published, false) ||
		objects(got.Staged, true) != objects(want.Staged, true) {
		return fmt.Sprintf("the bucket holds %+v, in the model %+v", *got, *want)
	}
	return ""
}

// along runs the path.
func (r *bucketRun) along(p *protocol.BucketPath) error {
	defer func() {
		for _, w := range r.writers {
			if w != nil {
				w.die()
			}
		}
		for _, key := range r.server.Keys(r.t, r.prefix+"/") {
			r.server.Remove(r.t, key)
		}
	}()
	for i, s := range p.Steps {
		want := &p.Views[i]
		if err := r.step(s, want); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if s.Op == "begin" {
			r.uuids = append(r.uuids, r.writers[s.Writer].folder())
		}
		got := r.view()
		if problem := differ(&got, want); problem != "" {
			return fmt.Errorf("step %d: %s", i, problem)
		}
		for n, next := range want.Ready {
			if w := r.writers[n]; w.runs || w.err != nil || w.pos.Next != int64(next) {
				return fmt.Errorf("step %d: writer %d goes on at %d (%s), in the model at %d", i, n, w.pos.Next,
					w.waits(), next)
			}
		}
		for n := range want.Stuck {
			lost, damaged := (*sinks.LostFileError)(nil), (*sinks.DamagedFileError)(nil)
			if w := r.writers[n]; w.runs || !errors.As(w.err, &lost) && !errors.As(w.err, &damaged) {
				return fmt.Errorf("step %d: writer %d goes on (%s), in the model it refuses to", i, n, w.waits())
			}
		}
	}
	return nil
}

// emptyOutput makes an output with a base, and returns its records.
func emptyOutput(t *testing.T, server *s3test.Server) map[string]string {
	out, err := sinks.Open(t.Context(), server.Open(t, "empty"), twoFiles{}, sinks.Config{})
	if err == nil {
		err = out.Base(t.Context(), modelTopic, schemas.TopicID{}, map[int32]int64{0: 0})
	}
	if err != nil {
		t.Fatal(err)
	}
	records, r := map[string]string{}, bucketRun{server: server, prefix: "empty"}
	for _, key := range server.Keys(t, "empty/") {
		name := strings.TrimPrefix(key, "empty/")
		records[name] = r.do(http.MethodGet, name).Body.String()
	}
	return records
}

// Law: the code of the store in a bucket does what the model does, along the model's paths.
func TestTheCodeRunsThePathsOfTheModelOfABucket(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine at a time: nothing for the race detector")
	}
	sizes := []struct {
		records, attempts, faults, stride int
		meddling                          bool
	}{{1, 2, 1, 5000, false}, {2, 2, 1, 50_000, false}, {1, 2, 0, 800, true}}
	if os.Getenv("ENTROPIPE_LONG") != "" {
		sizes[0].stride, sizes[1].stride, sizes[2].stride = 60, 600, 8
	}
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	server := s3test.New(t)
	empty := emptyOutput(t, server)
	paths, steps := 0, 0
	for _, size := range sizes {
		protocol.BucketPaths(size.records, size.attempts, size.faults, size.stride, size.meddling,
			func(p protocol.BucketPath) {
				if t.Failed() {
					return
				}
				paths, steps = paths+1, steps+len(p.Steps)
				synctest.Test(t, func(t *testing.T) {
					r := &bucketRun{t: t, server: server, prefix: fmt.Sprint("p", paths),
						found: map[string]*record.Manifest{}}
					for name, text := range empty {
						server.Put(t, r.prefix+"/"+name, text, nil)
					}
					if err := r.along(&p); err != nil {
						t.Errorf("%v\n%+v", err, p.Steps)
					}
				})
			})
	}
	t.Logf("%d paths of %d steps on average", paths, steps/max(paths, 1))
	if paths < 200 {
		t.Errorf("%d paths", paths)
	}
}
