// Command truth repeats the experiments of the paper that this program
// implements ("Differentiable Entropy Regularization"), those on transformers with
// small ones, and sets what it finds beside what the paper prints.
//
// Every experiment is a file here: a claim, and cells that are run one after the
// other. A cell's records are appended to results/truth/<name>.jsonl as soon as
// it is done, so an interrupted sweep goes on where it was; the table in
// results/truth/<name>.md is rendered from these records and nothing else.
//
// A row is a claim of the paper (rows.go): it takes its figures from the records of
// experiments. The grid of all rows, their pages and the site in docs/truth are rendered
// from the same records; package estimate holds the statistics and the verdicts.
//
// Vocabulary: an experiment is one table or figure; a cell is the least part of
// it that is run or skipped; a record is one measured line. A timed experiment
// keeps to one machine: records of another CPU are dropped, and all its times
// include every cost a frame has.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
)

// experiments are in the order of the paper's sections.
var experiments = []*experiment{
	correlation, touched, margin, realEntropy, rangeFamilies, sweeps, failure, significance,
	hulls, costs,
	sorting,
	large,
	spatial,
	shapeTasks,
	shapeTimes,
	seeding,
	publish,
	pairs,
	breakdown,
	breakEven,
	tradeoff, netSweeps, lessons,
	denoise,
	perturb,
	baselines,
	metrics,
	theorem,
	minilm,
	phraseProbe,
	languageModel,
	tokenTasks,
	visionModel,
	robustness,
	pruning,
	objects,
	digits,
	texturedScenes,
	photographedClothes,
	corruptedClothes,
	longLanguageModel,
	wordModel,
	overhead,
	latencyKernels,
	modelLayers,
	picture,
}

// experiment is one table of the paper, or one figure.
type experiment struct {
	name  string // name of its files
	title string
	claim string // the paper's claim in our words, with the figures it prints
	timed bool   // wants a machine without other work

	// eachSeed is set where cells draw from the first seed alone: they are run for one
	// seed after the other.
	eachSeed bool
	// seedBySeed is set where a seed has all of its cells before the next one has any: a map without
	// holes from the first seed on.
	seedBySeed bool

	// cells returns the cells to run.
	cells func(how effort) []cell
	// rows turns records into the lines of the table; nil means a line a record.
	rows func(records []record) []record
	// columns of the table.
	columns rig.Table[*record]
	// verdict says what the records show, and why that differs from the claim. It
	// computes every figure in it from the records.
	verdict func(records []record) string
}

// effort says how much of an experiment is run.
type effort int

const (
	whole effort = iota
	quick        // the same in seconds, for tests
)

func (c *cli) effort() effort {
	if c.Quick {
		return quick
	}
	return whole
}

// use returns what the records' files are opened for.
func (c *cli) use() logUse {
	switch {
	case c.Render:
		return readOnly
	case c.Again:
		return startAgain
	}
	return goOn
}

// cell is a part of an experiment. Its key names its parameters, seed included;
// another key is another cell.
type cell struct {
	key string
	run func(context.Context) ([]record, error)
}

// column is a column of a table.
type column = rig.Column[*record]

type cli struct {
	Row     []int         `placeholder:"N" help:"Rows of the grid whose experiments run, 1 to 36, by default all."`
	Only    []string      `placeholder:"NAME" help:"Experiments to run, by default all: ${names}."`
	Seeds   []uint64      `default:"${seeds}" placeholder:"N" help:"Seeds of everything that is drawn (${default})."`
	Results string        `placeholder:"DIR" help:"Folder of the records, - for none; other seeds have one."`
	Page    string        `placeholder:"DIR" help:"Folder of the grid and its site (docs/truth, or RESULTS/page)."`
	Against string        `placeholder:"DIR" help:"List where figures disagree with those of the records in DIR."`
	Quick   bool          `help:"Each experiment in seconds, in a temporary folder: does everything run?"`
	Again   bool          `help:"Measure cells again that have records."`
	Render  bool          `help:"Run nothing; render the tables from the records."`
	Timeout time.Duration `default:"12h" help:"No cell begins later than this (${default})."`

	Shown   io.Writer `kong:"-"` // gets a line for every cell that has run
	Printed io.Writer `kong:"-"` // gets what the run found
	ran     int       // cells that have run
	missing int       // cells of the chosen experiments that have no records
}

func main() {
	names := make([]string, len(experiments))
	for k, e := range experiments {
		names[k] = e.name
	}
	c := cli{Shown: os.Stderr, Printed: os.Stdout}
	kong.Parse(&c, kong.Name("truth"), kong.Vars{"names": strings.Join(names, ", "), "seeds": listed(paperSeeds, ",")},
		kong.Description("Repeats the experiments of the paper, each as a table beside the printed figures."))
	rig.Main("truth", c.run)
}

