package replay

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"entropipe/ingest/filesys"
)

// recordings returns the files of a path.
func recordings(path string) ([]recording, error) {
	info, err := filesys.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("mcap: %w", err)
	}
	if !info.IsDir() {
		return []recording{{path, strings.TrimSuffix(unpackedName(filesys.Base(path)), ".mcap")}}, nil
	}
	entries, err := filesys.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("mcap: %w", err)
	}
	bag := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "metadata.yaml" })
	var files []recording
	for _, e := range entries {
		plain := unpackedName(e.Name())
		name, ok := strings.CutSuffix(plain, ".mcap")
		if !ok || e.IsDir() || strings.HasPrefix(name, ".") {
			continue
		}
		if beside := func(other os.DirEntry) bool { return other.Name() == plain }; plain != e.Name() &&
			slices.ContainsFunc(entries, beside) {
			continue // it is there unpacked
		}
		if bag {
			whole, err := filesys.Abs(path)
			if err != nil {
				return nil, err
			}
			name = filesys.Base(whole)
		}
		files = append(files, recording{filesys.Join(path, e.Name()), name})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("mcap: no .mcap file in %s", path)
	}
	slices.SortStableFunc(files, func(a, b recording) int { return naturally(a.path, b.path) })
	return files, nil
}
