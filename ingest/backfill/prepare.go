package backfill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/ingest/filesys"
	"entropipe/ingest/replay"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Prepare returns the plan of a backfill into an output, which must have been opened. The
// Roots of the result are those of opt, which is where this process reads.
//
// With a name and a plan of that name nothing is searched. Otherwise the archive is
// searched. The plan that the output has for these roots and settings must be equal to
// what was found; where it has none, the new plan is stored. A *sinks.ConfigError says why
// neither is possible.
func Prepare(ctx context.Context, store sinks.Store, archive replay.Archive, opt Options) (*record.Plan, error) {
	if opt.Plan != "" {
		p, err := sinks.ReadPlan(ctx, store, opt.Plan)
		if err == nil {
			q, err := named(p, opt)
			if err == nil {
				err = claim(ctx, store, p)
			}
			return q, err
		}
		if !errors.Is(err, sinks.ErrNotFound) {
			return nil, err
		}
		if err := isNoTopic(ctx, store, opt.Plan); err != nil {
			return nil, err
		}
	}
	if opt.Plan == "" {
		plans, err := sinks.Plans(ctx, store)
		if err != nil {
			return nil, err
		}
		p, err := searched(ctx, store, plans, opt)
		if p != nil && err == nil {
			if err = compare(ctx, store, archive, p, opt); err == nil {
				err = claim(ctx, store, p)
			}
		}
		if p != nil || err != nil {
			return p, err
		}
	}
	return create(ctx, store, archive, opt)
}

// sameSearch tells whether a plan was made from the roots and settings of opt.
func sameSearch(p *record.Plan, opt Options) bool {
	return slices.Equal(p.Roots, opt.Roots) && maps.Equal(p.Source, opt.Source)
}

// isNoTopic refuses a name of a plan that a topic of the output has.
func isNoTopic(ctx context.Context, store sinks.Reader, name string) error {
	used, err := store.Names(ctx, record.TopicFolder(name))
	if err != nil || slices.Contains(used, record.PlanFile) { // made just now: the plans are compared later
		return err
	}
	used = slices.DeleteFunc(used, func(file string) bool { return strings.HasPrefix(file, record.NewPrefix) })
	if len(used) == 0 {
		return nil
	}
	return &sinks.ConfigError{Field: "plan",
		Problem: fmt.Sprintf("%s is a topic of the output; a plan needs a name of its own", name)}
}

