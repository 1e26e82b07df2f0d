package backfill

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"entropipe/cmd/command"
	"entropipe/cmd/produce/source"
	"entropipe/ingest/backfill"
	"entropipe/ops/metrics"
	"entropipe/sinks"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// planOnly are the flags of backfill plan, besides a source's.
type planOnly struct {
	Plan   PlanFlags      `embed:"" group:"Plan"`
	Bucket command.Bucket `embed:"" group:"Output"`

	Out         string       `default:"./entropipe-out" placeholder:"DIR" group:"Output"`
	PartitionBy []string     `enum:"dataset,sequence,date" default:"dataset" group:"Output" more:"yes"`
	JSON        bool         `name:"json" group:"Other"`
	Progress    progressMode `default:"auto" placeholder:"auto|true|false" group:"Other"`
}

// planAhead bounds what is read ahead of archives in buckets, in bytes.
const planAhead = 32 << 20

// run writes the plan and prints it.
func (c *planOnly) run(e *command.Env, from source.Archived) error {
	if err := errors.Join(c.Plan.check(), c.Plan.checkReuse(c.Out), from.Check(), c.Bucket.Check(c.Out),
		c.Bucket.CheckSources(from.Where())); err != nil {
		return err
	}
	defer c.Bucket.Reading(e.Ctx, planAhead)()
	j := &job{env: e, from: from}
	if err := j.open(&c.Plan, source.Options{Rate: fastest(), Log: e.Log}); err != nil {
		return err
	}
	if err := j.probe(e.Ctx, c.Out, &c.Bucket, c.Plan.Names.Sequence); err != nil {
		return err
	}
	earlier, err := j.openReuse(e.Ctx, &c.Plan, &c.Bucket, c.PartitionBy)
	if err != nil {
		return explained(err)
	}
	defer earlier.Close()
	store, err := c.openOutput(e.Ctx)
	if err != nil {
		return explained(err)
	}
	defer store.Close()
	if j.options, err = earlier.options(e.Ctx, store, j.options); err != nil {
		return explained(err)
	}
	var plan *record.Plan
	err = j.searching(c.Progress, func() error {
		plan, err = backfill.Prepare(e.Ctx, store, j.archive, j.options)
		return err
	})
	if err != nil {
		return explained(err)
	}
	if c.JSON {
		enc := json.NewEncoder(e.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(plan)
	}
	return printPlan(e.Ctx, e.Stdout, store, plan)
}

// openOutput opens the output, or makes the folder one.
func (c *planOnly) openOutput(ctx context.Context) (command.Store, error) {
	encoder, err := tables.New(tables.Config{PartitionBy: c.PartitionBy, Version: command.Version,
		Build: metrics.Revision()})
	if err != nil {
		return nil, err
	}
	store, err := command.MakeOutput(ctx, c.Out, &c.Bucket)
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	if _, err := sinks.Open(ctx, store, encoder, sinks.Config{Version: command.Version}); err != nil {
		store.Close()
		return nil, err
	}
	return store, nil
}

// printPlan prints a line for the plan and one for each lane.
func printPlan(ctx context.Context, to io.Writer, store sinks.Reader, p *record.Plan) error {
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "%s: %s lanes, %s items, %s frames, %s files, %s; files are known by %s\n", p.Name,
		command.Count(int64(p.Lanes)), command.Count(p.Items), command.Count(p.Frames), command.Count(p.Files),
		command.ByteSize(p.Bytes), p.Identity)
	for i := range p.Segments {
		lanes, err := sinks.ReadLanes(ctx, store, p, i)
		if err != nil {
			return err
		}
		for k := range lanes {
			l := &lanes[k]
			fmt.Fprintf(w, "lane %d: items %d to %d of %s (%s), %s\n", l.Number, l.First, l.First+l.Items-1,
				l.Input.Path, l.Input.Format, command.ByteSize(l.Bytes))
		}
	}
	return w.Flush()
}
