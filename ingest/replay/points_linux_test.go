package replay

import (
	"io"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"entropipe/schemas"
	"entropipe/sinks/tables"
)

// spentTime returns the processor time of this process.
func spentTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPoints reads the points of an output of 8 LiDAR frames of 120,000 points: MB are bytes of
// x, y, z and intensity in memory, and MB/core-s those for a second of processor time. Read decodes
// them; Sent makes messages of them, too.
func BenchmarkPoints(b *testing.B) {
	src, err := LiDAR{Frames: 8, Points: 120_000}.Open()
	if err != nil {
		b.Fatal(err)
	}
	results := process(b, messagesOf(b, src), []schemas.Op{schemas.Hull2D})
	dir := b.TempDir()
	output(b, dir, tables.Config{}, results, 1000)
	points := int64(0)
	for i := range results {
		points += int64(results[i].NPoints)
	}
	for _, way := range []struct {
		name string
		read func(b *testing.B, src Source)
	}{
		{"Read", func(b *testing.B, src Source) {
			var it Item
			for {
				if err := src.Next(&it); err == io.EOF {
					return
				} else if err != nil {
					b.Fatal(err)
				}
			}
		}},
		{"Sent", func(b *testing.B, src Source) {
			m, err := (&Producer{}).Messages(src)
			if err != nil {
				b.Fatal(err)
			}
			var buffer []byte
			for {
				sent, err := m.Next(buffer)
				if err == io.EOF {
					return
				} else if err != nil {
					b.Fatal(err)
				}
				buffer = sent.Record.Value
			}
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			src := open(b, Table{Paths: []string{filepath.Join(dir, "points")}, Format: FormatParquet})
			b.SetBytes(points * 16)
			b.ReportAllocs()
			before, rounds := spentTime(b), 0
			for b.Loop() {
				if err := src.Rewind(); err != nil {
					b.Fatal(err)
				}
				way.read(b, src)
				rounds++
			}
			spent := (spentTime(b) - before).Seconds()
			b.ReportMetric(float64(points)*16*float64(rounds)/1e6/spent, "MB/core-s")
		})
	}
}
