//go:build cuda && linux && (amd64 || arm64)

package language

import (
	"log/slog"
	"sync"

	"entropipe/sparse/cuda"
	"entropipe/sparse/kern"
)

// openDevice has attention computed by what --device names. A GPU that fails is
// left aside, with a warning: package kern computes the same within a tolerance.
func (c *Flags) openDevice(l *Language) error {
	if c.Device != "cuda" {
		return nil
	}
	d, err := cuda.Open("")
	if err != nil {
		return err
	}
	slog.Info("attention on a GPU", "name", d.Name())
	l.Config += "device: cuda\n"
	l.Attend = onDevice(d)
	return nil
}

// onDevice shares a GPU among workers. It is given back when the process ends.
func onDevice(d *cuda.Device) func(jobs []kern.Job, workers int) {
	var (
		one    sync.Mutex
		failed bool
		cpu    kern.Scratch
	)
	return func(jobs []kern.Job, workers int) {
		one.Lock()
		defer one.Unlock()
		if !failed {
			err := d.Attend(jobs)
			if err == nil {
				return
			}
			failed = true
			slog.Warn("the GPU has failed: attention goes on without it", "error", err)
		}
		cpu.Attend(jobs, workers)
	}
}
