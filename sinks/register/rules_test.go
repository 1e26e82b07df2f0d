package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/sinks/record"
)

var allTables = []string{"frames", "hulls", "points", "rejects"}

// same fails unless the tables of the catalog have the files of the output, each once.
func same(t testing.TB, l *lake, o *output, tables ...string) {
	t.Helper()
	for _, name := range tables {
		if diff := cmp.Diff(o.expected(name), l.files(name)); diff != "" {
			t.Errorf("table %s (-output +catalog): %s", name, diff)
		}
	}
}

func TestFilesOfAllTablesAreAddedOnce(t *testing.T) {
	l, o := newLake(t, t.TempDir()), newOutput()
	defer l.close()
	o.base("clouds", 5)
	o.base("a/b c", 0)
	ctx := context.Background()
	r := l.open(t, o, nil)
	for range 3 {
		o.grow("clouds", 0, 2, "frames", "hulls")
		o.grow("clouds", 1, 1, "points", "frames")
		o.grow("a/b c", 0, 7, "rejects")
		o.grow("a/b c", 0, 1)
		if err := r.run(ctx); err != nil {
			t.Fatal(err)
		}
		same(t, l, o, allTables...)
		if err := l.open(t, o, nil).run(ctx); err != nil { // another process
			t.Fatal(err)
		}
		same(t, l, o, allTables...)
	}
	if d := l.open(t, o, nil).count(); d.Files != 0 {
		t.Errorf("%+v", d)
	}
}

// A restart reads no manifest that all tables have, and each that one lacks.
func TestRestartsReadWhatIsBehindTheFences(t *testing.T) {
	l, o := newLake(t, t.TempDir()), newOutput()
	defer l.close()
	o.base("clouds", 0)
	for range 5 {
		o.grow("clouds", 0, 2, "frames")
	}
	ctx := context.Background()
	for _, c := range []struct {
		tables []string
		steps  int64
	}{{nil, 5}, {nil, 0}, {[]string{"hulls"}, 5}, {[]string{"frames"}, 0}} {
		r := l.open(t, o, func(cfg *config) { cfg.Tables = c.tables })
		if err := r.run(ctx); err != nil {
			t.Fatal(err)
		}
		if got := r.step.Load(); got != c.steps {
			t.Errorf("tables %v: %d manifests are read, want %d", c.tables, got, c.steps)
		}
	}
}

// A table that is dropped is registered again from the base, and the others are not.
func TestDroppedTablesAreRegisteredAgain(t *testing.T) {
	l, o := newLake(t, t.TempDir()), newOutput()
	defer l.close()
	o.base("clouds", 0)
	for range 4 {
		o.grow("clouds", 0, 1, "frames", "hulls")
	}
	ctx := context.Background()
	r := l.open(t, o, nil)
	if err := r.run(ctx); err != nil {
		t.Fatal(err)
	}
	l.drop("hulls")
	o.grow("clouds", 0, 1, "frames", "hulls")
	if err := r.run(ctx); err != nil { // the process that runs on
		t.Fatal(err)
	}
	same(t, l, o, "frames", "hulls")
	l.drop("frames")
	if err := l.open(t, o, nil).run(ctx); err != nil { // another one
		t.Fatal(err)
	}
	same(t, l, o, "frames", "hulls")
}

// A table is selected after others were registered.
func TestTablesSelectedLaterGetAllRows(t *testing.T) {
	l, o := newLake(t, t.TempDir()), newOutput()
	defer l.close()
	o.base("clouds", 0)
	for range 4 {
		o.grow("clouds", 0, 1, "frames", "hulls", "points")
	}
	ctx := context.Background()
	for _, tables := range [][]string{{"hulls"}, {"frames", "hulls"}, nil} {
		o.grow("clouds", 0, 1, "frames", "hulls", "points")
		r := l.open(t, o, func(c *config) { c.Tables = tables })
		if err := r.run(ctx); err != nil {
			t.Fatal(err)
		}
		if tables == nil {
			tables = []string{"frames", "hulls", "points"}
		}
		same(t, l, o, tables...)
	}
}

