// Command compact measures what `entropipe compact` costs beside other ways to make few Parquet
// files of many: ten thousand files of an output, one half of table frames and one of table
// points, become files of 128 MB.
//
// A figure is the size of the files that are read by processor time: what one core does in a
// second. Ours counts the whole process, and reads, checks and hashes all that it copies; the
// peers count from the first file to the last sync, and take a part of the files. All files are
// in the page cache. The size of a table's rows before compression plays no part.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
)

type cli struct {
	Quick   bool   `help:"Few files, one round; keeps no result."`
	Rounds  int    `default:"25" help:"Turns of our ways (${default}; --quick: 1)."`
	Files   int    `default:"10000" help:"Files of the output (${default}; --quick: 400)."`
	Points  int    `default:"5000" help:"Points of a cloud; a file of points has three clouds (${default})."`
	Target  int64  `default:"134217728" help:"Size of the files that are made (${default})."`
	Share   int    `default:"5" help:"Peers take one of so many commits (${default})."`
	Seed    uint64 `default:"1" help:"Seed of the points (${default})."`
	Python  string `placeholder:"FILE" help:"Python that has duckdb, polars, pyarrow and pyspark; without: no peers."`
	Results string `placeholder:"DIR" help:"Folder of the result (benchmarks/results; --quick: none); -: none."`
	Temp    string `placeholder:"DIR" help:"Folder for 4 GB of files, removed at the end (that of temporary files)."`
	Render  bool   `help:"Measure nothing; write the page again from compact.jsonl."`
}

func main() {
	var c cli
	kong.Parse(&c, kong.Name("compact"), kong.Description("Measures compaction beside other programs."))
	rig.Main("compact", c.run)
}

func (c *cli) run(ctx context.Context) error {
	results, err := rig.ResultsFolder(c.Results, rig.KindOf(c.Quick))
	if err != nil {
		return err
	}
	r, err := newReport(results)
	if err != nil {
		return err
	}
	if c.Render {
		return r.write(os.Stdout)
	}
	if c.Quick {
		c.Rounds, c.Files = 1, min(c.Files, 400)
	}
	dir, err := os.MkdirTemp(c.Temp, "entropipe-compact-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{cli: c, dir: dir, corpus: &corpus{dir: filepath.Join(dir, "out"), files: c.Files, points: c.Points,
		seed: c.Seed}}
	if b.program, err = rig.Build(ctx, dir); err != nil {
		return err
	}
	if err := b.corpus.make(ctx); err != nil {
		return err
	}
	fmt.Printf("%d files, %.0f MB\n", c.Files, float64(b.corpus.bytes)/1e6)
	for round := range c.Rounds {
		for _, way := range ours {
			if err := r.keepTurn(b.ours(ctx, way, round)); err != nil {
				return err
			}
		}
		if round == 0 && c.Python != "" {
			for _, way := range peers {
				if err := r.keepTurn(b.peer(ctx, way, round)); err != nil {
					return err
				}
			}
		}
	}
	return r.write(os.Stdout)
}

// bench is what all turns share.
type bench struct {
	*cli
	dir     string
	program rig.Program
	corpus  *corpus
}

// ours compacts the output, on one core or on all, or copies its tables with cp.
func (b *bench) ours(ctx context.Context, way string, round int) (figures, error) {
	f := figures{Way: way, Round: round, Files: b.Files, Bytes: b.corpus.bytes, Seed: b.Seed, Target: b.Target,
		Points: b.Points}
	out := filepath.Join(b.dir, "out2")
	defer os.RemoveAll(out)
	spec := rig.Spec{Path: b.program.Path, Args: []string{"compact", b.corpus.dir, "--into", out, "--target-bytes",
		strconv.FormatInt(b.Target, 10), "--log-level", "warn"}}
	core := -1
	switch cores := rig.Cores(); way {
	case oneCore:
		if len(cores) > 0 {
			core = cores[round%len(cores)]
		}
		spec.Env = []string{"GOMAXPROCS=1"}
	case copied:
		spec = rig.Spec{Path: "cp", Args: []string{"-r", b.corpus.dir, out}}
	}
	var p *rig.Process
	err := rig.OnCore(core, func() (err error) {
		p, err = rig.Start(spec)
		return err
	})
	if err != nil {
		return f, err
	}
	exit, err := p.Wait(ctx)
	f.WallS, f.CPUS, f.Memory = exit.Wall.Seconds(), exit.CPU.Seconds(), exit.MaxRSS
	if err == nil && way != copied {
		err = b.check(ctx, out, &f)
	}
	return f, err
}

// check fails unless the compaction has all rows, and counts its files.
func (b *bench) check(ctx context.Context, out string, f *figures) error {
	_, text, err := b.program.Run(ctx, "info", out, "--json")
	if err != nil {
		return fmt.Errorf("info: %w", err)
	}
	var found struct{ Tables []struct{ Files, Rows int64 } }
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		return err
	}
	rows := int64(0)
	for _, t := range found.Tables {
		f.Into += t.Files
		rows += t.Rows
	}
	if want := int64(b.Files/2) * frames * int64(b.Points+1); rows != want {
		return fmt.Errorf("the compaction has %d rows, and the output %d", rows, want)
	}
	return nil
}

// peer has another program make files of a part of the output's.
func (b *bench) peer(ctx context.Context, way string, round int) (figures, error) {
	f := figures{Way: way, Round: round, Seed: b.Seed, Target: b.Target, Points: b.Points}
	out := filepath.Join(b.dir, "peer")
	defer os.RemoveAll(out)
	some := map[string][]string{}
	for table, names := range b.corpus.names {
		some[table] = names[:len(names)/b.Share]
		for _, name := range some[table] {
			info, err := os.Stat(name)
			if err != nil {
				return f, err
			}
			f.Files++
			f.Bytes += info.Size()
		}
	}
	request, err := json.Marshal(map[string]any{"way": way, "tables": some, "out": out, "target": b.Target})
	if err != nil {
		return f, err
	}
	root, err := rig.Root()
	if err != nil {
		return f, err
	}
	file := filepath.Join(b.dir, "request.json")
	if err := os.WriteFile(file, request, 0o666); err != nil {
		return f, err
	}
	exit, text, err := rig.Run(ctx, rig.Spec{Path: b.Python,
		Args: []string{filepath.Join(root, "benchmarks", "compact", "peer.py"), file}})
	if err != nil {
		return f, fmt.Errorf("%s: %w", way, err)
	}
	var said struct {
		Seconds, CPU float64
		Version      string
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		return f, fmt.Errorf("%s: %w", way, err)
	}
	f.WallS, f.CPUS, f.Version = said.Seconds, said.CPU, said.Version
	if way != parquetJava { // its JVM is another process
		f.Memory = exit.MaxRSS
	}
	return f, nil
}
