package board

import (
	"fmt"
	"strings"

	"entropipe/ops/metrics"
)

// Page returns docs/metrics.md: the metrics, the recorded series and the alerts.
func Page() []byte {
	var b strings.Builder
	b.WriteString(
		"# Metrics\n\n`go generate ./ops/board` writes this page from the table that registers the metrics. " +
			"How to scrape them:\n[monitoring](monitoring.md).\n\n" +
			"All names begin with `" + metrics.Prefix +
			"`. A `source` is a topic. A timestamp is in seconds since 1970. " +
			"The usual metrics of\nGo and of the process (`go_…`, `process_…`) are there too.\n\n" +
			"| name | type | unit | labels | |\n|---|---|---|---|---|\n")
	for _, d := range metrics.Definitions() {
		labels := ""
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", d.Name, d.Kind, d.Unit, labels, cell(d.Help))
	}
	b.WriteString("\nHistograms have classic and native buckets.\n\n" +
		"## Recorded series\n\n| name | expression |\n|---|---|\n")
	for _, r := range Records(DefaultTiming) {
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", r.Name, cell(r.Expr))
	}
	b.WriteString("\n## Alerts\n\n| alert | when | for | severity |\n|---|---|---|---|\n")
	for _, a := range Alerts(DefaultTiming) {
		fmt.Fprintf(&b, "| [%s](runbook/%s.md) | `%s` | %s | %s |\n", a.Name, a.Page, cell(a.Expr), span(a.For),
			a.Severity)
	}
	return []byte(b.String())
}

// cell makes a text fit into a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
