package compact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
)

// vacuumed retires what it can of an output.
func vacuumed(ctx context.Context, from Erasable, into sinks.Reader, dry bool) (Vacuumed, error) {
	return Vacuum(ctx, from, into, VacuumConfig{OlderThan: -1, DryRun: dry})
}

// bothOf returns an output of ten commits and its compaction, which lacks the last three.
func bothOf(t *testing.T) (from, into *sinktest.MemDisk) {
	t.Helper()
	from, into = logOn(t, 14, 2), sinktest.NewMemDisk()
	if err := compactOnce(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), Config{}); err != nil {
		t.Fatal(err)
	}
	sinktest.TakeOver(t, sinktest.MemStore(from), 0, 20, 2)
	return from, into
}

// mustRetire fails the test unless the commits [0, 14) of the source are retired and without
// files, its other rows are there, and both outputs verify.
func mustRetire(t *testing.T, from, into *sinktest.MemDisk) {
	t.Helper()
	report := mustVerify(t, sinktest.MemStore(from))
	if want := []read.RetiredReport{{CoveredBy: report.Retired[0].CoveredBy, Commits: 7}}; !slices.Equal(report.Retired,
		want) {
		t.Errorf("retired: %+v, want %+v", report.Retired, want)
	}
	if report.Partitions[0].End != 20 || report.Partitions[0].Manifests != 10 {
		t.Errorf("%+v", report.Partitions[0])
	}
	if wrong := sinktest.ExactlyOnce(t, sinktest.MemStore(from), 14, 20); wrong != "" {
		t.Error(wrong)
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(into), 0, 14)
}

// Law: a vacuum deletes the files of commits that the compaction covers, and no others; writers
// and compactors go on.
func TestVacuumKeepsWhatIsNotCovered(t *testing.T) {
	from, into := bothOf(t)
	before := rowsOf(t, sinktest.MemStore(from))
	planned, err := vacuumed(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), true)
	if err != nil || !maps.Equal(before, rowsOf(t, sinktest.MemStore(from))) {
		t.Fatalf("a dry run changes the output: %v", err)
	}
	done, err := vacuumed(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), false)
	if err != nil || done != planned || done.Commits != 7 || done.Kept != 3 {
		t.Fatalf("%+v after %+v: %v", done, planned, err)
	}
	mustRetire(t, from, into)
	again, err := vacuumed(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), false)
	if err != nil || again != (Vacuumed{Before: 7, Kept: 3}) {
		t.Errorf("%+v: %v", again, err)
	}
	sinktest.TakeOver(t, sinktest.MemStore(from), 0, 26, 3)
	if err := compactOnce(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), Config{}); err != nil {
		t.Fatal(err)
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(into), 0, 26)
	done, err = vacuumed(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), false)
	if err != nil || done.Kept != 1 { // the newest commit stays
		t.Errorf("%+v: %v", done, err)
	}
	mustVerify(t, sinktest.MemStore(from))
	if err := compactOnce(t.Context(), sinktest.MemStore(from), sinktest.MemStore(sinktest.NewMemDisk()),
		Config{}); err == nil || !strings.Contains(err.Error(), "retired") {
		t.Errorf("a second compaction of a vacuumed output: %v", err)
	}
}

// Law: a vacuum that dies at any change of the disk, with any loss of what was not fsynced, is
// completed by the next one.
func TestVacuumCrashes(t *testing.T) {
	step := 2 * crashStep * batches.Sparse / 3
	for n := 0; ; n += max(1, step) {
		from, into := bothOf(t)
		p := sinktest.DieAt(from, n)
		_, err := vacuumed(p.Ctx, sinktest.MemStore(&p.Disk), sinktest.MemStore(into), false)
		if !p.Dead {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		from = from.Crash(sinktest.KeepSome(uint64(n)))
		mustVerify(t, sinktest.MemStore(from))
		if _, err := vacuumed(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), false); err != nil {
			t.Fatalf("after a crash at change %d: %v", n, err)
		}
		if mustRetire(t, from, into); t.Failed() {
			t.Fatalf("after a crash at change %d", n)
		}
	}
}

// A range of the compaction whose files are still staged covers nothing yet, and is no fault.
func TestVacuumWaitsForFilesInPlace(t *testing.T) {
	from, into := bothOf(t)
	_, m := sinktest.ManifestOf(t, into, 0)
	for _, dir := range []string{record.StagingFolder, path.Dir(m.Files[1].Staged)} {
		if err := into.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	if err := into.Rename(m.Files[1].Path, m.Files[1].Staged); err != nil {
		t.Fatal(err)
	}
	done, err := vacuumed(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), false)
	if err != nil || done.Commits != 0 || done.Kept != 10 {
		t.Errorf("%+v, %v", done, err)
	}
	if err := compactOnce(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), Config{}); err != nil {
		t.Fatal(err)
	}
	done, err = vacuumed(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), false)
	if err != nil || done.Commits != 9 || done.Kept != 1 {
		t.Errorf("%+v, %v", done, err)
	}
}

// Nothing is retired where the compaction is damaged, counts other rows, or is another output's.
func TestVacuumChecksTheCompaction(t *testing.T) {
	p := record.TopicPartition{Topic: sinktest.LogTopic}
	for name, harm := range map[string]func(d *sinktest.MemDisk, m *record.Manifest){
		"a byte": func(d *sinktest.MemDisk, m *record.Manifest) { d.Live.Files[m.Files[0].Path].Data[50] ^= 1 },
		"a file": func(d *sinktest.MemDisk, m *record.Manifest) { d.Remove(m.Files[1].Path) },
		"counts": func(d *sinktest.MemDisk, m *record.Manifest) {
			m.Counts.Frames--
			d.Live.Files[record.ManifestName(p, 0)].Data = record.Encode(m)
		},
		"rows": func(d *sinktest.MemDisk, m *record.Manifest) {
			m.Files = m.Files[1:]
			d.Live.Files[record.ManifestName(p, 0)].Data = record.Encode(m)
		},
	} {
		from, into := bothOf(t)
		before := fmt.Sprint(slices.Sorted(maps.Keys(from.Live.Files)))
		_, m := sinktest.ManifestOf(t, into, 0)
		harm(into, m)
		done, err := vacuumed(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), false)
		if err == nil || done.Commits > 0 || fmt.Sprint(slices.Sorted(maps.Keys(from.Live.Files))) != before {
			t.Errorf("%s: %+v, %v", name, done, err)
		}
	}
	from, _ := bothOf(t)
	_, into := bothOf(t)
	_, err := vacuumed(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), false)
	if wrong := (*sinks.ConfigError)(nil); !errors.As(err, &wrong) || wrong.Field != "covered-by" {
		t.Errorf("%v", err)
	}
}
