//go:build !unix

package sinks

// inode returns nothing: the numbers of files are not asked for here.
func (d osDisk) inode(string) (string, error) { return "", nil }
