package sinks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"entropipe/sinks/record"
)

// checkAbilities returns a *ConfigError if the file system does not do what commits build
// on: a link that fails if its name is taken, and a rename after which only the new name is
// there. Some file systems in user space copy a file where it is to be linked, and replace
// what has the name. There every writer of a race would win it.
//
// Names are those of records that are being written, so others remove what a crash leaves
// (Local.Read, tryFile), and maybe what they see of this call, which then tries again. Answers
// that a network file system lost, and gave for a second try, are told from refusals by the
// names that are there.
func (l *Local) checkAbilities(ctx context.Context, folder string) (err error) {
	for try, doubts := 0, 0; try < 100 && doubts < 10; try++ {
		err = l.tryAbilities(ctx, folder)
		switch wrong := (*ConfigError)(nil); {
		case errors.As(err, &wrong):
			doubts++
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return err
}

func (l *Local) tryAbilities(ctx context.Context, folder string) error {
	begin := folder + "/" + record.NewPrefix + path.Base(record.StoreFile) + "-"
	first, linked, renamed := begin+record.NewUUID(), begin+record.NewUUID(), begin+record.NewUUID()
	defer func() {
		for _, name := range []string{first, linked, renamed} {
			l.disk.Remove(name)
		}
	}()
	if err := l.writeFile(first, []byte("{}\n")); err != nil {
		return err
	}
	err := l.disk.Link(first, linked)
	if isOneOf(err, unlinked...) {
		return &ConfigError{"out", (&noLinksError{err, l.name}).Error()}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := l.disk.Link(first, linked); !errors.Is(err, fs.ErrExist) {
		return l.untrusted(fmt.Sprintf("a second link of one name gives %q instead of an error that says that the "+
			"name is taken", fmt.Sprint(err)))
	}
	if err := l.disk.Rename(linked, renamed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for try := 0; ; try++ {
		names, err := l.disk.Names(folder)
		if err != nil {
			return err
		}
		old, is := slices.Contains(names, path.Base(linked)), slices.Contains(names, path.Base(renamed))
		if is && !old {
			return l.disk.SyncDir(folder)
		}
		if try == l.looks {
			return l.untrusted(fmt.Sprintf("after a rename the new name is there: %t, and the old one: %t", is, old))
		}
		if err := l.refresh(ctx, try); err != nil {
			return err
		}
	}
}

func (l *Local) untrusted(what string) error {
	return &ConfigError{"out", fmt.Sprintf("the file system of %s cannot be trusted with commits: %s; choose another",
		l.name, what)}
}
