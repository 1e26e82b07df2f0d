package top

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"entropipe/ops/live"
)

// section draws one part of the body in a number of columns. It returns nothing if there is
// nothing to say.
type section func(m *model, columns int) []row

// pane is a choice of sections; the second column is drawn beside the first in wide windows,
// else below it.
type pane struct {
	name          string
	first, second []section
}

// panes are chosen by the keys 1 to 4.
var panes = [...]pane{
	{"all", []section{rates, latency, way, topics}, []section{lag, rejects, written, health, process}},
	{"way", []section{rates, latency, way}, []section{topics, process}},
	{"lag", []section{lag}, []section{health, peers}},
	{"rejects, tables", []section{rejects}, []section{written}},
}

// Widths from which a window has two columns, and of the gap between them.
const (
	twoColumns = 120
	columnGap  = 2
)

// body returns the rows of the chosen pane.
func (m *model) body() []row {
	p := panes[m.pane]
	if m.shown.out != nil {
		p.first, p.second = []section{outTables}, []section{outPartitions}
	}
	columns := m.width
	if m.width >= twoColumns {
		columns = (m.width - columnGap) / 2
	}
	draw := func(sections []section, into []row) []row {
		for _, s := range sections {
			rows := s(m, columns)
			if len(rows) > 0 && len(into) > 0 {
				into = append(into, nil)
			}
			into = append(into, rows...)
		}
		return into
	}
	if m.width < twoColumns {
		return draw(p.second, draw(p.first, nil))
	}
	one, two := draw(p.first, nil), draw(p.second, nil)
	rows := make([]row, max(len(one), len(two)))
	for i := range rows {
		if i < len(one) {
			rows[i] = one[i]
		}
		rows[i] = rows[i].fit(columns + columnGap)
		if i < len(two) {
			rows[i] = append(rows[i], two[i]...)
		}
	}
	return rows
}

// heading returns the first row of a section with the names of its columns.
func heading(name string, widths []int, names ...string) row {
	r := row{{left(name, widths[0]), title}}
	for i, n := range names {
		r = append(r, span{right(n, widths[i+1]), dim})
	}
	return r
}

// named returns the width of a first column that n others of 10 columns leave, within bounds.
func named(columns, others, most int) int { return max(min(columns-10*others, most), 8) }

// rates are what goes through a second, with the last minute.
func rates(m *model, columns int) []row {
	s, hist := m.shown.state, m.shown.series
	if hist == nil {
		hist = &live.Series{}
	}
	rows := []row{heading("Rates", []int{11, 10, 10}, "a second", "total")}
	add := func(name string, rate float64, total int64, text func(float64) string, past []float64, always bool) {
		if !always && total == 0 {
			return
		}
		r := row{{left(" "+name, 11), plain}, {right(text(rate), 10), bold}, {right(text(float64(total)), 10), plain}}
		if room := min(columns-32, sparkSeconds); room >= 6 && len(past) > 0 {
			r = append(r, span{" " + spark(past, room), dim})
		}
		rows = append(rows, r)
	}
	r, t := &s.Rates, &s.Totals
	add("messages", r.Messages, t.Messages, number, nil, true)
	add("frames", r.Frames, t.Frames, number, hist.Frames, t.Sequences == 0)
	add("points", r.Points, t.Points, number, hist.Points, t.Sequences == 0)
	add("sequences", r.Sequences, t.Sequences, number, nil, false)
	add("tokens", r.Tokens, t.Tokens, number, hist.Tokens, false)
	add("rows", r.Rows, t.Rows, number, nil, true)
	add("rejects", r.Rejects, t.Rejects, number, hist.Rejects, false)
	add("in", r.BytesIn, t.BytesIn, bytesText, hist.BytesIn, true)
	add("out", r.BytesOut, t.BytesOut, bytesText, hist.BytesOut, true)
	return rows
}

// latency is the time from Kafka's timestamp to the commit.
func latency(m *model, columns int) []row {
	l := &m.shown.state.Latency
	rows := []row{{{"Latency", title}}, {{" p50 ", dim}, {left(milliseconds(l.P50), 9), bold}, {" p95 ", dim},
		{left(milliseconds(l.P95), 9), bold}, {" p99 ", dim}, {milliseconds(l.P99), bold}}}
	if h := m.shown.series; h != nil && len(h.P95) > 0 {
		past := make([]float64, len(h.P95))
		for i, v := range h.P95 {
			if v != nil {
				past[i] = *v
			}
		}
		if room := min(columns-8, sparkSeconds); room >= 6 {
			rows = append(rows, row{{" p95  ", dim}, {spark(past, room), dim}})
		}
	}
	return rows
}

// way are the stages of a frame; the bottleneck is marked.
func way(m *model, columns int) []row {
	s := m.shown.state
	if len(s.Way) == 0 {
		return nil
	}
	rows := []row{heading("Way", []int{11, 9, 9, 6, 18}, "a second", "each", "busy", "queue")}
	for _, stage := range s.Way {
		mark, look := " ", plain
		if stage.Stage == s.Bottleneck {
			mark, look = "▶", bad
		}
		r := row{{left(mark+safe(stage.Stage), 11), look}, {right(number(stage.Rate), 9), plain},
			{right(milliseconds(&stage.Ms), 9), plain}, {right(fmt.Sprintf("%.0f %%", 100*stage.Busy), 6), plain}}
		if q := stage.Queue; q != nil && q.Capacity > 0 {
			share := q.Length / q.Capacity
			fill := plain
			if share >= .9 {
				fill = bad
			}
			r = append(r, span{"  " + gauge(share, 10), fill}, span{right(fmt.Sprintf("%.0f %%", 100*share), 6), plain})
		}
		rows = append(rows, r)
	}
	if s.BottleneckReason != "" {
		rows = append(rows, row{{" " + safe(s.BottleneckReason), dim}})
	}
	return rows
}