func (c *cli) run(ctx context.Context) error {
	chosen, err := c.chosen()
	if err != nil {
		return err
	}
	if err := c.settle(); err != nil {
		return err
	}
	kept := !c.Quick && c.Results != "-"
	if !kept {
		if c.Results, err = os.MkdirTemp("", "entropipe-truth-"); err != nil {
			return err
		}
		defer os.RemoveAll(c.Results)
		c.Page = filepath.Join(c.Results, "page")
	}
	if err := os.MkdirAll(c.Results, 0o777); err != nil {
		return err
	}
	deadline := time.Now().Add(c.Timeout)
	var failed []error
	for _, e := range chosen {
		if err := e.repeat(ctx, c.Results, c, deadline); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", e.name, err))
			fmt.Fprintf(c.Shown, "%s  failed: %v\n", e.name, err) // the end may be hours away
		}
	}
	failed = append(failed, removeProgram())
	if c.ran+c.missing == 0 && !c.Render {
		fmt.Fprintln(c.Shown, "All cells have records, so none has run. --again measures them once more.")
	}
	if !c.Quick {
		failed = append(failed, writeIndex(c.Results), c.compare(), c.writePages(chosen, kept))
	}
	switch {
	case c.missing == 0 || c.Render:
	case ctx.Err() != nil:
		failed = append(failed, fmt.Errorf("interrupted; %s", c.rest(kept)))
	case errors.Join(failed...) == nil:
		failed = append(failed, fmt.Errorf("the %v of --timeout are over; %s", c.Timeout, c.rest(kept)))
	}
	return errors.Join(failed...)
}

// rest says what becomes of the cells that have not run.
func (c *cli) rest(kept bool) string {
	if !kept {
		return fmt.Sprintf("%d cells have not run", c.missing)
	}
	again := ""
	if c.Again {
		again = " without --again"
	}
	return fmt.Sprintf("%d cells have not run: the same command%s goes on with them", c.missing, again)
}

// repeat runs the cells that are not done and renders the table.
func (e *experiment) repeat(ctx context.Context, folder string, c *cli, deadline time.Time) error {
	cells := e.list(c.effort())
	use := c.use()
	if ctx.Err() != nil || time.Now().After(deadline) {
		use = readOnly // nothing will run
	}
	log, err := openLog(folder, e, cells, use)
	if err != nil {
		return err
	}
	defer log.close()
	defer func() { c.missing += log.left(cells) }()
	began, ran := time.Now(), 0
	for k, cell := range cells {
		if use == readOnly || log.done[cell.key] {
			continue
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			break
		}
		if ran == 0 {
			fmt.Fprintf(c.Shown, "%s  %d of %d cells are done: %s\n", e.name, len(cells)-log.left(cells),
				len(cells), e.title)
		}
		start := time.Now()
		kept, err := cell.measure(ctx, log)
		if err != nil && ctx.Err() != nil {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", cell.key, err)
		}
		ran++
		c.ran++
		end := fmt.Sprintf("%.1f s", time.Since(start).Seconds())
		if kept > 0 {
			end = fmt.Sprintf("the data are not here (set ENTROPIPE_TESTDATA); records kept: %d", kept)
		}
		left := time.Since(began) / time.Duration(ran) * time.Duration(log.left(cells))
		fmt.Fprintf(c.Shown, "%s  %d/%d  %s  %s, about %v left\n", e.name, k+1, len(cells), cell.key, end,
			left.Round(time.Second))
	}
	if log.file == nil && len(log.before) > 0 {
		log.asItWas(cells)
	}
	return e.render(folder, log, cells)
}

// measure runs the cell and appends its records. Where the cell's data are not here it puts back
// what the file held of them, and returns how many records these are.
func (c *cell) measure(ctx context.Context, log *log) (kept int, err error) {
	start := time.Now()
	records, err := c.run(ctx)
	if err != nil {
		return 0, err
	}
	took := time.Since(start)
	if len(records) > 0 && isAbsent(&records[0]) {
		if kept, err = log.putBack(c.key); err != nil || kept > 0 {
			return kept, err
		}
	}
	return 0, log.append(c.key, records, took)
}

// chosen returns the experiments that --only and --row ask for, all without either, in
// their order.
func (c *cli) chosen() (chosen []*experiment, err error) {
	wanted := map[string]bool{}
	for _, name := range c.Only {
		if experimentOf(name) == nil {
			return nil, fmt.Errorf("no experiment is called %q; --help lists their names", name)
		}
		wanted[name] = true
	}
	for _, number := range c.Row {
		if number < 1 || number > len(rows) {
			return nil, fmt.Errorf("--row %d: rows are 1 to %d", number, len(rows))
		}
		for _, name := range rows[number-1].experiments {
			wanted[name] = true
		}
	}
	if len(c.Only)+len(c.Row) == 0 {
		return experiments, nil
	}
	for _, e := range experiments {
		if wanted[e.name] {
			chosen = append(chosen, e)
		}
	}
	return chosen, nil
}

// committed is the folder of the repository with the records that the project's pages come from.
const committed = "benchmarks/results/truth"

