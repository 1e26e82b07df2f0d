package main

import (
	"fmt"
	"io"
	"strings"

	"entropipe/benchmarks/rig"
)

// The ways of a turn.
const (
	inFolder = "folder"
	inBucket = "bucket"
)

var ways = []string{inFolder, inBucket}

// figures are those of one turn.
type figures struct {
	Round      int     `json:"round"`
	Way        string  `json:"way"`
	Data       string  `json:"data"`
	Frames     int     `json:"frames"`
	Roll       int     `json:"roll_records"`
	Ops        string  `json:"ops"`
	WallS      float64 `json:"wall_s"`
	CPUS       float64 `json:"cpu_s"`        // processor time of the run
	ServerCPUS float64 `json:"server_cpu_s"` // processor time of the server meanwhile
	MaxRSS     int64   `json:"max_rss"`      // largest resident set of the run, bytes
	Commits    int64   `json:"commits"`
	Files      int64   `json:"files"`
	Bytes      int64   `json:"bytes"`    // of files
	Requests   int64   `json:"requests"` // of the run, those of its begin among them
}

// report is the page of the newest run.
type report struct{ *rig.Turns[figures] }

func newReport(folder string) (report, error) {
	turns, err := rig.ReadTurns("buckets", folder, func(f figures) string { return fmt.Sprint(f.Round, " ", f.Way) })
	return report{turns}, err
}

func (r report) write(to io.Writer) error { return r.WritePage(to, r.markdown()) }

// of returns the turn of a round; nil if there is none.
func (r report) of(round int, way string) *figures {
	for i := range r.Newest {
		if f := &r.Newest[i].Figures; f.Round == round && f.Way == way {
			return f
		}
	}
	return nil
}

// pairs returns what of says of each round's two turns.
func (r report) pairs(of func(folder, bucket *figures) float64) (values []float64) {
	for round := 0; ; round++ {
		folder, bucket := r.of(round, inFolder), r.of(round, inBucket)
		if folder == nil || bucket == nil {
			return values
		}
		values = append(values, of(folder, bucket))
	}
}

func (r report) markdown() string {
	var b strings.Builder
	b.WriteString("# Outputs in buckets\n\n")
	folder, bucket := r.of(0, inFolder), r.of(0, inBucket)
	if folder == nil || bucket == nil {
		b.WriteString("Nothing was measured yet: `go run ./benchmarks/buckets`.\n")
		return b.String()
	}
	first := r.Newest[0]
	cores := float64(max(first.Cores, 1))
	fmt.Fprintf(&b, "`go run ./benchmarks/buckets`, commit %s, %s, %d cores, %s. A turn takes %d %s with `%s` from "+
		"Kafka "+
		"to committed\nParquet, %d records a commit: into a folder, and into a bucket of versitygw on the same disk "+
		"and "+
		"cores. Medians of\nrounds, with the ends of their 95 %% intervals; each ratio is of the two turns of a "+
		"round.\n\n",
		first.Commit, first.CPU, first.Cores, first.Go, folder.Frames, folder.Data, folder.Ops, folder.Roll)
	b.WriteString("| | bucket beside folder | asked |\n|---|---:|---|\n")
	row := func(name, asked, format string, values []float64) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, rig.MedianOf(values).Text(format), asked)
	}
	row("frames a second, less the server's processor time", "at least 0.8", "%.2f",
		r.pairs(func(f, s *figures) float64 {
			return f.WallS / (s.WallS - s.ServerCPUS/cores)
		}))
	row("frames a second, with the server on the same cores", "", "%.2f", r.pairs(func(f, s *figures) float64 {
		return f.WallS / s.WallS
	}))
	row("processor time of the run", "", "%.2f", r.pairs(func(f, s *figures) float64 { return s.CPUS / f.CPUS }))
	row("largest memory of the run, MB more", "at most 64", "%.0f", r.pairs(func(f, s *figures) float64 {
		return float64(s.MaxRSS-f.MaxRSS) / (1 << 20)
	}))
	b.WriteString("\n| | folder | bucket |\n|---|---:|---:|\n")
	both := func(name, format string, of func(f *figures) float64) {
		fmt.Fprintf(&b, "| %s | "+format+" | "+format+" |\n", name,
			rig.Median(r.pairs(func(f, _ *figures) float64 { return of(f) })),
			rig.Median(r.pairs(func(_, s *figures) float64 { return of(s) })))
	}
	both("seconds", "%.2f", func(f *figures) float64 { return f.WallS })
	both("frames a second", "%.1f", func(f *figures) float64 { return float64(f.Frames) / f.WallS })
	both("processor seconds of the run", "%.2f", func(f *figures) float64 { return f.CPUS })
	both("processor seconds of the server", "%.2f", func(f *figures) float64 { return f.ServerCPUS })
	both("largest memory, MB", "%.0f", func(f *figures) float64 { return float64(f.MaxRSS) / (1 << 20) })
	both("commits", "%.0f", func(f *figures) float64 { return float64(f.Commits) })
	both("files a commit", "%.1f", func(f *figures) float64 { return float64(f.Files) / float64(max(f.Commits, 1)) })
	both("MB of files a commit", "%.2f", func(f *figures) float64 {
		return float64(f.Bytes) / (1 << 20) / float64(max(f.Commits, 1))
	})
	both("requests a commit, with those of the begin", "%.1f", func(f *figures) float64 {
		return float64(f.Requests) / float64(max(f.Commits, 1))
	})
	return b.String()
}