// named checks that a plan which was asked for by its name fits the settings, and gives
// it the roots of this process.
func named(p *record.Plan, opt Options) (*record.Plan, error) {
	refuse := func(field, format string, args ...any) (*record.Plan, error) {
		return nil, &sinks.ConfigError{Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	if changes := sinks.Content(p.Source).Changes(opt.Source); len(changes) > 0 {
		return refuse("plan", "plan %s was made with other settings of the source (%s); use those, or another name",
			p.Name, strings.Join(changes, "; "))
	}
	if opt.Identity != "" && opt.Identity != p.Identity {
		return refuse("identity", "plan %s compares files by %s", p.Name, p.Identity)
	}
	if len(opt.Roots) != len(p.Roots) {
		return refuse("plan", "plan %s was made for %d folders (%s), not for %d; name their places here in that order",
			p.Name, len(p.Roots), strings.Join(p.Roots, ", "), len(opt.Roots))
	}
	q := *p
	q.Roots = opt.Roots
	return &q, nil
}

// create makes a new plan. Where a file of it belongs to another plan, it is not stored; of
// plans that are stored at the same time claim decides.
func create(ctx context.Context, store sinks.Store, archive replay.Archive, opt Options) (*record.Plan, error) {
	p, err := Build(ctx, archive, opt, Into(store))
	if err != nil {
		return nil, err
	}
	if p.Lanes == 0 {
		return nil, &sinks.ConfigError{Field: "paths", Problem: "there is nothing to read"}
	}
	if _, err := nextPlace(ctx, store, p); err != nil {
		return nil, err
	}
	if p, err = sinks.CreatePlan(ctx, store, p); err != nil {
		return nil, err
	}
	if err := claim(ctx, store, p); err != nil {
		return nil, err
	}
	q := *p
	q.Roots = opt.Roots
	return &q, nil
}

// compare searches the archive again and compares what is there with its plan.
func compare(ctx context.Context, store sinks.Reader, archive replay.Archive, p *record.Plan, opt Options) error {
	if opt.Identity == "" {
		opt.Identity = p.Identity
	}
	if opt.Identity != p.Identity {
		return &sinks.ConfigError{Field: "identity",
			Problem: fmt.Sprintf("plan %s of this output compares files by %s", p.Name, p.Identity)}
	}
	if opt.Number == nil {
		opt.Number = likeIn(p)
	}
	found, err := Build(ctx, archive, opt, Nowhere)
	if err != nil || found.Hash == p.Hash {
		return err
	}
	d, err := Differ(ctx, store, archive, p, opt)
	if err != nil {
		return err
	}
	return &sinks.ConfigError{Field: "plan", Problem: fmt.Sprintf("the archive is not what plan %s of this output "+
		"says: %s. Go on with the old plan by --plan %s, which stops the lanes of changed files; or write to another "+
		"--out; or compute only what has changed into another one: --changed --reuse OLD --out NEW", p.Name, d, p.Name)}
}

// likeIn numbers lanes as the plan does, in its order, so that a plan with numbers of its
// own is equal to a second search of the same archive.
func likeIn(p *record.Plan) func(*record.Lane) (int32, error) {
	var numbers []int32
	highest := int32(-1)
	for i := range p.Segments {
		numbers = append(numbers, p.Segments[i].Numbers...)
		highest = max(highest, slices.Max(p.Segments[i].Numbers))
	}
	at := -1
	return func(*record.Lane) (int32, error) {
		if at++; at < len(numbers) {
			return numbers[at], nil
		}
		highest++
		return highest, nil
	}
}

// Difference counts the files in which an archive differs from a plan.
type Difference struct{ Changed, Added, Gone int64 }

// String describes the difference for an error.
func (d Difference) String() string {
	if d == (Difference{}) {
		return "its files are the same, and their items are not"
	}
	return fmt.Sprintf("%d files have changed, %d were added, %d are gone", d.Changed, d.Added, d.Gone)
}

// Differ searches the archive and compares its files with those of a plan. Memory: about
// 50 bytes for each file of the plan.
func Differ(ctx context.Context, store sinks.Reader, archive replay.Archive, p *record.Plan,
	opt Options) (Difference, error) {
	type file struct {
		state uint64
		found bool
	}
	known := map[uint64]*file{}
	slab := make([]file, 0, 1024)
	err := eachLane(ctx, store, p, func(l *record.Lane) error {
		eachFile(l, func(path string, f *record.LaneFile) {
			if len(slab) == cap(slab) {
				slab = make([]file, 0, 1024)
			}
			slab = append(slab, file{state: stateOf(f)})
			known[hashOf(path)] = &slab[len(slab)-1]
		})
		return nil
	})
	if err != nil {
		return Difference{}, err
	}
	var d Difference
	added := map[uint64]bool{}
	opt.Each = func(l *record.Lane) error {
		eachFile(l, func(path string, f *record.LaneFile) {
			key := hashOf(path)
			was := known[key]
			switch {
			case was == nil && !added[key]:
				added[key] = true
				d.Added++
			case was == nil || was.found:
			case was.state != stateOf(f):
				d.Changed++
				fallthrough
			default:
				was.found = true
			}
		})
		return nil
	}
	if _, err := Build(ctx, archive, opt, Nowhere); err != nil {
		return d, err
	}
	for _, f := range known {
		if !f.found {
			d.Gone++
		}
	}
	return d, nil
}

// eachLane calls f with the lanes of a plan that is stored.
func eachLane(ctx context.Context, store sinks.Reader, p *record.Plan, f func(*record.Lane) error) error {
	for i := range p.Segments {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		lanes, err := sinks.ReadLanes(ctx, store, p, i)
		if err != nil {
			return err
		}
		for k := range lanes {
			if err := f(&lanes[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachFile calls f with the files of a lane and their paths below their root.
func eachFile(l *record.Lane, f func(path string, file *record.LaneFile)) {
	key := func(path string) string { return fmt.Sprintf("%d/%s", l.Root, path) }
	for i := range l.Common {
		f(key(filepath.ToSlash(filesys.Clean(l.Common[i].Path))), &l.Common[i])
	}
	for i := range l.Files {
		f(key(filepath.ToSlash(filesys.Join(l.Folder, l.Files[i].Path))), &l.Files[i])
	}
}
