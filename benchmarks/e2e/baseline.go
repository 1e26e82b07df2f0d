package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"entropipe/benchmarks/rig"
)

// peer is what the Python pipeline prints of a run. Its rate counts from its
// first message on: neither imports nor connecting, in its favour.
type peer struct {
	Frames       int64   `json:"frames"`
	FramesPerS   float64 `json:"frames_per_s"`
	CPUMsAFrame  float64 `json:"cpu_ms_per_frame"`
	MaxRSSMiB    int64   `json:"max_rss_mb"`
	WallSeconds  float64 `json:"wall_s"`
	MegabytesPer float64 `json:"mb_per_s"`
}

// peers runs the Python pipeline over the same topics and prints how many times
// our rate is its rate.
func (c *throughputCmd) peers(b *bench, plain, delaunay float64) error {
	p, err := c.peer(b, "frames", "hull,maxima", c.BaselineFrames)
	if err != nil {
		return err
	}
	fmt.Printf("hull, maxima: Python (moocore) %.1f frames/s, ours %.1f: %.1f times\n", p.FramesPerS, plain,
		plain/p.FramesPerS)
	if c.DelaunayFrames == 0 {
		return nil
	}
	if p, err = c.peer(b, "delaunay", "hull,maxima,delaunay", max(1, c.BaselineFrames/10)); err != nil {
		return err
	}
	fmt.Printf("with Delaunay: Python (SciPy) %.2f frames/s, ours %.1f: %.1f times\n", p.FramesPerS, delaunay,
		delaunay/p.FramesPerS)
	return nil
}

func (c *throughputCmd) peer(b *bench, topic, ops string, frames int) (peer, error) {
	var p peer
	out := b.newOutput()
	defer os.RemoveAll(out)
	_, text, err := rig.Run(b.ctx, rig.Spec{Path: c.Python,
		Args: []string{c.Baseline, "--brokers", b.broker.Addr, "--topic", topic, "--out", out,
			"--ops", ops, "--maxima", "moocore", "--max-messages", strconv.Itoa(frames)}})
	if err != nil {
		return p, err
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &p); err != nil || p.FramesPerS <= 0 {
		return p, fmt.Errorf("%s: %w: %q", c.Baseline, orMismatch(err), text)
	}
	return p, b.results.add(map[string]any{"what": "python", "ops": ops, "frames": p.Frames, "seconds": p.WallSeconds,
		"frames_per_second": p.FramesPerS,
		"cpu_seconds":       p.CPUMsAFrame * float64(p.Frames) / 1e3, "max_rss": p.MaxRSSMiB << 20})
}
