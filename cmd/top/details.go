package top

import (
	"fmt"
	"slices"

	"entropipe/sinks/read"
)

// health are the parts that the process watches.
func health(m *model, _ int) []row {
	s := m.shown.state
	if len(s.Health) == 0 {
		return nil
	}
	rows := []row{{{"Health", title}}}
	for _, h := range s.Health {
		r := row{{left(" "+safe(h.What), 12), plain}}
		if h.OK {
			r = append(r, span{"ok", good})
		} else {
			r = append(r, span{safe(h.Reason), bad})
		}
		rows = append(rows, r)
	}
	return rows
}

// process are processor and memory.
func process(m *model, _ int) []row {
	p := &m.shown.state.Process
	rows := []row{{{"Process", title}}, {{fmt.Sprintf(" %.2f cores, %s resident, %s heap, %d goroutines", p.CPUCores,
		bytesText(float64(p.RSSBytes)), bytesText(float64(p.HeapBytes)), p.Goroutines), plain}}}
	if p.Memory.Limit > 0 {
		share := float64(p.Memory.Used) / float64(p.Memory.Limit)
		rows = append(rows, row{{" memory  " + gauge(share, 10), plain}, {fmt.Sprintf(" %s of %s",
			bytesText(float64(p.Memory.Used)), bytesText(float64(p.Memory.Limit))), plain}})
	}
	w := &m.shown.state.Watchers
	return append(rows, row{{fmt.Sprintf(" watched by %d pages, %d of Foxglove", w.Pages, w.Foxglove), dim}})
}

// peers are the other processes of the output.
func peers(m *model, columns int) []row {
	all := m.shown.state.Peers
	if len(all) == 0 {
		return nil
	}
	w := named(columns, 1, 30)
	rows := []row{heading("Peers", []int{w, 10}, "partitions")}
	for i := range all {
		rows = append(rows, row{{left(" "+safe(all[i].Name), w), plain},
			{right(number(float64(all[i].Partitions)), 10), plain}, {"  " + safe(all[i].URL), dim}})
	}
	return rows
}

// outTables are the totals of an output by table.
func outTables(m *model, columns int) []row {
	w := named(columns, 4, 20)
	rows := []row{heading("Tables", []int{w, 10, 10, 10, 10}, "rows", "a second", "size", "files")}
	for _, t := range m.shown.out.Tables {
		rate := "-"
		if v, known := m.shown.outRates[t.Table]; known {
			rate = number(v)
		}
		rows = append(rows, row{{left(" "+safe(t.Table), w), plain}, {right(number(float64(t.Rows)), 10), bold},
			{right(rate, 10), plain}, {right(bytesText(float64(t.Bytes)), 10), plain},
			{right(number(float64(t.Files)), 10), plain}})
	}
	if len(m.shown.out.Tables) == 0 {
		rows = append(rows, row{{" nothing was committed", dim}})
	}
	if room := min(columns-8, sparkSeconds); room >= 6 && len(m.shown.outHistory) > 0 {
		rows = append(rows, row{{" rows  ", dim}, {spark(m.shown.outHistory, room), dim}})
	}
	return rows
}

// outPartitions are the partitions of an output, the one with the oldest commit first.
func outPartitions(m *model, columns int) []row {
	all := slices.Clone(m.shown.out.Partitions)
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b read.PartitionSummary) int { return a.LastCommit.Compare(b.LastCommit) })
	w := named(columns, 4, 30)
	rows := []row{heading("Partitions", []int{w, 10, 10, 10, 14}, "last", "commits", "rejects", "end")}
	for i := range all {
		p := &all[i]
		rows = append(rows, row{{" ", plain}, {left(partitionName(p.Topic, p.Partition), w-1), plain},
			{right(age(m.now.Sub(p.LastCommit).Seconds()), 10), plain},
			{right(number(float64(p.Manifests)), 10), plain}, {right(number(float64(p.Rejects)), 10), plain},
			{right(fmt.Sprint(p.End), 14), plain}})
	}
	return rows
}
