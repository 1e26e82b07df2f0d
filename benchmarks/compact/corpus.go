package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

const (
	topic  = "points"
	frames = 3 // of a commit
)

// corpus is an output with many small files: commits of three clouds, each with a file of table
// frames and one of table points.
type corpus struct {
	dir    string
	files  int
	points int // of a cloud
	seed   uint64
	bytes  int64 // of all files
	names  map[string][]string
}

// make writes the output. Files and manifests are those that a run writes, without its fsyncs,
// of which ten thousand commits take minutes.
func (c *corpus) make(ctx context.Context) error {
	store, err := sinks.OpenLocal(c.dir)
	if err != nil {
		return err
	}
	defer store.Close()
	encoder, err := tables.New(tables.Config{Tables: []string{tables.Points}})
	if err != nil {
		return err
	}
	out, err := sinks.Open(ctx, store, encoder, sinks.Config{Version: "benchmark"})
	if err == nil {
		err = out.Base(ctx, topic, schemas.TopicID{}, map[int32]int64{0: 0})
	}
	if err != nil {
		return err
	}
	folder := filepath.Join(c.dir, filepath.FromSlash(record.ManifestFolder(record.TopicPartition{Topic: topic})))
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	commits := c.files / 2
	made := make([]*record.Manifest, commits)
	errs := make([]error, runtime.GOMAXPROCS(0))
	var next atomic.Int64
	var all sync.WaitGroup
	for lane := range errs {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(commits) && ctx.Err() == nil && errs[lane] == nil; i = next.Add(1) - 1 {
				made[i], errs[lane] = c.commit(encoder, i)
			}
		})
	}
	all.Wait()
	c.names = map[string][]string{}
	for _, err := range append(errs, ctx.Err()) {
		if err != nil {
			return err
		}
	}
	for _, m := range made {
		for i := range m.Files {
			c.bytes += m.Files[i].Bytes
			c.names[m.Files[i].Table] = append(c.names[m.Files[i].Table], filepath.Join(c.dir, m.Files[i].Path))
		}
	}
	return nil
}

// commit writes the files and the manifest of one commit.
func (c *corpus) commit(encoder *tables.Encoder, number int64) (*record.Manifest, error) {
	b := c.batch(number)
	m := &record.Manifest{Format: record.FormatVersion, UUID: record.NewUUID(), Topic: topic,
		Start: b.Start, End: b.End,
		Counts: record.Counts{Messages: b.Messages, Frames: b.Messages}, Last: b.Last, Created: time.Now().UTC()}
	staging := record.StagingName(m.TopicPartition(), m.Start, m.UUID)
	for _, f := range encoder.Plan(b, 0) {
		var data bytes.Buffer
		rows, err := encoder.Encode(&data, f, b)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(c.dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, data.Bytes(), 0o666); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data.Bytes())
		m.Files = append(m.Files, record.File{Table: f.Table, Path: f.Path, Rows: rows, Bytes: int64(data.Len()),
			Staged: fmt.Sprintf("%s/%s-%d", staging, f.Table, len(m.Files)), SHA256: hex.EncodeToString(sum[:])})
	}
	name := filepath.Join(c.dir, filepath.FromSlash(record.ManifestName(m.TopicPartition(), m.Start)))
	return m, os.WriteFile(name, record.Encode(m), 0o666)
}

// batch makes the clouds of one commit: points of a scan, whose coordinates compress as measured
// ones do.
func (c *corpus) batch(number int64) *schemas.Batch {
	rng := rand.New(rand.NewPCG(c.seed, uint64(number)))
	b := &schemas.Batch{Topic: topic, Start: number * frames, End: (number + 1) * frames, Messages: frames}
	for offset := b.Start; offset < b.End; offset++ {
		p := &schemas.Points{Idx: make([]int32, c.points)}
		p.X32, p.Y32, p.Z32 = make([]float32, c.points), make([]float32, c.points), make([]float32, c.points)
		p.Intensity = make([]float32, c.points)
		for i := range c.points {
			r := 5 + 60*rng.Float32()
			p.Idx[i] = int32(i)
			p.X32[i], p.Y32[i], p.Z32[i] = r*float32(i%97-48)/48, r*float32(i%89-44)/44, rng.Float32()*3
			p.Intensity[i] = float32(rng.IntN(256)) / 256
		}
		b.Last = &schemas.RecordID{Offset: offset, Timestamp: 1_700_000_000_000 + offset}
		b.Results = append(b.Results, schemas.Result{FrameKey: schemas.FrameKey{Dataset: "synthetic", Sequence: "drive",
			FrameID: offset, TimeNs: 1_700_000_000_000_000_000 + offset*100_000_000, Offset: offset},
			NPoints: int32(c.points),
			Points:  p})
	}
	return b
}
