package replay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/klauspost/compress/zstd"

	"entropipe/ingest/filesys"
	"entropipe/schemas/codec"
)

// sampleBytes is how much of a file is looked at: the header of a PCD file or the first
// drawing of a category is shorter.
const sampleBytes = 4 << 10

// sample is the beginning of a file, unpacked if the file is in gzip or Zstandard.
type sample struct {
	path  string
	plain string // name of the file, without folder and ending of the compression, in small letters
	head  []byte
	size  int64  // bytes of the file; -1: the file is compressed
	kind  string // name of the content by its magic, such as "a PNG picture"; "": no magic is known
}

// rosbagMetadata is the kind of the file metadata.yaml of a ROS 2 bag.
const rosbagMetadata = "the metadata of a ROS 2 bag"

// takeSample reads the beginning of a file.
func takeSample(path string) (*sample, error) {
	f, err := filesys.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, unreadable(path, err)
	}
	return readSample(path, f, info.Size())
}

// takeListed is takeSample of a file that is regular, as its folder lists it.
func takeListed(path string) (*sample, error) {
	f, info, err := filesys.OpenListed(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	return readSample(path, f, info.Size())
}

// readSample reads the beginning of f, which has size bytes.
func readSample(path string, f io.ReadSeeker, size int64) (*sample, error) {
	s := &sample{path: path, plain: strings.ToLower(filesys.Base(path)), size: size}
	var err error
	if s.head, err = readHead(f); err != nil {
		return nil, unreadable(path, err)
	}
	switch packed := codec.Name(s.head); {
	case packed == "a gzip file" && !strings.HasSuffix(s.plain, ".gz") && !beginsGzip(s.head):
		return s, nil // of 65,536 scans, the first coordinate of one begins with gzip's two bytes
	case packed == "a gzip file":
		s.plain, s.size = strings.TrimSuffix(s.plain, ".gz"), -1
		err = s.unpack(f, func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) })
	case packed == "a Zstandard file":
		s.plain, s.size = strings.TrimSuffix(strings.TrimSuffix(s.plain, ".zst"), ".zstd"), -1
		err = s.unpack(f, func(r io.Reader) (io.Reader, error) {
			return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
		})
	}
	if s.kind = codec.Name(s.head); s.plain == "metadata.yaml" && bytes.Contains(s.head, []byte("rosbag2_bagfile_")) {
		s.kind = rosbagMetadata
	}
	return s, err
}

// beginsGzip tells whether head, which has the first two bytes of gzip, is its header: the
// method is the one that there is, and no reserved flag is set.
func beginsGzip(head []byte) bool { return len(head) < 4 || head[2] == 8 && head[3]&0xe0 == 0 }

func readHead(r io.Reader) ([]byte, error) {
	head := make([]byte, sampleBytes)
	n, err := io.ReadFull(r, head)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return head[:n], err
}

// unpack replaces the head by that of the unpacked file.
func (s *sample) unpack(f io.ReadSeeker, open func(io.Reader) (io.Reader, error)) error {
	packed := codec.Name(s.head)
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return unreadable(s.path, err)
	}
	r, err := open(f)
	if err == nil {
		s.head, err = readHead(r)
	}
	if d, ok := r.(*zstd.Decoder); ok {
		d.Close()
	}
	if err != nil {
		return &BadInputError{File: s.path, Detail: fmt.Sprintf("this is %s that cannot be unpacked: %v", packed, err)}
	}
	return nil
}

// unreadable returns the error for a path that the system does not open.
func unreadable(path string, err error) *BadInputError {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return &BadInputError{File: path, Detail: "it cannot be read: " + err.Error(), Err: err}
}

// word returns the category of a file of drawings: that of the first drawing, if its label lies
// in the head, else that of the name.
func (s *sample) word() string {
	line, _, _ := bytes.Cut(s.head, []byte("\n"))
	var p drawingParser
	var d Drawing
	_ = p.parse(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")), &d) // a drawing may end behind the head
	if d.Label == "" {
		return stem(s.path)
	}
	return d.Label
}

// unknown returns the error for content of no format that is read.
func (s *sample) unknown() *BadInputError {
	switch {
	case len(s.head) == 0:
		return &BadInputError{File: s.path, Detail: "the file is empty"}
	case s.kind != "":
		return &BadInputError{File: s.path, Detail: fmt.Sprintf("this is %s, which entropipe does not read%s", s.kind,
			s.advice())}
	}
	return &BadInputError{File: s.path, Detail: fmt.Sprintf("the content is of no format that entropipe reads (%s); "+
		"it begins with %.16q%s", strings.Join(Formats(), ", "), s.head[:min(len(s.head), 16)], s.advice())}
}

// format returns the format of the content; nil: none.
func (s *sample) format() *form {
	for _, f := range formats {
		if f.file != nil && (len(s.head) > 0 || strings.HasSuffix(s.plain, ".bin")) && f.file(s) {
			return f
		}
	}
	return nil
}
