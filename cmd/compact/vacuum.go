package compact

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/cmd/mistake"
	"entropipe/sinks"
	"entropipe/sinks/compact"
)

// Vacuum is the command vacuum: its flags and arguments.
type Vacuum struct {
	Out       string        `arg:"" type:"output"`
	CoveredBy string        `placeholder:"OUT2" group:"Vacuum"`
	OlderThan time.Duration `default:"24h" group:"Vacuum"`
	DryRun    bool          `group:"Vacuum"`
	JSON      bool          `name:"json" group:"Vacuum"`

	Bucket command.Bucket `embed:"" group:"Object store"`
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *Vacuum) Check() error {
	cover := command.CheckAddress("covered-by", c.CoveredBy)
	if c.CoveredBy == "" {
		cover = mistake.About("--covered-by is missing: the compaction of the output", "covered-by")
	}
	return errors.Join(cover, c.Bucket.Check(c.Out), command.CheckAmount("older-than", c.OlderThan, 0, math.MaxInt64))
}

// Run checks the flags and runs the command.
func (c *Vacuum) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	from, err := command.OpenOutput(e.Ctx, c.Out, &c.Bucket)
	if err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	defer from.Close()
	into, err := command.OpenOutput(e.Ctx, c.CoveredBy, &c.Bucket)
	if err != nil {
		return fmt.Errorf("vacuum: --covered-by: %w", err)
	}
	defer into.Close()
	done, err := compact.Vacuum(e.Ctx, from, into, compact.VacuumConfig{OlderThan: c.OlderThan, DryRun: c.DryRun,
		Version: command.Version})
	if wrong := (*sinks.ConfigError)(nil); errors.As(err, &wrong) {
		return &mistake.Config{Problems: []mistake.Problem{{Path: wrong.Field, What: wrong.Problem}}}
	}
	if failed := command.PrintResult(e.Stdout, c.JSON, &vacuumed{c.DryRun, done}); err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("vacuum %s: %w; what was retired is covered, and the command may be repeated",
			config.ShownPath(c.Out), err)
	}
	return nil
}

// vacuumed is the result of vacuum.
type vacuumed struct {
	DryRun bool `json:"dry_run"`
	compact.Vacuumed
}

// String describes the result in one line.
func (v *vacuumed) String() string {
	were := "were retired"
	if v.DryRun {
		were = "would be retired"
	}
	text := fmt.Sprintf("%s commits with %s files, %s, %s; %s before; %s are kept\n", command.Count(v.Commits),
		command.Count(v.Files), command.ByteSize(v.Bytes), were, command.Count(v.Before), command.Count(v.Kept))
	if v.Stray > 0 {
		text += fmt.Sprintf("%s files of _staging that no commit needs, %s, %s\n", command.Count(v.Stray),
			command.ByteSize(v.StrayBytes), strings.Replace(were, "retired", "deleted", 1))
	}
	return text
}
