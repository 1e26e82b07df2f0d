package main

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

	"entropipe/models/atomicfile"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sparse/support"
)

type exportCmd struct {
	Out string `arg:"" type:"path" help:"Output folder, the file of a model (.safetensors), or the folder of a mask."`

	As   string `placeholder:"svg|png|geojson|ply|onnx|…" help:"Format: svg, png, geojson or ply; onnx of a model; ort, flex or flashinfer of a mask. Default: by the name of the file, else svg."`
	File string `name:"output" short:"o" placeholder:"FILE" help:"Where to write; by default, and with -, to stdout."`

	Topic     string `placeholder:"NAME" help:"Topic of the frame." group:"Which frame (the first that fits)"`
	Partition *int32 `help:"Partition." group:"Which frame (the first that fits)"`
	Offset    *int64 `help:"Offset of its record." group:"Which frame (the first that fits)"`
	Index     *int32 `help:"Position within its record." group:"Which frame (the first that fits)"`
	Dataset   string `placeholder:"NAME" help:"Data set." group:"Which frame (the first that fits)"`
	Sequence  string `placeholder:"NAME" help:"Sequence." group:"Which frame (the first that fits)"`
	FrameID   *int64 `help:"Number of the frame." group:"Which frame (the first that fits)"`

	Layers []string `enum:"points,hull,maxima,triangles,hull3d" placeholder:"LAYER" help:"What to draw: points, hull, maxima, triangles, hull3d. Default: what the tables hold; geojson leaves triangles out, ply has the faces of hull3d or else the triangles." group:"How"`
	Width  int      `default:"1200" help:"Width of svg and png in pixels (${default})." group:"How"`
	ASCII  bool     `name:"ascii" help:"Write ply as text instead of binary." group:"How"`
}

func (exportCmd) Help() string {
	return `Draws one frame from the tables, so that a person can look at it. svg and png show it
from above, to scale; geojson has its polygon and points; ply has the
points, with flags, and a mesh for MeshLab, Blender, CloudCompare or Open3D.
GIS programs take GeoJSON for longitude and latitude: QGIS puts a scan's metres at 0° N 0° E.
For those programs table hulls is GeoParquet without a coordinate system, and opens as it is.
The network of a model becomes onnx, for ONNX Runtime. The mask of a transformer, as freeze
writes it, becomes the arrays of ONNX Runtime's SparseAttention (ort), of PyTorch's BlockMask
(flex) or of FlashInfer, in a .safetensors file.

Coordinates of points are in table points, which is written on request:
  entropipe run --tables hulls,maxima,triangles,points
Without it there is the hull in the plane, whose corners table hulls holds.

Examples:
  entropipe export ./entropipe-out -o frame.svg
  entropipe export ./entropipe-out --as png --offset 17 > frame.png
  entropipe export ./entropipe-out --sequence drive_0005 --frame-id 42 --layers hull,maxima -o hull.geojson
  entropipe export ./entropipe-out --topic points --partition 0 --offset 17 -o mesh.ply
  entropipe export model.safetensors -o model.onnx
  entropipe export mask/ --as flex -o blockmask.safetensors`
}

// Names of the layers, in the order in which they are drawn.
const (
	layerTriangles = "triangles"
	layerPoints    = "points"
	layerHull3D    = "hull3d"
	layerHull      = "hull"
	layerMaxima    = "maxima"
)

// tableOfLayer is the table that holds a layer.
var tableOfLayer = map[string]string{layerTriangles: "triangles", layerPoints: "points", layerHull3D: "hulls3d", layerHull: "hulls", layerMaxima: "maxima"}

const (
	minPictureWidth = 100
	maxPictureWidth = 4000
)

func (c *exportCmd) Run(e *env) error {
	if c.isModel() {
		return c.exportModel(e)
	}
	if c.isMask() {
		return c.exportMask(e)
	}
	if err := c.check(e.stdout); err != nil {
		return err
	}
	store, err := openOutput(c.Out)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer store.Close()
	shown, err := c.load(e, store)
	if err != nil {
		return fmt.Errorf("export %s: %w", shownPath(c.Out), err)
	}
	return c.send(e.stdout, func(w *bufio.Writer) error { return c.write(w, shown) })
}

