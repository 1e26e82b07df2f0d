package backfill

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"entropipe/ingest/replay"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

var manyFiles = flag.Int64("planfiles", 100_000, "files of the archive whose planning is measured")

// drawShelf draws an archive.
func drawShelf(t *rapid.T) *shelf {
	a := &shelf{root: "/archive"}
	for i := range rapid.IntRange(1, 4).Draw(t, "inputs") {
		in := shelfInput{name: fmt.Sprintf("in%d", i), items: rapid.Int64Range(0, 90).Draw(t, "items"),
			perFile: rapid.Int64Range(0, 3).Draw(t, "items a file"), size: rapid.Int64Range(0, 40).Draw(t, "size"),
			bad: map[int64]bool{}}
		in.listed = in.perFile > 0 && rapid.Bool().Draw(t, "listed")
		for range rapid.IntRange(0, 3).Draw(t, "bad") {
			in.bad[rapid.Int64Range(0, 90).Draw(t, "bad item")] = true
		}
		a.inputs = append(a.inputs, in)
	}
	return a
}

func drawOptions(t *rapid.T) Options {
	return Options{Roots: []string{"/archive"}, items: rapid.Int64Range(1, 40).Draw(t, "most items"),
		bytes: rapid.Int64Range(1, 300).Draw(t, "most bytes"),
		Identity: rapid.SampledFrom([]string{"", record.ByModTime,
			record.BySHA256}).Draw(t, "identity")}
}

// build is planOf for a rapid.T.
func build(t *rapid.T, a *shelf, opt Options) (*record.Plan, *parts, []record.Lane) {
	store := newParts()
	p, err := Build(t.Context(), a, opt, Into(store))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.ParsePlan(record.PlanName(p.Name), record.Encode(p)); err != nil {
		t.Fatal(err)
	}
	var lanes []record.Lane
	if err := eachLane(t.Context(), store, p,
		func(l *record.Lane) error { lanes = append(lanes, *l); return nil }); err != nil {
		t.Fatal(err)
	}
	return p, store, lanes
}

// Every item of an archive is in exactly one lane, within the bounds, with its file.
func TestLanesCoverEveryItemOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, opt := drawShelf(t), drawOptions(t)
		p, _, lanes := build(t, a, opt)
		next := map[string]int64{}
		var bytes int64
		for i := range lanes {
			l := &lanes[i]
			in := a.input(above("/archive", l.Input.Path))
			if l.First != next[in.name] {
				t.Fatalf("lane %d begins at %d of %s, not at %d", l.Number, l.First, in.name, next[in.name])
			}
			next[in.name] += l.Items
			bytes += l.Bytes
			// The share of a container is rounded.
			if l.Items > opt.items || l.Bytes > opt.bytes+1 && l.Items > 1 {
				t.Fatalf("lane %d has %d items and %d bytes", l.Number, l.Items, l.Bytes)
			}
			for k := range l.Items {
				var got, want []string
				for _, at := range l.FilesOf(k) {
					got = append(got, above("/archive", l.Folder+"/"+l.Files[at].Path))
				}
				if in.perFile > 0 {
					want = []string{in.file("/archive", l.First+k)}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("item %d of %s is in %q, want %q", l.First+k, in.name, got, want)
				}
			}
		}
		items := int64(0)
		for _, in := range a.inputs {
			items += in.items
			if next[in.name] != in.items {
				t.Fatalf("%d items of %s, want %d", next[in.name], in.name, in.items)
			}
		}
		if p.Items != items || p.Bytes != bytes {
			t.Fatalf("the head has %d items and %d bytes, the lanes have %d and %d", p.Items, p.Bytes, items, bytes)
		}
	})
}

// Equal archives have equal plans, wherever they are mounted; another size, name or item
// makes another plan.
func TestHashOfPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, opt := drawShelf(t), drawOptions(t)
		p, store, _ := build(t, a, opt)
		b := &shelf{root: "/mnt/elsewhere", inputs: a.inputs}
		opt.Roots = []string{b.root}
		q, other, _ := build(t, b, opt)
		if p.Hash != q.Hash || !maps.EqualFunc(store.files, other.files, slices.Equal) {
			t.Fatal("the same archive at another place has another plan")
		}
		k := rapid.IntRange(0, len(a.inputs)-1).Draw(t, "changed input")
		b.inputs = slices.Clone(a.inputs)
		if b.inputs[k].items == 0 {
			return
		}
		b.inputs[k].size++
		if q, _, _ := build(t, b, opt); q.Hash == p.Hash && (opt.Identity == record.BySHA256 || b.inputs[k].size > 0) {
			t.Fatal("a file with another size leaves the plan as it was")
		}
	})
}

