package replay

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"

	"entropipe/ingest/filesys"
)

// listing holds the names in a folder, sorted. It takes some 40 bytes and the letters for each.
type listing []folderEntry

// folderEntry is a name in a folder, with the type of its file.
type folderEntry struct {
	name string
	mode fs.FileMode
}

// readFolder lists a folder.
func readFolder(dir string) (listing, error) {
	var all listing
	err := filesys.Each(dir, func(e fs.DirEntry) bool {
		all = append(all, folderEntry{name: e.Name(), mode: e.Type()})
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b folderEntry) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// has reports whether the folder has a file or folder of that name.
func (l listing) has(name string) bool {
	_, found := slices.BinarySearchFunc(l, name, func(e folderEntry, name string) int {
		return cmp.Compare(e.name, name)
	})
	return found
}

// anyEnds reports whether a name has one of the endings.
func (l listing) anyEnds(endings ...string) bool {
	for i := range l {
		for _, ending := range endings {
			if strings.HasSuffix(l[i].name, ending) {
				return true
			}
		}
	}
	return false
}

// natural returns the indices of the entries in natural order.
func (l listing) natural() []int32 {
	order := make([]int32, len(l))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return naturally(l[a].name, l[b].name) })
	return order
}
