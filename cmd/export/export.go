// Package export is the command export: it writes one frame of an output as svg, png,
// geojson, ply, gpkg or mcap, all frames as gpkg or mcap, a model of the stage as onnx, or a mask
// in the form of another program.
// Package sinks/picture draws; support and models write the other two.
//
// A layer is one kind of thing in a picture: points, hull, maxima, triangles, hull3d.
package export

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/cmd/mistake"
	"entropipe/models/atomicfile"
	"entropipe/sinks"
	"entropipe/sinks/picture"
	"entropipe/sinks/read"
	"entropipe/sparse/support"
)

// Command is the command export: its flags and arguments.
type Command struct {
	Out string `arg:"" type:"output"`

	As   string `placeholder:"${export_formats}" values:"svg,png,geojson,ply,gpkg,mcap,onnx,ort,flex,flashinfer"`
	File string `name:"output" short:"o" placeholder:"FILE"`

	Topic     string `placeholder:"NAME" group:"Which frame (the first that fits)"`
	Partition *int32 `group:"Which frame (the first that fits)"`
	Offset    *int64 `group:"Which frame (the first that fits)"`
	Index     *int32 `group:"Which frame (the first that fits)"`
	Dataset   string `placeholder:"NAME" group:"Which frame (the first that fits)"`
	Sequence  string `placeholder:"NAME" group:"Which frame (the first that fits)"`
	FrameID   *int64 `group:"Which frame (the first that fits)"`
	All       bool   `group:"Which frame (the first that fits)"`

	Layers []string `enum:"points,hull,maxima,triangles,hull3d" placeholder:"LAYER" group:"How"`
	Width  int      `default:"1200" group:"How"`
	ASCII  bool     `name:"ascii" group:"How"`

	Bucket command.Bucket `embed:"" group:"Object store"`
}

const (
	minPictureWidth = 100
	maxPictureWidth = 4000
)

// sequenceFormats are the formats that hold more than one frame.
var sequenceFormats = []string{"gpkg", "mcap"}

// Run checks the flags and runs the command.
func (c *Command) Run(e *command.Env) error {
	if c.isModel() {
		return c.exportModel(e)
	}
	if c.isMask() {
		return c.exportMask(e)
	}
	if err := c.check(e.Stdout); err != nil {
		return err
	}
	store, err := command.OpenOutput(e.Ctx, c.Out, &c.Bucket)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer store.Close()
	if make := map[string]func(*command.Env, sinks.Reader) error{"gpkg": c.exportGeoPackage,
		"mcap": c.exportMCAP}[c.As]; make != nil {
		if err := make(e, store); err != nil {
			return fmt.Errorf("export %s: %w", config.ShownPath(c.Out), err)
		}
		return nil
	}
	shown, err := c.load(e, store)
	if err != nil {
		return fmt.Errorf("export %s: %w", config.ShownPath(c.Out), err)
	}
	return c.send(e.Stdout, func(w *bufio.Writer) error { return c.write(w, shown) })
}

// send gives write the file, or stdout, to write to. A file that is there stays
// as it was when write fails.
func (c *Command) send(stdout io.Writer, write func(w *bufio.Writer) error) error {
	out, done := stdout, func() error { return nil }
	if c.File != "" && c.File != "-" {
		if info, err := os.Lstat(c.File); errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() {
			return atomicfile.Write(c.File, func(w io.Writer) error {
				b := bufio.NewWriterSize(w, 1<<16)
				return errors.Join(write(b), b.Flush())
			})
		}
		f, err := os.Create(c.File) // a pipe, a device, or a link
		if err != nil {
			return err
		}
		out, done = f, f.Close
	}
	w := bufio.NewWriterSize(out, 1<<16)
	err := errors.Join(write(w), w.Flush())
	return errors.Join(err, done())
}

// check fills in the format and returns the first mistake, as a Usage.
func (c *Command) check(stdout io.Writer) error {
	formats := []string{"svg", "png", "geojson", "ply", "gpkg", "mcap"}
	if c.As == "" {
		switch ext := strings.ToLower(strings.TrimPrefix(filepath.Ext(c.File), ".")); {
		case slices.Contains(formats, ext):
			c.As = ext
		case ext == "json":
			c.As = "geojson"
		case c.File == "" || c.File == "-":
			c.As = "svg"
		default:
			return mistake.NewUsage(fmt.Errorf("-o %s: its name does not say the format; add --as %s", c.File,
				strings.Join(formats, "|")))
		}
	}
	if c.As == "onnx" {
		return mistake.NewUsage(errors.New("--as onnx is for a model, which is named in place of the output folder: " +
			"entropipe export FILE.safetensors"))
	}
	if slices.Contains(maskForms, c.As) {
		return mistake.NewUsage(fmt.Errorf("--as %s is for a mask: there is no %s in %s", c.As, support.ConfigFile,
			config.ShownPath(c.Out)))
	}
	if !slices.Contains(formats, c.As) {
		return mistake.NewUsage(fmt.Errorf("--as %s: want %s", c.As, strings.Join(formats, ", ")))
	}
	if (c.As == "geojson" || c.As == "gpkg") && slices.Contains(c.Layers, picture.LayerHull3D) {
		return mistake.NewUsage(fmt.Errorf("--layers hull3d: %s is flat; ply has the mesh, svg and png its "+
			"edges from above", c.As))
	}
	if c.All && !slices.Contains(sequenceFormats, c.As) {
		return mistake.NewUsage(fmt.Errorf("--all: %s holds one frame; a sequence needs --as %s", c.As,
			strings.Join(sequenceFormats, "|")))
	}
	if c.ASCII && c.As != "ply" {
		return mistake.NewUsage(fmt.Errorf("--ascii: it is for ply, not for %s", c.As))
	}
	if err := command.CheckAmount("width", c.Width, minPictureWidth, maxPictureWidth); err != nil {
		return err
	}
	return c.checkTerminal(stdout)
}

