package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
)

// headline is one ratio and where it comes from.
type headline struct {
	what    string
	ratio   rig.Interval
	against string
	word    string // verdict
	command string // words after `go run ./benchmarks/`
	stamps  []rig.Stamp
}

// columns are those of README.md, and origins those that summary.md has besides.
var (
	columns = rig.Table[headline]{
		{Head: "measured", Text: func(h headline) string { return h.what }},
		{Head: "ratio", Align: rig.Right, Text: func(h headline) string { return ratioText(h.ratio) }},
		{Head: "against", Text: func(h headline) string { return h.against }},
		{Head: "command", Text: func(h headline) string { return "`go run ./benchmarks/" + h.command + "`" }},
	}
	origins = rig.Table[headline]{
		{Head: "measured", Text: func(h headline) string { return h.what }},
		{Head: "verdict", Text: func(h headline) string { return h.word }},
		{Head: "commit", Text: func(h headline) string { return rig.Each(h.stamps, rig.Stamp.Revision) }},
		{Head: "date", Text: func(h headline) string { return rig.Each(h.stamps, rig.Stamp.Date) }},
		{Head: "CPU", Text: func(h headline) string { return rig.Each(h.stamps, rig.Stamp.Machine) }},
	}
)

// ratioText writes ratios of ten and more without decimals, others with two.
func ratioText(i rig.Interval) string {
	format := "%.2f"
	if i.Mid >= 10 {
		format = "%.0f"
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", i.Mid, i.Low, i.High)
}

// headlines compute the lines of the summary, in its order.
var headlines = []func(results string) ([]headline, error){geometry, endToEnd, streams, encoders, attention}

// spread returns a headline's ratio and verdict from the ratios of its inputs.
func spread(h headline, inputs string, ratios []float64) (headline, error) {
	if len(ratios) == 0 {
		return h, fmt.Errorf("%s: no record of `go run ./benchmarks/%s` has this ratio", h.what, h.command)
	}
	s := rig.SpreadOf(ratios)
	h.ratio = rig.Interval{Mid: s.Mean, Low: s.Least, High: s.Most}
	h.word = s.Word(inputs)
	return h, nil
}

// peerFigure is a record of `go run ./benchmarks/peers`.
type peerFigure struct {
	Op      string  `json:"op"`
	Dist    string  `json:"dist"`
	Size    int     `json:"size"`
	Peer    string  `json:"peer"`
	Variant string  `json:"variant"`
	Median  float64 `json:"median_ns_per_point"`
}

// geometry compares each operation with the strongest peer, on KITTI scans, in
// float64 with one thread on both sides: for every scan the newest run that has
// it.
func geometry(results string) ([]headline, error) {
	file, err := rig.ReadJournal[peerFigure]("peers", filepath.Join(results, "peers.jsonl"))
	if err != nil {
		return nil, err
	}
	var all []headline
	for _, op := range []struct{ name, what string }{
		{"hull2d", "planar hulls of KITTI scans"}, {"maxima3d", "3-D maxima of KITTI scans"},
		{"hull3d", "hulls in space of KITTI scans"}, {"delaunay2d", "Delaunay triangulations of KITTI scans"},
	} {
		h := headline{what: op.what, command: "peers"}
		newest := map[string]string{} // run by scan
		for _, r := range file.Records {
			if f := r.Figures; f.Op == op.name && strings.HasPrefix(f.Dist, "kitti ") {
				newest[f.Dist] = r.Time
			}
		}
		ours, best, by := map[string]float64{}, map[string]float64{}, map[string]string{}
		for _, r := range file.Records {
			f := r.Figures
			switch {
			case f.Op != op.name || newest[f.Dist] != r.Time:
			case f.Peer == "entropipe" && f.Variant == "":
				ours[f.Dist] = f.Median
				h.stamps = append(h.stamps, r.Stamp)
			case f.Peer != "entropipe" && (best[f.Dist] == 0 || f.Median < best[f.Dist]):
				best[f.Dist], by[f.Dist] = f.Median, f.Peer
			}
		}
		var ratios []float64
		var peers []string
		for scan, ns := range ours {
			if best[scan] > 0 {
				ratios, peers = append(ratios, best[scan]/ns), append(peers, by[scan])
			}
		}
		slices.Sort(ratios) // sums do not depend on the order of a map
		h.against = "strongest peer: " + rig.Each(peers, func(p string) string { return p })
		h, err := spread(h, "scans", ratios)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

// round is a record of `go run ./benchmarks/e2e throughput`.
type round struct {
	What         string  `json:"what"`
	Broker       string  `json:"broker"`
	Round        int     `json:"round"`
	Frames       float64 `json:"frames"`
	Seconds      float64 `json:"seconds"`
	FetchSeconds float64 `json:"fetch_seconds"`
}

// endToEnd compares the newest run on a real Kafka with the raw fetch loop that
// took turns with it.
func endToEnd(results string) ([]headline, error) {
	file, err := rig.ReadJournal[round]("e2e throughput", filepath.Join(results, "throughput.jsonl"))
	if err != nil {
		return nil, err
	}
	h := headline{command: "e2e throughput --broker kafka", against: "fetching alone"}
	run := rig.LastRun(file.Records, func(r round) (int, bool) {
		return r.Round, r.What == "share" && r.Broker == "kafka"
	})
	var rates, fetches, shares []float64
	for _, r := range run {
		f := r.Figures
		rates, fetches = append(rates, f.Frames/f.Seconds), append(fetches, f.Frames/f.FetchSeconds)
		shares = append(shares, f.FetchSeconds/f.Seconds)
	}
	if len(run) == 0 {
		return nil, fmt.Errorf("%s has no round of Kafka", file.Path)
	}
	h.what = fmt.Sprintf("KITTI scans, Kafka to Parquet, %.0f frames/s", rig.Median(rates))
	share := rig.Median(rates) / rig.Median(fetches)
	h.ratio = rig.Interval{Mid: share, Low: slices.Min(shares), High: slices.Max(shares)}
	h.word = fmt.Sprintf("share of the raw fetch, %d rounds", len(run))
	h.stamps = rig.StampsOf(run)
	return []headline{h}, nil
}

// turn is a record of `go run ./benchmarks/streams`.
type turn struct {
	What   string  `json:"what"`
	Run    string  `json:"run"`
	Round  int     `json:"round"`
	Work   string  `json:"work"`
	Engine string  `json:"engine"`
	Case   string  `json:"case"` // start: a turn over a few frames
	Frames float64 `json:"frames"`
	CPUS   float64 `json:"cpu_s"`
}

// streams compares the processor time of points as rows with the strongest engine of streams,
// starts left out.
func streams(results string) ([]headline, error) {
	file, err := rig.ReadJournal[turn]("streams", filepath.Join(results, "streams.jsonl"))
	if err != nil {
		return nil, err
	}
	var run []rig.Record[turn]
	for _, r := range file.Records {
		if r.Figures.What != "time" || r.Figures.Work != "points" {
			continue
		}
		if len(run) > 0 && run[0].Figures.Run != r.Figures.Run {
			run = nil
		}
		run = append(run, r)
	}
	starts, further := map[string]turn{}, map[string]map[int]float64{}
	for _, r := range run {
		f := r.Figures
		if f.Case == "start" {
			starts[f.Engine], further[f.Engine] = f, map[int]float64{}
		} else if start, ok := starts[f.Engine]; ok {
			further[f.Engine][f.Round] = (f.CPUS - start.CPUS) / (f.Frames - start.Frames)
		}
	}
	h := headline{what: "points as rows, Kafka to Parquet, processor time", command: "streams --works points",
		stamps: rig.StampsOf(run)}
	h.ratio.Mid = math.Inf(1)
	for _, engine := range []string{"flink", "spark"} {
		var ratios []float64
		for round, theirs := range further[engine] {
			if ours := further["entropipe"][round]; ours > 0 {
				ratios = append(ratios, theirs/ours)
			}
		}
		if m := rig.MedianOf(ratios); len(ratios) > 0 && m.Mid < h.ratio.Mid {
			h.ratio, h.against = m, "strongest peer: "+strings.ToUpper(engine[:1])+engine[1:]
			h.word = fmt.Sprintf("%s, %d rounds", m.Word(), len(ratios))
		}
	}
	if h.against == "" {
		return nil, fmt.Errorf("%s has no round of points beside a peer", file.Path)
	}
	return []headline{h}, nil
}

// timed is a record of `go run ./benchmarks/attention`.
type timed struct {
	Queries int       `json:"queries"`
	Ns      rig.Times `json:"ns"`
}

// overAll returns a headline of the quotients of two entries' shortest runs.
func overAll(h headline, path, above, below string, keep func(timed) bool) ([]headline, error) {
	file, err := rig.ReadJournal[timed](h.command, path)
	if err != nil {
		return nil, err
	}
	var ratios []float64
	for _, r := range file.Records {
		if x, y := r.Figures.Ns.Least(above), r.Figures.Ns.Least(below); keep(r.Figures) && x > 0 && y > 0 {
			ratios, h.stamps = append(ratios, x/y), append(h.stamps, r.Stamp)
		}
	}
	h, err = spread(h, "shapes", ratios)
	return []headline{h}, err
}

// encoders compares whole dense encoders with ONNX Runtime, the stronger peer.
func encoders(results string) ([]headline, error) {
	h := headline{
		what:    "dense encoders, 32 to 4096 tokens",
		against: "ONNX Runtime", command: "attention dense",
	}
	all := func(timed) bool { return true }
	return overAll(h, filepath.Join(results, "attention-dense.jsonl"), "ONNX Runtime", "entropipe", all)
}

// attention compares block-sparse attention with PyTorch's compiled form of the
// same mask.
func attention(results string) ([]headline, error) {
	h := headline{
		what:    "attention to a quarter of the blocks",
		against: "compiled FlexAttention", command: "attention sparse",
	}
	whole := func(t timed) bool { return t.Queries > 1 } // not the single queries of decoding
	return overAll(h, filepath.Join(results, "attention-sparse.jsonl"), "FlexAttention", "sparse", whole)
}
