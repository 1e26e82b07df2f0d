package backfill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/ingest/backfill"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// reuse is the earlier output of --reuse.
type reuse struct {
	store   command.Store
	former  *sinks.Former
	earlier *backfill.Earlier
	found   *backfill.AdoptedLanes // nil before the lanes were adopted
}

// checkReuse returns the mistakes of --changed and --reuse.
func (c *PlanFlags) checkReuse(out string) error {
	switch {
	case c.Changed && c.Reuse == "":
		return mistake.About("--changed needs --reuse OLD, the output whose lanes are taken over", "changed", "reuse")
	case c.Reuse != "" && !c.Changed:
		return mistake.About("--reuse needs --changed: compute only what has changed since OLD", "reuse", "changed")
	case c.Reuse != "" && command.IsBucket(c.Reuse) && (&command.Bucket{}).Check(c.Reuse) != nil:
		return mistake.About("--reuse: want a folder or s3://BUCKET/PREFIX", "reuse")
	case c.Reuse != "" && sameFolder(c.Reuse, out):
		return mistake.About("--reuse and --out are the same folder; write to a new one, and remove the earlier "+
			"output "+
			"afterwards", "reuse", "out")
	}
	return nil
}

// sameFolder tells whether two addresses are one folder or one place in a bucket.
func sameFolder(a, b string) bool {
	if command.IsBucket(a) || command.IsBucket(b) {
		return command.WholeOutput(a) == command.WholeOutput(b)
	}
	first, err := os.Stat(a)
	second, err2 := os.Stat(b)
	return filepath.Clean(a) == filepath.Clean(b) || err == nil && err2 == nil && os.SameFile(first, second)
}

// openReuse opens the earlier output, which is only read, for a new one with folders by
// these keys; nil: none is wanted.
func (j *job) openReuse(ctx context.Context, c *PlanFlags, b *command.Bucket, by []string) (*reuse, error) {
	if c.Reuse == "" {
		return nil, nil
	}
	store, err := command.FindOutput(ctx, c.Reuse, b)
	if err != nil {
		return nil, &sinks.ConfigError{Field: "reuse", Problem: fmt.Sprintf("%s: %v", c.Reuse, reason(err))}
	}
	r := &reuse{store: store}
	if r.former, err = sinks.OpenFormer(ctx, store); err == nil {
		err = r.former.CheckFolders(by)
	}
	if err == nil {
		r.earlier, err = backfill.ReadEarlier(ctx, store, j.options)
	}
	if err != nil {
		store.Close()
		return nil, err
	}
	if why := r.earlier.Why(); why != "" {
		j.env.Log.Warn("nothing can be taken over, and everything is computed", "reuse", c.Reuse, "reason", why)
	}
	return r, nil
}

// Close releases the earlier output.
func (r *reuse) Close() {
	if r != nil {
		r.store.Close()
	}
}

// fits returns an error if no commit of the earlier output can be one of the new output.
func (r *reuse) fits(o *sinks.Output) error {
	if r == nil {
		return nil
	}
	return o.Adoptable(r.former)
}

// has tells whether a lane has not changed since the earlier output.
func (r *reuse) has(l *record.Lane) (bool, error) {
	if r == nil {
		return false, nil
	}
	return r.earlier.Same(l)
}

// options returns the options of the plan of a new output, whose lanes have the numbers of
// the earlier one.
func (r *reuse) options(ctx context.Context, store sinks.Reader, opt backfill.Options) (backfill.Options, error) {
	if r == nil {
		return opt, nil
	}
	return r.earlier.Options(ctx, store, opt)
}

// adopt takes over the lanes of the shard that have not changed, and logs how many. If ctx
// ends meanwhile, the verdict says so.
func (f *feed) adopt(ctx context.Context, jobs int) error {
	if f.reuse == nil {
		return nil
	}
	err := f.adoptLanes(ctx, f.reuse, jobs)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (f *feed) adoptLanes(ctx context.Context, r *reuse, jobs int) error {
	begin := time.Now()
	same, err := r.earlier.Lanes(ctx, f.s.Store(), f.plan)
	if err != nil {
		return err
	}
	a := backfill.Adoption{Output: f.s.Output, Former: r.former, Plan: f.plan, Lanes: same, Shard: f.shard,
		Order: f.order, Jobs: jobs, RetryFor: f.Output.RetryFor, Log: f.env.Log}
	found, err := a.Run(ctx)
	if err != nil {
		return err
	}
	r.found = found
	f.env.Log.Info(found.String(), "from", r.former.UUID(), "files_linked", found.Linked, "files_copied", found.Copied,
		"bytes", command.ByteSize(found.Bytes), "seconds", fmt.Sprintf("%.1f", time.Since(begin).Seconds()))
	if found.Copied > 0 {
		f.env.Log.Warn("files were copied, since the outputs are on different file systems, or the files belong to "+
			"another user", "files", found.Copied)
	}
	for _, why := range found.Reasons() {
		if found.Whys[why] > 1 { // a single lane was named already
			f.env.Log.Info("lanes are computed although the archive has not changed", "lanes", found.Whys[why],
				"reason", why)
		}
	}
	if err := f.look(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun, f.before = time.Now(), 0 // the time that is left is that of computing
	for _, each := range f.known {
		f.before += each.durable
	}
	return nil
}

// summary is the part of the last line about the lanes that were taken over.
func (r *reuse) summary() string {
	if r == nil || r.found == nil {
		return ""
	}
	return "; " + r.found.String()
}
