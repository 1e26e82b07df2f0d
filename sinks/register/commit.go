package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"entropipe/sinks/record"
)

// commit adds files to a table and moves its fence to where the chains stand, in one transaction.
// entries are all files that the table lacks before that.
//
// The transaction requires that the table's branch main is what it was when the fence was read. So
// of two processes that add the same files one fails, and a transaction that arrives late, after
// its sender has tried again, fails too. After any error the table is loaded again, and its fence
// tells what was done: an answer that was lost is no error.
func (r *registrar) commit(ctx context.Context, s *state, b *batch, entries []entry) error {
	marks := r.positions()
	begin, wait := time.Now(), r.cfg.FirstWait
	for {
		left := missing(s, entries)
		props := r.moved(s, marks, b.seen)
		if len(props) == 0 {
			s.behind = 0
			return nil
		}
		made, err := r.transact(ctx, s, left, props)
		if err == nil {
			return r.committed(s, made, left)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if isMistake(err) {
			return err
		}
		conflict := errors.Is(err, table.ErrCommitFailed)
		r.counted(func(d *done) {
			if conflict {
				d.Conflicts++
			} else {
				d.Unknown++
			}
		})
		r.log.Debug("a transaction failed", "table", r.shown(s.name), "error", err)
		if lookErr := r.reload(ctx, s); lookErr != nil {
			return lookErr
		}
		if s.fence.reaches(marks) {
			return r.committed(s, s.table, left)
		}
		if !conflict && !isPassing(err) || time.Since(begin) > r.cfg.RetryFor {
			return fmt.Errorf("table %s: %w", r.shown(s.name), err)
		}
		if err := pause(ctx, wait/2+rand.N(wait+1)); err != nil {
			return err
		}
		wait = min(2*wait, 30*time.Second)
	}
}

// positions returns where the chains stand.
func (r *registrar) positions() map[record.TopicPartition]mark {
	marks := map[record.TopicPartition]mark{}
	for p, c := range r.chains {
		if c.at.uuid != "" {
			marks[p] = c.at
		}
	}
	return marks
}

// moved returns the properties of a table whose fence is at marks.
func (r *registrar) moved(s *state, marks map[record.TopicPartition]mark, seen []string) iceberg.Properties {
	props := s.fence.changed(marks, seen)
	if len(props) > 0 && r.store.CompactionOf != "" {
		props[compactionPrefix+r.store.UUID] = r.store.CompactionOf
	}
	return props
}

// missing returns the entries that are behind the fence of a table.
func missing(s *state, entries []entry) (left []entry) {
	for _, e := range entries {
		if s.fence.end(e.m.TopicPartition(), e.m.Start) <= e.m.Start {
			left = append(left, e)
		}
	}
	return left
}

// transact sends one transaction.
func (r *registrar) transact(ctx context.Context, s *state, entries []entry, props iceberg.Properties) (*table.Table,
	error) {
	files := make([]iceberg.DataFile, len(entries))
	for i, e := range entries {
		d, err := r.dataFile(s.table, s.name, e.footer)
		if err != nil {
			return nil, err
		}
		files[i] = d
	}
	tx := s.table.NewTransaction()
	// The fence knows which files the table has. The library's own check would read every
	// manifest of the table.
	if err := tx.AddDataFiles(ctx, files, nil, table.WithoutDuplicateCheck()); err != nil {
		return nil, err
	}
	if err := tx.SetProperties(props); err != nil {
		return nil, err
	}
	if err := tx.AssertRefSnapshotID(table.MainBranch); err != nil {
		return nil, err
	}
	return tx.Commit(ctx)
}

// reload loads a table again with its fence. The error may pass if the table was dropped, or
// dropped and made again: then all is looked at anew.
func (r *registrar) reload(ctx context.Context, s *state) error {
	var now *table.Table
	err := r.trying(ctx, func() (err error) {
		now, err = r.openTable(ctx, s.name)
		return err
	})
	if err != nil {
		return err
	}
	if now == nil || now.Metadata().TableUUID() != s.table.Metadata().TableUUID() {
		return fmt.Errorf("table %s was dropped: %w", r.shown(s.name), catalog.ErrNoSuchTable)
	}
	fresh, err := r.stateOf(s.name, now)
	if err == nil {
		s.table, s.fence = fresh.table, fresh.fence
	}
	return err
}

// committed takes over a table after its transaction.
func (r *registrar) committed(s *state, made *table.Table, entries []entry) error {
	fresh, err := r.stateOf(s.name, made)
	if err != nil {
		return err
	}
	s.table, s.fence, s.behind = fresh.table, fresh.fence, 0
	var rows, bytes int64
	for _, e := range entries {
		rows += e.footer.file.Rows
		bytes += e.footer.file.Bytes
	}
	r.counted(func(d *done) {
		d.Transactions++
		d.Files += int64(len(entries))
		d.Rows += rows
		d.Bytes += bytes
	})
	if len(entries) > 0 {
		r.log.Info("registered", "table", r.shown(s.name), "files", len(entries), "rows", rows)
	}
	return nil
}
