//go:build !unix

package disk

// inode returns nothing: the numbers of files are not asked for here.
func (d Folder) Inode(string) (string, error) { return "", nil }