// inRepository returns the way from the working directory to a folder of the repository.
func inRepository(folder string) (string, error) {
	root, err := rig.Root()
	if err == nil {
		_, err = os.Stat(filepath.Join(root, folder))
	}
	if err != nil {
		return "", fmt.Errorf("outside of entropipe's repository --results DIR or --results - is needed, "+
			"and with other seeds --against DIR: %w", err)
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return filepath.Rel(here, filepath.Join(root, folder))
}

// settle takes the seeds, and chooses the folders: other seeds than the paper's have their
// own and are compared with the committed records. The committed pages come from the committed
// records alone.
func (c *cli) settle() error {
	if len(c.Seeds) == 0 {
		c.Seeds = paperSeeds
	}
	if sorted := slices.Sorted(slices.Values(c.Seeds)); len(slices.Compact(sorted)) < len(c.Seeds) || len(c.Seeds) < 2 {
		return fmt.Errorf("--seeds %s: at least two different ones are needed, five for most intervals to decide",
			listed(c.Seeds, ","))
	}
	seeds = c.Seeds
	if c.Quick {
		return nil // has a folder of its own
	}
	ours, err := inRepository(committed)
	if err != nil && (c.Results == "" || !ofPaper() && c.Against == "") {
		return err
	}
	switch {
	case !ofPaper():
		c.Results = cmp.Or(c.Results, ours+"-"+listed(seeds, "-"))
		c.Against = cmp.Or(c.Against, ours)
	case c.Results == "":
		c.Results, c.Page = ours, cmp.Or(c.Page, filepath.Join(ours, "..", "..", "..", "docs", "truth"))
	}
	c.Page = cmp.Or(c.Page, filepath.Join(c.Results, "page"))
	if c.Against == "" {
		return nil
	}
	old, err := runOf(c.Against)
	if err == nil && len(old) == 0 {
		err = errors.New("there are no records of experiments")
	}
	if err != nil {
		return fmt.Errorf("--against %s: %w", c.Against, err)
	}
	return nil
}

// ofPaper reports whether the seeds are the paper's.
func ofPaper() bool { return slices.Equal(seeds, paperSeeds) }

// listed joins seeds.
func listed(seeds []uint64, with string) string {
	texts := make([]string, len(seeds))
	for k, s := range seeds {
		texts[k] = fmt.Sprint(s)
	}
	return strings.Join(texts, with)
}

// compare prints where the figures disagree with those of --against, and writes it to against.md
// beside the records.
func (c *cli) compare() error {
	if c.Against == "" {
		return nil
	}
	fresh, errFresh := runOf(c.Results)
	old, errOld := runOf(c.Against)
	if err := errors.Join(errFresh, errOld); err != nil {
		return err
	}
	fmt.Fprint(c.Printed, disagreements(fresh, old))
	page := againstPage(c.Seeds, filepath.Base(c.Against), fresh, old)
	return rig.WritePage(filepath.Join(c.Results, "against.md"), page)
}

// writePages renders the grid and all that belongs to it from the records, and shows the rows
// of the chosen experiments; the tables themselves, too, if nothing is kept.
func (c *cli) writePages(chosen []*experiment, kept bool) error {
	r, err := runOf(c.Results)
	if err != nil {
		return err
	}
	from, errFrom := filepath.Abs(c.Page)
	to, errTo := filepath.Abs(c.Results)
	if err := errors.Join(errFrom, errTo); err != nil {
		return err
	}
	way, err := filepath.Rel(from, to)
	if err != nil {
		return err
	}
	var again run
	if ours, err := inRepository(committed); err == nil && ofPaper() && c.Results == ours {
		if again, err = runOf(ours + "-" + listed(freshSeeds, "-")); err != nil {
			return err
		}
	}
	if err := writeTruth(r, again, c.Page, filepath.ToSlash(way)); err != nil {
		return err
	}
	for _, e := range chosen {
		if kept {
			break
		}
		page, err := os.ReadFile(filepath.Join(c.Results, e.name+".md"))
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Printed, "%s\n", page)
	}
	return c.show(linesOf(r.sheet()), chosen, kept)
}

// show tells the verdicts: of the rows that are asked for or that the chosen experiments
// measure, or how many rows have which, and where the pages are.
func (c *cli) show(lines []line, chosen []*experiment, kept bool) error {
	var b strings.Builder
	for k := range lines {
		l := &lines[k]
		measured := len(c.Only) > 0 && slices.ContainsFunc(l.experiments, func(name string) bool {
			return slices.Contains(chosen, experimentOf(name))
		})
		if measured || slices.Contains(c.Row, l.number) {
			b.WriteString("\n" + l.inWords())
		}
	}
	if len(c.Only)+len(c.Row) == 0 {
		fmt.Fprintf(&b, "\n%d rows: %s\n", len(lines), verdictCounts(lines))
	}
	if kept {
		fmt.Fprintf(&b, "\nPages: %s\n", filepath.Join(c.Page, "index.html"))
	}
	_, err := io.WriteString(c.Printed, b.String())
	return err
}
