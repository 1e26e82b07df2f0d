package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openBeneath opens a file below a folder with one system call. os.Root makes two for each folder
// on the way. No name leads out of the folder. nil: the file could not be opened so, and os.Root
// opens it or says why not. Linux before 5.6 and some sandboxes lack the call.
func openBeneath(folder *os.File, name string, flags int) *os.File {
	how := unix.OpenHow{Flags: uint64(flags) | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(int(folder.Fd()), name, &how)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil
		}
		return os.NewFile(uintptr(fd), name)
	}
}
