package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
)

// results appends figures to a file, one JSON object a line. Each carries what
// it takes to read it later: when, which build, which processor, which broker.
type results struct {
	file   *os.File
	common map[string]any
}

func (b *bench) openResults(dir, name string) (*results, error) {
	r := &results{common: map[string]any{"bench": name, "broker": b.broker.Kind, "go": runtime.Version(), "cores": runtime.NumCPU(), "cpu": cpuModel()}}
	_, version, err := b.program.Run(b.ctx, "version")
	if err != nil {
		return nil, err
	}
	r.common["version"] = strings.TrimSpace(version)
	if dir == "-" {
		return r, nil
	}
	if dir == "" {
		root, err := rig.Root()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(root, "benchmarks", "results")
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	r.file, err = os.OpenFile(filepath.Join(dir, name+".jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	return r, err
}

// add writes one line. Keys of figure beat the common ones.
func (r *results) add(figure map[string]any) error {
	if r.file == nil {
		return nil
	}
	line := map[string]any{"time": time.Now().UTC().Format(time.RFC3339)}
	for k, v := range r.common {
		line[k] = v
	}
	for k, v := range figure {
		line[k] = v
	}
	b, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	_, err = r.file.Write(append(b, '\n'))
	return err
}

// page appends a line to a Markdown page beside the file of figures, and says
// where it comes from. The page begins with title.
func (r *results) page(name, title, line string) error {
	if r.file == nil {
		return nil
	}
	path := filepath.Join(filepath.Dir(r.file.Name()), name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = []byte("# "+title+"\n\nOne line a run of `go run ./benchmarks/e2e`; ratios, not rates, are worth comparing.\n\n"), nil
	}
	if err != nil {
		return err
	}
	text = fmt.Appendf(text, "* %s: %s. %s, %d threads, %v, %v.\n", time.Now().UTC().Format(time.DateOnly), line, r.common["cpu"], runtime.GOMAXPROCS(0), r.common["go"], r.common["version"])
	return os.WriteFile(path, text, 0o666)
}

func (r *results) close() {
	if r.file != nil {
		r.file.Close()
	}
}

// cpuModel returns the processor's name, empty where the system does not say.
func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
