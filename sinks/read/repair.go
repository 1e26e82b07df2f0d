package read

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Repair is a plan to mend a damaged output by moving files to quarantine, so that run
// writes their records again. It lists the faults that moves cannot mend, too. Verify
// makes the plan and moves nothing; Apply moves the files.
//
// Faults at the end of a partition can be mended: a newest manifest that is lost,
// damaged or without its files, and files that no manifest names. A hole before whole
// commits cannot: writers continue after the last commit, so no program would write the
// records of the hole again.
type Repair struct {
	Folder string       `json:"folder"` // folder that receives the files
	Steps  []RepairStep `json:"steps"`  // in the order of Apply
	Left   []RepairLeft `json:"left"`   // faults that remain
	// a sentence on processes that write to the output; set by the caller
	Writers string `json:"writers,omitempty"`
	Done    bool   `json:"done"` // the files have been moved
}

// RepairStep mends one partition. Without Topic it moves files that belong to none.
type RepairStep struct {
	Topic     string           `json:"topic,omitempty"`
	Partition int32            `json:"partition"`
	Wrong     []string         `json:"wrong"` // the faults, a sentence each
	Then      string           `json:"then"`  // the result of the step
	Start     int64            `json:"start"` // run writes the records [Start, End) again; none if Start = End
	End       int64            `json:"end"`
	Moves     []QuarantineMove `json:"moves"` // manifests last, so that no manifest is gone before its files

	ids    []string // ids that the topic may have for this output
	newest int64    // start of the newest manifest, by name, when the plan was made; -1: none
}

// Continues tells whether the output continues a topic with this id. A topic that was
// created again has another id and other records. The result is true if either side
// has no ids.
func (s *RepairStep) Continues(id schemas.TopicID) bool {
	return id.IsZero() || len(s.ids) == 0 || slices.Contains(s.ids, id.String())
}

// QuarantineMove is the move of one file to quarantine.
type QuarantineMove struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Bytes int64  `json:"bytes"`
}

// RepairLeft is a fault that moves do not mend.
type RepairLeft struct {
	Where   string `json:"where"`
	Problem string `json:"problem"`
	Advice  string `json:"advice"`
}

// quarantineSuffix ends the names of quarantined files, so that no glob for tables or
// records matches them.
const quarantineSuffix = ".quarantined"

// Files returns the number of files that the plan moves.
func (r *Repair) Files() (n int) {
	for i := range r.Steps {
		n += len(r.Steps[i].Moves)
	}
	return n
}

// Leave removes the step of a partition from the plan. Its faults remain, with advice.
func (r *Repair) Leave(step *RepairStep, advice string) {
	where := fmt.Sprintf("%s/%d", step.Topic, step.Partition)
	r.Left = append(r.Left, RepairLeft{where, strings.Join(step.Wrong, "; "), advice})
	r.Steps = slices.DeleteFunc(r.Steps, func(s RepairStep) bool {
		return s.Topic == step.Topic && s.Partition == step.Partition
	})
}

// Apply moves the files of the plan durably; it removes none. No process may write to
// the output meanwhile. Data files are moved before the manifest that names them, and
// newer manifests before older ones. So if Apply dies half way, a commit without its
// files can be recognised, no hole comes before a remaining commit, and a new plan
// completes the repair.
//
// If a partition has got or lost manifests since the plan was made, Apply returns an
// error and moves nothing.
func (r *Repair) Apply(ctx context.Context, store sinks.Store) error {
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Topic == "" {
			continue
		}
		newest, err := newestStart(ctx, store, record.TopicPartition{Topic: s.Topic, ID: s.Partition})
		if err != nil {
			return err
		}
		if newest != s.newest {
			return fmt.Errorf("%s/%d has other manifests than when it was checked: somebody writes to this output; "+
				"nothing was moved", s.Topic, s.Partition)
		}
	}
	for i := range r.Steps {
		for _, m := range r.Steps[i].Moves {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := store.Publish(ctx, []sinks.Move{{From: m.From, To: m.To, Bytes: m.Bytes}}); err != nil {
				return fmt.Errorf("to quarantine: %w", err)
			}
		}
	}
	r.Done = true
	return nil
}

// newestStart returns the highest start of a partition's manifests; -1: it has none.
func newestStart(ctx context.Context, store sinks.Reader, p record.TopicPartition) (int64, error) {
	names, err := store.Names(ctx, record.ManifestFolder(p))
	newest := int64(-1)
	for _, name := range names {
		if start, ok := record.ManifestStart(name); ok {
			newest = max(newest, start)
		}
	}
	return newest, err
}

// quarantineFor returns the path of a quarantine folder that no repair has used.
func quarantineFor(ctx context.Context, store sinks.Reader, now time.Time) (string, error) {
	taken, err := store.Names(ctx, record.QuarantineFolder)
	name := now.UTC().Format("2006-01-02T15-04-05Z")
	for n := 2; slices.Contains(taken, name); n++ {
		name = fmt.Sprintf("%s-%d", now.UTC().Format("2006-01-02T15-04-05Z"), n)
	}
	return record.QuarantineFolder + "/" + name, err
}

// text writes the plan as text.
func (r *Repair) text(b *strings.Builder) {
	moves := "would move"
	if r.Done {
		moves = "moved"
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		where := "files of no commit"
		if s.Topic != "" {
			where = fmt.Sprintf("%s/%d", s.Topic, s.Partition)
		}
		for _, wrong := range s.Wrong {
			fmt.Fprintf(b, "repair: %s: %s\n", where, wrong)
		}
		for k, m := range s.Moves {
			if k == maxShownMoves {
				fmt.Fprintf(b, "repair: %s: and %d files more\n", where, len(s.Moves)-k)
				break
			}
			fmt.Fprintf(b, "repair: %s: %s %s, %d bytes\n", where, moves, m.From, m.Bytes)
		}
		fmt.Fprintf(b, "repair: %s: then %s\n", where, s.Then)
	}
	for _, l := range r.Left {
		fmt.Fprintf(b, "not repaired: %s: %s: %s\n", l.Where, l.Problem, l.Advice)
	}
	if r.Writers != "" {
		fmt.Fprintf(b, "repair: %s\n", r.Writers)
	}
	switch n := r.Files(); {
	case n == 0:
		b.WriteString("repair: there is nothing to move\n")
	case r.Done:
		fmt.Fprintf(b, "repair: %d files were moved to %s; none was deleted\n", n, r.Folder)
	default:
		fmt.Fprintf(b, "repair: %d files would be moved to %s, and none deleted; nothing is done without --yes\n", n,
			r.Folder)
	}
}

// maxShownMoves bounds the moves of one step in the text; JSON has all.
const maxShownMoves = 20
