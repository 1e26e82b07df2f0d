package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"entropipe/algos/geom"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
	"entropipe/benchmarks/rig"
	"entropipe/preprocess"
)

var publish = &experiment{
	name:  "publish",
	title: "Sending on what queries can depend on",
	claim: "Not in the paper: in place of moved points, those points are sent on that declared queries can depend " +
		"on, with their numbers; a consumer that asks these finds the rows of whole scans. Wanted are 20 times " +
		"fewer bytes through the broker for hull2d and maxima3d on KITTI. Bytes are those of message values; frames " +
		"a second are of the whole program from its start to its end, committed tables included. The last line " +
		"sends no points but the two answers themselves, packed as numbers and coordinates of four bytes each: the " +
		"strongest peer where nobody else will ask.",
	timed: true,
	cells: publishCells,
	columns: rig.Table[*record]{
		text("sent", "method"), value("frames", "frames", "%.0f"), value("bytes a frame", "bytes", "%.0f"),
		value("times fewer", "fewer", "%.1f"),
		value("producer, frames/s", "producer_rate", "%.0f"), value("consumer, frames/s", "consumer_rate", "%.0f"),
		value("equal answers, %", "same", "%.0f"),
	},
	verdict: publishVerdict,
}

// publishedFor are the queries.
const publishedFor = "hull2d,maxima3d"

func publishCells(how effort) []cell {
	frames, rounds := 200, 3
	if how == quick {
		frames, rounds = 2, 1
	}
	return []cell{{fmt.Sprintf("KITTI for=%s frames=%d rounds=%d", publishedFor, frames, rounds),
		func(ctx context.Context) ([]record, error) {
			return publishRun(ctx, frames, rounds)
		}}}
}

func publishRun(ctx context.Context, frames, rounds int) ([]record, error) {
	folder, err := scanFolder()
	if err != nil {
		return absent("KITTI", err), nil
	}
	s, err := newSession(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	whole, pruned, answers := record{Text: map[string]string{"method": "whole scans"}},
		record{Text: map[string]string{"method": "what the queries can depend on"}},
		record{Text: map[string]string{"method": "the answers"}}
	for _, part := range []struct {
		r     *record
		topic string
		more  []string
	}{{&whole, "whole", nil}, {&pruned, "pruned", []string{"--stage", "prune", "--for", publishedFor}}} {
		wall, err := s.produce(ctx, part.topic, folder, frames, part.more...)
		if err != nil {
			return nil, err
		}
		bytes, records, err := s.valueBytes(ctx, part.topic)
		if err != nil || records != int64(frames) {
			return nil, fmt.Errorf("topic %s: %d of %d records: %w", part.topic, records, frames, err)
		}
		part.r.put("bytes", float64(bytes)/float64(frames))
		part.r.put("producer_rate", float64(frames)/wall.Seconds())
	}
	var rates [2][]float64
	for range rounds {
		for k, topic := range []string{"whole", "pruned"} {
			exit, out, err := s.run(ctx, topic, "--ops", publishedFor)
			if err != nil {
				return nil, err
			}
			if _, err := tableBytes(out, "hulls"); err != nil {
				return nil, err
			}
			rates[k] = append(rates[k], float64(frames)/exit.Wall.Seconds())
		}
	}
	whole.put("consumer_rate", middle(rates[0]))
	pruned.put("consumer_rate", middle(rates[1]))
	size, same, err := answersOf()
	if err != nil {
		return nil, err
	}
	answers.put("bytes", size)
	out := []record{whole, pruned, answers}
	for k := range out {
		out[k].put("frames", float64(frames))
		out[k].put("fewer", whole.Values["bytes"]/out[k].Values["bytes"])
		out[k].put("same", 100)
	}
	out[1].put("same", same)
	return out, nil
}

// answersOf is the mean size of the answers packed, and the part of the scans
// whose survivors give the same answers as the whole, in percent.
func answersOf() (bytes, same float64, err error) {
	frames, err := kittiDrive()
	if err != nil {
		return 0, 0, err
	}
	stage, err := preprocess.New[float32](preprocess.Config{Mode: preprocess.Prune,
		For: []preprocess.Op{preprocess.Hull2D, preprocess.Maxima3D}})
	if err != nil {
		return 0, 0, err
	}
	var h hull.Hull2D[float32]
	var m maxima.Maxima[float32]
	share := 1 / float64(len(frames))
	for _, c := range frames {
		p, _ := stage.Apply(c)
		corners, top := h.Append(nil, p.Cloud), m.Append3D(nil, p.Cloud)
		bytes += share * float64((4+8)*len(corners)+(4+12)*len(top))
		keep := stage.Prune(nil, &p)
		var left geom.Cloud[float32]
		for _, i := range keep {
			left.X, left.Y, left.Z = append(left.X, p.Cloud.X[i]), append(left.Y, p.Cloud.Y[i]),
				append(left.Z, p.Cloud.Z[i])
		}
		back := func(idx []int32) []int32 {
			for k, i := range idx {
				idx[k] = keep[i]
			}
			return idx
		}
		if slices.Equal(back(h.Append(nil, left)), corners) && slices.Equal(back(m.Append3D(nil, left)), top) {
			same += 100 * share
		}
	}
	return bytes, same, nil
}

func publishVerdict(records []record) string {
	records = here(records)
	if len(records) < 3 {
		return "The scans are not there."
	}
	const goal = 20
	whole, pruned, answers := records[0].Values, records[1].Values, records[2].Values
	word := "as wanted"
	if pruned["fewer"] < goal {
		word = "fewer than wanted"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Of %.0f bytes a scan, %.0f are sent on: %.1f times fewer, %s (%d). The program that reads them "+
		"processes %.0f frames a second instead of %.0f (%.2f times), starting and ending included; the producer "+
		"sends %.0f instead of %.0f. Answers are equal for %.0f %% of the scans. ",
		whole["bytes"], pruned["bytes"], pruned["fewer"], word, goal, pruned["consumer_rate"], whole["consumer_rate"],
		pruned["consumer_rate"]/whole["consumer_rate"], pruned["producer_rate"], whole["producer_rate"], pruned["same"])
	fmt.Fprintf(&b, "The answers alone are %.0f bytes, %.2f times fewer than the survivors, which carry all columns "+
		"of their points, numbers and a schema.\n\nWhy it is so: survivors are the answers' own points. So where one "+
		"consumer wants these answers and nothing more, sending the answers is the better way; survivors are for "+
		"consumers that run their own code on points, cannot trust a producer's answers, or ask several of the "+
		"declared queries.",
		answers["bytes"], pruned["bytes"]/answers["bytes"])
	return b.String()
}
