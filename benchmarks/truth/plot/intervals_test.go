package plot

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Figures stand along the axis in their order, the side of the limit that a claim asks for is
// shaded, and a logarithmic axis is one only where it can and should be.
func TestIntervals(t *testing.T) {
	all := []Interval{{Name: "as <printed>", Of: "H", Mid: 2, Low: 1, High: 3, Values: []float64{1.5, 2.5}},
		{Name: "peer", Mid: 60, Low: 60, High: 60}}
	centre := regexp.MustCompile(`<circle class="f\d" cx="([\d.]+)"`)
	shade := regexp.MustCompile(`<rect class="z" x="([\d.]+)" y="26" width="([\d.]+)"`)
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		about string
		scale Scale
		limit Limit
		log   bool
		text  string
	}{
		{"positive and far apart", Log, Limit{At: 10, Above: true}, true, "claim: at least 10<"},
		{"differences", Linear, Limit{At: 10}, false, "claim: at most 10<"},
		{"a limit of 0", Log, Limit{At: 0}, false, "claim: at most 0<"},
	} {
		svg := Intervals("Row & figure", "times", c.scale, all, c.limit)
		found := centre.FindAllStringSubmatch(svg, -1)
		if len(found) != 2 {
			t.Fatalf("%s: %d figures in\n%s", c.about, len(found), svg)
		}
		a, b := number(found[0][1]), number(found[1][1])
		middle := (a-names)/(b-names) > .1 // 2 beside 60, on an axis from about 1 or 0 to about 60
		if !(names < a && a < b && b < wide) || middle != c.log {
			t.Errorf("%s: figures at %g and %g, logarithmic: %v", c.about, a, b, c.log)
		}
		area := shade.FindStringSubmatch(svg)
		if area == nil {
			t.Fatalf("%s: nothing is shaded in\n%s", c.about, svg)
		}
		from, to := number(area[1]), number(area[1])+number(area[2])
		if c.limit.Above != (to > wide-roomRight-1) || !c.limit.Above != (from == names) {
			t.Errorf("%s: %g to %g is shaded", c.about, from, to)
		}
		for _, want := range []string{c.text, "as &lt;printed&gt;", ">H<", `aria-label="Row &amp; figure"`, ">times<"} {
			if !strings.Contains(svg, want) {
				t.Errorf("%s: no %q in\n%s", c.about, want, svg)
			}
		}
		if n := strings.Count(svg, "h0"); n != 2 {
			t.Errorf("%s: %d values, want 2", c.about, n)
		}
	}
}