// The newest commit may have a manifest before its files are in their places.
func TestUnpublishedCommitsWait(t *testing.T) {
	l, o := newLake(t, t.TempDir()), newOutput()
	defer l.close()
	o.base("clouds", 0)
	o.grow("clouds", 0, 1, "frames")
	late := o.manifest("clouds", 0, 1, "frames", "hulls")
	o.put(record.ManifestName(late.TopicPartition(), late.Start), record.Encode(late))
	ctx := context.Background()
	r := l.open(t, o, nil)
	for range 3 {
		if err := r.run(ctx); err != nil {
			t.Fatal(err)
		}
		same(t, l, o, "frames", "hulls")
	}
	if d := r.count(); d.Unpublished != 1 || d.Files != 1 {
		t.Errorf("%+v", d)
	}
	o.publish(late)
	o.grow("clouds", 0, 1, "hulls")
	if err := r.run(ctx); err != nil {
		t.Fatal(err)
	}
	same(t, l, o, "frames", "hulls")
	if d := r.count(); d.Unpublished != 0 || d.Files != 4 {
		t.Errorf("%+v", d)
	}
}

func TestRetiredCommitsArePassedOver(t *testing.T) {
	l, o := newLake(t, t.TempDir()), newOutput()
	defer l.close()
	o.base("clouds", 0)
	a := o.grow("clouds", 0, 1, "frames", "hulls")
	o.retire(a)
	o.grow("clouds", 0, 1, "frames", "hulls")
	ctx := context.Background()
	r := l.open(t, o, nil)
	if err := r.run(ctx); err != nil {
		t.Fatal(err)
	}
	same(t, l, o, "frames", "hulls")
	if d := r.count(); d.Retired != 1 || d.Files != 2 {
		t.Errorf("%+v", d)
	}
	b := o.grow("clouds", 0, 1, "frames", "hulls") // retired after the chain was listed
	o.grow("clouds", 0, 1, "frames", "hulls")
	o.retire(b)
	if err := r.run(ctx); err != nil {
		t.Fatal(err)
	}
	if d := r.count(); d.Retired != 2 || d.Files != 4 {
		t.Errorf("%+v", d)
	}
	if err := l.open(t, o, nil).run(ctx); err != nil {
		t.Fatal(err)
	}
	same(t, l, o, "frames", "hulls")
}

// Faults of an output are named, and nothing of their batch is added.
func TestFaultsOfOutputsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(o *output, m *record.Manifest)
		want string
	}{
		"a file is missing": {func(o *output, m *record.Manifest) { o.remove(m.Files[0].Path) },
			"a later commit shows that it was there"},
		"a file is shorter": {func(o *output, m *record.Manifest) { o.put(m.Files[0].Path, []byte("PAR1")) },
			"it has 4 bytes"},
		"a file is damaged": {func(o *output, m *record.Manifest) {
			o.put(m.Files[0].Path, make([]byte, m.Files[0].Bytes))
		}, "nothing of its commit is registered"},
		"a file of another table": {func(o *output, m *record.Manifest) {
			m.Files[0].Bytes = int64(len(parquetFile("frames", "other")))
			o.put(record.ManifestName(m.TopicPartition(), m.Start), record.Encode(m))
			o.put(m.Files[0].Path, parquetFile("frames", "other"))
		}, `topic "other", its path says otherwise`},
		"a manifest is missing": {func(o *output, m *record.Manifest) {
			o.remove(record.ManifestName(m.TopicPartition(), m.Start))
		}, "are in no manifest"},
		"a manifest is damaged": {func(o *output, m *record.Manifest) {
			o.put(record.ManifestName(m.TopicPartition(), m.Start), []byte("{}"))
		}, "is damaged"},
		"a later format": {func(o *output, m *record.Manifest) {
			o.store.Format, o.store.Schema = 9, 9
			o.saveStore()
		}, "later version"},
	} {
		t.Run(name, func(t *testing.T) {
			l, o := newLake(t, t.TempDir()), newOutput()
			defer l.close()
			o.base("topic", 0)
			m := o.grow("topic", 0, 1, "frames", "hulls")
			o.grow("topic", 0, 1, "frames", "hulls")
			c.harm(o, m)
			r, err := openRegistrar(context.Background(), o, l.client(nil), config{Namespace: []string{"entropipe"},
				Batch: 9}, quiet())
			if err == nil {
				err = r.run(context.Background())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || isPassing(err) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if got := slices.Concat(l.files("frames"), l.files("hulls")); len(got) > 0 {
				t.Errorf("%v are in the tables", got)
			}
		})
	}
}

