package sinktest

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"syscall"

	"entropipe/sinks/internal/disk"
)

// Mount is a MemDisk as one machine sees it through a network file system. Names are what
// the server says. Answers are what such systems give:
//
//   - What the machine has seen of a name, or that there is none, it goes on seeing for some
//     looks, whatever other machines do. A listing of the folder ends that, unless Deaf.
//   - A change whose answer is lost is sent once more, and the second answer is returned:
//     that the name exists of a file, link or folder that was made, that there is none of a
//     file that was renamed or removed.
//   - A file that is open on this machine is not removed but gets a name with ".nfs", until it
//     is closed. Removing that name meanwhile fails with EBUSY.
//   - A file that another machine has removed is stale to those who have it open. A restarted
//     server forgets open files.
//   - A file of another machine has its size before its bytes: the first reads give zeros.
//
// Changes are those of the MemDisk below, so a crash loses what was not fsynced.
type Mount struct {
	Server *MemDisk
	Late   int     // looks for which an answer may be old, at most
	Lost   float64 // share of changes whose answer is lost
	Only   string  // the one change whose answers are lost; empty: of all
	Stale  float64 // share of calls on open files that find them forgotten
	Deaf   bool    // listings do not refresh what was seen

	mu    sync.Mutex
	rng   *rand.Rand
	seen  map[string]*sight
	open  map[*Inode]int
	ours  map[*Inode]bool // written here
	blank map[*Inode]int  // reads that give zeros
	silly map[string]bool // names of removed files that are open here
	Tally map[string]int  // faults that came
}

// sight is what a machine remembers of a name.
type sight struct {
	err  error
	size int64
	left int // looks
}

// NewMount returns a machine whose faults a seed decides.
func NewMount(server *MemDisk, seed uint64) *Mount {
	return &Mount{Server: server, Late: 5, Lost: .05, Stale: .002, Deaf: seed%3 == 0,
		rng: rand.New(rand.NewPCG(seed, 23)), seen: map[string]*sight{}, open: map[*Inode]int{},
		ours: map[*Inode]bool{}, blank: map[*Inode]int{}, silly: map[string]bool{}, Tally: map[string]int{}}
}

// Remote says that other machines change the names, too.
func (m *Mount) Remote() bool { return true }

// twice makes a change. If its answer is lost it is sent once more.
func (m *Mount) twice(what string, do func() error) error {
	err := do()
	if err == nil && (m.Only == "" || m.Only == what) && m.rng.Float64() < m.Lost {
		m.Tally["lost "+what]++
		return do()
	}
	return err
}

func (m *Mount) stale(what, name string) error {
	if m.rng.Float64() >= m.Stale {
		return nil
	}
	m.Tally["stale "+what]++
	return PathError(what, name, syscall.ESTALE)
}

// look returns what the machine thinks of a name.
func (m *Mount) look(name string) (int64, error) {
	size, err := m.Server.Size(name)
	if s := m.seen[name]; s != nil && s.left > 0 {
		s.left--
		if (s.err == nil) != (err == nil) || s.size != size {
			m.Tally["late"]++
		}
		return s.size, s.err
	}
	m.seen[name] = &sight{err, size, m.rng.IntN(m.Late + 1)}
	return size, err
}

func (m *Mount) forget(names ...string) {
	for _, name := range names {
		delete(m.seen, name)
	}
}

func (m *Mount) Size(name string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.look(name)
}

func (m *Mount) Create(name string) (disk.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(name)
	var f disk.File
	err := m.twice("create", func() (err error) { f, err = m.Server.Create(name); return err })
	if err != nil {
		return nil, err
	}
	node := f.(*memFile).node
	m.ours[node] = true
	m.open[node]++
	return &mountFile{f, m, node, name, false}, nil
}

type mountFile struct {
	disk.File
	m      *Mount
	node   *Inode
	name   string
	closed bool
}

// ask tells whether a call on the open file fails.
func (f *mountFile) ask(what string) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if !f.m.linked(f.node) {
		f.m.Tally["removed "+what]++
		return PathError(what, f.name, syscall.ESTALE)
	}
	return f.m.stale(what, f.name)
}

