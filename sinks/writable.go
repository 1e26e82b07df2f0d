package sinks

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"entropipe/sinks/record"
)

// accessDisk is a disk that tells whether names may be made in a folder. Where
// nobody can tell, as on systems without access(2), the first commit does.
type accessDisk interface {
	Writable(folder string) error
}

// CheckWritable returns an error that names the folder in which a commit would
// fail: on a file system that is mounted for reading, or without the permission.
// It makes and removes a file in staging and beside the commit records, and asks
// about every folder of manifests and of tables, whose names the caller gives, without listing their files. It
// does not change an output, and may run beside writers.
//
// A run that learns of this with its first commit has read a minute's records in
// vain, and reads them again after every restart.
func (l *Local) CheckWritable(tables []string) error {
	for _, folder := range []string{record.StagingFolder, record.CommitsFolder} {
		if err := l.tryFile(folder); err != nil {
			return l.cannotWrite(folder, err)
		}
	}
	d, ok := l.disk.(accessDisk)
	if !ok {
		return nil
	}
	if err := d.Writable("."); err != nil { // where folders of tables are made
		return l.cannotWrite(".", err)
	}
	names, err := l.disk.Names(".")
	if err != nil {
		return fmt.Errorf("output folder %s: %w", l.name, err)
	}
	slices.Sort(names)
	for _, name := range names {
		if name != record.CommitsFolder && !slices.Contains(tables, name) {
			continue
		}
		if err := l.checkFolders(d, name); err != nil {
			return err
		}
	}
	return nil
}

// tryFile makes a file in folder and removes it. Its name is that of a record
// being written: among commit records, who reads one sweeps what a crash leaves;
// in staging, the next try does.
func (l *Local) tryFile(folder string) error {
	if err := l.makeFolder(folder); err != nil {
		return err
	}
	begin := record.NewPrefix + path.Base(record.StoreFile) + "-"
	f, err := l.disk.Create(folder + "/" + begin + record.NewUUID())
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	names, err := l.disk.Names(folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, begin) {
			continue
		}
		if err := l.disk.Remove(folder + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) { // another's try removes it, too
			return err
		}
	}
	return nil
}

// checkFolders asks about a folder and those below it, but not about the folders
// of one partition and one topic in turn, which hold nothing but files.
func (l *Local) checkFolders(d accessDisk, folder string) error {
	if err := d.Writable(folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return l.cannotWrite(folder, err)
	}
	manifests := strings.HasPrefix(folder, record.TopicsFolder+"/") && strings.Count(folder, "/") == 3
	if manifests || strings.HasPrefix(path.Base(folder), "topic=") {
		return nil
	}
	entries, err := l.disk.ReadDir(folder)
	if err != nil {
		return l.cannotWrite(folder, err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := l.checkFolders(d, folder+"/"+e.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (l *Local) cannotWrite(folder string, err error) error {
	var at *fs.PathError // its text repeats the folder
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("output folder: %s cannot be written: %w", path.Join(l.name, folder), err)
}
