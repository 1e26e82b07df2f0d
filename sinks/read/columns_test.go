package read

import (
	"bytes"
	"testing"

	"entropipe/schemas/codec/parquetfile"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/tables"
)

// A Parquet file, of ours or not, is described or refused, without a panic.
func FuzzOpenParquet(f *testing.F) {
	var out bytes.Buffer
	b := batches.Synthetic(batches.Spec{Topic: "points", Records: 8, Frames: 2, Points: 4})
	e, err := tables.New(tables.Config{})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := e.Encode(&out, e.Plan(b, 0)[0], b); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Add([]byte("PAR1PAR1"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := parquetfile.Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		columnRange(file, "offset")
		if file.NumRows() < 1e6 {
			rowKeys(nil, file, tables.Frames, 0)
		}
	})
}
