package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"entropipe/ingest/filesys"
)

// Archive returns the archive of the inputs that lie at f.Paths. It reads nothing yet.
func (f Files) Archive() (Archive, error) {
	a := &archive{open: f.openInput, skipBad: f.SkipBad, log: f.Log}
	a.search = func(ctx context.Context, yield func(in *Input) error) error {
		found, err := f.find(ctx, &a.files)
		if err != nil {
			return err
		}
		inputs := found.inputs
		for i := range inputs {
			in := inputs[i]
			inputs[i] = Input{} // its names go with it
			if err := yield(&in); err != nil {
				return err
			}
		}
		return nil
	}
	return a, nil
}

// listed returns an archive of inputs that list finds.
func (f Files) listed(list func() ([]Input, error)) (Archive, error) {
	a := &archive{open: f.openInput, skipBad: f.SkipBad, log: f.Log}
	a.search = a.each(list)
	return a, nil
}

// each searches by listing.
func (a *archive) each(list func() ([]Input, error)) func(context.Context, func(*Input) error) error {
	return func(_ context.Context, yield func(in *Input) error) error {
		inputs, err := list()
		if err != nil {
			return err
		}
		for i := range inputs {
			a.files.Add(int64(max(1, len(inputs[i].Files))))
			if err := yield(&inputs[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

// single returns an input for each file, each named once.
func single(format string, files []string, name func(path string) string) []Input {
	var inputs []Input
	seen := map[string]bool{}
	for _, path := range files {
		whole := absolute(path)
		if seen[whole] {
			continue
		}
		seen[whole] = true
		inputs = append(inputs, Input{Format: format, Path: filesys.Dir(path), Files: []string{filesys.Base(path)},
			name: name(path)})
	}
	distinguish(inputs)
	return inputs
}

// Archive returns the archive of one folder of scans.
func (k KITTI) Archive() (Archive, error) {
	f := Files{SkipBad: k.SkipBad, MaxFrameBytes: k.MaxFrameBytes, Log: k.Log}
	return f.listed(func() ([]Input, error) {
		return []Input{{Format: FormatKITTI, Path: k.Dir, Files: k.Files}}, nil
	})
}

// Archive returns the archive of drawings, of which each file is an input.
func (q QuickDraw) Archive() (Archive, error) {
	f := Files{SkipBad: q.SkipBad, Pack: q.Pack, Log: q.Log}
	return f.listed(q.inputs)
}

// inputs returns an input for each file.
func (q QuickDraw) inputs() ([]Input, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	return single(FormatQuickDraw, q.Files, wordOf), nil
}

// wordOf returns the category of a file of drawings as its begin tells it, else as its name does.
func wordOf(path string) string {
	s, err := takeSample(path)
	if err != nil {
		return stem(path)
	}
	return s.word()
}

// Archive returns the archive of the clouds in the files; the files of a folder are an input.
func (c CloudFiles) Archive() (Archive, error) {
	f := Files{SkipBad: c.SkipBad, MaxFrameBytes: c.MaxFrameBytes, Log: c.Log}
	return f.listed(func() ([]Input, error) {
		return byFolder(c.Format.Name, c.Paths, c.Format.list)
	})
}

// Archive returns the archive of the tables; the files of a folder are an input.
func (t Table) Archive() (Archive, error) {
	f := Files{Columns: t.Columns, GroupBy: t.GroupBy, SkipBad: t.SkipBad, MaxFrameBytes: t.MaxFrameBytes, Log: t.Log}
	return f.listed(func() ([]Input, error) {
		if tableEndings[t.Format] == nil {
			return nil, t.unknown()
		}
		return byFolder(t.Format, t.Paths, t.list)
	})
}

// byFolder returns the inputs of files, and of the files that list finds in folders.
func byFolder(format string, paths []string, list func(dir string) ([]string, error)) ([]Input, error) {
	var inputs []Input
	at := map[string]int{}
	for _, path := range paths {
		info, err := filesys.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", format, err)
		}
		files := []string{path}
		if info.IsDir() {
			if files, err = list(path); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			dir := filesys.Dir(file)
			i, ok := at[dir]
			if !ok {
				i = len(inputs)
				at[dir] = i
				inputs = append(inputs, Input{Format: format, Path: dir, name: filesys.Base(absolute(dir))})
			}
			inputs[i].Files = append(inputs[i].Files, filesys.Base(file))
		}
	}
	for i := range inputs {
		slices.SortFunc(inputs[i].Files, naturally)
		inputs[i].Files = slices.Compact(inputs[i].Files)
	}
	slices.SortStableFunc(inputs, func(a, b Input) int { return naturally(a.Path, b.Path) })
	distinguish(inputs)
	return inputs, nil
}

// Archive returns the archive of recordings; the files of one sequence are an input.
func (m MCAP) Archive() (Archive, error) {
	f := Files{Topics: m.Topics, Time: m.Time, SkipBad: m.SkipBad, MaxFrameBytes: m.MaxFrameBytes, Log: m.Log}
	return f.listed(func() ([]Input, error) {
		var g sequences
		for _, path := range m.Paths {
			files, err := recordings(path)
			if err != nil {
				return nil, err
			}
			for _, r := range files {
				g.add(FormatMCAP, r.sequence, r.path)
			}
		}
		if len(g.inputs) == 0 {
			return nil, errors.New("mcap: no file is named")
		}
		return g.inputs, nil
	})
}

// Archive returns the archive of bags; the files of one sequence are an input.
func (r Rosbag) Archive() (Archive, error) {
	f := Files{Topics: r.Topics, Time: r.Time, SkipBad: r.SkipBad, MaxFrameBytes: r.MaxFrameBytes, Log: r.Log}
	return f.listed(func() ([]Input, error) {
		var g sequences
		if _, err := findBags(r.Paths); err != nil {
			return nil, err
		}
		for _, path := range r.Paths {
			parts, err := findBags([]string{path})
			if err != nil {
				return nil, err
			}
			for _, p := range parts {
				g.add(FormatRosbag, p.sequence, p.path)
			}
		}
		return g.inputs, nil
	})
}

// sequences groups files by their sequence, which continues over them.
type sequences struct {
	inputs []Input
	at     map[string]int
}

func (g *sequences) add(format, sequence, path string) {
	i, ok := g.at[sequence]
	if !ok {
		if g.at == nil {
			g.at = map[string]int{}
		}
		i = len(g.inputs)
		g.at[sequence] = i
		g.inputs = append(g.inputs, Input{Format: format, Path: filesys.Dir(path), Sequence: sequence})
	}
	in := &g.inputs[i]
	name, err := filesys.Rel(absolute(in.Path), absolute(path))
	if err != nil {
		name = absolute(path)
	}
	in.Files = append(in.Files, filepath.ToSlash(name))
}

// Archive returns the archive of the scans: the scenes of the tables at a path are an input, and so
// are scans without tables.
func (n NuScenes) Archive() (Archive, error) {
	f := Files{Tables: n.Tables, Scenes: n.Scenes, SkipBad: n.SkipBad, MaxFrameBytes: n.MaxFrameBytes, Log: n.Log}
	return f.listed(func() ([]Input, error) {
		if len(n.Paths) == 0 {
			return nil, errors.New("nuscenes: no folder or file named")
		}
		var inputs, named []Input
		for _, path := range n.Paths {
			tables, err := findTables(path, n.Tables)
			if err != nil {
				return nil, err
			}
			if tables != "" {
				inputs = append(inputs, Input{Format: FormatNuScenes, Path: path})
				continue
			}
			scans, err := appendScans(nil, path)
			if err != nil {
				return nil, err
			}
			if named == nil {
				named = []Input{{Format: FormatNuScenes, Path: filesys.Dir(scans[0])}}
			}
			for _, scan := range scans {
				name, err := filesys.Rel(absolute(named[0].Path), absolute(scan))
				if err != nil {
					name = absolute(scan)
				}
				named[0].Files = append(named[0].Files, filepath.ToSlash(name))
			}
		}
		return append(inputs, named...), nil
	})
}

// Archive returns the archive of the sweeps; a log is an input.
func (a Argoverse2) Archive() (Archive, error) {
	f := Files{SkipBad: a.SkipBad, MaxFrameBytes: a.MaxFrameBytes, Log: a.Log}
	return f.listed(func() ([]Input, error) {
		if len(a.Paths) == 0 {
			return nil, errors.New("argoverse2: no folder or file named")
		}
		var inputs []Input
		at := map[string]int{}
		for _, path := range a.Paths {
			s := &argoverse2{}
			if err := s.add(absolute(path)); err != nil {
				return nil, err
			}
			for i := range s.sweeps {
				log := s.sweeps[i].log
				k, ok := at[log]
				if !ok {
					k = len(inputs)
					at[log] = k
					inputs = append(inputs, Input{Format: FormatArgoverse2, Path: log,
						name: filesys.Base(log)})
				}
				name, err := filesys.Rel(log, s.sweeps[i].file)
				if err != nil {
					return nil, err
				}
				inputs[k].Files = append(inputs[k].Files, filepath.ToSlash(name))
			}
		}
		slices.SortFunc(inputs, func(a, b Input) int { return cmp.Compare(a.Path, b.Path) })
		distinguish(inputs)
		return inputs, nil
	})
}

// Archive returns the archive of segments; the files of one segment are an input.
func (w Waymo) Archive() (Archive, error) {
	f := Files{Lasers: w.Lasers, Returns: w.Returns, PerLaser: w.PerLaser, SkipBad: w.SkipBad,
		MaxFrameBytes: w.MaxFrameBytes, Log: w.Log}
	return f.listed(func() ([]Input, error) {
		if len(w.Paths) == 0 {
			return nil, errors.New("waymo: no file or folder named")
		}
		var g sequences
		for _, path := range w.Paths {
			found, err := findWaymo(path)
			if err != nil {
				return nil, fmt.Errorf("waymo: %w", err)
			}
			for _, in := range found {
				g.add(FormatWaymo, in.context(), in.path)
			}
		}
		for i := range g.inputs {
			g.inputs[i].Sequence = ""
		}
		return g.inputs, nil
	})
}

// Archive returns the archive of texts or token ids, of which each file is an input. With Lengths,
// all files are one.
func (t Tokens) Archive() (Archive, error) {
	a := &archive{open: t.openInput, skipBad: t.SkipBad, log: t.Log}
	a.search = a.each(t.inputs)
	return a, nil
}

// inputs returns an input for each file, or one of all.
func (t Tokens) inputs() ([]Input, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if t.Lengths == nil {
		return single(FormatTokens, t.Files, stemOfTokens), nil
	}
	in := Input{Format: FormatTokens, Path: filesys.Dir(t.Files[0])}
	for _, path := range t.Files {
		name, err := filesys.Rel(absolute(in.Path), absolute(path))
		if err != nil {
			name = absolute(path)
		}
		in.Files = append(in.Files, filepath.ToSlash(name))
	}
	return []Input{in}, nil
}

// openInput opens an input.
func (t Tokens) openInput(in *Input) (Source, error) {
	if in.Format != FormatTokens {
		return nil, fmt.Errorf("%s: these are no tokens", in)
	}
	t.Files = in.paths()
	if err := t.check(); err != nil {
		return nil, err
	}
	return t.source()
}

// inTurn returns a Source of several inputs.
func inTurn(inputs []Input, log *slog.Logger, allowed bool, open func(in *Input) (Source, error)) *Inputs {
	return &Inputs{skips: skips{allowed: allowed, log: log}, inputs: inputs, open: open}
}
