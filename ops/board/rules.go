package board

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Timing holds the durations and limits of the rules. Tests shorten them.
type Timing struct {
	Window  time.Duration // of rates
	Soon    time.Duration // for how long a condition holds that no healthy process meets
	Hold    time.Duration // for how long a condition holds that a healthy process meets for moments
	Lag     time.Duration // a partition may be so far behind, beyond the age limit of batches
	Silence time.Duration // a topic may be without frames so long, beyond the age limit of batches
	Frame   time.Duration // a worker's time for one message, p99: the period of a sensor
	Commit  time.Duration // the time of one commit, p99
}

// DefaultTiming is the timing of rules.yaml: sensors of 10 Hz.
var DefaultTiming = Timing{Window: 5 * time.Minute, Soon: time.Minute, Hold: 5 * time.Minute, Lag: 30 * time.Second,
	Silence: time.Minute, Frame: 100 * time.Millisecond, Commit: 2500 * time.Millisecond}

// Record is a recording rule.
type Record struct{ Name, Expr string }

// Alert is an alert rule. Its page is docs/runbook/Page.md.
type Alert struct {
	Name     string
	Page     string
	Expr     string
	For      time.Duration
	Severity string // page: somebody has to act now; ticket: somebody has to act
	Summary  string
	Subject  string // what fires, with Prometheus' templates
}

// Records returns the recording rules.
func Records(t Timing) []Record {
	window := span(t.Window)
	total := func(series string) string { return "sum by (job, source) (rate(" + series + "[" + window + "]))" }
	p99 := func(by, series string) string {
		return "histogram_quantile(0.99, sum by (le, " + by + ") (rate(" + series + "[" + window + "])))"
	}
	frames, sequences := total(`entropipe_frames_total{stage="commit"}`),
		total(`entropipe_sequences_total{stage="commit"}`)
	rejects := total(`entropipe_dlq_records_total`)
	return []Record{
		{t.series("job_source", "frames"), frames},
		{t.series("job_source", "sequences"), sequences},
		{t.series("job_source", "points"), total(`entropipe_points_total{stage="operate"}`)},
		{t.series("job_source", "bytes_in"), total(`entropipe_bytes_total{stage="fetch"}`)},
		{t.series("job_source", "bytes_out"), total(`entropipe_bytes_total{stage="commit"}`)},
		{t.series("job_source", "rejects_ratio"),
			rejects + " / (" + rejects + " + " + frames + " + " + sequences + ")"},
		{t.series("job_source", "frame_latency_seconds_p99"),
			p99("job, source", "entropipe_frame_latency_seconds_bucket")},
		{t.series("job_instance", "message_seconds_p99"),
			p99("job, instance", `entropipe_stage_duration_seconds_bucket{stage="message"}`)},
		{t.series("job_instance", "commit_seconds_p99"),
			p99("job, instance", `entropipe_stage_duration_seconds_bucket{stage="commit"}`)},
		{freeOfDisk, `entropipe_output_disk_free_bytes / entropipe_output_disk_size_bytes`},
	}
}

const freeOfDisk = "job_instance:entropipe_output_disk_free:ratio"

// series returns the name of a recorded rate.
func (t Timing) series(labels, what string) string {
	return labels + ":entropipe_" + what + ":rate" + span(t.Window)
}

// Alerts returns the alert rules.
func Alerts(t Timing) []Alert { return append(t.processAlerts(), t.partitionAlerts()...) }

