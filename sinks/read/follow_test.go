package read_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"entropipe/sinks"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
)

// counting counts the manifests that are opened to be read, and all openings.
type counting struct {
	sinks.Reader
	opened []string
}

func (c *counting) Open(ctx context.Context, name string) (sinks.Object, error) {
	c.opened = append(c.opened, name)
	return c.Reader.Open(ctx, name)
}

// A Follower has the totals of Describe, reads each manifest once, and reads a partition again
// after a repair has moved its newest manifest.
func TestFollow(t *testing.T) {
	ctx := context.Background()
	d := sinktest.NewMemDisk()
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 200, 10)
	store := &counting{Reader: sinktest.MemStore(d)}
	f, err := read.Follow(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	if s := f.Summary(); s.Store == "" || len(s.Partitions) != 0 || len(s.Tables) != 0 {
		t.Errorf("before: %+v", s)
	}
	for want := 13; want >= -1; want -= 7 {
		if left, err := f.Update(ctx, 7); left != max(want, 0) || err != nil {
			t.Fatalf("%d are left, %v; want %d", left, err, max(want, 0))
		}
	}
	compare := func(when string) {
		t.Helper()
		want, err := read.Describe(ctx, sinktest.MemStore(d))
		if err != nil {
			t.Fatal(err)
		}
		want.Configurations, want.First, want.Last = nil, nil, nil
		if got := f.Summary(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\nwant %+v", when, got, want)
		}
	}
	compare("at first")

	store.opened = nil
	sinktest.TakeOver(t, sinktest.MemStore(d), 200, 230, 10)
	if left, err := f.Update(ctx, 1000); left != 0 || err != nil {
		t.Fatal(left, err)
	}
	compare("after three commits")
	if len(store.opened) != 1+1+3+1 { // identity, newest, three new ones, the one that is not there
		t.Errorf("opened %q", store.opened)
	}

	newest := ""
	for _, name := range store.opened {
		if strings.HasSuffix(name, "00220.json") {
			newest = name
		}
	}
	if err := d.Remove(newest); err != nil {
		t.Fatal(err)
	}
	if left, err := f.Update(ctx, 1000); left != 0 || err != nil {
		t.Fatal(left, err)
	}
	compare("after a repair")

	if err := d.Remove("_commits/store.json"); err != nil {
		t.Fatal(err)
	}
	before := f.Summary()
	if _, err := f.Update(ctx, 1000); !errors.Is(err, sinks.ErrNotFound) {
		t.Errorf("without identity: %v", err)
	}
	if !reflect.DeepEqual(f.Summary(), before) {
		t.Error("an error changed the totals")
	}
}
