//go:build prometheus && linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"entropipe/ops/board"
)

// A Prometheus scrapes processes every second and evaluates the rules of ops/board,
// whose durations are shortened: what takes minutes takes seconds here.

var hasty = board.Timing{Window: 8 * time.Second, Soon: time.Second, Hold: time.Second, Lag: 2 * time.Second,
	Silence: 3 * time.Second, Frame: 100 * time.Millisecond, Commit: 250 * time.Millisecond}

// scraper is a Prometheus of its own. It ends with the test.
type scraper struct{ address, dir string }

func startPrometheus(t *testing.T) *scraper {
	t.Helper()
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("prometheus is not installed (Debian: package prometheus)")
	}
	p := &scraper{address: ownAddress(t), dir: t.TempDir()}
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yaml]\nscrape_configs:\n" +
		"  - job_name: entropipe\n    file_sd_configs: [{files: ['targets/*.json'], refresh_interval: 1s}]\n"
	for name, content := range map[string][]byte{"prometheus.yaml": []byte(config), "rules.yaml": board.YAML(hasty)} {
		if err := os.WriteFile(filepath.Join(p.dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(p.dir, "targets"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("prometheus", "--config.file=prometheus.yaml", "--storage.tsdb.path=data",
		"--web.listen-address="+p.address, "--log.level=warn")
	c.Dir = p.dir
	log, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var said sync.Map
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			said.Store(lines.Text(), true)
		}
	}()
	t.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		c.Wait()
		if t.Failed() {
			said.Range(func(line, _ any) bool { t.Log(line); return true })
		}
	})
	waitFor(t, "prometheus", func() bool {
		r, err := http.Get("http://" + p.address + "/-/ready")
		if err == nil {
			r.Body.Close()
		}
		return err == nil && r.StatusCode == http.StatusOK
	})
	return p
}

// ask calls the HTTP API and decodes the data of its answer.
func (p *scraper) ask(t *testing.T, path string, values url.Values, data any) error {
	t.Helper()
	body, _ := get(t, "http://"+p.address+"/api/v1/"+path+"?"+values.Encode())
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return fmt.Errorf("%s: %w: %s", path, err, body)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s %v: %s", path, values, answer.Error)
	}
	return nil
}

// query returns how many series an expression has now, those that are no number not counted.
func (p *scraper) query(t *testing.T, expr string) (series int, err error) {
	t.Helper()
	var found struct{ Result []struct{ Value [2]any } }
	if err := p.ask(t, "query", url.Values{"query": {expr}}, &found); err != nil {
		return 0, err
	}
	for _, s := range found.Result {
		if s.Value[1] != "NaN" {
			series++
		}
	}
	return series, nil
}

