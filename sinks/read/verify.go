package read

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"entropipe/sinks"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// VerifyOptions are the options of Verify. The zero value is usable.
type VerifyOptions struct {
	Workers  int                        // number of manifests checked at once; 0: GOMAXPROCS
	Progress func(done, total int)      // called after each manifest, from several goroutines; may be nil
	Ends     map[string]map[int32]int64 // offsets that the output must reach at least, by topic and partition
	Repair   bool                       // plan a repair, Report.Repair, and keep all faults
}

// Verify checks a whole output: its commit records, the bytes and rows of every file,
// and that every record from base to end is a row, a reject or a counted hole. Faults
// are in the report; an error means that the check could not be completed.
//
// Verify may run beside writers. It lists files before manifests, so that a new file
// is not taken for an orphan, and looks for a missing file again, in staging if its
// manifest is the newest.
//
// Cost: every byte of the output is read once. Memory: about 200 bytes for each file,
// and for each worker the keys of one commit's rows.
func Verify(ctx context.Context, store sinks.Reader, opts VerifyOptions) (*Report, error) {
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	v := &verifier{store: store, opts: opts, reporter: reporter{Report: newReport()}, listed: map[string]int64{},
		pending: map[string]bool{}, ids: map[string]bool{}, configs: map[string]bool{},
		named: map[string]bool{}}
	if opts.Repair {
		v.repair, v.limit = newRepairer(), math.MaxInt
	}
	set, setBytes := 0, int64(0) // quarantined files and their bytes
	err := store.List(ctx, ".", func(e sinks.Entry) error {
		switch folder, _, _ := strings.Cut(e.Name, "/"); folder {
		case record.CommitsFolder, record.StagingFolder:
		case record.QuarantineFolder:
			set, setBytes = set+1, setBytes+e.Size
		default:
			v.listed[e.Name] = e.Size
		}
		return nil
	})
	if set > 0 {
		v.note("%s holds %d files, %d bytes, that repairs have moved there: nothing reads them",
			record.QuarantineFolder, set, setBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	v.checked(checkOrphans, int64(len(v.listed)))
	data, err := readIdentity(ctx, store)
	if err != nil {
		return nil, err
	}
	identity, broken := record.ParseStore(data)
	if broken != nil {
		v.fault(checkRecords, record.StoreFile, "%v", broken)
	}
	v.Store, v.Format, v.Schema, v.Compacts = identity.UUID, identity.Format, identity.Schema, identity.CompactionOf
	v.checked(checkRecords, 1)
	topics, err := listTopics(ctx, store, v.strange)
	if err != nil {
		return nil, fmt.Errorf("list manifests: %w", err)
	}
	v.manifests(ctx, topics)
	v.orphans()
	v.expected()
	if err := errors.Join(v.staging(ctx), v.strayParts(ctx), v.planOrder(ctx), v.replays(ctx)); err != nil {
		return nil, fmt.Errorf("list staging, plans and replays: %w", err)
	}
	report := v.sorted()
	if opts.Repair && ctx.Err() == nil {
		if report.Repair, err = v.plan(ctx, identity, broken); err != nil {
			return nil, fmt.Errorf("plan a repair: %w", err)
		}
	}
	return report, ctx.Err()
}

// verifier is one run of Verify.
type verifier struct {
	store sinks.Reader
	opts  VerifyOptions
	reporter
	listed  map[string]int64 // data files that were there at the start and belong to no manifest so far
	pending map[string]bool  // staging folders of newest manifests
	ids     map[string]bool  // topic/id: the output may continue the topic with this id; topic: its base was read
	configs map[string]bool  // content hashes whose records were looked for
	named   map[string]bool  // hashes of the parts that plans name
	total   int              // number of manifests
	done    int              // number of checked manifests
	repair  *repairer        // nil: no repair is planned
}

// oneFormat reports a record whose format is not that of store.json: no program writes
// both.
func (v *verifier) oneFormat(name string, format int) {
	if v.Format != 0 && format != v.Format {
		v.fault(checkRecords, name, "its format is %d, that of the output is %d", format, v.Format)
	}
}

// notARecord is the problem of a file that does not belong among commit records.
const notARecord = "this is no commit record"

// strange reports a file among the commit records that is none.
func (v *verifier) strange(name string) {
	v.fault(checkRecords, name, notARecord)
}

// manifests checks the chains and gives each manifest to a worker, which checks its files.
func (v *verifier) manifests(ctx context.Context, topics []*topicListing) {
	for _, t := range topics {
		for _, p := range t.partitions {
			v.total += len(p.manifests)
		}
	}
	jobs := make(chan manifestJob)
	var workers sync.WaitGroup
	for range v.opts.Workers {
		workers.Go(func() {
			buffer := make([]byte, 1<<20)
			for j := range jobs {
				v.contents(ctx, j, buffer)
				v.progress()
			}
		})
	}
	for _, t := range topics {
		v.topic(ctx, t, jobs)
	}
	close(jobs)
	workers.Wait()
}

// chunksAhead returns the offsets behind m that hold chunks of its messages. m may be nil.
func chunksAhead(m *record.Manifest) []int64 {
	if m == nil || m.Chunks == nil {
		return nil
	}
	return m.Chunks.Ahead
}

type manifestJob struct {
	*record.Manifest
	name    string
	newest  bool    // its files may still be staged
	retired bool    // another output has its rows, and its files are gone or will be
	ahead   []int64 // offsets that hold chunks of messages before it
}

func (v *verifier) progress() {
	v.mu.Lock()
	v.done++
	done, total := v.done, v.total
	v.mu.Unlock()
	if v.opts.Progress != nil {
		v.opts.Progress(done, total)
	}
}

// topic checks the bases of a topic and the chains of its partitions.
func (v *verifier) topic(ctx context.Context, t *topicListing, jobs chan<- manifestJob) {
	if t.plan && !t.base && len(t.partitions) == 0 { // no lane was begun
		v.planned(ctx, t, nil)
		return
	}
	name := t.folder + "/" + record.BaseFile
	base, err := v.readBase(ctx, name)
	if err != nil {
		v.fault(checkRecords, name, "%v", err)
		base = nil // chains then begin at their first manifest
	}
	v.repair.topic(t.folder, base)
	v.checked(checkRecords, 1)
	if base != nil {
		v.oneFormat(name, base.Format)
	}
	v.accepted(ctx, t, base)
	before := len(v.Partitions)
	for _, p := range t.partitions {
		v.chain(ctx, base, p, jobs)
	}
	v.planned(ctx, t, v.Partitions[before:])
	if base == nil {
		return
	}
	for id, start := range base.Starts { // partitions without a manifest
		if !slices.ContainsFunc(t.partitions, func(p partitionListing) bool { return p.id == id }) {
			n, _ := strconv.ParseInt(id, 10, 32)
			v.partition(PartitionReport{Topic: base.Topic, Partition: int32(n), Base: start, End: start})
		}
	}
}

// accepted reads the ids that the topic may have: the id of its base and the ids that
// were accepted later.
func (v *verifier) accepted(ctx context.Context, t *topicListing, base *record.Base) {
	if base != nil {
		v.ids[base.Topic], v.ids[base.Topic+"/"+base.TopicID] = true, true
	}
	for _, file := range t.accepted {
		v.checked(checkRecords, 1)
		later, err := v.readBase(ctx, t.folder+"/"+file)
		if err == nil && later.TopicID == "" {
			err = errors.New("it names no id")
		}
		if err != nil {
			v.fault(checkRecords, t.folder+"/"+file, "%v", err)
			continue
		}
		v.oneFormat(t.folder+"/"+file, later.Format)
		v.ids[later.Topic+"/"+later.TopicID] = true
	}
}

// otherTopic tells whether m has another topic id than the manifest last before it, and
// that id was not accepted. An output that was begun without ids takes the first id
// that follows.
func (v *verifier) otherTopic(last, m *record.Manifest) bool {
	switch {
	case v.ids[m.Topic+"/"+m.TopicID]:
		return m.TopicID == "" && last != nil && last.TopicID != ""
	case last == nil || last.TopicID == "":
		return v.ids[m.Topic] && !v.ids[m.Topic+"/"] // without a base any first id is valid
	}
	return m.TopicID != last.TopicID
}

func (v *verifier) partition(p PartitionReport) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Partitions = append(v.Partitions, p)
}

// readBase reads a base; the record itself names its topic.
func (v *verifier) readBase(ctx context.Context, name string) (*record.Base, error) {
	data, err := sinks.ReadRecord(ctx, v.store, name)
	if err != nil {
		return nil, err
	}
	var head record.Base
	if err := record.Parse(name, data, &head); err != nil {
		return nil, err
	}
	if record.TopicFolder(head.Topic) != path.Dir(name) {
		return nil, fmt.Errorf("it is the base of topic %q, which belongs elsewhere", head.Topic)
	}
	return record.ParseBase(name, data, head.Topic)
}

// chain checks the manifests of one partition from its base on.
func (v *verifier) chain(ctx context.Context, base *record.Base, p partitionListing, jobs chan<- manifestJob) {
	var sum PartitionReport
	var last *record.Manifest
	for i, name := range p.manifests {
		if ctx.Err() != nil {
			return
		}
		v.checked(checkRecords, 1)
		m, err := sinks.ReadManifest(ctx, v.store, name)
		if err != nil {
			v.fault(checkRecords, name, "%v", err)
			v.repair.add(name, nil, err)
			v.progress()
			continue
		}
		v.oneFormat(name, m.Format)
		if last == nil {
			sum = PartitionReport{Topic: m.Topic, Partition: m.Partition, Base: m.Start, End: m.Start}
			if base != nil {
				sum.Base = base.Start(m.Partition)
				sum.End = sum.Base
			}
		}
		if m.Start > sum.End {
			last = v.unlisted(ctx, &sum, last, m, jobs)
		}
		v.link(ctx, &sum, last, m, name)
		v.repair.add(name, m, nil)
		ahead := chunksAhead(last)
		last = m
		jobs <- manifestJob{m, name, i == len(p.manifests)-1, slices.Contains(p.retired, m.Start), ahead}
	}
	if last != nil {
		v.partition(sum)
	}
}

// unlisted follows the chain through manifests before m that were not listed, and
// returns the last of them, or last. A listing is not atomic: of two manifests created
// during it, it may have only the second.
func (v *verifier) unlisted(ctx context.Context, sum *PartitionReport, last, m *record.Manifest,
	jobs chan<- manifestJob) *record.Manifest {
	for sum.End < m.Start {
		name := record.ManifestName(m.TopicPartition(), sum.End)
		between, err := sinks.ReadManifest(ctx, v.store, name)
		if err != nil {
			break // no such manifest, or a listed one that was reported
		}
		v.mu.Lock()
		v.total++
		v.mu.Unlock()
		v.checked(checkRecords, 1)
		v.oneFormat(name, between.Format)
		v.link(ctx, sum, last, between, name)
		v.repair.add(name, between, nil)
		ahead := chunksAhead(last)
		last = between
		jobs <- manifestJob{between, name, false, false, ahead}
	}
	return last
}

// link checks that m continues its chain, and adds its counts to sum.
func (v *verifier) link(ctx context.Context, sum *PartitionReport, last, m *record.Manifest, name string) {
	v.checked(checkChain, 1)
	v.content(ctx, m, name)
	v.adopted(m, name)
	switch {
	case m.Start > sum.End:
		v.fault(checkChain, name, "offsets %d to %d are in no manifest", sum.End, m.Start-1)
	case m.Start < sum.End:
		v.fault(checkChain, name, "offsets %d to %d are in two manifests, or before the base", m.Start,
			min(m.End, sum.End)-1)
	case v.otherTopic(last, m):
		v.fault(checkChain, name, "its records come from another topic of the same name, with id %q, which was not "+
			"accepted", m.TopicID)
	case m.Counts.Messages+m.Counts.Chunks == 0 && last != nil && last.Last != nil &&
		(m.Last == nil || *m.Last != *last.Last):
		v.fault(checkChain, name, "it has no message, but does not inherit the last record of the manifest before it")
	}
	v.chunks(last, m, name)
	sum.add(m)
}

// adopted counts a manifest whose files another output has written.
func (v *verifier) adopted(m *record.Manifest, name string) {
	if m.AdoptedFrom != "" && m.AdoptedFrom == v.Store {
		v.fault(checkRecords, name, "it says that its files are adopted, but from this output itself")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	addAdopted(&v.Adopted, m)
}

// chunks checks that m keeps what last says of chunks behind its end: those within m are
// chunks there, and m names the others.
func (v *verifier) chunks(last, m *record.Manifest, name string) {
	if last == nil || last.Chunks == nil || last.End != m.Start {
		return
	}
	within := int64(0)
	for _, offset := range last.Chunks.Ahead {
		switch {
		case offset < m.End:
			within++
		case m.Chunks == nil || !slices.Contains(m.Chunks.Ahead, offset):
			v.fault(
				checkChain,
				name,
				"the manifest before it names offset %d as a chunk of its messages, and it does not",
				offset,
			)
			return
		}
	}
	if within > m.Counts.Chunks {
		v.fault(checkChain, name, "%d of its records are chunks of messages before it, and it counts %d", within,
			m.Counts.Chunks)
	}
}

// content checks that the output has a record of a manifest's content. A missing or
// damaged record is reported once, not for each of its manifests.
func (v *verifier) content(ctx context.Context, m *record.Manifest, name string) {
	if m.ContentHash == "" || v.configs[m.ContentHash] {
		return
	}
	v.configs[m.ContentHash] = true
	v.checked(checkRecords, 1)
	if _, err := sinks.ReadContent(ctx, v.store, m.ContentHash); err != nil {
		v.fault(checkRecords, record.ContentName(m.ContentHash),
			"the configuration of %s: %v; the rows are not affected, and a run with that configuration writes the "+
				"record again, once a damaged one is removed", name, err)
	}
}

// orphans reports the files that readers of tables would find and that no manifest
// names.
func (v *verifier) orphans() {
	foreign := map[string]int{} // number of files outside of tables, by first folder
	defer func() {
		for _, name := range slices.Sorted(maps.Keys(foreign)) {
			if n := foreign[name]; n > 1 {
				v.note("%s, %d files, is not part of the output", name, n)
			} else {
				v.note("%s is not part of the output", name)
			}
		}
	}()
	tables := tables.Names()
	for name := range v.listed {
		folder, _, inFolder := strings.Cut(name, "/")
		if strings.HasSuffix(name, record.DataSuffix) || inFolder && slices.Contains(tables, folder) {
			v.fault(checkOrphans, name, "no manifest names this file")
		} else {
			foreign[folder]++
		}
	}
}

// expected checks that the output reaches the offsets of VerifyOptions.Ends.
func (v *verifier) expected() {
	for topic, ends := range v.opts.Ends {
		for id, end := range ends {
			i := slices.IndexFunc(v.Partitions, func(p PartitionReport) bool {
				return p.Topic == topic && p.Partition == id
			})
			switch {
			case i < 0 && end > 0:
				v.fault(checkChain, fmt.Sprintf("%s/%d", topic, id),
					"nothing of this partition is in the output; it should reach offset %d", end)
			case i >= 0 && v.Partitions[i].End < end:
				v.fault(checkChain, fmt.Sprintf("%s/%d", topic, id), "the output ends at offset %d; it should reach %d",
					v.Partitions[i].End, end)
			}
		}
	}
}

// staging notes the attempts that have staged files, apart from pending ones.
func (v *verifier) staging(ctx context.Context) error {
	attempts := map[string]int64{}
	err := v.store.List(ctx, record.StagingFolder, func(e sinks.Entry) error {
		attempts[strings.SplitN(e.Name, "/", 3)[1]] += e.Size
		return nil
	})
	for name, size := range attempts {
		if v.pending[record.StagingFolder+"/"+name] {
			continue
		}
		v.note("%s/%s holds %d bytes: an attempt in progress, or one that died; it is removed when its partition is "+
			"resumed after another commit", record.StagingFolder, name, size)
	}
	return err
}