// topics are the rates by topic, if there are several.
func topics(m *model, columns int) []row {
	s := m.shown.state
	if len(s.Topics) < 2 {
		return nil
	}
	w := named(columns, 4, 30)
	rows := []row{heading("Topics", []int{w, 10, 10, 10, 10}, "frames/s", "points/s", "tokens/s", "p95")}
	for i := range s.Topics {
		t := &s.Topics[i]
		rows = append(rows, row{{left(" "+safe(t.Topic), w), plain}, {right(number(t.Rates.Frames), 10), plain},
			{right(number(t.Rates.Points), 10), plain}, {right(number(t.Rates.Tokens), 10), plain},
			{right(milliseconds(t.Latency.P95), 10), plain}})
	}
	return rows
}

// lag are the partitions, the one that is most behind first.
func lag(m *model, columns int) []row {
	all := slices.Clone(m.shown.state.Lag.Partitions)
	slices.SortStableFunc(all, func(a, b live.Partition) int { return cmp.Compare(b.Seconds, a.Seconds) })
	longest := 0
	for i := range all {
		longest = max(longest, width(partitionName(all[i].Topic, all[i].Partition)))
	}
	w := named(columns, 3, min(longest+2, 30))
	rows := []row{heading("Lag", []int{w, 10, 10, 10}, "records", "behind", "commit")}
	for i := range all {
		p := &all[i]
		commit := "-"
		if p.CommitAgeS != nil {
			commit = age(*p.CommitAgeS)
		}
		r := row{{" ", plain}, {left(partitionName(p.Topic, p.Partition), w-1), plain},
			{right(number(float64(p.Records)), 10), plain}, {right(age(p.Seconds), 10), plain},
			{right(commit, 10), plain}}
		if p.Held != "" {
			r = append(r, span{"  " + safe(p.Held), warn})
		} else {
			r = append(r, span{"  " + safe(p.Owner), dim})
		}
		if p.OpenFrames > 0 {
			r = append(r, span{fmt.Sprintf(", %d chunked open", p.OpenFrames), dim})
		}
		rows = append(rows, r)
	}
	if len(all) == 0 {
		rows = append(rows, row{{" no partition is assigned", dim}})
	}
	for _, p := range m.shown.state.Lag.Elsewhere {
		records := "-"
		if p.Records != nil {
			records = "~" + number(float64(*p.Records))
		}
		rows = append(rows, row{{" ", plain}, {left(partitionName(p.Topic, p.Partition), w-1), dim},
			{right(records, 10), dim}, {right("-", 10), dim}, {right("-", 10), dim},
			{"  " + cmp.Or(safe(p.Owner), "no process"), dim}})
	}
	return rows
}

// partitionName returns TOPIC/PARTITION.
func partitionName(topic string, partition int32) string {
	return fmt.Sprintf("%s/%d", safe(topic), partition)
}

// rejects are the reasons with the newest sample, the most frequent first.
func rejects(m *model, columns int) []row {
	all := slices.Clone(m.shown.rejects)
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b refusal) int { return cmp.Compare(b.Count, a.Count) })
	rows := []row{{{"Rejects", title}}}
	for i := range all {
		r := &all[i]
		rows = append(rows, row{{right(number(float64(r.Count)), 9) + "  ", bold},
			{safe(r.Stage) + ": " + safe(r.Reason), warn}})
		if r.Sample.Topic == "" {
			continue
		}
		rows = append(rows, row{{fmt.Sprintf("           %s at %d: %s",
			partitionName(r.Sample.Topic, r.Sample.Partition), r.Sample.Offset,
			safe(r.Sample.Message)), dim}})
	}
	return rows
}

// written are the files that the process has written, and the space that is left.
func written(m *model, columns int) []row {
	f := m.shown.files
	if f == nil {
		return nil
	}
	w := named(columns, 4, 20)
	rows := []row{heading("Tables", []int{w, 10, 10, 10, 10}, "files", "rows", "size", "closed")}
	for _, t := range f.Tables {
		closed := "-"
		if t.LastClose > 0 {
			closed = age(m.shown.at.Sub(time.Unix(t.LastClose, 0)).Seconds())
		}
		rows = append(rows, row{{left(" "+safe(t.Table), w), plain}, {right(number(float64(t.Files)), 10), plain},
			{right(number(float64(t.Rows)), 10), plain}, {right(bytesText(float64(t.Bytes)), 10), plain},
			{right(closed, 10), plain}})
	}
	rows = append(rows, row{{" " + safe(f.Out), dim}})
	if f.Disk.Total > 0 {
		rows = append(rows, row{{fmt.Sprintf(" disk: %s free of %s", bytesText(float64(f.Disk.Free)),
			bytesText(float64(f.Disk.Total))), plain}})
	}
	return rows
}
