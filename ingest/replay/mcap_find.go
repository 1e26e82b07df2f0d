package replay

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// recordings returns the files of a path.
func recordings(path string) ([]recording, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("mcap: %w", err)
	}
	if !info.IsDir() {
		return []recording{{path, strings.TrimSuffix(filepath.Base(path), ".mcap")}}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("mcap: %w", err)
	}
	bag := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "metadata.yaml" })
	var files []recording
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".mcap")
		if !ok || e.IsDir() || strings.HasPrefix(name, ".") {
			continue
		}
		if bag {
			whole, err := filepath.Abs(path)
			if err != nil {
				return nil, err
			}
			name = filepath.Base(whole)
		}
		files = append(files, recording{filepath.Join(path, e.Name()), name})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("mcap: no .mcap file in %s", path)
	}
	slices.SortStableFunc(files, func(a, b recording) int { return byNumbers(a.path, b.path) })
	return files, nil
}

// byNumbers compares names as people do: bag_2 comes before bag_10.
func byNumbers(a, b string) int {
	for a != "" && b != "" {
		x, restA := leadingDigits(a)
		y, restB := leadingDigits(b)
		if x != "" && y != "" {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			a, b = restA, restB
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func leadingDigits(s string) (digits, rest string) {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n], s[n:]
}