// Any split into shards gives each lane exactly once.
func TestShardsAreDisjoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, _, lanes := build(t, drawShelf(t), drawOptions(t))
		of := rapid.Int32Range(1, 9).Draw(t, "shards")
		seen := map[int32]int{}
		for i := range of {
			l := NewLanes(p, Shard{i, of}, nil, 1)
			last := int32(-1)
			for _, n := range l.queue {
				if n.number <= last {
					t.Fatalf("lane %d comes after %d", n.number, last)
				}
				last = n.number
				seen[n.number]++
			}
		}
		for _, n := range NewLanes(p, Shard{}, nil, rapid.Uint64().Draw(t, "order")).queue {
			seen[n.number]++
		}
		for i := range lanes {
			if seen[lanes[i].Number] != 2 {
				t.Fatalf("lane %d is there %d times, in one of %d shards and in the whole", lanes[i].Number,
					seen[lanes[i].Number], of)
			}
		}
	})
}

func TestShardText(t *testing.T) {
	for text, want := range map[string]Shard{"0/1": {0, 1}, "6/7": {6, 7}, "7/7": {}, "-1/2": {},
		"1": {}, "": {}, "a/b": {},
		"0/0": {}, "1/2/3": {}} {
		var s Shard
		if err := s.UnmarshalText([]byte(text)); s != want || (err == nil) != (want != Shard{}) {
			t.Errorf("%q: %v, %v, want %v", text, s, err, want)
		}
	}
}

// The plan of a large archive is made and read in little memory.
func TestPlanOfManyFiles(t *testing.T) {
	a := &shelf{root: "/archive", inputs: []shelfInput{{name: "one", items: *manyFiles, perFile: 1,
		size: 100, listed: true}}}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most := uint64(0)
	opt := Options{Roots: []string{a.root}, Each: func(*record.Lane) error {
		runtime.ReadMemStats(&after)
		most = max(most, after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc))
		return nil
	}}
	p, err := Build(t.Context(), a, opt, Nowhere)
	if err != nil {
		t.Fatal(err)
	}
	if want := int((*manyFiles-1)/maxLaneItems + 1); p.Lanes != want || p.Items != *manyFiles {
		t.Errorf("%d lanes with %d items, want %d with %d", p.Lanes, p.Items, want, *manyFiles)
	}
	t.Logf("%d files: %d segments, at most %d MB of heap", *manyFiles, len(p.Segments), most>>20)
	if most > 300<<20 {
		t.Errorf("%d MB of heap", most>>20)
	}
}

func TestNamesThatNoPlanCanHold(t *testing.T) {
	a := &shelf{root: "/archive", inputs: []shelfInput{{name: "a\xffb", items: 3, perFile: 1}}}
	if _, err := Build(t.Context(), a, Options{Roots: []string{a.root}}, Nowhere); err == nil ||
		!strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("a name that is not UTF-8: %v", err)
	}
}

