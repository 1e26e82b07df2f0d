package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/float16"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/parquet-go/parquet-go"

	"entropipe/schemas/codec/codectest"
)

// writePackedPCD writes PCD files whose fields stand one after the other, packed with LZF.
func writePackedPCD(w *writer) error {
	return w.each(func(number int, c *codectest.Cloud) error {
		n := len(c.X)
		var plain []byte
		for _, column := range [][]float32{c.X, c.Y, c.Z, c.Intensity} {
			for _, v := range column {
				plain = binary.LittleEndian.AppendUint32(plain, math.Float32bits(v))
			}
		}
		packed := packLZF(plain)
		b := fmt.Appendf(nil, "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS x y z intensity\n"+
			"SIZE 4 4 4 4\nTYPE F F F F\nCOUNT 1 1 1 1\nWIDTH %d\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS %d\n"+
			"DATA binary_compressed\n", n, n)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(packed)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(plain)))
		return w.file(fmt.Sprintf("%d.pcd", number), append(b, packed...))
	})
}

// packLZF compresses with LZF: a table of the last place of three bytes, as liblzf has it.
func packLZF(src []byte) []byte {
	const (
		longest  = 264
		farthest = 1 << 13
		literals = 32
	)
	var last [1 << 14]int32 // place of the last three bytes of a hash, from 1
	var dst []byte
	begin := 0
	flush := func(end int) {
		for begin < end {
			n := min(end-begin, literals)
			dst = append(append(dst, byte(n-1)), src[begin:begin+n]...)
			begin += n
		}
	}
	for at := 0; at+2 < len(src); {
		word := uint32(src[at])<<16 | uint32(src[at+1])<<8 | uint32(src[at+2])
		slot := &last[word*2654435761>>18]
		from := int(*slot) - 1
		*slot = int32(at + 1)
		if from < 0 || at-from > farthest || !bytes.Equal(src[from:from+3], src[at:at+3]) {
			at++
			continue
		}
		length := 3
		for length < longest && at+length < len(src) && src[from+length] == src[at+length] {
			length++
		}
		flush(at)
		back, n := at-from-1, length-2
		if n < 7 {
			dst = append(dst, byte(n<<5|back>>8), byte(back))
		} else {
			dst = append(dst, byte(7<<5|back>>8), byte(n-7), byte(back))
		}
		at += length
		begin = at
	}
	flush(len(src))
	return dst
}

// writeLAS writes LAS 1.4 with points of format 6: 30 bytes, with a GPS time. The scale is a
// millimetre.
func writeLAS(w *writer) error {
	const header, record = 375, 30
	le := binary.LittleEndian
	return w.each(func(number int, c *codectest.Cloud) error {
		b := make([]byte, header, header+record*len(c.X))
		copy(b, "LASF")
		b[6] = 1 // adjusted standard GPS time
		b[24], b[25] = 1, 4
		le.PutUint16(b[94:], header)
		le.PutUint32(b[96:], header)
		b[104] = 6
		le.PutUint16(b[105:], record)
		for axis := range 3 {
			le.PutUint64(b[131+8*axis:], math.Float64bits(0.001))
		}
		le.PutUint64(b[247:], uint64(len(c.X)))
		le.PutUint64(b[255:], uint64(len(c.X))) // points of the first return
		seconds := 300e6 + float64(number)/10
		for i := range c.X {
			for _, v := range [...]float32{c.X[i], c.Y[i], c.Z[i]} {
				b = le.AppendUint32(b, uint32(int32(math.Round(float64(v)*1000))))
			}
			b = le.AppendUint16(b, uint16(c.Intensity[i]*65535))
			b = append(b, 1|1<<4, 0, 2, 0, 0, 0, 0, 0) // the only return; class ground
			b = le.AppendUint64(b, math.Float64bits(seconds+float64(i)*8e-7))
		}
		return w.file(fmt.Sprintf("%d.las", number), b)
	})
}

// writeCSV writes a table of text a frame, in whole millimetres and hundredths.
func writeCSV(w *writer) error {
	return w.each(func(number int, c *codectest.Cloud) error {
		b := []byte("x,y,z,intensity\n")
		for i := range c.X {
			for k, v := range [...]float32{c.X[i], c.Y[i], c.Z[i], c.Intensity[i]} {
				if k > 0 {
					b = append(b, ',')
				}
				b = strconv.AppendFloat(b, float64(v), 'f', -1, 32)
			}
			b = append(b, '\n')
		}
		return w.file(fmt.Sprintf("%d.csv", number), b)
	})
}

// point is a row of a Parquet file.
type point struct {
	X         float32 `parquet:"x,zstd"`
	Y         float32 `parquet:"y,zstd"`
	Z         float32 `parquet:"z,zstd"`
	Intensity float32 `parquet:"intensity,zstd"`
}

func writeParquet(w *writer) error {
	return w.each(func(number int, c *codectest.Cloud) error {
		rows := make([]point, len(c.X))
		for i := range rows {
			rows[i] = point{c.X[i], c.Y[i], c.Z[i], c.Intensity[i]}
		}
		return w.stream(fmt.Sprintf("%d.parquet", number),
			func(out io.Writer) error { return parquet.Write(out, rows) })
	})
}

// writeFeather writes the sweeps of a log of Argoverse 2.
func writeFeather(w *writer) error {
	half, byteType, nsType := arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Int32
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: half}, {Name: "y", Type: half}, {Name: "z", Type: half},
		{Name: "intensity", Type: byteType}, {Name: "laser_number", Type: byteType}, {Name: "offset_ns", Type: nsType}},
		nil)
	return w.each(func(number int, c *codectest.Cloud) error {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		defer b.Release()
		for i := range c.X {
			for k, v := range [...]float32{c.X[i], c.Y[i], c.Z[i]} {
				b.Field(k).(*array.Float16Builder).Append(float16.New(v))
			}
			b.Field(3).(*array.Uint8Builder).Append(uint8(255 * c.Intensity[i]))
			b.Field(4).(*array.Uint8Builder).Append(uint8(i % 64))
			b.Field(5).(*array.Int32Builder).Append(int32(i * 800))
		}
		file, err := os.Create(filepath.Join(w.dir, fmt.Sprintf("%d.feather", stampNs+number*frameNs)))
		if err != nil {
			return err
		}
		defer file.Close() // the writer below has closed it, unless it fails
		out, err := ipc.NewFileWriter(file, ipc.WithSchema(schema), ipc.WithLZ4())
		if err != nil {
			return err
		}
		record := b.NewRecord()
		defer record.Release()
		if err := out.Write(record); err != nil {
			return err
		}
		return out.Close()
	})
}
