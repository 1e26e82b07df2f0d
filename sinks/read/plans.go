package read

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// PlanReport says how far the lanes of a plan are committed.
type PlanReport struct {
	Name      string   `json:"name"`
	Hash      string   `json:"hash"`
	Roots     []string `json:"roots"`
	Identity  string   `json:"identity"` // mtime, sha256 or etag: a file must keep it
	Lanes     int      `json:"lanes"`
	Done      int      `json:"done"` // lanes of which every item is committed
	Items     int64    `json:"items"`
	Committed int64    `json:"committed"` // items
	Frames    int64    `json:"frames"`
	Bytes     int64    `json:"bytes"` // bytes of the source
}

// reportPlan compares a plan with the ends of its lanes, by partition.
func reportPlan(p *record.Plan, ends map[int32]int64) PlanReport {
	r := PlanReport{Name: p.Name, Hash: p.Hash, Roots: p.Roots, Identity: p.Identity, Lanes: p.Lanes, Items: p.Items,
		Frames: p.Frames, Bytes: p.Bytes}
	for i := range p.Segments {
		s := &p.Segments[i]
		for k, n := range s.Numbers {
			r.Committed += min(ends[n], s.Items[k])
			if ends[n] >= s.Items[k] {
				r.Done++
			}
		}
	}
	return r
}

// String describes the plan in one line.
func (r *PlanReport) String() string {
	text := fmt.Sprintf("plan %s: %d of %d lanes done, %d of %d items", r.Name, r.Done, r.Lanes, r.Committed, r.Items)
	if missing := r.Items - r.Committed; missing > 0 {
		text += fmt.Sprintf("; %d items are missing", missing)
	}
	return text
}

// shownLanes is the most lanes of a plan that texts name one by one.
const shownLanes = 16

// hidden tells whether texts leave out the partitions of a topic, which are the lanes of
// a plan that has many.
func hidden(plans []PlanReport, topic string) bool {
	return slices.ContainsFunc(plans, func(r PlanReport) bool { return r.Name == topic && r.Lanes > shownLanes })
}

// writePlans writes a line for each plan.
func writePlans(b *strings.Builder, plans []PlanReport) {
	for i := range plans {
		fmt.Fprintln(b, &plans[i])
	}
}

