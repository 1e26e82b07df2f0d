package backfill

import (
	"context"
	"fmt"
	"hash/maphash"

	"entropipe/ingest/filesys"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

var seed = maphash.MakeSeed()

// hashOf returns a hash of a text. Two of a million texts have the same one with a
// probability of about 3e-8.
func hashOf(text string) uint64 { return maphash.String(seed, text) }

// stateOf returns a hash of what identifies a file beside its path.
func stateOf(f *record.LaneFile) uint64 {
	return hashOf(fmt.Sprint(f.Size, " ", f.ModTime, " ", f.SHA256, " ", f.ETag))
}

// disjoint returns a *sinks.ConfigError if a file of p belongs to one of the other plans:
// its rows would be in the output twice. Memory: eight bytes for each folder of p, and for
// each file of another plan in such a folder.
func disjoint(ctx context.Context, store sinks.Reader, p *record.Plan, others []*record.Plan) error {
	if len(others) == 0 {
		return nil
	}
	folders := map[uint64]bool{} // true: another plan has files there
	err := eachLane(ctx, store, p, func(l *record.Lane) error {
		eachSource(p, l, func(path string) { folders[hashOf(filesys.Dir(path))] = false })
		return nil
	})
	if err != nil {
		return err
	}
	shared := false
	taken := map[uint64]int{} // index of the other plan by file
	for i, other := range others {
		err := eachLane(ctx, store, other, func(l *record.Lane) error {
			eachSource(other, l, func(path string) {
				folder := hashOf(filesys.Dir(path))
				if _, there := folders[folder]; there {
					folders[folder], shared = true, true
					taken[hashOf(path)] = i
				}
			})
			return nil
		})
		if err != nil {
			return err
		}
	}
	if !shared {
		return nil
	}
	return eachLane(ctx, store, p, func(l *record.Lane) (err error) {
		eachSource(p, l, func(path string) {
			if !folders[hashOf(filesys.Dir(path))] || err != nil {
				return
			}
			if i, there := taken[hashOf(path)]; there {
				err = &sinks.ConfigError{Field: "plan", Problem: fmt.Sprintf("%s belongs to plan %s of this output, "+
					"and "+
					"its rows would be there twice; write to another --out, or go on with --plan %s", path,
					others[i].Name, others[i].Name)}
			}
		})
		return err
	})
}

// eachSource calls f with the absolute paths of the files that hold the items of a lane.
func eachSource(p *record.Plan, l *record.Lane, f func(path string)) {
	root := p.Roots[l.Root]
	if len(l.Files) == 0 {
		for i := range l.Common {
			f(above(root, l.Common[i].Path))
		}
	}
	for i := range l.Files {
		f(above(root, l.Folder+"/"+l.Files[i].Path))
	}
}
