package replay

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"entropipe/ingest/filesys"
)

// bagPart is a file of a bag.
type bagPart struct {
	path, sequence string
	packed         bool // its name says that it is compressed
	mcap           bool
}

// findBags returns the parts of the bags in order.
func findBags(paths []string) ([]bagPart, error) {
	var all []bagPart
	for _, path := range paths {
		parts, err := findBag(path)
		if err != nil {
			return nil, fmt.Errorf("rosbag: %w", err)
		}
		all = append(all, parts...)
	}
	if len(all) == 0 {
		return nil, errors.New("rosbag: no bag is named")
	}
	if i := slices.IndexFunc(all, func(p bagPart) bool { return p.mcap != all[0].mcap }); i > 0 {
		return nil, fmt.Errorf("rosbag: %s and %s: bags of MCAP and of SQLite need a command each", all[0].path,
			all[i].path)
	}
	return all, nil
}

// findBag returns the parts of a file or folder.
func findBag(path string) ([]bagPart, error) {
	info, err := filesys.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []bagPart{partOf(path, bagStem(path))}, nil
	}
	whole, err := filesys.Abs(path)
	if err != nil {
		return nil, err
	}
	sequence := filesys.Base(whole)
	meta, err := readBagMetadata(filesys.Join(path, metadataFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return listBag(path, sequence)
	case err != nil:
		return nil, err
	}
	var parts []bagPart
	for _, name := range meta.Bag.Files {
		// Old versions put the folder's name before a file's. A file may have been unpacked or
		// compressed later.
		at := filesys.Join(path, filesys.Base(filepath.FromSlash(name)))
		if _, err := filesys.Stat(at); err != nil {
			for _, other := range []string{plainBag(at), at + ".zstd", at + ".zst"} {
				if _, err := filesys.Stat(other); err == nil {
					at = other
					break
				}
			}
		}
		parts = append(parts, partOf(at, sequence))
	}
	if len(parts) == 0 {
		return listBag(path, sequence)
	}
	return parts, nil
}

func partOf(path, sequence string) bagPart {
	plain := plainBag(path)
	return bagPart{path: path, sequence: sequence, packed: plain != path, mcap: filepath.Ext(plain) == ".mcap"}
}

// listBag returns the files of a bag without metadata.yaml: the recorder died, and so its
// parts come in the order of their numbers.
func listBag(dir, sequence string) ([]bagPart, error) {
	entries, err := filesys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var parts []bagPart
	seen := map[string]bool{}
	for _, e := range entries { // a file before the same file compressed
		plain := plainBag(e.Name())
		ext := filepath.Ext(plain)
		if e.IsDir() || strings.HasPrefix(plain, ".") || ext != ".db3" && ext != ".mcap" || seen[plain] {
			if ext == ".bag" && len(entries) == 1 {
				return nil, fmt.Errorf("%s: %w", filesys.Join(dir, e.Name()), errROS1)
			}
			continue
		}
		seen[plain] = true
		parts = append(parts, partOf(filesys.Join(dir, e.Name()), sequence))
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("no file of a ROS 2 bag (.db3, .mcap) in %s", dir)
	}
	slices.SortStableFunc(parts, func(a, b bagPart) int { return naturally(a.path, b.path) })
	return parts, nil
}

// metadataFile stands in the folder of every bag that was closed.
const metadataFile = "metadata.yaml"

// maxMetadata bounds the bytes of metadata.yaml, which grows with topics and parts.
const maxMetadata = 8 << 20

// bagMetadata is what metadata.yaml says of the files. Its versions 1 to 9 agree in that.
type bagMetadata struct {
	Bag struct {
		Files []string `yaml:"relative_file_paths"`
	} `yaml:"rosbag2_bagfile_information"`
}

func readBagMetadata(path string) (*bagMetadata, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxMetadata+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxMetadata {
		return nil, &BadInputError{File: path, Detail: fmt.Sprintf("it has more than %d bytes", maxMetadata)}
	}
	m := &bagMetadata{}
	if err := yaml.Unmarshal(data, m); err != nil {
		return nil, &BadInputError{File: path, Detail: "it is no metadata of a bag: " +
			yaml.FormatError(err, false, false)}
	}
	return m, nil
}
