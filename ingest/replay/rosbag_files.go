package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"entropipe/ingest/filesys"
)

// SQLite must not change a user's bag: with the file in its mode of a log (WAL) it would
// make two files beside it, and move the log into the bag. So it reads through bagFolder,
// which has two files and no way to write:
//
//   - bag: the bag. It is as long as its header says, also if it was cut off: SQLite refuses
//     a shorter one as a whole. What is read behind the end is zero, and is noticed.
//   - bag-wal: the log, which holds the last messages of a bag that was not closed; empty if
//     the bag is in that mode without one.
//
// SQLite keeps the index of the log in memory, as the connection is exclusive.
type bagFolder struct {
	bag, log *bagPages
}

// bagName is the name of the bag in a bagFolder.
const bagName = "bag"

// Open implements fs.FS for the two files.
func (d *bagFolder) Open(name string) (fs.File, error) {
	switch {
	case name == bagName:
		return &pageReader{bagPages: d.bag}, nil
	case name == bagName+"-wal" && d.log != nil:
		return &pageReader{bagPages: d.log}, nil
	}
	return nil, fs.ErrNotExist
}

// bagPages is an open file, of which size bytes are there; it shows itself claimed long.
type bagPages struct {
	file          io.ReaderAt // nil: a file without bytes
	size, claimed int64
	logged        bool  // the file is in SQLite's mode of a log
	missed        int64 // position of the first byte that was read behind the end; -1: none
	window        []byte
	from          int64 // position of window
}

// Stat implements fs.File.
func (p *bagPages) Stat() (fs.FileInfo, error) { return pagesInfo{p.claimed}, nil }

// read fills b from position at.
func (p *bagPages) read(b []byte, at int64) (int, error) {
	if at >= p.claimed {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), p.claimed-at)]
	have := max(min(int64(len(b)), p.size-at), 0)
	if have < int64(len(b)) {
		clear(b[have:])
		if p.missed < 0 {
			p.missed = at + have
		}
	}
	for done := int64(0); done < have; {
		n, err := p.fill(b[done:have], at+done)
		if err != nil {
			return 0, err
		}
		done += int64(n)
	}
	return len(b), nil
}

// Sizes of the window: a message lies in one piece mostly, the rows between do not.
const (
	smallWindow = 16 << 10
	largeWindow = 256 << 10
)

// fill copies bytes that are there from the window, which moves if it must.
func (p *bagPages) fill(b []byte, at int64) (int, error) {
	if at < p.from || at >= p.from+int64(len(p.window)) {
		size := int64(smallWindow)
		if at == p.from+int64(len(p.window)) {
			size = largeWindow
		}
		if p.window == nil {
			p.window = make([]byte, 0, largeWindow)
		}
		window := p.window[:min(size, p.size-at)]
		p.window = p.window[:0]
		if n, err := p.file.ReadAt(window, at); err != nil && n < len(window) {
			return 0, err
		}
		p.from, p.window = at, window
	}
	return copy(b, p.window[at-p.from:]), nil
}

// pageReader reads a file from a position.
type pageReader struct {
	*bagPages
	at int64
}

