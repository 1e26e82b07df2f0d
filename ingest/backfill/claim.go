package backfill

import (
	"context"
	"errors"
	"slices"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// claim makes sure that a stored plan has a place in the order of the output's plans: only
// then it is worked on. A *sinks.ConfigError names the plan that has a file of p. A process
// that dies before it has the place leaves a plan that the next claim decides about.
//
// Cost where p is the first plan: one read, once it has its place.
func claim(ctx context.Context, store sinks.Store, p *record.Plan) error {
	for {
		next, err := nextPlace(ctx, store, p)
		if err != nil || next == 0 {
			return err
		}
		if taken, err := sinks.PlacePlan(ctx, store, p, next); err != nil || !taken {
			return err
		}
	}
}

// nextPlace returns the place that p may take in the order of plans; 0: its name has one. A
// *sinks.ConfigError says that a file of p belongs to another plan.
func nextPlace(ctx context.Context, store sinks.Store, p *record.Plan) (int, error) {
	order, err := sinks.PlanOrder(ctx, store, p.Name)
	if err != nil || slices.Contains(order, p.Name) {
		return 0, err
	}
	others := make([]*record.Plan, len(order))
	for i, name := range order {
		others[i], err = sinks.ReadPlan(ctx, store, name)
		if errors.Is(err, sinks.ErrNotFound) {
			err = &record.DamagedError{Name: record.PlanName(name),
				Err: errors.New(record.PlaceName(i+1) + " names this plan, and it is not there")}
		}
		if err != nil {
			return 0, err
		}
	}
	stored, err := sinks.Plans(ctx, store)
	if err != nil {
		return 0, err
	}
	for _, q := range stored {
		if q.Name == p.Name || slices.Contains(order, q.Name) {
			continue
		}
		begun, err := hasBase(ctx, store, q) // by a program without an order
		if err != nil {
			return 0, err
		}
		if begun {
			others = append(others, q)
		}
	}
	return len(order) + 1, disjoint(ctx, store, p, others)
}

// hasBase tells whether work on a plan was begun.
func hasBase(ctx context.Context, store sinks.Reader, p *record.Plan) (bool, error) {
	_, err := sinks.ReadRecord(ctx, store, record.TopicFolder(p.Name)+"/"+record.BaseFile)
	if errors.Is(err, sinks.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// searched returns the plan of a search that was made before, with the same roots and
// settings; nil: there is none. Of several it is the one that has a place in the order.
func searched(ctx context.Context, store sinks.Store, plans []*record.Plan, opt Options) (*record.Plan, error) {
	same := slices.DeleteFunc(slices.Clone(plans), func(p *record.Plan) bool { return !sameSearch(p, opt) })
	if len(same) == 0 {
		return nil, nil
	}
	if len(same) > 1 {
		order, err := sinks.PlanOrder(ctx, store, "")
		if err != nil {
			return nil, err
		}
		placed := func(p *record.Plan) bool { return slices.Contains(order, p.Name) }
		return same[max(0, slices.IndexFunc(same, placed))], nil
	}
	return same[0], nil
}
