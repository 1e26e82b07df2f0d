package main

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"time"

	"entropipe/ingest/replay"
)

// readCmd reads files to columns as `produce` does, and sends nothing.
type readCmd struct {
	Paths []string `arg:"" name:"path"`
	Loops int      `default:"1"`
	Check bool     `help:"Add up the magnitudes of each column."`
}

// reading is what a run of a reader found. Seconds are from the first file to the last
// column. Sums are the magnitudes of x, y, z and intensity, of finite values.
type reading struct {
	Frames  int64      `json:"frames"`
	Points  int64      `json:"points"`
	Seconds float64    `json:"seconds"`
	Sums    [4]float64 `json:"sums"`
}

// Run prints the reading.
func (c *readCmd) Run() error {
	begin := time.Now()
	r, err := c.read()
	if err != nil {
		return err
	}
	r.Seconds = time.Since(begin).Seconds()
	return json.NewEncoder(os.Stdout).Encode(r)
}

func (c *readCmd) read() (r reading, err error) {
	src, err := replay.Files{Paths: c.Paths}.Open()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	var it replay.Item
	for pass := range c.Loops {
		if pass > 0 {
			if err := src.Rewind(); err != nil {
				return r, err
			}
		}
		for {
			err := src.Next(&it)
			if err == io.EOF {
				break
			} else if err != nil {
				return r, err
			}
			r.Frames++
			r.Points += it.Points()
			if c.Check {
				r.add(&it)
			}
		}
	}
	return r, nil
}

// add adds the magnitudes of a cloud.
func (r *reading) add(it *replay.Item) {
	if c := it.Cloud.Cloud64; it.Cloud.Double {
		r.Sums[0] += magnitude(c.X)
		r.Sums[1] += magnitude(c.Y)
		r.Sums[2] += magnitude(c.Z)
	} else {
		c := it.Cloud.Cloud32
		r.Sums[0] += magnitude(c.X)
		r.Sums[1] += magnitude(c.Y)
		r.Sums[2] += magnitude(c.Z)
	}
	r.Sums[3] += magnitude(it.Cloud.Intensity)
}

func magnitude[T float32 | float64](values []T) (sum float64) {
	for _, v := range values {
		if m := math.Abs(float64(v)); m <= math.MaxFloat64 {
			sum += m
		}
	}
	return sum
}

// same reports whether a reader in Python found as much as ours. It may have no intensity.
func (r reading) same(peer reading) bool {
	if r.Frames != peer.Frames || r.Points != peer.Points {
		return false
	}
	for k, sum := range r.Sums {
		if k == 3 && peer.Sums[k] == 0 {
			continue
		}
		if math.Abs(sum-peer.Sums[k]) > 1e-5*sum {
			return false
		}
	}
	return true
}
