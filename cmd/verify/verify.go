// Package verify is the command verify: it checks an output, and with --repair moves
// files aside so that the command run writes their records again. Package sinks/read has
// the checks and the plan of a repair; the questions to the brokers are here.
//
// A fault is anything in an output that breaks the commit protocol. A plan lists the
// files that a repair moves, in steps, one for each manifest or group of files.
package verify

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/sinks"
	"entropipe/sinks/read"
)

// Command is the command verify: its flags and arguments.
type Command struct {
	Out  string `arg:"" type:"output"`
	JSON bool   `name:"json"`

	Bucket command.Bucket `embed:"" group:"Object store"`

	repairFlags `embed:""`
}

// Run checks the flags and runs the command.
func (c *Command) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	store, err := command.OpenOutput(e.Ctx, c.Out, &c.Bucket)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	defer store.Close()
	var r *repairer
	if c.Repair {
		if r, err = c.open(e, store); err != nil {
			return fmt.Errorf("verify --repair %s: %w", config.ShownPath(c.Out), err)
		}
	}
	report, err := c.verify(e, store)
	if err != nil {
		return fmt.Errorf("verify %s: %w", config.ShownPath(c.Out), err)
	}
	if r != nil {
		if err := r.repair(e, report.Repair); err != nil {
			return errors.Join(command.PrintResult(e.Stdout, c.JSON, report),
				fmt.Errorf("verify --repair %s: %w", config.ShownPath(c.Out), err))
		}
	}
	if err := command.PrintResult(e.Stdout, c.JSON, report); err != nil {
		return err
	}
	switch plan := report.Repair; {
	case report.OK:
		return nil
	case plan == nil || !plan.Done && plan.Files() == 0:
		return fmt.Errorf("verify %s: %d faults", config.ShownPath(c.Out), report.FaultCount)
	case !plan.Done:
		return fmt.Errorf("verify --repair %s: %d faults; nothing was moved: --yes moves %d files",
			config.ShownPath(c.Out), report.FaultCount, plan.Files())
	case len(plan.Left) > 0:
		return fmt.Errorf("verify --repair %s: %d faults are left, which moving files does not mend",
			config.ShownPath(c.Out), len(plan.Left))
	}
	return nil
}

// verify checks the output, and shows how far it has come.
func (c *Command) verify(e *command.Env, store sinks.Reader) (*read.Report, error) {
	var done, total atomic.Int64
	begin := time.Now()
	// their number is known later
	show := command.StartProgress(e.Stderr, e.Log, "manifests", 0, func() (int64, string) {
		d, t := done.Load(), total.Load()
		return d, fmt.Sprintf("of %d", t) + command.Since(begin, t).Text(d)
	})
	defer show.Stop()
	return read.Verify(e.Ctx, store, read.VerifyOptions{Repair: c.Repair, Progress: func(d, t int) {
		done.Store(int64(d))
		total.Store(int64(t))
	}})
}