// A repair moves commits aside that tables have: a restart says so, and adds nothing.
func TestRepairedOutputsAreNoticed(t *testing.T) {
	for name, again := range map[string]bool{"cut": false, "written again": true} {
		t.Run(name, func(t *testing.T) {
			l, o := newLake(t, t.TempDir()), newOutput()
			defer l.close()
			o.base("clouds", 0)
			o.grow("clouds", 0, 2, "frames")
			m := o.grow("clouds", 0, 2, "frames")
			if err := l.open(t, o, nil).run(context.Background()); err != nil {
				t.Fatal(err)
			}
			o.remove(record.ManifestName(m.TopicPartition(), m.Start))
			o.remove(m.Files[0].Path)
			if o.ends[m.TopicPartition()] = m.Start; again {
				o.grow("clouds", 0, 2, "frames")
				o.grow("clouds", 0, 2, "frames")
			}
			err := l.open(t, o, nil).run(context.Background())
			if repaired := (*repairedError)(nil); !errors.As(err, &repaired) {
				t.Errorf("error %v", err)
			}
			if got := len(l.files("frames")); got != 2 {
				t.Errorf("%d files", got)
			}
		})
	}
}

// Rows that two outputs share are not added twice.
func TestOutputsWithTheSameRowsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		second func(first, second *output)
		want   string
	}{
		"its compaction": {func(first, second *output) { second.store.CompactionOf = first.store.UUID },
			"this output is its compaction"},
		"whose compaction": {func(first, second *output) { first.store.CompactionOf = second.store.UUID },
			"the compaction of this one"},
		"adopted": {func(first, second *output) {
			m := second.manifest("clouds", 0, 1, "frames")
			m.AdoptedFrom = first.store.UUID
			second.publish(m)
			second.put(record.ManifestName(m.TopicPartition(), m.Start), record.Encode(m))
		}, "has adopted them"},
		"other folders": {func(_, second *output) {
			second.store.PartitionBy = []string{record.ByDataset, record.BySequence}
		}, "is partitioned by"},
	} {
		t.Run(name, func(t *testing.T) {
			l, first, second := newLake(t, t.TempDir()), newOutput(), newOutput()
			defer l.close()
			first.base("clouds", 0)
			second.base("clouds", 0)
			c.second(first, second)
			first.saveStore()
			second.saveStore()
			first.grow("clouds", 0, 1, "frames")
			second.grow("clouds", 0, 1, "frames")
			if err := l.open(t, first, nil).run(context.Background()); err != nil {
				t.Fatal(err)
			}
			err := l.open(t, second, nil).run(context.Background())
			if setting := (*settingError)(nil); !errors.As(err, &setting) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			same(t, l, first, "frames")
		})
	}
}

// Outputs with other rows share tables.
func TestSeveralOutputsShareTables(t *testing.T) {
	l, outputs := newLake(t, t.TempDir()), []*output{newOutput(), newOutput()}
	defer l.close()
	var want []string
	for _, o := range outputs {
		o.base("clouds", 0)
		o.grow("clouds", 0, 1, "frames")
		if err := l.open(t, o, nil).run(context.Background()); err != nil {
			t.Fatal(err)
		}
		want = append(want, o.expected("frames")...)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, l.files("frames")); diff != "" {
		t.Error(diff)
	}
}

func TestMalformedFencesAreRefused(t *testing.T) {
	uuid := record.NewUUID()
	for _, c := range [][2]string{{"clouds.0", "5"}, {"clouds.0", "x " + uuid}, {"clouds.0", "-1 " + uuid},
		{"clouds.x", "5 " + uuid}, {"clouds", "5 " + uuid}, {"clouds.0", ""}} {
		if _, err := parseFence("s", map[string]string{endPrefix + "s." + c[0]: c[1]}, nil); err == nil {
			t.Errorf("%q: %q passes", c[0], c[1])
		}
	}
}
