package disk

import (
	"os"
	"slices"
	"syscall"
)

// remoteSystems are file systems that other machines may write to: NFS, SMB (three
// numbers), FUSE, 9P, Ceph, Lustre, GPFS, AFS, OCFS2, GFS2, BeeGFS.
var remoteSystems = []uint32{0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x65735546, 0x01021997, 0x00c36400, 0x0bd00bd0,
	0x47504653, 0x5346414f, 0x7461636f, 0x01161970, 0x19830326}

// Remote tells whether the folder is on a file system whose names other machines change,
// so that this one may see a change late. A wrong answer costs time before an error.
func (d Folder) Remote() bool {
	f, err := d.root.Open(".")
	if err != nil {
		return false
	}
	defer f.Close()
	return remote(f)
}

// remote tells whether a file is on such a file system; false: the system does not tell.
func remote(f *os.File) bool {
	var fs syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &fs); err != nil {
		return false
	}
	return slices.Contains(remoteSystems, uint32(fs.Type))
}
