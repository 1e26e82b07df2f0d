// Package backfill is the command backfill: it computes the tables of an archive without a
// broker, in any number of processes. Its sources are those of produce (package
// cmd/produce/source), its service is that of run (package cmd/run) with lanes in place of
// partitions, and its lanes come from package ingest/backfill.
//
// A plan divides an archive into lanes. A shard is the part of the lanes that one process
// works on. To try is to run a sample of the archive through everything but the disk.
package backfill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/cmd/produce/source"
	"entropipe/cmd/run"
	"entropipe/cmd/run/flags"
	"entropipe/ingest/backfill"
	"entropipe/ingest/filesys"
	"entropipe/ingest/replay"
	"entropipe/sinks"
)

// job is one call of the command.
type job struct {
	*Flags
	env      *command.Env
	from     source.Archived
	archive  replay.Archive
	producer *replay.Producer
	service  *flags.Flags
	opened   source.Options
	options  backfill.Options
	shard    backfill.Shard
}

// run checks the flags and runs the command, whose struct is whole.
func (c *Flags) run(e *command.Env, whole any, from source.Archived) error {
	j := &job{Flags: c, env: e, from: from, service: c.service()}
	var err error
	if err = errors.Join(c.Check(), from.Check(), c.Output.Bucket.CheckSources(from.Where())); err != nil {
		return err
	}
	defer j.reading(from.Where())()
	if j.shard, err = c.Work.shard(os.LookupEnv); err != nil {
		return err
	}
	idle, want := j.service.Idle(config.Differs(e.Parser, whole))
	for i, flag := range idle {
		if flag == "new-config" { // it works without --strict-config here
			continue
		}
		e.Log.Warn("this flag does nothing without another", "flag", "--"+flag, "want", want[i])
	}
	o := source.Options{Rate: fastest(), MaxFrameBytes: int64(c.Frames.MaxFrameBytes), Log: e.Log}
	if err = j.open(&c.Plan, o); err != nil {
		return err
	}
	if c.DryRun {
		return j.dryRun(config.Effective(e.Parser, whole))
	}
	return j.backfill(config.Effective(e.Parser, whole), run.Show{Settings: config.Lines(e.Parser, whole, e.Settings)})
}

// readShare is the part of --memory that is read ahead of archives in buckets: one of so many.
const readShare = 4

// reading has archives in buckets be reached until end is called, and takes what is read ahead
// from the memory of the service.
func (j *job) reading(paths []string) (end func()) {
	share := value.Size(0)
	if slices.ContainsFunc(paths, filesys.IsBucket) {
		share = min(j.service.Resource.Memory/readShare, max(j.service.Resource.Memory-command.MinMemory, 0))
		j.service.Resource.Memory -= share
	}
	return j.Output.Bucket.Reading(j.env.Ctx, int64(share))
}

// fastest is the rate of a source that nobody waits for.
func fastest() replay.Rate {
	r, err := replay.ParseRate("max")
	if err != nil {
		panic(err)
	}
	return r
}

// open makes the archive and the options of its plan. It reads no file of the archive.
func (j *job) open(c *PlanFlags, o source.Options) error {
	if err := exist(j.from.Where()); err != nil {
		return err
	}
	var err error
	j.opened = o
	if j.archive, err = j.from.Archive(o); err != nil {
		return err
	}
	if c.Names.Sequence != "" {
		j.archive = &single{Archive: j.archive, sequence: c.Names.Sequence}
	}
	j.producer = &replay.Producer{Play: replay.Play{Epoch: c.Names.Epoch}, Names: c.Names.Replay()}
	j.options = backfill.Options{Plan: c.Plan, Identity: c.identity(), Writer: command.Version}
	if j.options.Roots, err = backfill.Roots(j.from.Where()); err != nil {
		return err
	}
	if j.options.Source, err = j.from.Settings(); err != nil {
		return err
	}
	for name, value := range c.Names.Settings() {
		j.options.Source[name] = value
	}
	return nil
}

