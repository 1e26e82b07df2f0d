package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"entropipe/cmd/command"
	"entropipe/models/atomicfile"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/picture"
	"entropipe/sinks/read"
)

// exportGeoPackage writes one frame, or with --all every frame, as a GeoPackage.
func (c *Command) exportGeoPackage(e *command.Env, store sinks.Reader) error {
	return c.sendMade(e.Stdout, func(path string) error {
		g, err := picture.CreateGeoPackage(path)
		if err != nil {
			return err
		}
		return errors.Join(c.eachFrame(e, store, read.ReadFrames, g.Add), g.Close())
	})
}

// sendMade is send for a format whose library makes a file by name.
func (c *Command) sendMade(stdout io.Writer, build func(path string) error) error {
	if c.File != "" && c.File != "-" {
		if info, err := os.Lstat(c.File); errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() {
			return atomicfile.Make(c.File, build)
		}
	}
	dir, err := os.MkdirTemp("", "entropipe-export-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "frames")
	if err := build(made); err != nil {
		return err
	}
	return c.send(stdout, func(w *bufio.Writer) error {
		f, err := os.Open(made)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		return errors.Join(err, f.Close())
	})
}

// frameReader is read.ReadFrames, or has its arguments and results.
type frameReader func(ctx context.Context, store sinks.Reader, q read.FrameQuery,
	use func(r *schemas.Result, absent []string) error, others ...string) error

// eachFrame calls use with the frame of the query, or with --all with every frame that
// fits, as readFrames has them. What a frame lacks is said once.
func (c *Command) eachFrame(e *command.Env, store sinks.Reader, readFrames frameReader,
	use func(*picture.Frame) error) error {
	if !c.All {
		shown, err := c.load(e, store)
		if err != nil {
			return err
		}
		return use(shown)
	}
	said, frames := map[string]bool{}, atomic.Int64{}
	warn := func(text string, args ...any) {
		if key := fmt.Sprint(text, args); !said[key] {
			said[key] = true
			e.Log.Warn(text, args...)
		}
	}
	show := command.StartProgress(e.Stderr, e.Log, "frames", 0, func() (int64, string) { return frames.Load(), "" })
	defer show.Stop()
	asked := c.layers()
	return readFrames(e.Ctx, store, c.query(), func(r *schemas.Result, absent []string) error {
		for _, layer := range c.Layers {
			if t := picture.TableOfLayer[layer]; t != "points" && slices.Contains(absent, t) {
				warn("not written for frames whose commit has no table of it", "layer", layer, "table", t)
			}
		}
		if r.Points == nil && r.NPoints > r.NDropped {
			warn("only the hull in the plane is written of frames without table points, which entropipe run " +
				"--tables hulls,maxima,triangles,points writes")
		}
		s := picture.NewFrame(r, asked)
		if err := s.Check(); err != nil {
			return fmt.Errorf("%s/%d, offset %d, index %d: %w", r.Topic, r.Partition, r.Offset, r.Index, err)
		}
		frames.Add(1)
		return use(s)
	}, tablesOf(asked)...)
}

// tablesOf are the tables that have the layers, and the coordinates of everything.
func tablesOf(layers []string) []string {
	tables := []string{"points"}
	for _, layer := range layers {
		if t := picture.TableOfLayer[layer]; !slices.Contains(tables, t) {
			tables = append(tables, t)
		}
	}
	if !slices.Contains(tables, "hulls") {
		tables = append(tables, "hulls") // coordinates too, if points has none
	}
	return tables
}
