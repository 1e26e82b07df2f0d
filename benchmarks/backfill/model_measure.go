package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"entropipe/benchmarks/rig"
)

// modelCmd fits the constants of the model and compares its prediction with a measurement.
type modelCmd struct {
	Frames int `default:"240" help:"Frames of the archive at which constants are fitted (${default}; --quick: 24)."`
	Lanes  int `default:"8" help:"Lanes of that archive (${default}; --quick: 3)."`
	Turns  int `default:"3" help:"Turns of each size for processor times (${default}; --quick: 1)."`
}

// Names of costs that are no calls of the system.
const (
	costCPU       = "processor"
	costFiles     = "files"
	costManifests = "manifests"
	costTables    = "bytes of tables"
	costRecords   = "bytes of records"
	costPlan      = "bytes of the plan"
)

// calls groups calls of the system.
var calls = map[string]string{
	"open": "open", "openat": "open", "openat2": "open", "creat": "open",
	"stat": "stat", "lstat": "stat", "fstat": "stat", "newfstatat": "stat", "statx": "stat", "fstatat64": "stat",
	"getdents": "list", "getdents64": "list",
	"fsync": "sync", "fdatasync": "sync",
	"rename": "rename", "renameat": "rename", "renameat2": "rename",
	"link": "link", "linkat": "link",
	"mkdir": "mkdir", "mkdirat": "mkdir",
	"unlink": "remove", "unlinkat": "remove", "rmdir": "remove",
}

// Run is the subcommand.
func (c *modelCmd) Run(b *bench) error {
	if b.Quick {
		c.Frames, c.Lanes, c.Turns = min(c.Frames, 24), min(c.Lanes, 3), 1
	}
	if _, err := exec.LookPath("strace"); err != nil {
		return fmt.Errorf("calls of the system are counted by strace: %w", err)
	}
	if err := b.prepare(); err != nil {
		return err
	}
	b.env = []string{"GOMAXPROCS=1"}
	files, err := b.scans()
	if err != nil {
		return err
	}
	one := size{float64(c.Frames / c.Lanes * c.Lanes), float64(c.Lanes), float64(2 * c.Lanes)}
	m := &model{One: one, Constants: map[string]map[string]constants{}}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		m.FrameBytes += float64(info.Size()) / float64(len(files))
	}
	points := fitPoints(one)
	measured := map[string][]costs{}
	for _, s := range points {
		found, err := c.measure(b, m, files, s)
		if err != nil {
			return err
		}
		for _, phase := range phases {
			measured[phase] = append(measured[phase], found[phase])
		}
	}
	for _, phase := range phases {
		if m.Constants[phase], err = fit(points, measured[phase]); err != nil {
			return fmt.Errorf("%s: %w", phase, err)
		}
	}
	if m.Four, err = c.measure(b, m, files, one.times(4)); err != nil {
		return err
	}
	if err := b.add(figures{What: "model", Frames: int64(one.Frames), Model: m}); err != nil {
		return err
	}
	return b.finish()
}

