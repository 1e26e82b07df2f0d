package board

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// course is the series of one alert: half an hour of health, half an hour of the fault,
// half an hour of health, a value every 15 s. Series that do not change have health alone.
type course struct {
	alert  string
	labels string // of the alert, without alertname and severity, in braces
	series []lineOf
}

// lineOf is a series. A value is one of promtool's: "5" stands still, "0+3" grows by 3
// with each sample. sick is empty where the fault changes nothing.
type lineOf struct{ name, health, sick string }

const (
	proc = `job="entropipe",instance="a:1"`
	part = `topic="t",partition="3",` + proc
	src  = `source="t",` + proc
)

var courses = []course{
	{"EntropipeDown", `{` + proc + `}`, []lineOf{{`up{` + proc + `}`, "1", "0"}}},
	{"EntropipeNotReady", `{` + proc + `}`, []lineOf{{`entropipe_ready{` + proc + `}`, "1", "0"}}},
	{"EntropipeLag", `{` + part + `}`, []lineOf{ // ages below limit and allowance are healthy
		{`entropipe_consumer_lag_seconds{` + part + `}`, "85", "95"},
		{`entropipe_batch_age_limit_seconds{` + proc + `}`, "60", ""}}},
	{"EntropipeNoFrames", `{job="entropipe",source="t"}`, []lineOf{ // another process of the topic is idle throughout
		{`entropipe_last_frame_timestamp_seconds{` + src + `}`, "0+15", "1800"},
		{`entropipe_last_frame_timestamp_seconds{source="t",job="entropipe",instance="b:1"}`, "0", ""},
		{`entropipe_batch_age_limit_seconds{` + proc + `}`, "60", ""},
		{`entropipe_batch_age_limit_seconds{job="entropipe",instance="b:1"}`, "60", ""}}},
	{"EntropipeRejects", `{job="entropipe",source="t"}`, []lineOf{
		{`entropipe_dlq_records_total{reason="bad",` + src + `}`, "0+0.9", "0+3"},
		{`entropipe_frames_total{stage="commit",direction="out",` + src + `}`, "0+100", ""},
		{`entropipe_sequences_total{stage="commit",direction="out",` + src + `}`, "0", ""}}},
	{"EntropipePartitionStuck", `{` + part + `}`, []lineOf{ // a batch that is open is no stuck partition
		{`entropipe_consumer_lag_records{` + part + `}`, "40", ""},
		{`entropipe_batch_age_seconds{` + part + `}`, "7", "0"},
		{`entropipe_last_commit_timestamp_seconds{` + part + `}`, "0+15", "1800"},
		{`entropipe_batch_age_limit_seconds{` + proc + `}`, "60", ""}}},
	{"EntropipeBatchOld", `{` + part + `}`, []lineOf{
		{`entropipe_batch_age_seconds{` + part + `}`, "119", "121"},
		{`entropipe_batch_age_limit_seconds{` + proc + `}`, "60", ""}}},
	{"EntropipeFrameBudget", `{` + proc + `}`, []lineOf{ // 1 % above the limit is healthy, 2 % is not
		{`entropipe_stage_duration_seconds_bucket{stage="message",op="all",le="0.1",` + proc + `}`, "0+1000", "0+980"},
		{`entropipe_stage_duration_seconds_bucket{stage="message",op="all",le="0.25",` + proc + `}`, "0+1000", ""},
		{`entropipe_stage_duration_seconds_bucket{stage="message",op="all",le="+Inf",` + proc + `}`, "0+1000", ""}}},
	{"EntropipeSlowCommits", `{` + proc + `}`, []lineOf{
		{`entropipe_stage_duration_seconds_bucket{stage="commit",op="all",le="2.5",` + proc + `}`, "0+10", "0+9"},
		{`entropipe_stage_duration_seconds_bucket{stage="commit",op="all",le="10",` + proc + `}`, "0+10", ""},
		{`entropipe_stage_duration_seconds_bucket{stage="commit",op="all",le="+Inf",` + proc + `}`, "0+10", ""}}},
	{"EntropipeDiskNearlyFull", `{` + proc + `}`, []lineOf{
		{`entropipe_output_disk_free_bytes{` + proc + `}`, "110", "90"},
		{`entropipe_output_disk_size_bytes{` + proc + `}`, "1000", ""}}},
	{"EntropipeForeignConfiguration", `{topic="t",` + proc + `}`, []lineOf{
		{`entropipe_foreign_configurations_total{topic="t",` + proc + `}`, "0", "0+1"}}},
}

