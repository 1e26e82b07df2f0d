package backfill

import (
	"context"
	"sync"

	"entropipe/ingest/filesys"
	"entropipe/ingest/replay"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Messages yields the messages of a Source, as *replay.Messages does. io.EOF: there are no
// more. The record's value is in buffer, which grows as needed; all of it is valid until
// the next call.
type Messages interface {
	Next(buffer []byte) (replay.Sent, error)
}

// Opener opens the lanes of a plan. Any goroutine may call its methods.
type Opener struct {
	Plan    *record.Plan // its Roots are where this process reads
	Store   sinks.Reader // has the plan
	Archive replay.Archive
	// Messages returns the messages that are sent of a Source.
	Messages func(replay.Source) (Messages, error)

	mu    sync.Mutex
	lists map[string][]string // the list that was read last, by its hash
	sums  map[string]fileState
	free  blocks
}

// fileState is a file whose checksum was compared.
type fileState struct {
	size, modTime int64
	etag          string
}

// Lane returns a lane as a partition for the pipeline. The caller closes it.
func (o *Opener) Lane(number int32) *Partition {
	return &Partition{opener: o, number: number, at: -1, first: -1}
}

// input returns the input of a lane, with paths of this process.
func (o *Opener) input(ctx context.Context, l *record.Lane) (replay.Input, error) {
	root := o.Plan.Roots[l.Root]
	in := replay.Input{Format: l.Input.Format, Path: above(root, l.Input.Path), Sequence: l.Input.Sequence,
		Files: l.Input.Files}
	switch {
	case l.Input.Own:
		for i := range l.Files {
			name, err := filesys.Rel(in.Path, above(root, l.Folder+"/"+l.Files[i].Path))
			if err != nil {
				return in, err
			}
			in.Files = append(in.Files, name)
		}
	case l.Input.List != "":
		names, err := o.list(ctx, l.Input.List)
		if err != nil {
			return in, err
		}
		in.Files = names
	}
	return in, nil
}

// list returns the names of an input's files. The last list is kept: the lanes of an
// input often follow each other.
func (o *Opener) list(ctx context.Context, hash string) ([]string, error) {
	o.mu.Lock()
	names := o.lists[hash]
	o.mu.Unlock()
	if names != nil {
		return names, nil
	}
	names, err := sinks.ReadPlanList(ctx, o.Store, o.Plan, hash)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lists = map[string][]string{hash: names}
	return names, nil
}

// maxFree bounds the memory that waits for its next use.
const maxFree = 32 << 20

// blocks is memory for values.
type blocks struct {
	mu    sync.Mutex
	free  [][]byte
	bytes int
}

// get returns a block, which may be empty.
func (b *blocks) get() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.free)
	if n == 0 {
		return nil
	}
	block := b.free[n-1]
	b.free = b.free[:n-1]
	b.bytes -= cap(block)
	return block
}

// put takes blocks back.
func (b *blocks) put(all [][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, block := range all {
		if block = block[:0]; cap(block) > 0 && b.bytes+cap(block) <= maxFree {
			b.free = append(b.free, block)
			b.bytes += cap(block)
		}
	}
}
