package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"entropipe/sinks"
)

type verifyCmd struct {
	Out  string `arg:"" type:"path" help:"Output folder."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

func (verifyCmd) Help() string {
	return `Reads every manifest and every file: checksums, row counts, an unbroken chain of offsets
without overlap, and for every record a row, a reject or a counted hole. It may run beside
writers. Exit status 1 when anything is wrong.

Example:
  entropipe verify ./entropipe-out`
}

func (c *verifyCmd) Run(e *env) error {
	store, err := openOutput(c.Out)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	defer store.Close()
	var done, total atomic.Int64
	begin := time.Now()
	show := startProgress(e.stderr, e.log, "manifests", 0, func() (int64, string) { // their number is known later
		d, t := done.Load(), total.Load()
		return d, fmt.Sprintf("of %d", t) + timeLeft{begin, 0, t}.text(d)
	})
	report, err := sinks.Verify(e.ctx, store, sinks.VerifyOptions{Progress: func(d, t int) { done.Store(int64(d)); total.Store(int64(t)) }})
	show.Stop()
	if err != nil {
		return fmt.Errorf("verify %s: %w", shownPath(c.Out), err)
	}
	if err := printResult(e.stdout, c.JSON, report); err != nil {
		return err
	}
	if !report.OK {
		return fmt.Errorf("verify %s: %d faults", shownPath(c.Out), report.FaultCount)
	}
	return nil
}

// printResult writes v as JSON or as its String.
func printResult(w io.Writer, asJSON bool, v fmt.Stringer) error {
	if !asJSON {
		_, err := io.WriteString(w, v.String())
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
