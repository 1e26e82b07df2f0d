//go:build !unix

package disk

// Inode returns "": inode numbers are not known on this system.
func (d Folder) Inode(string) (string, error) { return "", nil }
