package read

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// stray is a file that no manifest names.
type stray struct {
	name       string
	start, end int64
}

// strayName matches the end of a data file's path: topic, partition, start, end.
var strayName = regexp.MustCompile(`/topic=([^/]+)/part-(\d{1,10})-(\d{20})-(\d{20})(?:-\d+)?\.parquet$`)

// planner makes a Repair from the findings of a verifier.
type planner struct {
	*Repair
	v      *verifier
	strays map[string][]stray // by folder of the partition's manifests
	nobody []string           // strays whose names no data file has
	mended map[string]bool    // paths whose faults the moves mend
	why    map[string]string  // reason why the faults of a path remain
	moved  map[string]bool    // files that the plan moves
}

// plan returns a plan that mends the faults of an output, after the whole output was
// verified. broken is the fault of store.json.
func (v *verifier) plan(ctx context.Context, identity record.Store, broken error) (*Repair, error) {
	folder, err := quarantineFor(ctx, v.store, time.Now())
	if err != nil {
		return nil, err
	}
	p := &planner{Repair: &Repair{Folder: folder, Steps: []RepairStep{}, Left: []RepairLeft{}}, v: v,
		strays: map[string][]stray{},
		mended: map[string]bool{}, why: map[string]string{}, moved: map[string]bool{}}
	switch {
	case broken != nil:
		p.leaveAll("without its store.json nobody can write to this output: restore that from a backup first")
	case identity.Format != record.FormatVersion:
		p.leaveAll("this output has another format than this program writes: run would not write the records again")
	default:
		p.sort()
		if err := p.partitions(ctx); err != nil {
			return nil, err
		}
		p.strangers()
	}
	p.leftovers()
	return p.Repair, nil
}

// leaveAll sets one reason why all faults remain.
func (p *planner) leaveAll(why string) {
	for _, f := range p.v.Faults {
		p.why[f.Where] = why
	}
}

// sort assigns the strays to partitions by their names.
func (p *planner) sort() {
	for _, f := range p.v.Faults {
		if f.Check != checkOrphans {
			continue
		}
		m := strayName.FindStringSubmatch(f.Where)
		if m == nil {
			p.nobody = append(p.nobody, f.Where)
			continue
		}
		id, err := strconv.ParseInt(m[2], 10, 32)
		start, err2 := strconv.ParseInt(m[3], 10, 64)
		end, err3 := strconv.ParseInt(m[4], 10, 64)
		if errors.Join(err, err2, err3) != nil || end <= start {
			p.nobody = append(p.nobody, f.Where)
			continue
		}
		folder := record.TopicsFolder + "/" + m[1] + "/" + strconv.FormatInt(id, 10)
		p.strays[folder] = append(p.strays[folder], stray{f.Where, start, end})
	}
	slices.Sort(p.nobody)
}

