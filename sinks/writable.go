package sinks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"entropipe/sinks/record"
)

// accessDisk is a disk that can tell whether this process may create names in a
// folder. On systems without access(2) only the first commit finds out.
type accessDisk interface {
	Writable(folder string) error
}

// CheckWritable returns an error that names a folder in which a commit would fail,
// because its file system is mounted read-only or permission is missing. It creates
// and removes a file in staging and in the folder of commit records, and asks the
// system about every folder of manifests and of the named tables, without listing
// data files. It leaves the output unchanged and may run beside writers. *ConfigError: the
// file system cannot keep the promises that commits build on (checkAbilities).
//
// Without it a run would learn this from its first commit, after a minute of work, and
// again after every restart.
func (l *Local) CheckWritable(ctx context.Context, tables []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, folder := range []string{record.StagingFolder, record.CommitsFolder} {
		if err := l.tryFile(folder); err != nil {
			return l.cannotWrite(folder, err)
		}
	}
	if err := l.checkAbilities(ctx, record.CommitsFolder); err != nil {
		return l.cannotWrite(record.CommitsFolder, err)
	}
	d, ok := l.disk.(accessDisk)
	if !ok {
		return nil
	}
	if err := d.Writable("."); err != nil { // commits make the folders of new tables here
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

// tryFile creates a file in folder and removes it. The file has the name of a record
// that is being written, so a file that a crash leaves is removed later: among commit
// records by Local.Read, in staging by the next call of tryFile.
func (l *Local) tryFile(folder string) error {
	if err := l.makeFolder(folder); err != nil {
		return err
	}
	begin := record.NewPrefix + path.Base(record.StoreFile) + "-"
	f, err := l.create(folder + "/" + begin + record.NewUUID())
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
		// another process may remove it, too
		if err := l.disk.Remove(folder + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// checkFolders asks about a folder and the folders below it. It does not list folders
// of manifests and of data files, which have no folders in them.
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
	if wrong := (*ConfigError)(nil); errors.As(err, &wrong) {
		return err
	}
	var at *fs.PathError // its text repeats the folder
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("output folder: %s cannot be written: %w", path.Join(l.name, folder), err)
}
