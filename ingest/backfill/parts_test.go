package backfill

import (
	"bytes"
	"context"
	"io"
	"path"
	"strings"
	"sync"

	"entropipe/sinks"
)

// parts is a store of commit records in memory.
type parts struct {
	mu    sync.Mutex
	files map[string][]byte
}

func newParts() *parts { return &parts{files: map[string][]byte{}} }

func (p *parts) Create(_ context.Context, name string, data []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.files[name] != nil {
		return sinks.ErrExists
	}
	p.files[name] = bytes.Clone(data)
	return nil
}

func (p *parts) Read(_ context.Context, name string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if data, ok := p.files[name]; ok {
		return data, nil
	}
	return nil, sinks.ErrNotFound
}

type memObject struct{ *bytes.Reader }

func (memObject) Close() error { return nil }

func (p *parts) Open(ctx context.Context, name string) (sinks.Object, error) {
	data, err := p.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	return memObject{bytes.NewReader(data)}, nil
}

func (p *parts) List(_ context.Context, folder string, f func(sinks.Entry) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, data := range p.files {
		if strings.HasPrefix(name, folder+"/") {
			if err := f(sinks.Entry{Name: name, Size: int64(len(data))}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *parts) Names(_ context.Context, folder string) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[string]bool{}
	var names []string
	for name := range p.files {
		for ; name != "."; name = path.Dir(name) {
			if path.Dir(name) == folder && !seen[path.Base(name)] {
				seen[path.Base(name)] = true
				names = append(names, path.Base(name))
			}
		}
	}
	return names, nil
}

// Parts of a Store that plans do not use.
func (p *parts) Stage(context.Context, string) (io.WriteCloser, error) {
	return nil, sinks.ErrNotCreated
}
func (p *parts) Publish(context.Context, []sinks.Move) error { return nil }
func (p *parts) Discard(context.Context, string) error       { return nil }
