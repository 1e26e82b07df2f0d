package codec

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	las := append([]byte("LASF"), make([]byte, 200)...)
	laz := append([]byte(nil), las...)
	laz[104] = 1 | 0x80
	record := binary.LittleEndian.AppendUint64(nil, 1234)
	sum := crc32.Checksum(record, crc32.MakeTable(crc32.Castagnoli))
	record = binary.LittleEndian.AppendUint32(record, (sum>>15|sum<<17)+0xa282ead8)
	for _, test := range []struct{ head, want string }{
		{"", ""},
		{"D", ""},
		{"DRACO\x02\x02", "a Draco file"},
		{string(las), "a LAS file"},
		{string(laz), "a LAZ file"},
		{"LASF", "a LAS file"},
		{"ply\nformat ascii 1.0\n", "a PLY file"},
		{"ply\r\nformat ascii 1.0\r\n", "a PLY file"},
		{"plywood", ""},
		{"# .PCD v0.7 - Point Cloud Data file format\n", "a PCD file"},
		{"ASTM-E57\x01", "an E57 file"},
		{"#ROSBAG V2.0\n", "a ROS 1 bag"},
		{"SQLite format 3\x00\x10", "an SQLite database"},
		{"\x89MCAP0\r\n\x01", "an MCAP file"},
		{"PAR1\x15", "a Parquet file"},
		{"ARROW1\x00\x00", "an Arrow IPC file"},
		{"\x1f\x8b\x08", "a gzip file"},
		{"\x28\xb5\x2f\xfd", "a Zstandard file"},
		{"PK\x03\x04", "a ZIP archive"},
		{"\x89HDF\r\n\x1a\n", "an HDF5 file"},
		{"\x89PNG\r\n\x1a\n", "a PNG picture"},
		{"\xff\xd8\xff\xe0", "a JPEG picture"},
		{"%PDF-1.7", "a PDF document"},
		{"\xd4\xc3\xb2\xa1\x02\x00", "a pcap capture"},
		{"\x0a\x0d\x0d\x0a", "a pcapng capture"},
		{"glTF\x02", "a binary glTF file"},
		{"OFF\n8 6 0\n", "an OFF file"},
		{"\x04\x00\x00\x00\x10\x00\x00\x00OSF$", "an Ouster OSF file"},
		{"\x93NUMPY\x01", "a NumPy file"},
		{string(record), "a TFRecord file"},
		{string(record[:11]), ""},
		{"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"},
		{"1.5 2.5 3.5\n", ""},
	} {
		if got := Name([]byte(test.head)); got != test.want {
			t.Errorf("Name(%.20q) = %q, want %q", test.head, got, test.want)
		}
	}
}

// No magic hides another one, and no two formats that follow each other have the same.
func TestMagicsAreReached(t *testing.T) {
	for i, m := range magics {
		if got := Name([]byte(m.magic)); got != m.name {
			t.Errorf("magic %d, %q: Name says %q, want %q", i, m.magic, got, m.name)
		}
	}
}

func TestNotMagic(t *testing.T) {
	for _, test := range []struct{ value, reason, want string }{
		{"", Empty, "there is no byte"},
		{"DRACO\x02\x02", WrongMagic, "this is a Draco file, not a PCD file"},
		{"abc", WrongMagic, `this is no PCD file: it begins with "abc"`},
	} {
		err := NotMagic("PCD", []byte(test.value))
		if err.Reason != test.reason || !strings.Contains(err.Detail, test.want) || err.At != 0 {
			t.Errorf("%q: %+v, want reason %s and detail with %q", test.value, err, test.reason, test.want)
		}
	}
}