// send gives write the file, or stdout, to write to. A file that is there stays
// as it was when write fails.
func (c *exportCmd) send(stdout io.Writer, write func(w *bufio.Writer) error) error {
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

// check fills in the format and returns the first mistake, as a usageError.
func (c *exportCmd) check(stdout io.Writer) error {
	formats := []string{"svg", "png", "geojson", "ply"}
	if c.As == "" {
		switch ext := strings.ToLower(strings.TrimPrefix(filepath.Ext(c.File), ".")); {
		case slices.Contains(formats, ext):
			c.As = ext
		case ext == "json":
			c.As = "geojson"
		case c.File == "" || c.File == "-":
			c.As = "svg"
		default:
			return usageError{fmt.Errorf("-o %s: its name does not say the format; add --as %s", c.File, strings.Join(formats, "|"))}
		}
	}
	if c.As == "onnx" {
		return usageError{errors.New("--as onnx is for a model, which is named in place of the output folder: entropipe export FILE.safetensors")}
	}
	if slices.Contains(maskForms, c.As) {
		return usageError{fmt.Errorf("--as %s is for a mask: there is no %s in %s", c.As, support.ConfigFile, shownPath(c.Out))}
	}
	if !slices.Contains(formats, c.As) {
		return usageError{fmt.Errorf("--as %s: want %s", c.As, strings.Join(formats, ", "))}
	}
	if c.As == "geojson" && slices.Contains(c.Layers, layerHull3D) {
		return usageError{errors.New("--layers hull3d: geojson is flat; ply has the mesh, svg and png its edges from above")}
	}
	if c.ASCII && c.As != "ply" {
		return usageError{fmt.Errorf("--ascii: it is for ply, not for %s", c.As)}
	}
	if err := checkAmount("width", c.Width, minPictureWidth, maxPictureWidth); err != nil {
		return err
	}
	return c.checkTerminal(stdout)
}

// checkTerminal refuses to write bytes to a screen.
func (c *exportCmd) checkTerminal(stdout io.Writer) error {
	f, isFile := stdout.(*os.File)
	binary := c.As == "png" || c.As == "onnx" || c.As == "ply" && !c.ASCII
	if binary && (c.File == "" || c.File == "-") && isFile && isTerminal(f) {
		return usageError{fmt.Errorf("%s is binary, and stdout a terminal: name a file with -o", c.As)}
	}
	return nil
}

func (c *exportCmd) query() sinks.FrameQuery {
	return sinks.FrameQuery{Topic: c.Topic, Partition: c.Partition, Offset: c.Offset, Index: c.Index,
		Dataset: c.Dataset, Sequence: c.Sequence, FrameID: c.FrameID}
}

// layers are those asked for, or the default ones of the format.
func (c *exportCmd) layers() []string {
	switch {
	case len(c.Layers) > 0:
		return c.Layers
	case c.As == "geojson":
		return []string{layerPoints, layerHull, layerMaxima}
	}
	return []string{layerTriangles, layerPoints, layerHull3D, layerHull, layerMaxima}
}

// load reads the frame and says which one it is.
func (c *exportCmd) load(e *env, store sinks.Reader) (*shownFrame, error) {
	asked := c.layers()
	tables := []string{"points"} // the coordinates of everything
	for _, layer := range asked {
		if t := tableOfLayer[layer]; !slices.Contains(tables, t) {
			tables = append(tables, t)
		}
	}
	if !slices.Contains(tables, "hulls") {
		tables = append(tables, "hulls") // coordinates too, if points has none
	}
	r, absent, err := sinks.ReadFrame(e.ctx, store, c.query(), tables...)
	if err != nil {
		return nil, err
	}
	e.log.Info("frame", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "index", r.Index,
		"dataset", r.Dataset, "sequence", r.Sequence, "frame_id", r.FrameID, "points", r.NPoints)
	for _, layer := range c.Layers {
		if t := tableOfLayer[layer]; t != "points" && slices.Contains(absent, t) {
			e.log.Warn("not drawn, since this frame's commit has no table of it", "layer", layer, "table", t)
		}
	}
	if r.Points == nil && r.NPoints > r.NDropped {
		if r.Hull == nil {
			return nil, errors.New("there are no coordinates to draw: tables hulls and points have nothing of this frame; write them with entropipe run --tables hulls,maxima,triangles,points")
		}
		e.log.Warn("only the hull in the plane is drawn: the rest needs coordinates, from table points, which entropipe run --tables hulls,maxima,triangles,points writes")
	}
	s := newShownFrame(r, asked)
	if c.As == "geojson" {
		c.warnOfNullIsland(e, s)
	}
	return s, s.check()
}

// write draws the frame.
func (c *exportCmd) write(w *bufio.Writer, s *shownFrame) error {
	switch c.As {
	case "png":
		return writePNG(w, newPicture(s, float64(c.Width)))
	case "geojson":
		return writeGeoJSON(w, s)
	case "ply":
		return writePLY(w, s, len(c.Layers) == 0, c.ASCII)
	}
	return writeSVG(w, newPicture(s, float64(c.Width)))
}

// shownFrame is a frame, as the tables have it, of which some layers are
// shown. Without points it has those layers alone that bring their
// coordinates.
type shownFrame struct {
	*schemas.Result
	layers map[string]bool
}

func newShownFrame(r *schemas.Result, layers []string) *shownFrame {
	s := &shownFrame{Result: r, layers: map[string]bool{}}
	for _, layer := range layers {
		s.layers[layer] = true
	}
	if r.Points == nil {
		r.Points = &schemas.Points{}
		if r.NPoints > r.NDropped {
			s.layers = map[string]bool{layerHull: true}
		}
	}
	return s
}

// at returns the coordinates of the point that stands k-th in table points. z
// is 0 where the cloud has none.
func (s *shownFrame) at(k int) (x, y, z float64) {
	p := s.Points
	if p.X64 != nil {
		if p.Z64 != nil {
			z = p.Z64[k]
		}
		return p.X64[k], p.Y64[k], z
	}
	if p.Z32 != nil {
		z = float64(p.Z32[k])
	}
	return float64(p.X32[k]), float64(p.Y32[k]), z
}

// place returns where point i of the frame as received stands in table points.
func (s *shownFrame) place(i int32) int {
	k, found := slices.BinarySearch(s.Points.Idx, i)
	if !found {
		panic("export: check has let a stranger through")
	}
	return k
}

func (s *shownFrame) hasZ() bool { return s.Points.Z32 != nil || s.Points.Z64 != nil }

// check compares the tables with one another: every point that a layer names
// must be in table points.
func (s *shownFrame) check() error {
	n := len(s.Points.Idx)
	for table, idx := range s.indices() {
		last := -1 // most follow one another
		for _, i := range idx {
			if last+1 < n && s.Points.Idx[last+1] == i {
				last++
				continue
			}
			k, found := slices.BinarySearch(s.Points.Idx, i)
			if !found {
				return fmt.Errorf("table %s names point %d of this frame, which table points does not have: the output is damaged (entropipe verify)", table, i)
			}
			last = k
		}
	}
	return nil
}

// indices returns the points that the layers shown name, by table.
func (s *shownFrame) indices() map[string][]int32 {
	all := map[string][]int32{}
	if len(s.Points.Idx) == 0 {
		return all
	}
	if s.layers[layerTriangles] {
		all["triangles"] = s.Triangles
	}
	if s.layers[layerHull] && s.Hull != nil {
		all["hulls"] = s.Hull.Idx
	}
	if s.layers[layerHull3D] && s.Hull3 != nil {
		all["hulls3d"] = slices.Concat(s.Hull3.Idx, s.Hull3.Faces)
	}
	if s.layers[layerMaxima] {
		for _, m := range s.Maxima {
			all["maxima"] = append(all["maxima"], m.Idx...)
		}
	}
	return all
}

// name is what a person would call the frame.
func (s *shownFrame) name() string {
	text := fmt.Sprintf("%s / %s, frame %d", s.Dataset, s.Sequence, s.FrameID)
	if s.Drawing != nil {
		text += fmt.Sprintf(": %s %d", s.Drawing.Label, s.Drawing.ID)
	}
	return text
}

// unit is that of the coordinates.
func (s *shownFrame) unit() string {
	if s.Drawing != nil {
		return "px"
	}
	return "m"
}
