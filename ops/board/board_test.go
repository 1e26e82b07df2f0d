package board

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"entropipe/ops/metrics"
)

// The files are what the tables say now.
func TestFilesAreCurrent(t *testing.T) {
	dashboard, err := JSON()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"grafana.json": dashboard, "rules.yaml": YAML(DefaultTiming),
		"../../docs/metrics.md": Page()} {
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what `go generate ./ops/board` writes (%v)", name, err)
		}
	}
}

// allExpressions returns every expression of board and rules.
func allExpressions() (all []string) {
	for _, q := range Expressions() {
		all = append(all, q.Expr)
	}
	for _, r := range Records(DefaultTiming) {
		all = append(all, r.Expr)
	}
	for _, a := range Alerts(DefaultTiming) {
		all = append(all, a.Expr)
	}
	return all
}

// Expressions name metrics that exist, or series that rules record, and select by
// labels that the metrics have.
func TestExpressionsNameWhatExists(t *testing.T) {
	recorded := map[string]bool{}
	for _, r := range Records(DefaultTiming) {
		recorded[r.Name] = true
	}
	series := regexp.MustCompile(`[a-z_]*:?\bentropipe_[a-z0-9_:]+(\{[^}]*\})?`)
	label := regexp.MustCompile(`([a-z_]+)(=|!=|=~|!~)"`)
	for _, expr := range allExpressions() {
		for _, s := range series.FindAllString(expr, -1) {
			name, selector, _ := strings.Cut(s, "{")
			if recorded[name] {
				continue
			}
			d, known := definition(name)
			if !known {
				t.Errorf("%s: there is no metric %s", expr, name)
			}
			for _, l := range label.FindAllStringSubmatch(selector, -1) {
				if !slices.Contains(append(d.Labels, "job", "instance", "le"), l[1]) {
					t.Errorf("%s: %s has no label %s", expr, name, l[1])
				}
			}
		}
		if strings.Contains(strings.ReplaceAll(expr, "ALERTS", ""), "HERE") || strings.Contains(expr, "SOURCE") {
			t.Errorf("%s has a placeholder", expr)
		}
	}
}

// Each panel says what it shows, in a unit that its metrics have, where no other is.
func TestPanels(t *testing.T) {
	taken := map[[2]int]string{}
	titles := map[string]bool{}
	for _, o := range panels() {
		title, at := o["title"].(string), o["gridPos"].(object)
		if titles[title] {
			t.Errorf("two panels are called %s", title)
		}
		titles[title] = true
		for x := at["x"].(int); x < at["x"].(int)+at["w"].(int); x++ {
			for y := at["y"].(int); y < at["y"].(int)+at["h"].(int); y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Errorf("%s lies on %q, or right of the board", title, other)
				}
				taken[[2]int{x, y}] = title
			}
		}
	}
	units := map[metrics.Unit][]string{metrics.Seconds: {"s"}, metrics.Bytes: {"bytes", "Bps", "percentunit"},
		metrics.Ratio: {"percentunit"}, metrics.Timestamp: {"s"}, metrics.None: {"short", "ops", "percentunit"}}
	for _, r := range rows {
		for i := range r.Panels {
			p := &r.Panels[i]
			if d := p.description(); !strings.HasSuffix(d, ".") {
				t.Errorf("%s: the description is %q", p.Title, d)
			}
			for _, q := range p.Queries {
				if q.Legend == "" {
					t.Errorf("%s: %s has no legend", p.Title, q.Expr)
				}
				d, known := definition(ours.FindString(q.Expr))
				if known && !slices.Contains(units[d.Unit], p.Unit) && !strings.Contains(q.Expr, "_count{") {
					t.Errorf("%s shows %s, a metric of %q, in %s", p.Title, d.Name, d.Unit, p.Unit)
				}
			}
			p.links() // panics at an alert that does not exist
		}
	}
	if len(titles) < 40 {
		t.Errorf("the board has %d panels and rows", len(titles))
	}
}

// The board is an object that says where its data come from.
func TestBoardIsJSON(t *testing.T) {
	data, err := os.ReadFile("grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Title      string
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	if err := json.Unmarshal(data, &board); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range board.Templating.List {
		names = append(names, v.Name)
	}
	if want := []string{"datasource", "job", "group", "instance", "topic", "docs"}; !slices.Equal(names, want) {
		t.Errorf("the variables are %q, want %q", names, want)
	}
	for _, v := range Variables {
		if !bytes.Contains(data, []byte("$"+v.Name)) && v.Name != "group" {
			t.Errorf("nothing uses the variable %s", v.Name)
		}
	}
}

// Each alert has a page that says what it means, how to see it (by a query and a
// command) and what to do, each
// page an alert, and the annotation leads there from the root of the repository.
func TestEachAlertHasAPage(t *testing.T) {
	const folder = "../../docs/runbook"
	rules, err := os.ReadFile("rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]bool{"README.md": true}
	for _, a := range Alerts(DefaultTiming) {
		pages[a.Page+".md"] = true
		text, err := os.ReadFile(filepath.Join("../..", a.Runbook()))
		if err != nil {
			t.Errorf("%s: %v", a.Name, err)
			continue
		}
		rest := string(text)
		for _, want := range []string{"# " + a.Name + "\n", "\n## What it means\n",
			"\n## How to see it\n", "\n```promql\n",
			"\n```s", "\n## What to do\n"} {
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Errorf("%s has no %q, or not at its place", a.Runbook(), want)
			}
			rest = after
		}
		if !bytes.Contains(rules, []byte("          runbook_url: "+a.Runbook()+"\n")) {
			t.Errorf("rules.yaml does not lead to %s", a.Runbook())
		}
		if !bytes.Contains(index, []byte("["+a.Name+"]("+a.Page+".md)")) {
			t.Errorf("the runbook's first page does not list %s", a.Name)
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !pages[f.Name()] {
			t.Errorf("docs/runbook/%s is of no alert", f.Name())
		}
	}
}
