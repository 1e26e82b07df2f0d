// Command entropy says how wide the certified brackets of table entropy are on the KITTI
// frames at hand, and what share of the operators' processor time they take at the
// default rate. It keeps no result.
//
// Words: an operator's time is the processor time of one frame through it alone, with
// the decoding; a measurement's time is what --entropy-every 1 adds to that.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/algos/geom"
	"entropipe/benchmarks/rig"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
	"entropipe/schemas/codec"
)

type cli struct {
	Frames int   `default:"1000" help:"Frames through every operator, to time it (${default}); 0: widths alone."`
	Every  int64 `default:"100" help:"Rate that shares are computed for (${default}, the default of run)."`
}

func main() {
	var c cli
	kong.Parse(&c, kong.Name("entropy"), kong.Description("Widths and costs of the brackets of table entropy."))
	if err := c.run(); err != nil {
		fmt.Fprintln(os.Stderr, "entropy:", err)
		os.Exit(1)
	}
}

var operators = []schemas.Op{schemas.Hull2D, schemas.Hull3D, schemas.Maxima2D, schemas.Maxima3D}

func (c *cli) run() error {
	frames, err := readFrames()
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, kind := range []string{"raw", "object"} {
		of := slices.DeleteFunc(slices.Clone(frames), func(f frame) bool { return f.kind != kind })
		fmt.Fprintf(out, "%s: %d frames\toperator\twidth, mean\tp95\tmost\tlower > 0\tupper, mean\t\n", kind, len(of))
		for _, op := range operators {
			widths(out, of, op)
		}
	}
	if c.Frames > 0 {
		if err := c.costs(out, frames); err != nil {
			return err
		}
	}
	return out.Flush()
}

// widths writes the row of one operator.
func widths(out *tabwriter.Writer, frames []frame, op schemas.Op) {
	process := pipeline.NewFrames(pipeline.FrameConfig{Ops: []schemas.Op{op}, EntropyEvery: 1}).Process
	var width []float64
	positive, sum, mean := 0, 0.0, 0.0
	for _, f := range frames {
		results, _ := process(f.message)
		e := results[0].Entropy[0]
		width = append(width, e.Upper-e.Lower)
		sum += e.Upper - e.Lower
		mean += e.Upper
		if e.Lower > 0 {
			positive++
		}
	}
	if len(width) == 0 {
		return
	}
	slices.Sort(width)
	n := float64(len(width))
	fmt.Fprintf(out, "\t%s\t%.4f\t%.4f\t%.4f\t%.0f %%\t%.3f\t\n", op, sum/n, width[int(math.Ceil(.95*n))-1],
		width[len(width)-1], 100*float64(positive)/n, mean/n)
}

// costs writes the time of every operator and of its measurement, and the shares.
func (c *cli) costs(out *tabwriter.Writer, frames []frame) error {
	fmt.Fprintf(out, "%d frames\toperator\tms a frame\tmeasurement, ms\tshare at 1 in %d\t\n", c.Frames, c.Every)
	whole := slices.DeleteFunc(slices.Clone(frames), func(f frame) bool { return f.kind != "raw" })
	times, extra := map[schemas.Op]float64{}, map[schemas.Op]float64{}
	for _, op := range append(operators, schemas.Delaunay2D) {
		var err error
		if times[op], err = c.time(whole, op, 0); err != nil {
			return err
		}
		if op == schemas.Delaunay2D {
			fmt.Fprintf(out, "\t%s\t%.2f\t\t\t\n", op, times[op])
			continue
		}
		both, err := c.time(whole, op, 1)
		if err != nil {
			return err
		}
		extra[op] = both - times[op]
		// Without a triangulation every 32nd of the frames is measured.
		fmt.Fprintf(out, "\t%s\t%.2f\t%.2f\t%.2f %%\t\n", op, times[op], extra[op],
			100*extra[op]/times[op]/float64(32*c.Every))
	}
	for _, set := range [][]schemas.Op{{schemas.Hull2D, schemas.Maxima3D}, operators} {
		sum, more := times[schemas.Delaunay2D], 0.0
		for _, op := range set {
			sum += times[op]
			more += extra[op]
		}
		fmt.Fprintf(out, "\t%v and delaunay2d\t%.2f\t%.2f\t%.2f %%\t\n", set, sum, more, 100*more/sum/float64(c.Every))
	}
	return nil
}

// time returns the processor time in milliseconds of a frame through an operator.
func (c *cli) time(frames []frame, op schemas.Op, every int64) (float64, error) {
	process := pipeline.NewFrames(pipeline.FrameConfig{Ops: []schemas.Op{op}, EntropyEvery: every}).Process
	process(frames[0].message) // memory grows
	before, err := rig.ProcessorTime(os.Getpid())
	if err != nil {
		return 0, err
	}
	for k := range c.Frames {
		process(frames[k%len(frames)].message)
	}
	after, err := rig.ProcessorTime(os.Getpid())
	return float64(after-before) / float64(time.Millisecond) / float64(c.Frames), err
}

type frame struct {
	kind    string // raw: the whole turn of the scanner; object: what a camera sees
	message schemas.Message
}

// readFrames returns the KITTI frames at hand as messages.
func readFrames() (frames []frame, err error) {
	for kind, pattern := range map[string]string{"raw": "raw*/*.bin", "object": "object*/*/*.bin"} {
		root, err := rig.TestData("kitti")
		if err != nil {
			return nil, err
		}
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			value, err := encode(b)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			frames = append(frames, frame{kind, schemas.Message{Topic: "points", Value: value}})
		}
	}
	if !slices.ContainsFunc(frames, func(f frame) bool { return f.kind == "raw" }) {
		return nil, fmt.Errorf("no KITTI frames are at hand")
	}
	return frames, nil
}

// encode makes the value of a message of a KITTI file: x, y, z and reflectance of every
// point, float32.
func encode(file []byte) ([]byte, error) {
	rows := make([][4]float32, len(file)/16)
	if err := binary.Read(bytes.NewReader(file), binary.LittleEndian, rows); err != nil {
		return nil, err
	}
	c := geom.Cloud[float32]{Z: []float32{}}
	for _, v := range rows {
		c.X, c.Y, c.Z = append(c.X, v[0]), append(c.Y, v[1]), append(c.Z, v[2])
	}
	return new(schemas.Encoder).AppendPoints(nil, schemas.PointCloud{Points: codec.Points{Cloud32: c}})
}
