package replay

import (
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"entropipe/ingest/filesys"
	"entropipe/schemas/codec"
)

// zstdMagic begins what is compressed. No message in CDR and no file of SQLite begins so.
const zstdMagic = "\x28\xb5\x2f\xfd"

// Bounds of what a compressed file may become: clouds shrink to a fifth, and empty ones to
// a hundredth.
const (
	maxUnpackRatio = 300
	freeUnpacked   = 1 << 28 // bytes that any file may become
)

// isPacked reports whether a file is compressed with Zstandard.
func isPacked(f filesys.File) (bool, error) {
	var magic [len(zstdMagic)]byte
	n, err := f.ReadAt(magic[:], 0)
	if err != nil && err != io.EOF {
		return false, err
	}
	return string(magic[:n]) == zstdMagic, nil
}

// unpack writes the content of a compressed file into the private folder. A file that is
// cut off is unpacked to its last whole block.
func (b *bagFiles) unpack(f filesys.File) (*os.File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	in, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := b.private(bagName)
	if err != nil {
		return nil, err
	}
	limit := freeUnpacked + info.Size()*maxUnpackRatio
	n, err := io.Copy(out, io.LimitReader(in, limit+1))
	switch {
	case n > limit:
		return nil, codec.Errorf(codec.TooLarge, -1, "its %d bytes become more than %d when they are unpacked",
			info.Size(), limit)
	case err != nil && n < bagHead:
		return nil, codec.Errorf(codec.Corrupt, -1, "it cannot be unpacked: %v", err)
	}
	b.unpackFault = err
	return out, nil
}

// checkBagHead returns the fault of a file that does not begin as a file of SQLite.
func checkBagHead(head []byte) error {
	const magic = "SQLite format 3\x00"
	switch {
	case len(head) >= len(magic) && string(head[:len(magic)]) == magic && len(head) < bagHead:
		return codec.Errorf(codec.Truncated, len(head), "the file ends within the header of SQLite")
	case len(head) >= len(magic) && string(head[:len(magic)]) == magic:
		return nil
	}
	if name := codec.Name(head); name == "a ROS 1 bag" {
		return errROS1
	}
	return codec.NotMagic("ROS 2 bag (SQLite)", head)
}

// errROS1 is the fault of a bag of ROS 1.
var errROS1 = fmt.Errorf("this is a ROS 1 bag, which is not read: `pip install rosbags`, then " +
	"`rosbags-convert --src FILE.bag --dst FOLDER` makes it a ROS 2 bag")

// messageUnpacker decompresses single messages.
type messageUnpacker struct {
	decoder *zstd.Decoder
	limit   int64
	buffer  []byte
}

// unpack returns the message that data hold, which are compressed or not. It is valid until
// the next call.
func (u *messageUnpacker) unpack(data []byte) ([]byte, error) {
	if len(data) < len(zstdMagic) || string(data[:len(zstdMagic)]) != zstdMagic {
		return data, nil
	}
	if u.decoder == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(u.limit)))
		if err != nil {
			return nil, err
		}
		u.decoder = d
	}
	out, err := u.decoder.DecodeAll(data, u.buffer[:0])
	if err != nil {
		return nil, fmt.Errorf("it cannot be unpacked: %w", err)
	}
	u.buffer = out
	return out, nil
}

func (u *messageUnpacker) close() {
	if u.decoder != nil {
		u.decoder.Close()
		u.decoder = nil
	}
}