func (f *mountFile) Write(p []byte) (int, error) {
	if err := f.ask("write"); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *mountFile) Sync() error {
	if err := f.ask("sync"); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *mountFile) Close() error {
	err := f.ask("close")
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if !f.closed {
		f.closed = true
		f.m.closed(f.node)
	}
	return err
}

// linked tells whether a file has a name.
func (m *Mount) linked(node *Inode) bool {
	m.Server.mu.Lock()
	defer m.Server.mu.Unlock()
	for _, other := range m.Server.Live.Files {
		if other == node {
			return true
		}
	}
	return false
}

// closed ends the use of an open file, and removes it if it was to be removed.
func (m *Mount) closed(node *Inode) {
	if m.open[node]--; m.open[node] > 0 {
		return
	}
	delete(m.open, node)
	for name := range m.silly {
		m.Server.mu.Lock()
		is := m.Server.Live.Files[name] == node
		m.Server.mu.Unlock()
		if is {
			delete(m.silly, name)
			m.Server.Remove(name)
		}
	}
}

func (m *Mount) Open(name string) (disk.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size, err := m.look(name)
	if err != nil {
		return nil, err
	}
	o, err := m.Server.Open(name)
	if err != nil { // the machine takes it for a file that is there
		m.forget(name)
		return nil, PathError("open", name, syscall.ESTALE)
	}
	m.Server.mu.Lock()
	node := m.Server.Live.Files[name]
	m.Server.mu.Unlock()
	if _, known := m.blank[node]; !known && !m.ours[node] {
		m.blank[node] = m.rng.IntN(3)
	}
	m.open[node]++
	return &mountObject{o, m, node, name, size, false}, nil
}

type mountObject struct {
	disk.Object
	m      *Mount
	node   *Inode
	name   string
	size   int64
	closed bool
}

func (o *mountObject) Size() int64 { return o.size }

func (o *mountObject) ReadAt(p []byte, at int64) (int, error) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	if err := o.m.stale("read", o.name); err != nil {
		return 0, err
	}
	n, err := o.Object.ReadAt(p, at)
	if o.m.blank[o.node] > 0 {
		o.m.blank[o.node]--
		o.m.Tally["zeros"]++
		clear(p[:n])
	}
	return n, err
}

func (o *mountObject) Close() error {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	if !o.closed {
		o.closed = true
		o.m.closed(o.node)
	}
	return nil
}

func (m *Mount) Link(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(to)
	return m.twice("link", func() error { return m.Server.Link(from, to) })
}

// Rename leaves what the machine remembers of both names where the answer is lost.
func (m *Mount) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.twice("rename", func() error { return m.Server.Rename(from, to) })
	if err == nil {
		m.forget(from, to)
	}
	return err
}

func (m *Mount) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(name)
	m.Server.mu.Lock()
	node := m.Server.Live.Files[name]
	m.Server.mu.Unlock()
	switch {
	case m.silly[name]:
		m.Tally["busy"]++
		return PathError("remove", name, syscall.EBUSY)
	case node != nil && m.open[node] > 0:
		m.Tally["silly"]++
		aside := fmt.Sprintf("%s/.nfs%08d", path.Dir(name), m.rng.IntN(1e8))
		m.silly[aside] = true
		return m.Server.Rename(name, aside)
	}
	return m.twice("remove", func() error { return m.Server.Remove(name) })
}

func (m *Mount) Mkdir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.twice("mkdir", func() error { return m.Server.Mkdir(name) })
}

func (m *Mount) SyncDir(name string) error { return m.Server.SyncDir(name) }

func (m *Mount) listed(folder string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Deaf {
		return
	}
	for name := range m.seen {
		if path.Dir(name) == folder {
			delete(m.seen, name)
		}
	}
}

func (m *Mount) ReadDir(name string) ([]fs.DirEntry, error) {
	m.listed(name)
	return m.Server.ReadDir(name)
}

func (m *Mount) Names(name string) ([]string, error) {
	m.listed(name)
	return m.Server.Names(name)
}

// Sillies returns the names of removed files that were open on some machine.
func Sillies(d *MemDisk) (names []string) {
	for name := range d.Live.Files {
		if strings.HasPrefix(path.Base(name), ".nfs") {
			names = append(names, name)
		}
	}
	return names
}
