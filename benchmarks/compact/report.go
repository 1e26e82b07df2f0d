package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
)

// The ways to make few files of many.
const (
	oneCore  = "entropipe compact, one core"
	allCores = "entropipe compact"
	copied   = "cp -r, no checksum" // as many files, and nothing is synced

	parquetJava = "parquet-java"
)

var (
	ours  = []string{oneCore, allCores, copied}
	peers = []string{parquetJava, "DuckDB", "pyarrow", "Polars"}
)

// what the peers do.
var what = map[string]string{
	oneCore: "column chunks byte for byte; SHA-256 of all files read and written; past the page cache; " +
		"fsync",
	allCores:    "the same",
	copied:      "as many files as before, nothing synced",
	parquetJava: "`ParquetFileWriter.appendFile`: column chunks byte for byte, in a warm JVM",
	"DuckDB":    "`COPY (SELECT * FROM read_parquet) TO`: decodes and encodes",
	"pyarrow":   "`ParquetWriter.write_table`: decodes and encodes",
	"Polars":    "`scan_parquet.sink_parquet`: decodes and encodes",
}

// figures are those of one turn.
type figures struct {
	Way     string  `json:"way"`
	Version string  `json:"version,omitempty"` // of the peer
	Round   int     `json:"round"`
	Seed    uint64  `json:"seed"`
	Points  int     `json:"points"` // of a cloud
	Target  int64   `json:"target_bytes"`
	Files   int     `json:"files"`
	Bytes   int64   `json:"bytes"` // size of the files that are read
	Into    int64   `json:"into,omitempty"`
	WallS   float64 `json:"wall_s"`
	CPUS    float64 `json:"cpu_s"`
	Memory  int64   `json:"memory,omitempty"` // largest resident set; 0: of several processes
}

// core returns megabytes that a core takes in a second.
func (f *figures) core() float64 { return float64(f.Bytes) / 1e6 / f.CPUS }

// asked is what a core is to take in a second.
const asked = 500

// report is the page of the newest run.
type report struct{ *rig.Turns[figures] }

func newReport(folder string) (report, error) {
	turns, err := rig.ReadTurns("compact", folder, func(f figures) string { return fmt.Sprint(f.Round, " ", f.Way) })
	return report{turns}, err
}

func (r report) write(to io.Writer) error { return r.WritePage(to, r.markdown()) }

// keepTurn shows a turn, and keeps it.
func (r report) keepTurn(f figures, err error) error {
	if err != nil {
		return err
	}
	fmt.Printf("%2d %-28s %6.0f MB in %6.2f s, processor %6.2f s: %.0f MB/s a core\n", f.Round, f.Way,
		float64(f.Bytes)/1e6, f.WallS, f.CPUS, f.core())
	return r.Add(f)
}

// of returns the values of a way's turns.
func (r report) of(way string, value func(f *figures) float64) (values []float64) {
	for i := range r.Newest {
		if f := &r.Newest[i].Figures; f.Way == way {
			values = append(values, value(f))
		}
	}
	return values
}

func (r report) markdown() string {
	var b strings.Builder
	b.WriteString("# Compaction\n\n")
	cores := r.of(oneCore, (*figures).core)
	if len(cores) == 0 {
		b.WriteString("Nothing was measured yet: `go run ./benchmarks/compact`.\n")
		return b.String()
	}
	first := r.Newest[0].Figures
	fmt.Fprintf(&b, "`go run ./benchmarks/compact`, seed %d. %s.\n\n", first.Seed, rig.Origin(rig.StampsOf(r.Newest)))
	fmt.Fprintf(&b, "%d files, %.0f MB, half of them of table points with %d rows each, half of table frames, "+
		"become %d "+
		"files\nof up to %.0f MB. Megabytes are those of the files that are read; all are in the page cache. Ours "+
		"counts the whole\nprocess; peers count from the first file to the last sync, on a part of the files. Medians "+
		"with the ends of their 95 %% intervals.\n\n", first.Files, float64(first.Bytes)/1e6, frames*first.Points,
		first.Into, float64(first.Target)/1e6)
	mid := rig.MedianOf(cores)
	fmt.Fprintf(&b, "Asked: at least %d MB/s a core without decoding a value. Result: %s, %s.\n\n", asked,
		mid.Text("%.0f"), mid.Verdict(asked))
	b.WriteString("| way | version | files | MB | seconds | processor s | MB/s a core | ours a core beside it | " +
		"memory, " +
		"MB | what it does |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---|\n")
	for _, way := range append(append([]string{}, ours...), peers...) {
		r.row(&b, way, mid.Mid)
	}
	return b.String()
}

// row writes the line of a way. best is our rate.
func (r report) row(b *strings.Builder, way string, best float64) {
	rates := r.of(way, (*figures).core)
	if len(rates) == 0 {
		return
	}
	f := &figures{}
	for i := range r.Newest {
		if r.Newest[i].Figures.Way == way {
			f = &r.Newest[i].Figures
		}
	}
	rate, beside := fmt.Sprintf("%.0f", rates[0]), fmt.Sprintf("%.1f x", best/rig.Median(rates))
	if len(rates) > 1 {
		rate = rig.MedianOf(rates).Text("%.0f")
	}
	if way == oneCore {
		beside = ""
	}
	memory := ""
	if most := slices.Max(r.of(way, func(f *figures) float64 { return float64(f.Memory) })); most > 0 {
		memory = fmt.Sprintf("%.0f", most/1e6)
	}
	fmt.Fprintf(b, "| %s | %s | %d | %.0f | %.2f | %.2f | %s | %s | %s | %s |\n", way, f.Version, f.Files,
		float64(f.Bytes)/1e6, rig.Median(r.of(way, func(f *figures) float64 { return f.WallS })),
		rig.Median(r.of(way, func(f *figures) float64 { return f.CPUS })), rate, beside,
		memory, what[way])
}