// scrapes makes a process a target, and returns when its numbers are there.
func (p *scraper) scrapes(t *testing.T, address string) {
	t.Helper()
	name := filepath.Join(p.dir, "targets", strings.ReplaceAll(address, ":", "-"))
	if err := os.WriteFile(name, []byte(`[{"targets": ["`+address+`"]}]`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name, name+".json"); err != nil { // whole at once
		t.Fatal(err)
	}
	waitFor(t, "a scrape of "+address, func() bool {
		n, err := p.query(t, `up{instance="`+address+`"} == 1`)
		return err == nil && n == 1
	})
}

// firing tells whether an alert with a label fires now.
func (p *scraper) firing(t *testing.T, alert, label, value string) bool {
	t.Helper()
	var found struct {
		Alerts []struct {
			Labels, Annotations map[string]string
			State               string
		}
	}
	if err := p.ask(t, "alerts", nil, &found); err != nil {
		t.Fatal(err)
	}
	for _, a := range found.Alerts {
		if a.Labels["alertname"] == alert && a.Labels[label] == value && a.State == "firing" {
			if page := a.Annotations["runbook_url"]; page == "" {
				t.Errorf("%s has no page", alert)
			} else if _, err := os.Stat(page); err != nil {
				t.Error(err)
			}
			return true
		}
	}
	return false
}

// subject is what alerts are waited for: those with a label.
type subject struct {
	*scraper
	label, value string
}

func (s *subject) fires(t *testing.T, alerts ...string) {
	t.Helper()
	fired := map[string]bool{}
	waitFor(t, fmt.Sprintf("%v for %s=%s", alerts, s.label, s.value), func() bool {
		for _, a := range alerts {
			fired[a] = fired[a] || s.firing(t, a, s.label, s.value)
		}
		time.Sleep(100 * time.Millisecond)
		return len(alerts) == len(slices.DeleteFunc(slices.Clone(alerts), func(a string) bool { return !fired[a] }))
	})
}

func (s *subject) clears(t *testing.T, alerts ...string) {
	t.Helper()
	waitFor(t, fmt.Sprintf("the end of %v for %s=%s", alerts, s.label, s.value), func() bool {
		time.Sleep(100 * time.Millisecond)
		return !slices.ContainsFunc(alerts, func(a string) bool { return s.firing(t, a, s.label, s.value) })
	})
}

// watched starts a run that a Prometheus scrapes, and returns when it has committed frames.
func watched(t *testing.T, p *scraper, dir, brokers, topic string, more ...string) (*process, *subject) {
	t.Helper()
	address := ownAddress(t)
	r := launch(t, dir, append([]string{"run", "--brokers", brokers, "--topic", topic, "--out", "out", "--roll-age",
		"1s", "--session-timeout", "6s", "--listen", address}, more...)...)
	r.until(`msg=assigned`)
	p.scrapes(t, address)
	return r, &subject{p, "instance", address}
}

// The variables of the board, as Grafana replaces them.
var variables = strings.NewReplacer("$job", ".*", "$instance", ".*", "$group", ".*", "$topic", ".*",
	"$__rate_interval", "10s")

// Every expression of board and rules is answered by a real Prometheus that scrapes real
// runs of clouds and tokens, one into a folder and one into a bucket, and those that must
// have data have data.
func TestEveryExpressionIsAnswered(t *testing.T) {
	_, bucket, flags := inBucket(t)
	p, brokers, dir := startPrometheus(t), startBroker(t), t.TempDir()
	writeFile(t, filepath.Join(dir, "notes.txt"), strings.Repeat("A short note about a sensor.\n", 50))
	launch(t, dir, spread(brokers, "points", "a", "--rate", "20hz")...)
	launch(t, dir, "produce", "tokens", "notes.txt", "--brokers", brokers, "--topic", "notes", "--rate", "20hz",
		"--loop", "1000")
	waitFor(t, "the topics", func() bool { return sent(t, brokers, "points") > 0 && sent(t, brokers, "notes") > 0 })
	watched(t, p, dir, brokers, "points,notes", "--lm", "builtin:bytes", "--tables", "hulls,hulls3d,maxima,triangles")
	watched(t, p, dir, brokers, "points", append(flags, "--out", bucket, "--group", "bucket")...)
	sendBad(t, brokers, "points", 5)
	missing := func() (without []string) {
		for _, q := range board.Expressions() {
			n, err := p.query(t, variables.Replace(q.Expr))
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 && !q.Rare {
				without = append(without, q.Expr)
			}
		}
		for _, r := range board.Records(hasty) {
			if n, err := p.query(t, r.Name); err != nil {
				t.Fatal(err)
			} else if n == 0 {
				without = append(without, r.Name)
			}
			if _, err := p.query(t, r.Expr); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range board.Variables {
			var values []string
			if err := p.ask(t, "label/"+v.Value+"/values", url.Values{"match[]": {variables.Replace(v.Metric)}},
				&values); err != nil {
				t.Fatal(err)
			}
			if len(values) == 0 {
				without = append(without, v.Name)
			}
		}
		return without
	}
	last := []string{"all"}
	for end := time.Now().Add(patience); len(last) > 0; time.Sleep(time.Second) {
		if last = missing(); time.Now().After(end) {
			t.Fatalf("without data after %v:\n%s", patience, strings.Join(last, "\n"))
		}
		sendBad(t, brokers, "points", 1)
	}
	for _, expr := range queriesOfPages(t) {
		if _, err := p.query(t, expr); err != nil {
			t.Error(err)
		}
	}
	for _, timing := range []board.Timing{hasty, board.DefaultTiming} {
		for _, a := range board.Alerts(timing) {
			if _, err := p.query(t, a.Expr); err != nil {
				t.Error(err)
			}
		}
	}
}

// queriesOfPages returns the lines of PromQL in the runbook.
func queriesOfPages(t *testing.T) (lines []string) {
	t.Helper()
	for _, name := range pages(t) {
		text := readMarkdown(t, name).text
		for {
			_, rest, found := strings.Cut(text, "\n```promql\n")
			if !found {
				break
			}
			block, after, _ := strings.Cut(rest, "\n```")
			lines, text = append(lines, strings.Split(block, "\n")...), after
		}
	}
	if len(lines) < 11 {
		t.Fatalf("the pages have %d queries: the pattern misses them", len(lines))
	}
	return lines
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