// measure returns the costs of all phases at a size.
func (c *modelCmd) measure(b *bench, m *model, files []string, s size) (map[string]costs, error) {
	folder := b.path("model")
	defer os.RemoveAll(folder)
	scans := int(s.Frames / s.Lanes)
	for i := range int(s.Lanes) {
		if err := linked(filepath.Join(folder, fmt.Sprintf("drive-%05d", i)), files, scans); err != nil {
			return nil, err
		}
	}
	roll := int(s.Frames / s.Commits)
	j := job{[]string{"files", folder}, []string{"--ops", "hull2d,maxima3d", "--roll-bytes", "1TiB", "--roll-records",
		strconv.Itoa(roll), "--jobs", "1"}}
	found := map[string]costs{}
	times := map[string][]float64{}
	for round := range c.Turns + 1 {
		out := b.path("out")
		for _, phase := range phases {
			args, err := c.args(j, out, phase)
			if err != nil {
				return nil, err
			}
			if round == 0 {
				found[phase], err = b.counted(args)
			} else {
				var spent turn
				spent, err = b.alone(args)
				times[phase] = append(times[phase], spent.CPU.Seconds())
				m.keepRSS(phase, float64(spent.MaxRSS))
			}
			if err != nil {
				return nil, fmt.Errorf("%s at %v: %w", phase, s, err)
			}
		}
		if round == 0 {
			if err := written(out, found); err != nil {
				return nil, err
			}
			if got := found[phaseWork][costManifests]; got != s.Commits {
				return nil, fmt.Errorf("%v manifests at %+v", got, s)
			}
		}
		if err := os.RemoveAll(out); err != nil {
			return nil, err
		}
	}
	for phase, t := range times {
		found[phase][costCPU] = rig.Median(t)
	}
	fmt.Printf("%5.0f frames, %3.0f lanes, %3.0f commits: plan %.2f s, work %.2f s, start %.2f s of processor\n",
		s.Frames,
		s.Lanes, s.Commits, found[phasePlan][costCPU], found[phaseWork][costCPU], found[phaseStart][costCPU])
	return found, nil
}

// keepRSS keeps the peaks of the size that was measured last.
func (m *model) keepRSS(phase string, bytes float64) {
	switch phase {
	case phasePlan:
		m.PlanRSS = bytes
	case phaseWork:
		m.WorkRSS = bytes
	}
}

// args is the command line of a phase.
func (c *modelCmd) args(j job, out, phase string) ([]string, error) {
	if phase == phasePlan {
		return append([]string{"backfill", "plan"}, append(j.Source, "--out", out)...), nil
	}
	plans, err := filepath.Glob(filepath.Join(out, "_commits", "topics", "*", "plan.json"))
	if err != nil || len(plans) != 1 {
		return nil, fmt.Errorf("%d plans, %v", len(plans), err)
	}
	return j.backfillArgs(out, "--plan", filepath.Base(filepath.Dir(plans[0]))), nil
}

// alone runs one process.
func (b *bench) alone(args []string) (t turn, err error) {
	if err = b.process(&t, args...); err != nil {
		err = fmt.Errorf("%w\n%s", err, t.Said)
	}
	return t, err
}

// counted runs one process under strace, and returns how often it called the system.
func (b *bench) counted(args []string) (costs, error) {
	table := b.path("strace")
	strace := exec.CommandContext(b.ctx, "strace",
		append([]string{"-f", "-c", "-o", table, b.program.Path}, args...)...)
	strace.Env = append(os.Environ(), b.env...)
	if said, err := strace.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, said)
	}
	text, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	return parseCalls(string(text))
}

// parseCalls reads the table of strace -c: share, seconds, µs a call, calls, errors if there are
// any, and the name of the call.
func parseCalls(text string) (costs, error) {
	found := costs{}
	for _, name := range calls {
		found[name] = 0
	}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 || fields[len(fields)-1] == "total" {
			continue
		}
		group, ok := calls[fields[len(fields)-1]]
		n, err := strconv.ParseInt(fields[3], 10, 64)
		if ok && err != nil {
			return nil, fmt.Errorf("strace says %q: %w", line, err)
		}
		if ok {
			found[group] += float64(n)
		}
	}
	if found["open"] == 0 {
		return nil, errors.New("strace saw no file opened")
	}
	return found, nil
}

// written adds what the files of an output hold.
func written(out string, found map[string]costs) error {
	plan, work := found[phasePlan], found[phaseWork]
	for _, name := range []string{costFiles, costManifests, costTables, costRecords} {
		work[name] = 0
	}
	return filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, bytes := filepath.Base(path), float64(info.Size())
		switch {
		case strings.HasSuffix(path, ".parquet"):
			work[costFiles]++
			work[costTables] += bytes
		case len(name) == len("00000000000000000000.json") && strings.HasPrefix(name, "0"):
			work[costManifests]++
			work[costRecords] += bytes
		case strings.HasSuffix(path, ".jsonl") || strings.HasPrefix(name, "plan"):
			plan[costPlan] += bytes
		}
		return nil
	})
}