// Seek implements io.Seeker for positions from the begin.
func (r *pageReader) Seek(offset int64, whence int) (int64, error) {
	if whence != io.SeekStart || offset < 0 {
		return 0, fs.ErrInvalid
	}
	r.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (r *pageReader) Read(b []byte) (int, error) {
	n, err := r.read(b, r.at)
	r.at += int64(n)
	return n, err
}

// Close implements fs.File. The file stays open: its owner closes it.
func (r *pageReader) Close() error { return nil }

// pagesInfo says the size of a file.
type pagesInfo struct{ size int64 }

func (i pagesInfo) Name() string     { return bagName }
func (i pagesInfo) Size() int64      { return i.size }
func (pagesInfo) Mode() fs.FileMode  { return 0o444 }
func (pagesInfo) ModTime() time.Time { return time.Time{} }
func (pagesInfo) IsDir() bool        { return false }
func (pagesInfo) Sys() any           { return nil }

// bagFiles are the open files of a bag, and what was made of them.
type bagFiles struct {
	folder *bagFolder
	open   []filesys.File
	made   string // private folder, removed at the end; empty: none

	unpackFault error // why unpacking ended early
}

// openBagFiles opens a file of SQLite, and the log beside it. A compressed file is unpacked
// into a private folder, and so is a bag whose last writing was cut off, since that must be
// taken back first.
func openBagFiles(path string) (*bagFiles, error) {
	b := &bagFiles{}
	if err := b.openAll(path); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bagFiles) openAll(path string) error {
	f, err := b.add(path)
	if err != nil {
		return err
	}
	if packed, err := isPacked(f); err != nil {
		return err
	} else if packed {
		if f, err = b.unpack(f); err != nil {
			return err
		}
	} else if journal := path + "-journal"; isHotJournal(journal) {
		if f, err = b.rollBack(path, journal); err != nil {
			return err
		}
	}
	b.folder = &bagFolder{}
	if b.folder.bag, err = bagPagesOf(f); err != nil {
		return err
	}
	if b.folder.bag.logged {
		b.folder.log = &bagPages{missed: -1}
	}
	if f.Name() != path {
		return nil
	}
	switch log, err := b.add(path + "-wal"); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		info, err := log.Stat()
		if err != nil {
			return err
		}
		b.folder.log = &bagPages{file: log, size: info.Size(), claimed: info.Size(), missed: -1}
	}
	return nil
}

func (b *bagFiles) add(path string) (filesys.File, error) {
	f, err := openPlain(path)
	if err == nil {
		b.open = append(b.open, f)
	}
	return f, err
}

func (b *bagFiles) close() {
	for _, f := range b.open {
		f.Close()
	}
	if b.made != "" {
		os.RemoveAll(b.made)
	}
}

// bagHead is the number of bytes of the header of SQLite.
const bagHead = 100

// bagPagesOf reads the header of a file of SQLite.
func bagPagesOf(f filesys.File) (*bagPages, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	head := make([]byte, bagHead)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if fault := checkBagHead(head[:n]); fault != nil {
		return nil, fault
	}
	p := &bagPages{file: f, size: info.Size(), logged: head[19] == 2, missed: -1}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 1 << 16
	}
	p.claimed = p.size
	// The number of pages counts where the same program wrote it as changed the file.
	if string(head[24:28]) == string(head[92:96]) && page >= 512 {
		p.claimed = max(p.size, page*int64(binary.BigEndian.Uint32(head[28:])))
	}
	return p, nil
}

// isHotJournal reports whether a journal holds pages that belong back into its file.
func isHotJournal(path string) bool {
	f, err := filesys.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [8]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && magic == [8]byte{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}
}

// private makes the private folder, and a file in it.
func (b *bagFiles) private(name string) (*os.File, error) {
	if b.made == "" {
		made, err := os.MkdirTemp("", "entropipe-bag-")
		if err != nil {
			return nil, err
		}
		b.made = made
	}
	f, err := os.OpenFile(filesys.Join(b.made, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		b.open = append(b.open, f)
	}
	return f, err
}

// rollBack copies a bag and its journal, and has SQLite put the pages back in the copy.
func (b *bagFiles) rollBack(path, journal string) (*os.File, error) {
	var copied *os.File
	for i, from := range []string{journal, path} {
		in, err := b.add(from)
		if err != nil {
			return nil, err
		}
		if copied, err = b.private([]string{"bag-journal", bagName}[i]); err != nil {
			return nil, err
		}
		if _, err := io.Copy(copied, in); err != nil {
			return nil, fmt.Errorf("a copy of it, whose last writing is taken back: %w", err)
		}
	}
	if err := touchDatabase(copied.Name()); err != nil {
		return nil, err
	}
	return copied, nil
}

// plainBag returns a file's name without the suffix of Zstandard: .zstd, as rosbag2 names it, or
// .zst, as its own command does.
func plainBag(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".zstd"), ".zst")
}

// bagStem is the name of a bag's file without its endings.
func bagStem(path string) string {
	return strings.TrimSuffix(plainBag(filesys.Base(path)), ".db3")
}