// planAt reads the plan of a topic's folder; nil: it has none.
func planAt(ctx context.Context, store sinks.Reader, folder string) (*record.Plan, error) {
	name := folder + "/" + record.PlanFile
	data, err := sinks.ReadRecord(ctx, store, name)
	if errors.Is(err, sinks.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return record.ParsePlan(name, data)
}

// planned checks the plan of a topic, its parts, and that its lanes hold what they may.
// lanes are the reports of the topic's partitions.
func (v *verifier) planned(ctx context.Context, t *topicListing, lanes []PartitionReport) {
	if !t.plan {
		return
	}
	name := t.folder + "/" + record.PlanFile
	v.checked(checkRecords, 1)
	p, err := planAt(ctx, v.store, t.folder)
	if err == nil && p == nil {
		err = errors.New("it was there, and is gone")
	}
	if err != nil {
		v.fault(checkRecords, name, "%v", err)
		return
	}
	v.oneFormat(name, p.Format)
	v.parts(ctx, p)
	planned := p.ItemsOf()
	ends := make(map[int32]int64, len(lanes))
	for i := range lanes {
		l := &lanes[i]
		items := planned[l.Partition]
		where := record.ManifestFolder(record.TopicPartition{Topic: l.Topic, ID: l.Partition})
		switch {
		case items == 0 && l.Manifests > 0:
			v.fault(checkChain, where, "plan %s has no such lane", p.Name)
		case l.Base != 0:
			v.fault(checkChain, where, "the lane begins at offset %d, not at 0", l.Base)
		case l.End > items:
			v.fault(checkChain, where, "the lane has %d items, and the output has %d", items, l.End)
		}
		ends[l.Partition] = l.End
	}
	r := reportPlan(p, ends)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Plans = append(v.Plans, r)
}

// parts checks the segments and lists of a plan.
func (v *verifier) parts(ctx context.Context, p *record.Plan) {
	for i := range p.Segments {
		if ctx.Err() != nil {
			return
		}
		v.checked(checkRecords, 1)
		v.named[p.Segments[i].SHA256] = true
		if _, err := sinks.ReadLanes(ctx, v.store, p, i); err != nil {
			v.fault(checkRecords, record.PartName(p.Segments[i].SHA256), "%v", err)
		}
	}
	for _, l := range p.Lists {
		v.checked(checkRecords, 1)
		v.named[l.SHA256] = true
		if _, err := sinks.ReadPlanList(ctx, v.store, p, l.SHA256); err != nil {
			v.fault(checkRecords, record.PartName(l.SHA256), "%v", err)
		}
	}
}

// strayParts notes the parts that no plan names: a planner died, or works now.
func (v *verifier) strayParts(ctx context.Context) error {
	files, bytes := 0, int64(0)
	err := v.store.List(ctx, record.PlansFolder, func(e sinks.Entry) error {
		if hash, ok := record.IsPartName(e.Name); ok && !v.named[hash] {
			files, bytes = files+1, bytes+e.Size
		}
		return nil
	})
	if files > 0 {
		v.note("%s holds %d files, %d bytes, of plans that were not completed: nothing reads them", record.PlansFolder,
			files, bytes)
	}
	return err
}

// planOrder checks the order of plans: it has no gap, and each place another plan.
func (v *verifier) planOrder(ctx context.Context) error {
	bases, err := v.store.Names(ctx, record.PlanOrderFolder)
	last := 0
	for _, base := range bases {
		n, _ := record.PlaceNumber(record.PlanOrderFolder + "/" + base)
		last = max(last, n)
	}
	places := map[string]int{} // by plan
	for n := 1; n <= last && err == nil; n++ {
		name := record.PlaceName(n)
		v.checked(checkRecords, 1)
		if err := v.place(ctx, name, n, places); err != nil {
			v.fault(checkRecords, name, "%v", err)
		}
		err = ctx.Err()
		if n > len(bases) { // the highest names are far beyond their number
			break
		}
	}
	return err
}

// place checks a place of the order of plans, and adds it to places.
func (v *verifier) place(ctx context.Context, name string, n int, places map[string]int) error {
	data, err := sinks.ReadRecord(ctx, v.store, name)
	if errors.Is(err, sinks.ErrNotFound) {
		return errors.New("this place in the order of plans is not there, and a later one is")
	}
	if err != nil {
		return err
	}
	p, err := record.ParsePlace(name, data)
	if err != nil {
		return err
	}
	v.oneFormat(name, p.Format)
	if first := places[p.Plan]; first > 0 {
		return fmt.Errorf("plan %s has place %d in the order of plans already", p.Plan, first)
	}
	places[p.Plan] = n
	head, err := planAt(ctx, v.store, record.TopicFolder(p.Plan))
	if err == nil && head == nil {
		err = fmt.Errorf("it names plan %s, which is not there", p.Plan)
	} else if damaged := (*record.DamagedError)(nil); errors.As(err, &damaged) {
		err = nil // reported with the plan
	}
	return err
}

// plan adds the plan of a topic. lanes are the summaries of its partitions.
func (d *describer) plan(ctx context.Context, t *topicListing, lanes []PartitionSummary) error {
	if !t.plan {
		return nil
	}
	p, err := planAt(ctx, d.store, t.folder)
	if err != nil || p == nil {
		return err
	}
	ends := make(map[int32]int64, len(lanes))
	for i := range lanes {
		ends[lanes[i].Partition] = lanes[i].End
	}
	d.Plans = append(d.Plans, reportPlan(p, ends))
	return nil
}
