// Package board makes what Grafana and Prometheus read about a run: the board, the
// recording and alert rules, and the table of docs/metrics.md. All of them come from
// package metrics and from the tables of this package; `go generate` writes the files.
//
// Vocabulary: a row holds panels, a panel has queries; an alert has a page in
// docs/runbook. Expressions are PromQL with placeholders (see expand).
package board

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"entropipe/ops/metrics"
)

//go:generate go run ./gen

// Row is a part of the board that can be folded.
type Row struct {
	Title  string
	Panels []Panel
}

// Panel is one picture of the board.
type Panel struct {
	Title       string
	Description string // empty: the help text of the first query's metric
	Kind        string // Grafana's name: timeseries, stat or heatmap
	Unit        string // Grafana's name of the unit
	Width       int    // columns of 24
	Alerts      []string
	Queries     []Query
	Full        bool // values are fractions of a limit: the axis ends at 1
}

// Query is an expression and the name of its lines.
type Query struct {
	Expr   string
	Legend string // with {{label}} for the value of a label
	Rare   bool   // runs without a model, faults or rejects have no such series
}

// expand replaces placeholders: HERE selects the processes that the variables of the
// board name, SOURCE and TOPIC also the topic, by the label source or topic.
func expand(expr string) string {
	const here = `job=~"$job", instance=~"$instance"`
	return strings.NewReplacer("HERE", here, "SOURCE", here+`, source=~"$topic"`, "TOPIC", here+`, topic=~"$topic"`).
		Replace(expr)
}

// Expressions returns the queries of all panels, with their placeholders replaced but
// with Grafana's variables.
func Expressions() (found []Query) {
	for _, r := range rows {
		for _, p := range r.Panels {
			for _, q := range p.Queries {
				q.Expr = expand(q.Expr)
				found = append(found, q)
			}
		}
	}
	return found
}

// ours matches the names of our metrics in an expression, with what Prometheus appends
// to the names of histograms.
var ours = regexp.MustCompile(`\bentropipe_[a-z_]+`)

// definition returns the metric that a name in an expression belongs to.
func definition(name string) (metrics.Definition, bool) {
	base := strings.TrimPrefix(name, metrics.Prefix)
	for _, d := range metrics.Definitions() {
		if d.Name == base || d.Kind == metrics.Histogram &&
			(base == d.Name+"_bucket" || base == d.Name+"_sum" || base == d.Name+"_count") {
			return d, true
		}
	}
	return metrics.Definition{}, false
}

// description returns what a panel says about itself.
func (p *Panel) description() string {
	if p.Description != "" {
		return p.Description
	}
	d, _ := definition(ours.FindString(p.Queries[0].Expr))
	return d.Help
}

type object = map[string]any

// Variable is a variable of the board: a list of label values.
type Variable struct{ Name, Label, Metric, Value string }

// Variables are the variables whose values Prometheus lists: the values of the label
// Value of the series Metric.
var Variables = []Variable{
	{"job", "Job", `entropipe_build_info`, "job"},
	{"group", "Consumer group", `entropipe_consumer_info{job=~"$job"}`, "group"},
	{"instance", "Process", `entropipe_consumer_info{job=~"$job", group=~"$group"}`, "instance"},
	{"topic", "Topic", `entropipe_records_in_total{job=~"$job", instance=~"$instance"}`, "source"},
}

// JSON returns the board as Grafana imports it.
func JSON() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(object{
		"uid": "entropipe", "title": "entropipe", "tags": []string{"entropipe", "kafka", "lidar"},
		"description": "Point clouds and tokens from Kafka to Parquet. ops/board makes this file: change it there.",
		"timezone":    "browser", "editable": true, "graphTooltip": 1, "refresh": "10s", "schemaVersion": 36,
		"time":        object{"from": "now-1h", "to": "now"},
		"annotations": object{"list": []object{}},
		"templating":  object{"list": variables()},
		"panels":      panels(),
		"links": []object{{"title": "Runbook", "type": "link", "url": "${docs}/runbook/README.md", "icon": "doc",
			"tooltip": "What each alert means and what to do", "targetBlank": true, "tags": []string{},
			"asDropdown": false, "includeVars": false, "keepTime": false}},
	})
	return out.Bytes(), err
}