// partitions plans for each partition that has manifests or strays.
func (p *planner) partitions(ctx context.Context) error {
	folders := map[string]bool{}
	for folder := range p.strays {
		folders[folder] = true
	}
	for folder, t := range p.v.repair.topics {
		for id := range t.chains {
			folders[folder+"/"+id] = true
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		if err := p.partition(ctx, folder); err != nil {
			return err
		}
	}
	return nil
}

// partition plans the step of one partition: files and manifests after the whole part
// of its chain are moved, unless they include a readable commit.
func (p *planner) partition(ctx context.Context, folder string) error {
	t := p.v.repair.topics[path.Dir(folder)]
	if t == nil || t.base == nil {
		p.keep(folder, "the base.json of this topic is lost or damaged, so where its records begin is unknown: "+
			"restore its folder in _commits/topics from a backup")
		return nil
	}
	id, err := strconv.ParseInt(path.Base(folder), 10, 32)
	if err != nil {
		p.keep(folder, "this is no partition")
		return nil
	}
	c := t.chains[path.Base(folder)]
	if c == nil {
		c = new(repairChain)
	}
	s := RepairStep{Topic: t.base.Topic, Partition: int32(id), newest: -1}
	if n := len(c.links); n > 0 {
		s.newest = c.links[n-1].start
	}
	s.ids = p.ids(t.base.Topic, c.last)
	whole, end, why := c.whole(t.base.Start(int32(id)))
	if why != "" {
		p.keep(folder, why)
		return nil
	}
	s.Start = end
	s.End = end
	damaged := c.links[whole:]
	var manifests []repairLink
	if whole > 0 && p.spoilt(c.last) {
		undone, err := p.undo(ctx, &s, c.last)
		if err != nil {
			return err
		}
		if undone {
			manifests = append(manifests, c.links[whole-1])
			s.Start = c.last.Start
		}
	}
	p.takeStrays(&s, folder, t.base.Start(int32(id)))
	if err := p.takeDamaged(ctx, &s, damaged); err != nil {
		return err
	}
	for _, l := range slices.Backward(append(manifests, damaged...)) {
		if err := p.take(ctx, &s, l.name); err != nil {
			return err
		}
		p.mended[l.name] = true
	}
	p.finish(&s)
	return nil
}

// ids returns the ids that a topic may have: those of its bases, and that of the newest
// manifest, for outputs that were begun without ids.
func (p *planner) ids(topic string, last *record.Manifest) (ids []string) {
	for known := range p.v.ids {
		if id, ok := strings.CutPrefix(known, topic+"/"); ok && id != "" {
			ids = append(ids, id)
		}
	}
	if last != nil && last.TopicID != "" {
		ids = append(ids, last.TopicID)
	}
	return ids
}

// keep sets the reason why the faults of a partition remain.
func (p *planner) keep(folder, why string) {
	for _, f := range p.v.Faults {
		if strings.HasPrefix(f.Where, folder+"/") {
			p.why[f.Where] = why
		}
	}
	for _, s := range p.strays[folder] {
		p.why[s.name] = why
	}
}

// spoilt tells whether files of m are missing or differ from m.
func (p *planner) spoilt(m *record.Manifest) bool {
	return slices.ContainsFunc(m.Files, func(f record.File) bool { return p.v.repair.bad[f.Path] })
}

// undo plans for the newest commit m, which has spoilt files. If the spoilt files are
// all still staged, and other files have taken their places, it moves only these other
// files, and the commit remains. Otherwise it moves all files of the commit, so that its
// records are written again.
func (p *planner) undo(ctx context.Context, s *RepairStep, m *record.Manifest) (undone bool, err error) {
	strangers := true
	for i := range m.Files {
		if f := &m.Files[i]; p.v.repair.bad[f.Path] {
			strangers = strangers && p.stagedWhole(ctx, f)
		}
	}
	for i := range m.Files {
		f := &m.Files[i]
		bad := p.v.repair.bad[f.Path]
		if bad {
			p.mended[f.Path] = true
		}
		if bad || !strangers {
			if err := p.take(ctx, s, f.Path); err != nil {
				return false, err
			}
		}
		if !strangers {
			if err := p.take(ctx, s, f.Staged); err != nil {
				return false, err
			}
		}
	}
	if strangers {
		s.Wrong = append(s.Wrong, fmt.Sprintf("files that are not those of the newest commit, offsets %d to %d, "+
			"have taken their places; its own are still staged", m.Start, m.End-1))
		return false, nil
	}
	for i := range m.Files {
		p.mended[m.Files[i].Path] = true
	}
	s.Wrong = append(s.Wrong, fmt.Sprintf("the newest commit, offsets %d to %d, has files that are missing or damaged",
		m.Start, m.End-1))
	s.End = max(s.End, m.End)
	return true, nil
}

// stagedWhole tells whether a file is staged with the size and checksum of its manifest.
func (p *planner) stagedWhole(ctx context.Context, f *record.File) bool {
	o, err := p.v.store.Open(ctx, f.Staged)
	if err != nil {
		return false
	}
	defer o.Close()
	if o.Size() != f.Bytes {
		return false
	}
	sum, err := sinks.Checksum(ctx, o, make([]byte, 1<<20))
	return err == nil && sum == f.SHA256
}

// takeStrays plans the moves of a partition's files that no manifest names.
func (p *planner) takeStrays(s *RepairStep, folder string, base int64) {
	lost, doubled := 0, 0
	first, end := int64(math.MaxInt64), int64(0)
	for _, f := range p.strays[folder] {
		if f.start < base {
			p.why[f.name] = fmt.Sprintf("its offsets begin before %d, where this output begins, so no program would "+
				"write them again: move it away by hand if it is not wanted", base)
			continue
		}
		if f.end > s.Start {
			lost++
			first, end = min(first, max(f.start, s.Start)), max(end, f.end)
		} else {
			doubled++
		}
		p.move(s, f.name, p.v.listed[f.name])
		p.mended[f.name] = true
	}
	if lost > 0 {
		s.Wrong = append(s.Wrong, fmt.Sprintf("%d files have rows of offsets %d to %d, which are in no manifest "+
			"that can be read", lost, first, end-1))
		s.End = max(s.End, end)
	}
	if doubled > 0 {
		s.Wrong = append(s.Wrong, fmt.Sprintf("%d files hold rows of offsets whose commits have files of their own, "+
			"so readers see these rows twice", doubled))
	}
}

// takeDamaged plans the moves of files that are staged for damaged manifests.
func (p *planner) takeDamaged(ctx context.Context, s *RepairStep, damaged []repairLink) error {
	if len(damaged) == 0 {
		return nil
	}
	starts := map[int64]bool{}
	for _, l := range damaged {
		starts[l.start] = true
		s.Wrong = append(s.Wrong, fmt.Sprintf("its newest manifest is damaged: %v", l.err))
		s.End = max(s.End, l.start+1)
	}
	return p.v.store.List(ctx, record.StagingFolder, func(e sinks.Entry) error {
		start, _, ours := record.ParseStagingName(record.TopicPartition{Topic: s.Topic, ID: s.Partition},
			strings.SplitN(e.Name, "/", 3)[1])
		if ours && starts[start] {
			p.move(s, e.Name, e.Size)
		}
		return nil
	})
}

// take plans the move of a file if it exists.
func (p *planner) take(ctx context.Context, s *RepairStep, name string) error {
	o, err := p.v.store.Open(ctx, name)
	if errors.Is(err, sinks.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	p.move(s, name, o.Size())
	return o.Close()
}

func (p *planner) move(s *RepairStep, name string, size int64) {
	if !p.moved[name] {
		p.moved[name] = true
		s.Moves = append(s.Moves, QuarantineMove{name, p.Folder + "/" + name + quarantineSuffix, size})
	}
}

// finish adds a step to the plan if it has moves.
func (p *planner) finish(s *RepairStep) {
	if len(s.Moves) == 0 {
		return
	}
	switch {
	case s.Topic == "":
		s.Then = "readers of the tables do not see them any more"
	case s.End > s.Start:
		s.Then = fmt.Sprintf("run goes on at offset %d, and writes the records up to %d at least again, from the topic",
			s.Start, s.End-1)
	default:
		s.Then = fmt.Sprintf("run goes on at offset %d, as it would without", s.Start)
	}
	p.Steps = append(p.Steps, *s)
}

// strangers plans the moves of files in the folders of tables that no commit can have.
func (p *planner) strangers() {
	s := RepairStep{Wrong: []string{"these files are in the way of readers, but their names are not those of an " +
		"output's files"}}
	for _, name := range p.nobody {
		p.move(&s, name, p.v.listed[name])
		p.mended[name] = true
	}
	p.finish(&s)
}

// leftovers lists the faults that the moves do not mend.
func (p *planner) leftovers() {
	seen := map[RepairLeft]bool{}
	for _, f := range p.v.Faults {
		if p.mended[f.Where] {
			continue
		}
		why := p.why[f.Where]
		if why == "" {
			why = p.advice(f)
		}
		if left := (RepairLeft{f.Where, f.Problem, why}); !seen[left] {
			seen[left] = true
			p.Left = append(p.Left, left)
		}
	}
}

// advice returns the reason why moving files does not mend a fault.
func (p *planner) advice(f Fault) string {
	switch f.Check {
	case checkFiles, checkSums:
		if !p.v.repair.bad[f.Where] {
			return "it may be whole: mend what keeps it from being read"
		}
		return "commits after this one go on behind it, so no program would write its records again: restore the " +
			"file from a backup; its manifest has the SHA-256"
	case checkRecords:
		if record.IsBaseName(path.Base(f.Where)) {
			return "restore it from a backup: where the records of this topic begin is written nowhere else"
		}
		if f.Problem == notARecord {
			return "no reader looks there, and another version of the program may have put it there: move it away " +
				"by hand if it is not wanted"
		}
	}
	return "moving files does not mend this: restore the output from a backup, or read the topic again into another " +
		"--out"
}