// checkTerminal refuses to write bytes to a screen.
func (c *Command) checkTerminal(stdout io.Writer) error {
	f, isFile := stdout.(*os.File)
	binary := c.As == "png" || c.As == "onnx" || c.As == "gpkg" || c.As == "mcap" || c.As == "ply" && !c.ASCII
	if binary && (c.File == "" || c.File == "-") && isFile && command.IsTerminal(f) {
		return mistake.NewUsage(fmt.Errorf("%s is binary, and stdout a terminal: name a file with -o", c.As))
	}
	return nil
}

func (c *Command) query() read.FrameQuery {
	return read.FrameQuery{Topic: c.Topic, Partition: c.Partition, Offset: c.Offset, Index: c.Index,
		Dataset: c.Dataset, Sequence: c.Sequence, FrameID: c.FrameID}
}

// layers are those asked for, or the default ones of the format.
func (c *Command) layers() []string {
	switch {
	case len(c.Layers) > 0:
		return c.Layers
	case c.As == "geojson" || c.As == "gpkg":
		return []string{picture.LayerPoints, picture.LayerHull, picture.LayerMaxima}
	}
	return []string{picture.LayerTriangles, picture.LayerPoints, picture.LayerHull3D, picture.LayerHull,
		picture.LayerMaxima}
}

// load reads the frame and says which one it is.
func (c *Command) load(e *command.Env, store sinks.Reader) (*picture.Frame, error) {
	asked := c.layers()
	r, absent, err := read.ReadFrame(e.Ctx, store, c.query(), tablesOf(asked)...)
	if err != nil {
		return nil, err
	}
	e.Log.Info("frame", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "index", r.Index,
		"dataset", r.Dataset, "sequence", r.Sequence, "frame_id", r.FrameID, "points", r.NPoints)
	for _, layer := range c.Layers {
		if t := picture.TableOfLayer[layer]; t != "points" && slices.Contains(absent, t) {
			e.Log.Warn("not drawn, since this frame's commit has no table of it", "layer", layer, "table", t)
		}
	}
	if r.Points == nil && r.NPoints > r.NDropped {
		if r.Hull == nil {
			return nil, errors.New("there are no coordinates to draw: tables hulls and points have nothing of this " +
				"frame; write them with entropipe run --tables hulls,maxima,triangles,points")
		}
		e.Log.Warn("only the hull in the plane is drawn: the rest needs coordinates, from table points, which " +
			"entropipe run --tables hulls,maxima,triangles,points writes")
	}
	s := picture.NewFrame(r, asked)
	if c.As == "geojson" {
		c.warnOfNullIsland(e, s)
	}
	return s, s.Check()
}

// write draws the frame.
func (c *Command) write(w *bufio.Writer, s *picture.Frame) error {
	switch c.As {
	case "png":
		return picture.WritePNG(w, picture.New(s, float64(c.Width)))
	case "geojson":
		return picture.WriteGeoJSON(w, s)
	case "ply":
		return picture.WritePLY(w, s, len(c.Layers) == 0, c.ASCII)
	}
	return picture.WriteSVG(w, picture.New(s, float64(c.Width)))
}

// warnOfNullIsland says what programs make of the file. Nothing in the file can
// stop them: crs null is of the format's first edition, and the readers of the
// second assume longitude and latitude.
func (c *Command) warnOfNullIsland(e *command.Env, s *picture.Frame) {
	unit := picture.LongUnits[s.Unit()]
	instead := "write table hulls (entropipe run --tables hulls,…): it is GeoParquet without a coordinate system"
	if s.Hull != nil {
		instead = "open table hulls, " + command.JoinOutput(filepath.ToSlash(config.ShownPath(c.Out)),
			picture.TableOfLayer[picture.LayerHull]) +
			": it is GeoParquet without a coordinate system, and opens right"
	}
	e.Log.Warn("QGIS and other GIS programs take GeoJSON for longitude and latitude: they put these "+unit+
		" at Null Island, 0° N 0° E, one for a degree",
		"coordinates", "local "+unit, "instead", instead)
}
