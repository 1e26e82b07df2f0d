package sinktest

import (
	"errors"
	"io/fs"

	"entropipe/sinks/internal/disk"
)

// FaultDisk lets a test have a say before, and after, each call that changes
// the disk below. An error from before stops the call; one from after hides
// that it worked. Calls that only look are asked for with op "look".
type FaultDisk struct {
	disk.Disk
	Before func(op, name string) error
	After  func(op, name string) error
}

// Remote says what the disk below says.
func (d *FaultDisk) Remote() bool {
	below, ok := d.Disk.(interface{ Remote() bool })
	return ok && below.Remote()
}

func (d *FaultDisk) ask(op, name string, do func() error) error {
	if d.Before != nil {
		if err := d.Before(op, name); err != nil {
			return err
		}
	}
	err := do()
	if err == nil && d.After != nil {
		err = d.After(op, name)
	}
	return err
}

func (d *FaultDisk) Create(name string) (f disk.File, err error) {
	err = d.ask("create", name, func() error { f, err = d.Disk.Create(name); return err })
	if err != nil {
		return nil, err
	}
	return &faultFile{f, d, name}, nil
}

type faultFile struct {
	disk.File
	d    *FaultDisk
	name string
}

// Write writes the first half where a disk, not a dead process, stops it.
func (f *faultFile) Write(p []byte) (n int, err error) {
	asked := false
	err = f.d.ask("write", f.name, func() error { asked = true; n, err = f.File.Write(p); return err })
	if !asked && !errors.Is(err, errCrashed) {
		n, _ = f.File.Write(p[:len(p)/2])
	}
	return n, err
}

func (f *faultFile) Sync() error { return f.d.ask("sync", f.name, f.File.Sync) }

// Close releases the file in any case, as that of an operating system does.
func (f *faultFile) Close() error {
	asked := false
	err := f.d.ask("close", f.name, func() error { asked = true; return f.File.Close() })
	if !asked {
		f.File.Close()
	}
	return err
}

func (d *FaultDisk) Link(from, to string) error {
	return d.ask("link", to, func() error { return d.Disk.Link(from, to) })
}

// LinkFrom asks as Link does. The disk below must have it.
func (d *FaultDisk) LinkFrom(from disk.Disk, o disk.Object, name, to string) error {
	below := d.Disk.(interface {
		LinkFrom(from disk.Disk, o disk.Object, name, to string) error
	})
	return d.ask("link", to, func() error { return below.LinkFrom(from, o, name, to) })
}

func (d *FaultDisk) Rename(from, to string) error {
	return d.ask("rename", to, func() error { return d.Disk.Rename(from, to) })
}

func (d *FaultDisk) Remove(name string) error {
	return d.ask("remove", name, func() error { return d.Disk.Remove(name) })
}

func (d *FaultDisk) Mkdir(name string) error {
	return d.ask("mkdir", name, func() error { return d.Disk.Mkdir(name) })
}

func (d *FaultDisk) SyncDir(name string) error {
	return d.ask("syncdir", name, func() error { return d.Disk.SyncDir(name) })
}

func (d *FaultDisk) Open(name string) (o disk.Object, err error) {
	err = d.ask("look", name, func() error { o, err = d.Disk.Open(name); return err })
	if err != nil {
		if o != nil {
			o.Close()
		}
		return nil, err
	}
	return &faultObject{o, d, name}, nil
}

type faultObject struct {
	disk.Object
	d    *FaultDisk
	name string
}

func (o *faultObject) ReadAt(p []byte, at int64) (n int, err error) {
	err = o.d.ask("look", o.name, func() error { n, err = o.Object.ReadAt(p, at); return err })
	return n, err
}

func (d *FaultDisk) Size(name string) (n int64, err error) {
	err = d.ask("look", name, func() error { n, err = d.Disk.Size(name); return err })
	return n, err
}

func (d *FaultDisk) ReadDir(name string) (es []fs.DirEntry, err error) {
	err = d.ask("look", name, func() error { es, err = d.Disk.ReadDir(name); return err })
	return es, err
}

func (d *FaultDisk) Names(name string) (names []string, err error) {
	err = d.ask("look", name, func() error { names, err = d.Disk.Names(name); return err })
	return names, err
}
