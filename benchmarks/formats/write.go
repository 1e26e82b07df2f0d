package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"entropipe/ingest/replay"
	"entropipe/schemas/codec/codectest"
)

// writeCmd writes a synthetic input. It is a process of its own, so that the memory of the
// process that measures stays small: the kernel takes it for that of children.
type writeCmd struct {
	Form   string `arg:""`
	Dir    string `arg:""`
	Frames int    `default:"3"`
	Points int    `default:"120000"`
	Seed   uint64 `default:"1"`
}

// Run writes the input.
func (c *writeCmd) Run() error {
	found, err := formsNamed([]string{c.Form})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o777); err != nil {
		return err
	}
	return found[0].write(&writer{dir: c.Dir, frames: c.Frames, points: c.Points, seed: c.Seed})
}

// writer writes the frames of an input into a folder.
type writer struct {
	dir            string
	frames, points int
	seed           uint64
}

// stampNs is the time of the first frame; a frame takes a tenth of a second.
const (
	stampNs = 1_700_000_000_000_000_000
	frameNs = 100_000_000
)

// each calls f with every frame. The frame is valid until f returns.
func (w *writer) each(f func(number int, c *codectest.Cloud) error) error {
	src, err := replay.LiDAR{Frames: int64(w.frames), Points: w.points, Seed: w.seed}.Open()
	if err != nil {
		return err
	}
	defer src.Close()
	var it replay.Item
	for number := range w.frames {
		if err := src.Next(&it); err != nil {
			return err
		}
		at := int64(stampNs + number*frameNs)
		from := it.Cloud.Cloud32
		c := &codectest.Cloud{Frame: "lidar", Sec: int32(at / 1e9), Nsec: uint32(at % 1e9), X: from.X, Y: from.Y,
			Z: from.Z, Intensity: it.Cloud.Intensity}
		if err := f(number, c); err != nil {
			return err
		}
	}
	return nil
}

// file writes a file of the input's folder.
func (w *writer) file(name string, content []byte) error {
	return os.WriteFile(filepath.Join(w.dir, name), content, 0o666)
}

// stream calls f with a buffered file of the input's folder.
func (w *writer) stream(name string, f func(out io.Writer) error) error {
	file, err := os.Create(filepath.Join(w.dir, name))
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(file, 1<<20)
	return errors.Join(f(out), out.Flush(), file.Close())
}

// writeClouds returns a function that writes a file a frame, in a format of codectest.
func writeClouds(format, name string) func(*writer) error {
	return func(w *writer) error {
		return w.each(func(number int, c *codectest.Cloud) error {
			return w.file(fmt.Sprintf(name, number), c.Value(format))
		})
	}
}