// probe looks for a first input, and with a name for one also for a second, unless out is
// there already.
func (j *job) probe(ctx context.Context, out string, b *command.Bucket, sequence string) error {
	if command.IsBucket(out) {
		if store, err := command.OpenOutput(ctx, out, b); err == nil {
			return store.Close()
		}
	} else if _, err := os.Stat(out); err == nil {
		return nil
	}
	enough := 1
	if sequence != "" {
		enough = 2
	}
	inputs, err := j.look(ctx, enough, enough)
	if inputs < enough && err == nil { // the first ones may hold nothing
		inputs, err = j.look(ctx, enough, 0)
	}
	switch {
	case inputs > 1:
		return source.OneName(sequence, inputs)
	case err == nil && inputs == 0:
		return nothing()
	}
	return err
}

// look counts inputs up to enough. The search ends at the first ones; 0: it finds all.
func (j *job) look(ctx context.Context, enough, first int) (inputs int, err error) {
	o := j.opened
	o.Log, o.First = silent, first
	archive, err := j.from.Archive(o)
	if err != nil {
		return 0, err
	}
	found := errors.New("there is an input")
	err = archive.Parts(ctx, func(*replay.Part) error {
		if inputs++; inputs == enough {
			return found
		}
		return nil
	})
	if errors.Is(err, found) {
		err = nil
	}
	return inputs, err
}

// nothing is the error of an archive without items.
func nothing() error { return errors.New("there is nothing to read") }

// exist returns an error if a path does not exist, before an output is made. A pattern is
// no path.
func exist(paths []string) error {
	for _, path := range paths {
		if _, err := filesys.Stat(path); err == nil {
			continue
		} else if found, bad := filesys.Glob(path); bad != nil || len(found) == 0 {
			return fmt.Errorf("%s: %w", config.ShownPath(path), reason(err))
		}
	}
	return nil
}

// reason returns err without the path that the os package puts before it.
func reason(err error) error {
	if at := (*os.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// single is an Archive of one input: --sequence would give one name to several.
type single struct {
	replay.Archive
	sequence string
}

// Parts implements replay.Archive.
func (s *single) Parts(ctx context.Context, f func(*replay.Part) error) error {
	inputs := 0
	return s.Archive.Parts(ctx, func(p *replay.Part) error {
		if inputs++; inputs > 1 {
			return source.OneName(s.sequence, inputs)
		}
		return f(p)
	})
}

// backfill computes the lanes of the shard.
func (j *job) backfill(settings string, show run.Show) error {
	e := j.env
	f := &feed{job: j, order: rand.Uint64()}
	begin := time.Now()
	s, err := run.Start(e.Ctx, j.service, settings, show, f, e.Log)
	if err != nil {
		return stoppedEarly(e, explained(err))
	}
	defer s.Close()
	e.Log.Info("backfilling", f.described()...)
	stop := func() {}
	if j.Progress.shown(e.Stderr) {
		all := f.state()
		stop = command.StartProgress(e.Stderr, e.Log, "items", all.Items, f.progress(s, begin)).Stop
	}
	err = s.Run(e.Ctx)
	stop()
	if err == nil {
		err = s.Verdict(e.Ctx)
	}
	f.look(context.WithoutCancel(e.Ctx))
	s.WarnOfEmptyTables()
	if _, printed := fmt.Fprintln(e.Stdout, f.summary(s, time.Since(begin))); err == nil {
		err = printed
	}
	return explained(err)
}

// stoppedEarly returns err, or that a signal came before the first lane.
func stoppedEarly(e *command.Env, err error) error {
	if err = command.UnlessStopped(e, err); err == nil {
		return &command.InterruptedError{}
	}
	return err
}

// explained makes an error that names a setting a mistake of the configuration.
func explained(err error) error {
	if wrong := (*sinks.ConfigError)(nil); errors.As(err, &wrong) {
		return &mistake.Config{Problems: []mistake.Problem{{Path: wrong.Field, What: wrong.Problem}}}
	}
	return err
}

// messages returns what the producer would send of a source.
func (j *job) messages(src replay.Source) (backfill.Messages, error) { return j.producer.Messages(src) }

// searching shows the search of the archive while f runs.
func (j *job) searching(progress progressMode, f func() error) error {
	if !progress.shown(j.env.Stderr) {
		return f()
	}
	show := command.StartProgress(j.env.Stderr, silent, "searching: files", 0, func() (int64, string) {
		n := j.archive.Counts()
		return n.Files, fmt.Sprintf("in %s inputs, %s items", command.Count(n.Inputs), command.Count(n.Items))
	})
	defer show.Stop()
	return f()
}

// silent is a log that nobody reads.
var silent = slog.New(slog.DiscardHandler)
