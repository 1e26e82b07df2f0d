package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"entropipe/benchmarks/rig"
)

// profileCmd shows where the processor time goes. Totals are from a run that
// nothing disturbs, as the kernel counts them; the shares from the program's own
// CPU profile of a second run.
type profileCmd struct {
	Input      string `enum:"kitti,quickdraw" default:"kitti" help:"What is sent (${enum})."`
	Data       string `placeholder:"DIR" help:"Folder of the input, if not of the real data."`
	Frames     int64  `default:"3000" help:"KITTI frames in the topic (${default}): enough for a run of some seconds."`
	Loop       int64  `default:"200" help:"How often QuickDraw's files are sent (${default})."`
	Ops        string `placeholder:"OP,…" help:"Operators (default: hull and maxima; delaunay2d of drawings)."`
	Partitions int    `default:"4" help:"Partitions of the topic (${default})."`
}

func (c *profileCmd) Run(e *env) error {
	if c.Partitions < 1 || c.Frames < int64(c.Partitions) || c.Loop < 1 {
		return fmt.Errorf("%w: want at least one partition, loop, and frame a partition", rig.ErrUsage)
	}
	b, err := e.open("profile", e.flags.Broker)
	if err != nil {
		return err
	}
	defer b.close()
	if err := c.fill(b); err != nil {
		return err
	}
	m, err := b.measure("profile", c.Ops, 0)
	if err != nil {
		return err
	}
	p, err := c.profiled(b)
	if err != nil {
		return err
	}
	return c.report(b, &m, p)
}

func (c *profileCmd) fill(b *bench) error {
	if c.Input == "kitti" {
		if c.Ops == "" {
			c.Ops = opsPlain
		}
		dir, err := dataDir(c.Data, "kitti", "raw_2011_09_26_drive_0005")
		if err != nil {
			return err
		}
		return b.fill("profile", dir, c.Frames, c.Partitions)
	}
	if c.Ops == "" {
		c.Ops = opsDrawings
	}
	dir, err := dataDir(c.Data, "sketch", "quickdraw_simplified")
	if err != nil {
		return err
	}
	_, err = b.fillDrawings("profile", dir, c.Loop, c.Partitions)
	return err
}

// profile is what one profiled run told.
type profile struct {
	spent  map[string]float64 // milliseconds of samples by stage
	frames int64              // committed when the profile was complete
	commit float64            // seconds spent in commits until then
}

// profiled runs the program again and takes its profile, second by second, as
// long as it lasts.
func (c *profileCmd) profiled(b *bench) (p profile, err error) {
	out := b.newOutput()
	defer os.RemoveAll(out)
	run, err := rig.Start(rig.Spec{Path: b.program.Path, Log: filepath.Join(b.scratch, "profiled.log"),
		Args: []string{"run", "--brokers", b.broker.Addr, "--topic", "profile",
			"--out", out, "--ops", c.Ops, "--until-end", "--listen", "127.0.0.1:0", "--pprof"}})
	if err != nil {
		return p, err
	}
	defer run.Kill()
	url, err := metricsURL(b.ctx, run)
	if err != nil {
		return p, err
	}
	var files []string
	var page []byte
	for {
		data, err := b.get(strings.TrimSuffix(url, "metrics") + "debug/pprof/profile?seconds=1")
		if err != nil {
			break // the run has ended, or Wait says what else
		}
		if now, err := b.get(url); err == nil {
			page = now
		}
		files = append(files, filepath.Join(b.scratch, fmt.Sprintf("cpu-%d.pprof", len(files))))
		if err := os.WriteFile(files[len(files)-1], data, 0o666); err != nil {
			return p, err
		}
	}
	if _, err := run.Wait(b.ctx); err != nil {
		return p, err
	}
	if len(files) == 0 {
		return p, fmt.Errorf("%w: the run lasted less than a second, too short for a profile: send more", rig.ErrUsage)
	}
	if p.frames, err = parseFrames(bytes.NewReader(page)); err != nil {
		return p, err
	}
	if p.commit, err = sumMetric(bytes.NewReader(page), "entropipe_stage_duration_seconds_sum{",
		`stage="commit"`); err != nil {
		return p, err
	}
	p.spent, err = b.traces(files)
	return p, err
}

// get reads what the program serves.
func (b *bench) get(url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(b.ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, body)
	}
	return body, err
}

// traces has the Go toolchain, which built the program, read its profiles.
func (b *bench) traces(files []string) (map[string]float64, error) {
	cmd := exec.CommandContext(b.ctx, "go", append([]string{"tool", "pprof", "-traces", "-unit=ms", b.program.Path},
		files...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool pprof: %w\n%s", err, stderr.String())
	}
	return parseTraces(bytes.NewReader(text))
}

// stageLine is a line of the printed table.
type stageLine struct{ stage, ms, share string }

var stageTable = rig.Table[stageLine]{
	{Head: "stage", Text: func(l stageLine) string { return l.stage }},
	{Head: "core-ms a frame", Align: rig.Right, Text: func(l stageLine) string { return l.ms }},
	{Head: "share", Align: rig.Right, Text: func(l stageLine) string { return l.share }},
}

// report prints the table.
func (c *profileCmd) report(b *bench, m *measured, p profile) error {
	var sum float64
	for _, ms := range p.spent {
		sum += ms
	}
	if sum == 0 || m.frames == 0 {
		return fmt.Errorf("%v ms of samples, %d frames: %w", sum, m.frames, errMismatch)
	}
	frames := float64(m.frames)
	cpu := m.exit.CPU.Seconds() * 1e3 / frames
	rest := m.exit.Wall.Seconds()*1e3*float64(runtime.NumCPU())/frames - cpu
	commit := p.commit * 1e3 / float64(max(p.frames, 1))
	fmt.Printf("%s, %s broker, %d frames in %.2f s on %d cores (%s): core-milliseconds a frame\n\n", c.Ops,
		b.broker.Kind, m.frames, m.exit.Wall.Seconds(), runtime.NumCPU(), rig.CPU())
	figure := map[string]any{"what": "profile", "ops": c.Ops, "frames": m.frames, "seconds": m.exit.Wall.Seconds(),
		"cpu_seconds": m.exit.CPU.Seconds(), "commit_ms_a_frame": commit}
	var lines []stageLine
	for _, s := range stages {
		if share := p.spent[s] / sum; share > 0 {
			lines = append(lines, stageLine{s, fmt.Sprintf("%.4f", share*cpu), fmt.Sprintf("%.1f %%", share*100)})
			figure["share: "+s] = share
		}
	}
	lines = append(lines, stageLine{"**the program**", fmt.Sprintf("**%.4f**", cpu), "100 %"},
		stageLine{"the broker, others, idle", fmt.Sprintf("%.4f", rest), ""})
	fmt.Println(stageTable.Markdown(lines))
	if p.frames > 0 {
		fmt.Printf("Commits (encode, hash, fsync, rename) take %.4f ms a frame by the clock, while the workers go "+
			"on.\n", commit)
	}
	return b.results.add(figure)
}
