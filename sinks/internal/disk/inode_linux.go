package disk

import (
	"os"
	"slices"
	"syscall"
)

// passingInodes are file systems that may number files anew at every mount, or
// differently on every machine: FUSE, 9P, SMB, and the shared folders of
// VirtualBox and VMware.
var passingInodes = []uint32{0x65735546, 0x01021997, 0x517b, 0xff534d42, 0xfe534d42, 0x786f4256, 0xbacbacbc}

// lastingInodes tells whether the file system of f keeps the inode numbers of files. A
// wrong false disables a check; a wrong true causes a false alarm.
func lastingInodes(f *os.File) bool {
	var fs syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &fs); err != nil {
		return false
	}
	return !slices.Contains(passingInodes, uint32(fs.Type))
}
