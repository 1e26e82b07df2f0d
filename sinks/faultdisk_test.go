package sinks

import (
	"errors"
	"io/fs"
)

// faultDisk lets a test have a say before, and after, each call that changes
// the disk below. An error from before stops the call; one from after hides
// that it worked. Calls that only look are asked for with op "look".
type faultDisk struct {
	disk
	before func(op, name string) error
	after  func(op, name string) error
}

func (d *faultDisk) ask(op, name string, do func() error) error {
	if d.before != nil {
		if err := d.before(op, name); err != nil {
			return err
		}
	}
	err := do()
	if err == nil && d.after != nil {
		err = d.after(op, name)
	}
	return err
}

func (d *faultDisk) create(name string) (f diskFile, err error) {
	err = d.ask("create", name, func() error { f, err = d.disk.create(name); return err })
	if err != nil {
		return nil, err
	}
	return &faultFile{f, d, name}, nil
}

type faultFile struct {
	diskFile
	d    *faultDisk
	name string
}

// Write writes the first half where a disk, not a dead process, stops it.
func (f *faultFile) Write(p []byte) (n int, err error) {
	asked := false
	err = f.d.ask("write", f.name, func() error { asked = true; n, err = f.diskFile.Write(p); return err })
	if !asked && !errors.Is(err, errCrashed) {
		n, _ = f.diskFile.Write(p[:len(p)/2])
	}
	return n, err
}

func (f *faultFile) Sync() error { return f.d.ask("sync", f.name, f.diskFile.Sync) }

// Close releases the file in any case, as that of an operating system does.
func (f *faultFile) Close() error {
	asked := false
	err := f.d.ask("close", f.name, func() error { asked = true; return f.diskFile.Close() })
	if !asked {
		f.diskFile.Close()
	}
	return err
}

func (d *faultDisk) link(from, to string) error {
	return d.ask("link", to, func() error { return d.disk.link(from, to) })
}

func (d *faultDisk) rename(from, to string) error {
	return d.ask("rename", to, func() error { return d.disk.rename(from, to) })
}

func (d *faultDisk) remove(name string) error {
	return d.ask("remove", name, func() error { return d.disk.remove(name) })
}

func (d *faultDisk) mkdir(name string) error {
	return d.ask("mkdir", name, func() error { return d.disk.mkdir(name) })
}

func (d *faultDisk) syncDir(name string) error {
	return d.ask("syncdir", name, func() error { return d.disk.syncDir(name) })
}

func (d *faultDisk) open(name string) (o Object, err error) {
	err = d.ask("look", name, func() error { o, err = d.disk.open(name); return err })
	if err != nil && o != nil {
		o.Close()
		return nil, err
	}
	return &faultObject{o, d, name}, err
}

type faultObject struct {
	Object
	d    *faultDisk
	name string
}

func (o *faultObject) ReadAt(p []byte, at int64) (n int, err error) {
	err = o.d.ask("look", o.name, func() error { n, err = o.Object.ReadAt(p, at); return err })
	return n, err
}

func (d *faultDisk) size(name string) (n int64, err error) {
	err = d.ask("look", name, func() error { n, err = d.disk.size(name); return err })
	return n, err
}

func (d *faultDisk) readDir(name string) (es []fs.DirEntry, err error) {
	err = d.ask("look", name, func() error { es, err = d.disk.readDir(name); return err })
	return es, err
}

func (d *faultDisk) names(name string) (names []string, err error) {
	err = d.ask("look", name, func() error { names, err = d.disk.names(name); return err })
	return names, err
}
