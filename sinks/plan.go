package sinks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"entropipe/sinks/record"
)

// PutPlanPart makes a part of a plan durable and returns its entry for the head.
// Equal parts are one file, whoever writes them.
func PutPlanPart(ctx context.Context, store Records, data []byte) (record.PlanPart, error) {
	part := record.PlanPart{SHA256: record.PartHash(data), Bytes: int64(len(data))}
	name := record.PartName(part.SHA256)
	found, _, err := createOrAdopt(ctx, store, name, data)
	if err == nil && record.PartHash(found) != part.SHA256 {
		err = fmt.Errorf("%s is damaged: remove this file, and the plan writes it again", name)
	}
	return part, err
}

// CreatePlan makes the head of a plan durable, after its parts, and returns the head that
// the output has: that of another process with an equal plan if that was first. A
// *ConfigError says that a different plan has the name.
func CreatePlan(ctx context.Context, store Records, p *record.Plan) (*record.Plan, error) {
	name := record.PlanName(p.Name)
	data := record.Encode(p)
	if _, err := record.ParsePlan(name, data); err != nil {
		return nil, fmt.Errorf("the plan cannot be stored: %w", err)
	}
	found, _, err := createOrAdopt(ctx, store, name, data)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", p.Name, err)
	}
	winner, err := record.ParsePlan(name, found)
	if err == nil && winner.Hash != p.Hash {
		err = &ConfigError{"plan", fmt.Sprintf("the output has another plan with the name %s: %d items in %d lanes, "+
			"made %s; name this one otherwise", p.Name, winner.Items, winner.Lanes,
			winner.Created.Format("2006-01-02 15:04:05 MST"))}
	}
	if s, ok := store.(sweeper); ok && err == nil { // now that all parts are there
		s.Sweep(record.PlansFolder)
	}
	return winner, err
}

// sweeper is a store in which a writer that dies may leave temporary files.
type sweeper interface{ Sweep(folder string) }

// ReadPlan reads the head of the plan with this name. ErrNotFound: the output has none.
func ReadPlan(ctx context.Context, store Reader, plan string) (*record.Plan, error) {
	name := record.PlanName(plan)
	data, err := ReadRecord(ctx, store, name)
	if err != nil {
		return nil, err
	}
	p, err := record.ParsePlan(name, data)
	if err == nil && p.Format != record.FormatVersion {
		err = &record.FormatError{Name: name, Format: p.Format} // copied here from another output
	}
	return p, err
}

// Plans reads the heads of all plans of an output, by name.
func Plans(ctx context.Context, store Reader) ([]*record.Plan, error) {
	folders, err := store.Names(ctx, record.TopicsFolder)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(folders)
	var plans []*record.Plan
	for _, folder := range folders {
		name := record.TopicsFolder + "/" + folder + "/" + record.PlanFile
		data, err := ReadRecord(ctx, store, name)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p, err := record.ParsePlan(name, data)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// ReadLanes reads the lanes of a segment of p.
func ReadLanes(ctx context.Context, store Reader, p *record.Plan, segment int) ([]record.Lane, error) {
	name := record.PartName(p.Segments[segment].SHA256)
	data, err := readPart(ctx, store, name)
	if err != nil {
		return nil, err
	}
	return record.ParseLanes(name, data, p, segment)
}

// ReadLane reads one lane of p. ErrNotFound: the plan has no lane of this number.
func ReadLane(ctx context.Context, store Reader, p *record.Plan, number int32) (*record.Lane, error) {
	segment, place, _ := p.Lane(number)
	if segment < 0 {
		return nil, fmt.Errorf("plan %s has no lane %d: %w", p.Name, number, ErrNotFound)
	}
	name := record.PartName(p.Segments[segment].SHA256)
	data, err := readPart(ctx, store, name)
	if err != nil {
		return nil, err
	}
	return record.ParseLane(name, data, p, segment, place)
}

// ReadPlanList reads the names of the files of an input, which LaneInput.List names.
func ReadPlanList(ctx context.Context, store Reader, p *record.Plan, list string) ([]string, error) {
	i := slices.IndexFunc(p.Lists, func(part record.PlanPart) bool { return part.SHA256 == list })
	if i < 0 {
		return nil, fmt.Errorf("plan %s has no list %s", p.Name, list)
	}
	name := record.PartName(list)
	data, err := readPart(ctx, store, name)
	if err != nil {
		return nil, err
	}
	return record.ParseNames(name, data, p.Lists[i])
}

// readPart reads a part that a head names.
func readPart(ctx context.Context, store Reader, name string) ([]byte, error) {
	data, err := ReadRecord(ctx, store, name)
	if errors.Is(err, ErrNotFound) {
		err = &record.DamagedError{Name: name, Err: errors.New("a plan names it, and it is not there")}
	}
	return data, err
}

// Newest returns the newest manifest of a partition; nil: it has none. It changes nothing,
// and may be called beside writers.
func (o *Output) Newest(ctx context.Context, topic string, id int32) (*record.Manifest, error) {
	return o.newest(ctx, partition{Topic: topic, ID: id})
}
