// Package backfill reads an archive as if it were a topic. It makes a plan of what the
// archive holds, and serves the lanes of the plan as partitions.
//
// It computes nothing and writes no table: a Partition goes where that of a broker goes.
// It does not know formats of files: package replay opens them.
//
// Vocabulary. An archive is what lies at the paths that a user names. An input is a data
// set, a recording or a folder of files in it, with numbers and times of its own. An item
// is the content of one message. Its position is its number within the input, where items
// that cannot be read count. A lane is a run of consecutive items of one input: a
// partition whose offsets begin at 0. A plan is the list of all lanes; any number of
// processes work on the lanes of one plan, and the manifests of the output keep two of
// them from writing the same rows.
package backfill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"

	"entropipe/ingest/filesys"
	"entropipe/ingest/replay"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Bounds of a lane and of a segment. A lane has at least one item, however large.
const (
	maxLaneItems = 20_000
	maxLaneBytes = 1 << 30
	segmentBytes = 1 << 20
)

// Options describe a plan. Roots and Source are required.
type Options struct {
	// Plan is the name of the plan; empty: backfill- and 8 digits of its hash.
	Plan string
	// Roots are the folders that the archive was searched from, absolute: see Roots.
	Roots []string
	// Source is the format and the settings that decide messages.
	Source map[string]string
	// Identity is record.ByModTime, record.BySHA256 or record.ByETag; empty: that of an earlier
	// plan, else record.ByETag where a root is in a bucket, else record.ByModTime. Of objects
	// record.ByModTime means the ETag, too.
	Identity string
	// Writer is the version of the program.
	Writer string
	// Number returns the number of a lane; nil: lanes are numbered from 0 on.
	Number func(*record.Lane) (int32, error)
	// Each is called with every lane, which is valid until it returns; may be nil.
	Each func(*record.Lane) error

	items, bytes int64 // bounds of a lane; 0: those of the package
}

// Sink takes the parts of a plan.
type Sink interface {
	Put(ctx context.Context, data []byte) (record.PlanPart, error)
}

// Into returns a Sink that makes parts durable in an output.
func Into(store sinks.Records) Sink { return storeSink{store} }

type storeSink struct{ store sinks.Records }

func (s storeSink) Put(ctx context.Context, data []byte) (record.PlanPart, error) {
	return sinks.PutPlanPart(ctx, s.store, data)
}

// Nowhere is a Sink that keeps nothing.
var Nowhere Sink = nowhere{}

type nowhere struct{}

func (nowhere) Put(_ context.Context, data []byte) (record.PlanPart, error) {
	return record.PlanPart{SHA256: record.PartHash(data), Bytes: int64(len(data))}, nil
}

// Build searches an archive and returns the head of its plan, whose parts are in out. The
// head is not stored. Memory is bounded by the largest folder of the archive and one lane,
// whatever the number of files.
func Build(ctx context.Context, archive replay.Archive, opt Options, out Sink) (*record.Plan, error) {
	b, err := newBuilder(ctx, archive, opt, out)
	if err != nil {
		return nil, err
	}
	if err := archive.Parts(ctx, b.part); err != nil {
		return nil, err
	}
	return b.finish()
}

// builder makes one plan.
type builder struct {
	ctx     context.Context
	archive replay.Archive
	opt     Options
	out     Sink
	plan    *record.Plan
	hash    hash.Hash
	seen    map[int32]bool // numbers of lanes

	data    []byte // lines of the open segment
	segment record.PlanSegment
	lists   map[string]bool // lists of the plan
}

func newBuilder(ctx context.Context, archive replay.Archive, opt Options, out Sink) (*builder, error) {
	if opt.items <= 0 {
		opt.items = maxLaneItems
	}
	if opt.bytes <= 0 {
		opt.bytes = maxLaneBytes
	}
	if opt.Identity == "" {
		opt.Identity = record.ByModTime
		if slices.ContainsFunc(opt.Roots, filesys.IsBucket) {
			opt.Identity = record.ByETag
		}
	}
	if len(opt.Roots) == 0 {
		return nil, errors.New("a plan needs a root")
	}
	b := &builder{ctx: ctx, archive: archive, opt: opt, out: out, hash: sha256.New(), seen: map[int32]bool{},
		lists: map[string]bool{},
		plan: &record.Plan{Format: record.FormatVersion, Name: opt.Plan, Writer: opt.Writer, Roots: opt.Roots,
			Source: maps.Clone(opt.Source), Identity: opt.Identity}}
	if b.plan.Source == nil {
		b.plan.Source = map[string]string{}
	}
	head, err := json.Marshal([]any{b.plan.Source, b.plan.Identity}) // keys in order
	b.hash.Write(head)
	return b, err
}

// add appends a complete lane to the plan.
func (b *builder) add(l *record.Lane) error {
	l.Number = int32(b.plan.Lanes)
	if b.opt.Number != nil {
		n, err := b.opt.Number(l)
		if err != nil {
			return err
		}
		l.Number = n
	}
	if l.Number < 0 || b.seen[l.Number] {
		return fmt.Errorf("lane %d is there twice", l.Number)
	}
	if err := utf8Only(l); err != nil {
		return err
	}
	b.seen[l.Number] = true
	before := len(b.data)
	var err error
	if b.data, err = record.AppendLane(b.data, l); err != nil {
		return err
	}
	b.hash.Write(b.data[before:])
	p := b.plan
	p.Lanes++
	p.Items += l.Items
	p.Frames += l.Frames
	p.Bytes += l.Bytes
	p.Files += int64(len(l.Files) + len(l.Common))
	b.segment.Numbers = append(b.segment.Numbers, l.Number)
	b.segment.Items = append(b.segment.Items, l.Items)
	if b.opt.Each != nil {
		if err := b.opt.Each(l); err != nil {
			return err
		}
	}
	if len(b.data) >= segmentBytes {
		return b.endSegment()
	}
	return nil
}

func (b *builder) endSegment() (err error) {
	if len(b.data) == 0 {
		return nil
	}
	if b.segment.PlanPart, err = b.out.Put(b.ctx, b.data); err != nil {
		return err
	}
	b.plan.Segments = append(b.plan.Segments, b.segment)
	b.segment, b.data = record.PlanSegment{}, b.data[:0]
	return nil
}

// list makes the names of an input's files a part of the plan.
func (b *builder) list(names []string) (string, error) {
	data, err := record.AppendNames(nil, names)
	if err != nil {
		return "", err
	}
	part, err := b.out.Put(b.ctx, data)
	if err == nil && !b.lists[part.SHA256] {
		b.lists[part.SHA256] = true
		b.plan.Lists = append(b.plan.Lists, part)
	}
	return part.SHA256, err
}

// finish returns the head of the plan.
func (b *builder) finish() (*record.Plan, error) {
	if err := b.endSegment(); err != nil {
		return nil, err
	}
	p := b.plan
	p.Hash = hex.EncodeToString(b.hash.Sum(nil))
	p.Created = now()
	if p.Name == "" {
		p.Name = "backfill-" + p.Hash[:8]
	}
	return p, nil
}
