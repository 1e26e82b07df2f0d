package sinks

import (
	"context"
	"errors"
	"fmt"

	"entropipe/sinks/record"
)

// The plans of an output stand in an order: the record _commits/plans/order/<n>.json names
// plan n, from 1 on without a gap. A plan that shares no file with those before it takes the
// next place before it is worked on; the exclusive creation of the record is the
// compare-and-set. So no two plans of the order share a file, whatever the clocks say. A plan
// without a place is not worked on.

// PlanOrder reads the names of the plans in their order, up to the plan with the name until
// if that has a place.
func PlanOrder(ctx context.Context, store Records, until string) ([]string, error) {
	var order []string
	for {
		name := record.PlaceName(len(order) + 1)
		data, err := store.Read(ctx, name)
		if errors.Is(err, ErrNotFound) {
			return order, nil
		}
		if err != nil {
			return nil, err
		}
		place, err := record.ParsePlace(name, data)
		if err != nil {
			return nil, err
		}
		if order = append(order, place.Plan); place.Plan == until {
			return order, nil
		}
	}
}

// PlacePlan gives place n of the order to p, which is stored. taken: another plan has it.
// Equal calls of several processes all succeed.
func PlacePlan(ctx context.Context, store Records, p *record.Plan, n int) (taken bool, err error) {
	name := record.PlaceName(n)
	data := record.Encode(&record.PlanPlace{Format: record.FormatVersion, Number: n, Plan: p.Name})
	_, mine, err := createOrAdopt(ctx, store, name, data)
	if err != nil {
		return false, fmt.Errorf("place of plan %s: %w", p.Name, err)
	}
	return !mine, nil
}
