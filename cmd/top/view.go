package top

import (
	"fmt"
	"strings"
	"time"
)

// style says what a text means; screen.go chooses how it looks.
type style int

const (
	plain style = iota
	dim
	bold
	good
	warn
	bad
	title
	band // the first and the last row
)

// span is text of one style. It holds no control characters.
type span struct {
	text  string
	style style
}

// row is one row of the screen.
type row []span

// String returns the text of the row without trailing blanks.
func (r row) String() string {
	var b strings.Builder
	for _, s := range r {
		b.WriteString(s.text)
	}
	return strings.TrimRight(b.String(), " ")
}

// width returns the columns that r takes.
func (r row) width() (n int) {
	for _, s := range r {
		n += width(s.text)
	}
	return n
}

// fit returns r in exactly n columns.
func (r row) fit(n int) row {
	var out row
	for _, s := range r {
		w := width(s.text)
		if w >= n {
			if w > n {
				s.text = left(s.text, n)
			}
			return append(out, s)
		}
		n -= w
		out = append(out, s)
	}
	return append(out, span{strings.Repeat(" ", n), plain})
}

// view returns the picture: height rows of width columns.
func (m *model) view() []row {
	head, body := m.heading(), m.content()
	room := m.room()
	from := max(min(m.scroll, len(body)-room), 0)
	rows := append([]row{}, head...)
	rows = append(rows, body[from:min(from+room, len(body))]...)
	for len(rows) < m.height-1 {
		rows = append(rows, nil)
	}
	if m.height > 1 {
		rows = append(rows, m.foot(from, room, len(body)))
	}
	rows = rows[:m.height]
	for i := range rows {
		rows[i] = rows[i].fit(m.width)
	}
	return rows
}

// heading returns the rows above the body; small windows have one or two.
func (m *model) heading() []row {
	head := m.head()
	switch {
	case m.height < 5:
		return head[:1]
	case m.height < 8 && m.lost != nil:
		return []row{head[0], head[len(head)-1]}
	case m.height < 8:
		return head[:min(2, len(head))]
	}
	return head
}

// content returns the rows of the body, all of them.
func (m *model) content() []row {
	if m.help {
		return helpRows
	}
	return m.body()
}

// head returns the rows that say what is seen and how it is.
func (m *model) head() []row {
	state := span{" live ", band}
	switch {
	case m.shown.left > 0:
		state.text = fmt.Sprintf(" reading, %s commits left ", number(float64(m.shown.left)))
	case m.stale():
		state = span{" STALE " + age(m.now.Sub(m.shown.at).Seconds()) + " ", bad}
	case m.paused:
		state = span{" paused ", warn}
	}
	room := m.width - width(state.text)
	rows := []row{{{left(" entropipe top  "+safe(m.name), max(room, 0)), band}, state}}
	if m.shown.out != nil {
		rows = append(rows, m.outputHead())
	} else {
		rows = append(rows, m.processHead()...)
	}
	if m.lost != nil {
		next := max(m.lost.wait-m.now.Sub(m.lost.at), 0)
		rows = append(rows, row{{fmt.Sprintf(" next try in %v: ", next.Round(time.Second)), bad},
			{safe(m.lost.err.Error()), plain}})
	}
	return rows
}

func (m *model) processHead() []row {
	s := m.shown.state
	first := row{{" " + safe(s.Version), bold}}
	if s.Revision != "" {
		first = append(first, span{" " + cut(safe(s.Revision), 12), dim})
	}
	first = append(first, span{"  up " + age(s.UptimeS) + "  ", plain})
	if s.Ready {
		first = append(first, span{"ready", good})
	} else {
		first = append(first, span{"not ready", bad}, span{": " + safe(s.Reason), plain})
	}
	verdict := span{" " + safe(s.Lag.Verdict), warn}
	if s.Lag.Verdict == "keeping up" || s.Backfill != nil && strings.HasPrefix(s.Lag.Verdict, "backfill: ") {
		verdict.style = good
	}
	second := row{verdict}
	if s.Bottleneck != "" {
		second = append(second, span{"  bottleneck: ", plain}, span{safe(s.Bottleneck), bold})
	}
	return []row{first, second}
}

func (m *model) outputHead() row {
	o := m.shown.out
	frames, tokens, rejects, commits := int64(0), int64(0), int64(0), int64(0)
	for i := range o.Partitions {
		p := &o.Partitions[i]
		frames, tokens, rejects = frames+p.Frames, tokens+p.Sequences, rejects+p.Rejects
		commits += p.Manifests
	}
	text := fmt.Sprintf(" output %s  %s commits", cut(safe(o.Store), 9), number(float64(commits)))
	for _, c := range []struct {
		count int64
		name  string
	}{{frames, "frames"}, {tokens, "sequences"}, {rejects, "rejects"}} {
		if c.count > 0 {
			text += ", " + number(float64(c.count)) + " " + c.name
		}
	}
	return row{{text, plain}}
}

// foot names the panes and keys.
func (m *model) foot(from, room, all int) row {
	where := ""
	if all > room && room > 0 {
		where = fmt.Sprintf(" %d-%d of %d ", from+1, min(from+room, all), all)
	}
	var r row
	for i, p := range panes {
		if m.shown.out != nil { // an output has one pane
			break
		}
		s := span{fmt.Sprintf(" %d %s ", i+1, p.name), band}
		if i == m.pane && !m.help {
			s.style = bold
		}
		r = append(r, s)
	}
	keys := " ? help  q quit "
	if m.help {
		keys = " ? back "
	}
	if r.width()+width(keys)+width(where) <= m.width {
		r = append(r, span{keys, band})
	}
	r = r.fit(max(m.width-width(where), 0))
	if last := &r[len(r)-1]; last.style == plain {
		last.style = band
	}
	return append(r, span{where, band})
}

// helpRows is the list of keys.
var helpRows = []row{
	{{"Keys", title}},
	{{" q, Ctrl-C     end", plain}},
	{{" 1 2 3 4, Tab  choose a pane", plain}},
	{{" ↑ ↓ PgUp PgDn Home End", plain}},
	{{"               scroll", plain}},
	{{" p, blank      pause, go on", plain}},
	{{" Ctrl-L        draw anew", plain}},
	{{" ?             this list", plain}},
}

// line returns the reading as one line, for terminals without control characters.
func (r *reading) line() string {
	at := r.at.Format(time.TimeOnly)
	if r.out != nil {
		rows, files, size, rate := int64(0), int64(0), int64(0), 0.
		for _, t := range r.out.Tables {
			rows, files, size = rows+t.Rows, files+t.Files, size+t.Bytes
			rate += r.outRates[t.Table]
		}
		return fmt.Sprintf("%s %s rows (%s/s), %s files, %s", at, number(float64(rows)), number(rate),
			number(float64(files)), bytesText(float64(size)))
	}
	s := r.state
	ready := "ready"
	if !s.Ready {
		ready = "not ready: " + safe(s.Reason)
	}
	return fmt.Sprintf("%s %s, %s; %s frames/s, %s points/s, %s tokens/s, in %s/s, out %s/s, p95 %s, %s rejects", at,
		ready, safe(s.Lag.Verdict), number(s.Rates.Frames), number(s.Rates.Points), number(s.Rates.Tokens),
		bytesText(s.Rates.BytesIn), bytesText(s.Rates.BytesOut), milliseconds(s.Latency.P95),
		number(float64(s.Totals.Rejects)))
}