func TestRoots(t *testing.T) {
	dir := t.TempDir()
	got, err := Roots([]string{dir, dir + "/a.pcd", dir + "/b.pcd", dir + "/*.pcd",
		dir + "/x*/y/*.bin", dir + "/no/such"})
	if want := []string{dir, dir + "/no"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// prepare calls Prepare with small lanes.
func prepare(t testing.TB, store *parts, a *shelf, change func(*Options)) (*record.Plan, error) {
	t.Helper()
	opt := Options{Roots: []string{a.root}, Source: map[string]string{"format": "shelf"}, items: 10}
	if change != nil {
		change(&opt)
	}
	return Prepare(t.Context(), store, a, opt)
}

func small() *shelf {
	return &shelf{root: "/archive", inputs: []shelfInput{{name: "a", items: 25, perFile: 1, size: 5, listed: true},
		{name: "b", items: 30, size: 70}}}
}

func refused(t *testing.T, what string, err error, field string, texts ...string) {
	t.Helper()
	var config *sinks.ConfigError
	if !errors.As(err, &config) || config.Field != field {
		t.Errorf("%s: %v, want a ConfigError of %s", what, err, field)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", what, err, text)
		}
	}
}

// A second start finds the plan of the output; a changed archive does not go on silently.
func TestPrepareAgain(t *testing.T) {
	store, a := newParts(), small()
	p, err := prepare(t, store, a, nil)
	if err != nil {
		t.Fatal(err)
	}
	if q, err := prepare(t, store, a, nil); err != nil || q.Hash != p.Hash || q.Name != p.Name {
		t.Fatalf("the second start: %v, %v", q, err)
	}
	searched := a.stats.Load()
	if q, err := prepare(t, store, a, func(o *Options) {
		o.Plan = p.Name
		o.Roots = []string{"/elsewhere"}
	}); err != nil ||
		q.Hash != p.Hash || q.Roots[0] != "/elsewhere" || a.stats.Load() != searched {
		t.Errorf("by name: %v, %v, %d files looked at", q, err, a.stats.Load()-searched)
	}
	_, err = prepare(t, store, a, func(o *Options) { o.Plan = p.Name; o.Source = map[string]string{"format": "x"} })
	refused(t, "other settings", err, "plan", "format: shelf -> x")
	_, err = prepare(t, store, a, func(o *Options) { o.Plan = p.Name; o.Roots = nil })
	refused(t, "no roots", err, "plan", "1 folders")
	_, err = prepare(t, store, a, func(o *Options) { o.Identity = record.BySHA256 })
	refused(t, "another identity", err, "identity", record.ByModTime)
	_, err = prepare(t, store, a, func(o *Options) { o.Plan = "other" })
	refused(t, "the same files under another name", err, "plan", "belongs to plan "+p.Name)

	a.inputs[0].items = 28 // three more, of which none is the last lane's alone
	a.stat = func(path string) (replay.File, error, bool) {
		return replay.File{Path: path, Size: 6}, nil, strings.HasSuffix(path, "000003.bin")
	}
	_, err = prepare(t, store, a, nil)
	refused(t, "a changed archive", err, "plan", "1 files have changed, 3 were added, 0 are gone", "--plan "+p.Name,
		"--changed --reuse", "another --out")
	a.inputs = a.inputs[:1]
	a.inputs[0].items, a.stat = 24, nil
	_, err = prepare(t, store, a, nil)
	refused(t, "a smaller archive", err, "plan", "0 files have changed, 0 were added, 2 are gone")
}

// A topic of the output keeps its name.
func TestPlanWithTheNameOfATopic(t *testing.T) {
	store := newParts()
	if err := store.Create(t.Context(), record.TopicFolder("points")+"/base.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	_, err := prepare(t, store, small(), func(o *Options) { o.Plan = "points" })
	refused(t, "a topic", err, "plan", "topic")
	if _, err := prepare(t, store, &shelf{root: "/archive"}, nil); err == nil {
		t.Error("an empty archive has a plan")
	}
}

// Planners race: with equal plans all go on, with different ones under a name one does.
func TestPlannersRace(t *testing.T) {
	for range 20 {
		store := newParts()
		var wg sync.WaitGroup
		plans, errs := make([]*record.Plan, 8), make([]error, 8)
		for i := range plans {
			wg.Go(func() {
				a := small()
				a.inputs[1].size += int64(i % 2)
				plans[i], errs[i] = prepare(t, store, a, func(o *Options) { o.Plan = "p" })
			})
		}
		wg.Wait()
		winner, err := sinks.ReadPlan(t.Context(), store, "p")
		if err != nil {
			t.Fatal(err)
		}
		equal := 0
		for i, p := range plans {
			switch {
			case errs[i] != nil:
				refused(t, "the loser", errs[i], "plan", "another plan with the name p")
			case p.Hash == winner.Hash:
				equal++
			}
		}
		// A planner that finds the plan under its name does not search.
		if equal < 4 {
			t.Fatalf("%d planners go on, want those with the plan that won: %v", equal, errs)
		}
	}
}

// Files that two plans share are refused, however the plans are cut; the files of one
// folder may belong to two plans.
func TestSecondPlan(t *testing.T) {
	store := newParts()
	if _, err := prepare(t, store, small(), nil); err != nil {
		t.Fatal(err)
	}
	a := small()
	a.root = "/archive/a" // the same folder, searched from below
	a.inputs = []shelfInput{{name: "data", items: 1, perFile: 1}}
	if _, err := prepare(t, store, a, nil); err != nil {
		t.Errorf("another folder: %v", err)
	}
	a = small()
	a.inputs = a.inputs[1:]
	_, err := prepare(t, store, a, func(o *Options) { o.Source = map[string]string{"format": "shelf", "pack": "7"} })
	refused(t, "a container of another plan", err, "plan", filepath.FromSlash("/archive/b/times.txt"))
}
