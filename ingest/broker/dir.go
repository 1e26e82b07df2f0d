package broker

import (
	"fmt"
	"os"
	"path/filepath"
)

// openDir makes the folder and takes its lock: two brokers appending to one
// log would ruin it.
func (b *Broker) openDir() error {
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "entropipe-broker-")
		if err != nil {
			return fmt.Errorf("broker: %w", err)
		}
		b.dir, b.temp = dir, true
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(b.dir, "broker.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return fmt.Errorf("broker: another broker uses the folder %s; stop it or name another folder with --data",
			b.dir)
	}
	b.lock = f
	return nil
}

func (b *Broker) closeDir() {
	b.lock.Close() // and with it the lock
	if b.temp {
		os.RemoveAll(b.dir)
	}
}
