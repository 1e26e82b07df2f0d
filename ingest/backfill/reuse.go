package backfill

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Earlier is the plan of an earlier output, whose lanes a new output takes over where the
// archive has not changed. A lane of the new plan that has the same input, range and
// files as one of the earlier plan has its number, too: rows and names of files have the
// number of their lane, so the commits of the earlier output fit. Any goroutine may call
// the methods.
type Earlier struct {
	plan    *record.Plan
	roots   []int // index of each of the new roots among those of plan; -1: it is not there
	named   []string
	numbers map[laneKey]int32
	highest int32
	why     string // why no lane can be the same; empty: some may be
}

// laneKey is what makes lanes of two plans the same: the first half of a SHA-256.
type laneKey [sha256.Size / 2]byte

// ReadEarlier reads the plan of an earlier output that belongs to a search with these
// options: the plan that they name, else the one with their roots and settings, else the
// only one with their settings. The error is a *sinks.ConfigError if there is none, or
// none that can be told from others.
//
// Cost: all lanes of the plan are read once. Memory: about 60 bytes a lane.
func ReadEarlier(ctx context.Context, old sinks.Reader, opt Options) (*Earlier, error) {
	plans, err := sinks.Plans(ctx, old)
	if err != nil {
		return nil, fmt.Errorf("plans of the earlier output: %w", err)
	}
	p, why, err := earlierPlan(plans, opt)
	if err != nil {
		return nil, err
	}
	e := &Earlier{plan: p, highest: -1, numbers: make(map[laneKey]int32, p.Lanes), why: why}
	if why != "" {
		return e, nil
	}
	if opt.Identity != "" && opt.Identity != p.Identity {
		return nil, reuseError("its plan %s compares files by %s: say the same, since by %s all would be computed",
			p.Name, p.Identity, opt.Identity)
	}
	e.roots, e.named = rootsIn(p.Roots, opt.Roots), opt.Roots
	own := &Earlier{roots: rootsIn(p.Roots, p.Roots), named: p.Roots}
	err = eachLane(ctx, old, p, func(l *record.Lane) error {
		e.highest = max(e.highest, l.Number)
		key, _, err := own.key(l)
		if _, twice := e.numbers[key]; !twice { // two lanes with the same content: the first is taken
			e.numbers[key] = l.Number
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("plan of the earlier output: %w", err)
	}
	return e, nil
}

func reuseError(format string, args ...any) error {
	return &sinks.ConfigError{Field: "reuse", Problem: fmt.Sprintf(format, args...)}
}

// earlierPlan selects a plan. why says that its settings are others, so that none of its
// messages are those of opt.
func earlierPlan(plans []*record.Plan, opt Options) (p *record.Plan, why string, err error) {
	if opt.Plan != "" {
		plans = slices.DeleteFunc(slices.Clone(plans), func(p *record.Plan) bool { return p.Name != opt.Plan })
		if len(plans) == 0 {
			return nil, "", reuseError("this output has no plan with the name %s", opt.Plan)
		}
	}
	if len(plans) == 0 {
		return nil, "", reuseError("this is not the output of a backfill: it has no plan")
	}
	fit := slices.DeleteFunc(slices.Clone(plans), func(p *record.Plan) bool {
		return len(sinks.Content(p.Source).Changes(opt.Source)) > 0
	})
	if len(fit) == 0 {
		return plans[0], "the settings of the source are others: " +
			strings.Join(sinks.Content(plans[0].Source).Changes(opt.Source), "; "), nil
	}
	same := slices.DeleteFunc(slices.Clone(fit), func(p *record.Plan) bool { return !slices.Equal(p.Roots, opt.Roots) })
	if len(same) == 0 {
		same = fit
	}
	if len(same) > 1 {
		var names []string
		for _, p := range same {
			names = append(names, p.Name)
		}
		return nil, "", reuseError("this output has the plans %s: name one with --plan", strings.Join(names, ", "))
	}
	return same[0], "", nil
}

// rootsIn returns the index of each root among the earlier ones: of the same folder, or,
// if no folder is the same, of the same place: the archive was mounted elsewhere.
func rootsIn(earlier, roots []string) []int {
	found, any := make([]int, len(roots)), false
	for i, root := range roots {
		found[i] = slices.Index(earlier, root)
		any = any || found[i] >= 0
	}
	if !any && len(roots) == len(earlier) {
		for i := range found {
			found[i] = i
		}
	}
	return found
}

// key returns what the lane must have in common with one of the earlier plan. What other
// items of its input decide is left out: estimates, and the list of all files. ok: its
// root is one of the earlier plan's.
func (e *Earlier) key(l *record.Lane) (key laneKey, ok bool, err error) {
	same := *l
	if same.Root = e.roots[l.Root]; same.Root < 0 {
		return key, false, nil
	}
	same.Frames, same.Bytes = 0, 0
	same.Input.Files, same.Input.Own, same.Input.List = nil, false, ""
	if same.Input.Path == "." && same.Input.Sequence == "" { // a sequence may have the name of the root
		same.Input.Path = "./" + lastName(e.named[l.Root])
	}
	sum, err := same.Identity()
	copy(key[:], sum[:])
	return key, true, err
}

// Plan returns the head of the earlier plan.
func (e *Earlier) Plan() *record.Plan { return e.plan }

// Why returns why no lane can be taken over; empty: some may be.
func (e *Earlier) Why() string { return e.why }

// Options returns opt for Prepare, with the name of the earlier plan, its way to identify
// files, and its numbers for equal lanes. Once the new output has a plan of that name,
// numbers and name are those of that plan. The result is for one call of Prepare.
func (e *Earlier) Options(ctx context.Context, store sinks.Reader, opt Options) (Options, error) {
	if e.why != "" {
		return opt, nil
	}
	if opt.Identity == "" {
		opt.Identity = e.plan.Identity
	}
	_, err := sinks.ReadPlan(ctx, store, e.plan.Name)
	if !errors.Is(err, sinks.ErrNotFound) {
		return opt, err
	}
	opt.Plan = e.plan.Name
	taken, next := map[int32]bool{}, e.highest
	opt.Number = func(l *record.Lane) (int32, error) {
		key, ok, err := e.key(l)
		if err != nil {
			return 0, err
		}
		if n, there := e.numbers[key]; ok && there && !taken[n] {
			taken[n] = true
			return n, nil
		}
		next++
		return next, nil
	}
	return opt, nil
}

// Lanes returns the numbers of the lanes of a plan that are lanes of the earlier plan
// under the same number. The plan need not have been made with Options.
func (e *Earlier) Lanes(ctx context.Context, store sinks.Reader, p *record.Plan) (map[int32]bool, error) {
	same := map[int32]bool{}
	if e.why != "" || p.Name != e.plan.Name || p.Identity != e.plan.Identity || len(p.Roots) != len(e.roots) {
		return same, nil
	}
	err := eachLane(ctx, store, p, func(l *record.Lane) error {
		equal, err := e.Same(l)
		if equal {
			same[l.Number] = true
		}
		return err
	})
	return same, err
}

// Same tells whether a lane of the new plan is one of the earlier plan, under the same number.
func (e *Earlier) Same(l *record.Lane) (bool, error) {
	if e.why != "" {
		return false, nil
	}
	key, ok, err := e.key(l)
	n, there := e.numbers[key]
	return ok && there && n == l.Number, err
}