// processAlerts are about a process or a topic.
func (t Timing) processAlerts() []Alert {
	const process, topic = "{{ $labels.instance }}", "topic {{ $labels.source }}"
	return []Alert{
		{Name: "EntropipeDown", Page: "down", For: t.Soon, Severity: "page", Subject: process,
			Summary: "A process does not answer", Expr: `up{job="entropipe"} == 0`},
		{Name: "EntropipeNotReady", Page: "not-ready", For: t.Soon, Severity: "page", Subject: process,
			Summary: "Brokers or the output cannot be used", Expr: `entropipe_ready == 0`},
		{Name: "EntropipeNoFrames", Page: "no-frames", For: t.Soon, Severity: "ticket", Subject: topic,
			Summary: "A topic brings no frames",
			Expr: `time() - max by (job, source) (entropipe_last_frame_timestamp_seconds) > on (job) group_left () (` +
				number(t.Silence) + ` + max by (job) (entropipe_batch_age_limit_seconds))`},
		{Name: "EntropipeRejects", Page: "rejects", For: t.Hold, Severity: "ticket", Subject: topic,
			Summary: "More than 1 % of frames are refused", Expr: t.series("job_source", "rejects_ratio") + ` > 0.01`},
		{Name: "EntropipeFrameBudget", Page: "frame-budget", For: t.Hold, Severity: "ticket", Subject: process,
			Summary: "Workers take longer for a frame than a sensor's period",
			Expr:    t.series("job_instance", "message_seconds_p99") + ` > ` + number(t.Frame)},
		{Name: "EntropipeSlowCommits", Page: "slow-commits", For: t.Hold, Severity: "ticket", Subject: process,
			Summary: "Commits are slow", Expr: t.series("job_instance", "commit_seconds_p99") +
				` > ` + number(t.Commit)},
		{Name: "EntropipeDiskNearlyFull", Page: "disk-nearly-full", For: t.Soon, Severity: "page", Subject: process,
			Summary: "Less than 10 % of the output's disk is free", Expr: freeOfDisk + ` < 0.1`},
		{Name: "EntropipeForeignConfiguration", Page: "foreign-configuration", Severity: "ticket",
			Subject: "topic {{ $labels.topic }} at {{ $labels.instance }}",
			Summary: "Two processes write one output with different configurations",
			Expr:    `increase(entropipe_foreign_configurations_total[` + span(t.Window) + `]) > 0`},
	}
}

// partitionAlerts are about a partition. Their limits grow with the age limit of batches.
func (t Timing) partitionAlerts() []Alert {
	const partition = "{{ $labels.topic }}/{{ $labels.partition }} at {{ $labels.instance }}"
	beyond := func(limit string) string { return " > on (job, instance) group_left () (" + limit + ")" }
	return []Alert{
		{Name: "EntropipeLag", Page: "lag", For: t.Hold, Severity: "page", Subject: partition,
			Summary: "A partition falls behind",
			Expr:    `entropipe_consumer_lag_seconds` + beyond(number(t.Lag)+` + entropipe_batch_age_limit_seconds`)},
		{Name: "EntropipePartitionStuck", Page: "partition-stuck", For: t.Soon, Severity: "page", Subject: partition,
			Summary: "A partition has records, and none is committed",
			Expr: `entropipe_consumer_lag_records > 0 and time() - entropipe_last_commit_timestamp_seconds` +
				beyond(number(2*t.Lag)+` + entropipe_batch_age_limit_seconds`) +
				` unless (entropipe_batch_age_seconds > 0 and entropipe_batch_age_seconds <= on (job, instance) ` +
				`group_left () (2 * entropipe_batch_age_limit_seconds))`},
		{Name: "EntropipeBatchOld", Page: "batch-old", For: t.Soon, Severity: "page", Subject: partition,
			Summary: "A batch is not committed",
			Expr:    `entropipe_batch_age_seconds` + beyond(`2 * (entropipe_batch_age_limit_seconds > 0)`)},
	}
}

// alert returns the alert of a name. It panics if there is none.
func alert(name string) Alert {
	for _, a := range Alerts(DefaultTiming) {
		if a.Name == name {
			return a
		}
	}
	panic("board: there is no alert " + name)
}

// Runbook returns the page of an alert, as its annotation names it.
func (a *Alert) Runbook() string { return "docs/runbook/" + a.Page + ".md" }

// YAML returns the rules as Prometheus reads them.
func YAML(t Timing) []byte {
	var b strings.Builder
	b.WriteString("# Recording and alert rules. ops/board makes this file: change it there.\n" +
		"groups:\n  - name: entropipe-records\n    rules:\n")
	for _, r := range Records(t) {
		fmt.Fprintf(&b, "      - record: %s\n        expr: |-\n          %s\n", r.Name, r.Expr)
	}
	b.WriteString("  - name: entropipe-alerts\n    rules:\n")
	for _, a := range Alerts(t) {
		fmt.Fprintf(&b, "      - alert: %s\n        expr: |-\n          %s\n", a.Name, a.Expr)
		if a.For > 0 {
			fmt.Fprintf(&b, "        for: %s\n", span(a.For))
		}
		fmt.Fprintf(&b, "        labels:\n          severity: %s\n        annotations:\n          summary: %q\n"+
			"          description: %q\n          runbook_url: %s\n", a.Severity, a.Summary, a.Subject, a.Runbook())
	}
	return []byte(b.String())
}

// span writes a duration as PromQL does: in minutes, seconds or milliseconds.
func span(d time.Duration) string {
	switch {
	case d%time.Minute == 0:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d%time.Second == 0:
		return strconv.Itoa(int(d/time.Second)) + "s"
	}
	return strconv.Itoa(int(d/time.Millisecond)) + "ms"
}

// number writes seconds.
func number(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) }
