package top

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// safe returns text as one line that a terminal shows as it stands: what is not printable, such
// as escape sequences and marks that turn the direction of writing, becomes \x1b or \u202e.
func safe(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) || r == utf8.RuneError }) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[n:]
	}
	return b.String()
}

// width returns the columns of a terminal that text takes.
func width(text string) int { return uniseg.StringWidth(text) }

// cut returns the begin of text in at most n columns; a text that is cut ends with "…".
func cut(text string, n int) string {
	if width(text) <= n {
		return text
	}
	if n <= 0 {
		return ""
	}
	var b strings.Builder
	for left, state := n-1, -1; text != ""; {
		var cluster string
		var w int
		cluster, text, w, state = uniseg.FirstGraphemeClusterInString(text, state)
		if left -= w; left < 0 {
			break
		}
		b.WriteString(cluster)
	}
	return b.String() + "…"
}

// left returns text in exactly n columns, filled at the right.
func left(text string, n int) string {
	text = cut(text, n)
	return text + strings.Repeat(" ", max(n-width(text), 0))
}

// right returns text in exactly n columns, filled at the left.
func right(text string, n int) string {
	text = cut(text, n)
	return strings.Repeat(" ", max(n-width(text), 0)) + text
}

// number returns v with three digits or more and a unit of thousands: 0, 12.3, 123, 1.23 k, 4.56 M.
func number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "?"
	}
	units := []string{"", " k", " M", " G", " T", " P", " E"}
	i := 0
	for ; math.Abs(v) >= 999.5 && i < len(units)-1; i++ {
		v /= 1000
	}
	digits := 2
	switch size := math.Abs(v); {
	case size >= 99.95 || size == math.Trunc(size) && i == 0:
		digits = 0
	case size >= 9.995:
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + units[i]
}

// bytesText returns a number of bytes for people.
func bytesText(v float64) string {
	text := number(v)
	if i := strings.IndexByte(text, ' '); i >= 0 {
		return text + "B"
	}
	return text + " B"
}

// age returns seconds for people: 0.4 s, 12 s, 5 min, 2 h 05 min, 3 d 4 h.
func age(seconds float64) string {
	switch s := int64(max(seconds, 0)); {
	case seconds < 9.95:
		return strconv.FormatFloat(max(seconds, 0), 'f', 1, 64) + " s"
	case s < 120:
		return fmt.Sprintf("%d s", s)
	case s < 2*3600:
		return fmt.Sprintf("%d min", s/60)
	case s < 48*3600:
		return fmt.Sprintf("%d h %02d min", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%d d %d h", s/86400, s/3600%24)
	}
}

// milliseconds returns a time that may be unknown.
func milliseconds(v *float64) string {
	if v == nil {
		return "-"
	}
	if *v >= 999.5 {
		return number(*v/1000) + " s"
	}
	return number(*v) + " ms"
}

// levels are the bars of a sparkline.
var levels = []rune("▁▂▃▄▅▆▇█")

// spark returns the last n values as bars; each bar is the greatest of the values that it stands
// for, and the highest bar is the greatest of all. Without values it is blank.
func spark(values []float64, n int) string {
	if n <= 0 {
		return ""
	}
	values = values[max(len(values)-sparkSeconds, 0):]
	each := max((len(values)+n-1)/n, 1)
	var bars []float64
	for end := len(values); end > 0; end -= each { // the newest group is whole
		top := 0.
		for _, v := range values[max(end-each, 0):end] {
			if v > top { // false for NaN
				top = v
			}
		}
		bars = append(bars, top)
	}
	most := 0.
	for _, v := range bars {
		most = max(most, v)
	}
	text := strings.Repeat(" ", max(n-len(bars), 0))
	for i := len(bars) - 1; i >= 0; i-- {
		level := 0
		if most > 0 {
			level = int(math.Ceil(bars[i]/most*float64(len(levels)))) - 1
		}
		text += string(levels[min(max(level, 0), len(levels)-1)])
	}
	return text
}

// sparkSeconds is how far back a sparkline looks.
const sparkSeconds = 60

// gauge returns a share from 0 to 1 as a bar of n columns.
func gauge(share float64, n int) string {
	full := 0
	if share > 0 {
		full = min(int(math.Round(share*float64(n))), n)
	}
	return strings.Repeat("█", full) + strings.Repeat("░", max(n-full, 0))
}
