package tables

import (
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/compress"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"
)

// compression is shared by all writers: it holds pools.
var compression = &parquetzstd.Codec{Level: parquetzstd.SpeedFastest}

// floatCompression compresses pages of floats. It differs from compression in that bytes
// that repeat nothing get a Huffman code all the same: byte planes of floats are seldom
// even. Without it intensities of 100 steps take three bytes each, with it two.
type floatCompression struct{ compress.Codec }

var literals = sync.Pool{New: func() any {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true), zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		panic("tables: zstd refuses its own options: " + err.Error())
	}
	return w
}}

// Encode writes src as a frame of zstd. It may be called from several goroutines.
func (floatCompression) Encode(dst, src []byte) ([]byte, error) {
	w := literals.Get().(*zstd.Encoder)
	defer literals.Put(w)
	return w.EncodeAll(src, dst[:0]), nil
}