const phase = 120 // samples of half an hour

// values returns promtool's notation of a series through the three phases. A counter
// continues at what it has reached.
func (l lineOf) values() string {
	sick := l.sick
	if sick == "" {
		sick = l.health
	}
	var out []string
	at := 0.0
	counts := strings.Contains(l.health+sick, "+") && !strings.Contains(l.name, "timestamp")
	for i, phaseOf := range []string{l.health, sick, l.health} {
		var start, step float64
		if _, err := fmt.Sscanf(phaseOf, "%f+%f", &start, &step); err != nil {
			fmt.Sscanf(phaseOf, "%f", &start)
		}
		switch {
		case counts:
			start = at
		case strings.Contains(l.name, "timestamp") && step > 0:
			start = float64(i * phase * 15) // the time itself
		}
		out = append(out, fmt.Sprintf("%g+%gx%d", start, step, phase-1))
		at = start + step*phase
	}
	return strings.Join(out, " ")
}

// write returns a file of promtool's unit tests: no alert at the end of the first phase,
// the alert and no other at the end of the second, none at the end of the third.
func (c *course) write(rules string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [%s]\nevaluation_interval: 15s\ntests:\n  - interval: 15s\n    input_series:\n", rules)
	for _, l := range c.series {
		fmt.Fprintf(&b, "      - series: '%s'\n        values: '%s'\n", l.name, l.values())
	}
	b.WriteString("    alert_rule_test:\n")
	for _, at := range []time.Duration{25 * time.Minute, 55 * time.Minute, 85 * time.Minute} {
		for _, a := range Alerts(DefaultTiming) {
			fmt.Fprintf(&b, "      - eval_time: %s\n        alertname: %s\n", span(at), a.Name)
			if a.Name != c.alert || at != 55*time.Minute {
				continue
			}
			labels := strings.NewReplacer("{", "{severity: "+a.Severity+", ", `="`, `: "`, `",`,
				`", `).Replace(c.labels)
			fmt.Fprintf(&b, "        exp_alerts:\n          - exp_labels: %s\n            exp_annotations:\n"+
				"              summary: %q\n              description: %q\n              runbook_url: %s\n",
				labels, a.Summary, subject(a.Subject, c.labels), a.Runbook())
		}
	}
	return b.String()
}

// subject replaces the labels in a template.
func subject(template, labels string) string {
	for pair := range strings.SplitSeq(strings.Trim(labels, "{}"), ",") {
		name, value, _ := strings.Cut(pair, "=")
		template = strings.ReplaceAll(template, "{{ $labels."+name+" }}", strings.Trim(value, `"`))
	}
	return template
}

// Every alert fires at its fault, alone, clears behind it, and is silent in health
// that is close to the limit. promtool evaluates.
func TestAlertsFireAndClear(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("promtool is not installed (Debian: package prometheus)")
	}
	rules, err := filepath.Abs("rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("promtool", "check", "rules", rules).CombinedOutput(); err != nil {
		t.Fatalf("promtool check rules: %v\n%s", err, out)
	}
	covered := map[string]bool{}
	for _, c := range courses {
		covered[c.alert] = true
		t.Run(c.alert, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "test.yaml")
			if err := os.WriteFile(file, []byte(c.write(rules)), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("promtool", "test", "rules", file).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s\n%s", err, out, c.write(rules))
			}
		})
	}
	for _, a := range Alerts(DefaultTiming) {
		if !covered[a.Name] {
			t.Errorf("%s has no test", a.Name)
		}
	}
}