func variables() []object {
	list := []object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
		"hide": 0, "refresh": 1, "multi": false, "includeAll": false}}
	for _, v := range Variables {
		list = append(list, object{"name": v.Name, "label": v.Label, "type": "query", "datasource": source(),
			"query": "label_values(" + v.Metric + ", " + v.Value + ")", "hide": 0, "refresh": 2, "sort": 1,
			"multi": true, "includeAll": true, "allValue": ".*",
			"current": object{"selected": true, "text": "All", "value": "$__all"}})
		if v.Name == "instance" { // the processes of the chosen groups only
			delete(list[len(list)-1], "allValue")
		}
	}
	return append(list, object{"name": "docs", "label": "Address of the folder docs", "type": "textbox",
		"query": "docs", "hide": 0, "current": object{"selected": true, "text": "docs", "value": "docs"}})
}

func source() object { return object{"type": "prometheus", "uid": "${datasource}"} }

// panels places the panels of each row below its title, from the left to the right.
func panels() []object {
	var list []object
	y := 0
	place := func(o object, x, w, h int) {
		o["id"] = len(list) + 1
		o["gridPos"] = object{"x": x, "y": y, "w": w, "h": h}
		list = append(list, o)
	}
	for _, r := range rows {
		place(object{"type": "row", "title": r.Title, "collapsed": false, "panels": []object{}}, 0, 24, 1)
		y++
		x, height := 0, 0
		for i := range r.Panels {
			p := &r.Panels[i]
			if x+p.Width > 24 {
				x, y, height = 0, y+height, 0
			}
			place(p.object(), x, p.Width, p.height())
			x, height = x+p.Width, max(height, p.height())
		}
		y += height
	}
	return list
}

func (p *Panel) height() int {
	if p.Kind == "stat" {
		return 4
	}
	return 8
}

func (p *Panel) object() object {
	var targets []object
	for i, q := range p.Queries {
		target := object{"refId": string(rune('A' + i)), "expr": expand(q.Expr),
			"legendFormat": q.Legend, "range": true,
			"instant": false, "datasource": source()}
		if p.Kind == "heatmap" {
			target["format"] = "heatmap"
		}
		targets = append(targets, target)
	}
	defaults := object{"unit": p.Unit, "min": 0}
	if p.Full {
		defaults["max"] = 1
		defaults["thresholds"] = object{"mode": "absolute", "steps": []object{{"color": "green", "value": nil},
			{"color": "orange", "value": .8}, {"color": "red", "value": .95}}}
	}
	o := object{"type": p.Kind, "title": p.Title, "description": p.description(), "datasource": source(),
		"targets": targets, "fieldConfig": object{"defaults": defaults, "overrides": []object{}}, "links": p.links()}
	switch p.Kind {
	case "stat":
		o["options"] = object{"colorMode": "value", "graphMode": "area", "justifyMode": "auto", "orientation": "auto",
			"textMode": "auto", "reduceOptions": object{"calcs": []string{"lastNotNull"},
				"fields": "", "values": false}}
	case "heatmap":
		delete(defaults, "min")
		o["options"] = object{"calculate": false, "yAxis": object{"unit": p.Unit, "axisPlacement": "left"},
			"color": object{"mode": "scheme", "scheme": "Viridis", "steps": 64, "reverse": false, "fill": "dark-blue",
				"exponent": .5},
			"tooltip": object{"yHistogram": false}, "legend": object{"show": true}, "cellGap": 1}
	default:
		defaults["custom"] = object{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never",
			"spanNulls": false}
		o["options"] = object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true,
			"calcs": []string{}}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	}
	return o
}

// links leads from a panel to the pages of the alerts that look at the same series.
func (p *Panel) links() []object {
	list := []object{}
	for _, name := range p.Alerts {
		a := alert(name)
		list = append(list, object{"title": "Runbook: " + a.Summary, "type": "link", "icon": "doc", "tooltip": "",
			"url": "${docs}/runbook/" + a.Page + ".md", "targetBlank": true, "tags": []string{}, "asDropdown": false,
			"includeVars": false, "keepTime": false})
	}
	return list
}
