package codec

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// magics are the first bytes of the formats that Name knows, longer ones of one begin first.
var magics = []struct{ magic, name string }{
	{"DRACO", "a Draco file"},
	{"LASF", "a LAS file"},
	{"ply\n", "a PLY file"},
	{"ply\r", "a PLY file"},
	{"# .PCD", "a PCD file"},
	{"ASTM-E57", "an E57 file"},
	{"#ROSBAG V", "a ROS 1 bag"},
	{"SQLite format 3\x00", "an SQLite database"},
	{"\x89MCAP0\r\n", "an MCAP file"},
	{"PAR1", "a Parquet file"},
	{"PARE", "an encrypted Parquet file"},
	{"ARROW1", "an Arrow IPC file"},
	{"FEA1", "a Feather V1 file"},
	{"\xff\xff\xff\xff", "an Arrow IPC stream"},
	{"\x1f\x8b", "a gzip file"},
	{"\x28\xb5\x2f\xfd", "a Zstandard file"},
	{"\x04\x22\x4d\x18", "an LZ4 file"},
	{"\xfd7zXZ\x00", "an xz file"},
	{"BZh", "a bzip2 file"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive"},
	{"PK\x03\x04", "a ZIP archive"},
	{"PK\x05\x06", "an empty ZIP archive"},
	{"\x89HDF\r\n\x1a\n", "an HDF5 file"},
	{"\x93NUMPY", "a NumPy file"},
	{"MATLAB 5.0 MAT-file", "a MATLAB file"},
	{"\xd4\xc3\xb2\xa1", "a pcap capture"},
	{"\xa1\xb2\xc3\xd4", "a pcap capture"},
	{"\x4d\x3c\xb2\xa1", "a pcap capture"},
	{"\xa1\xb2\x3c\x4d", "a pcap capture"},
	{"\x0a\x0d\x0d\x0a", "a pcapng capture"},
	{"glTF", "a binary glTF file"},
	{"OFF\n", "an OFF file"},
	{"OFF\r", "an OFF file"},
	{"OFF ", "an OFF file"},
	{"COFF\n", "an OFF file"},
	{"# vtk DataFile", "a VTK file"},
	{"RRF2", "a Rerun recording"},
	{"RRIO", "a Rerun recording"},
	{"\x89PNG\r\n\x1a\n", "a PNG picture"},
	{"\xff\xd8\xff", "a JPEG picture"},
	{"GIF8", "a GIF picture"},
	{"II*\x00", "a TIFF picture"},
	{"MM\x00*", "a TIFF picture"},
	{"%PDF-", "a PDF document"},
	{"\x7fELF", "an ELF program"},
	{"version https://git-lfs.github.com/", "a Git LFS pointer"},
	{"<!DOCTYPE", "an HTML page"},
	{"<!doctype", "an HTML page"},
	{"<html", "an HTML page"},
	{"<?xml", "an XML document"},
}

// castagnoli is the polynomial of the checksums of TFRecord.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Name returns the name of the format that begins with head, with its article: "a Draco
// file". Name returns "" for a format without magic, such as KITTI's .bin, and for unknown
// bytes. 128 bytes of head are enough for every name.
func Name(head []byte) string {
	switch {
	case len(head) > 104 && bytes.HasPrefix(head, []byte("LASF")) && head[104]&0xc0 != 0:
		return "a LAZ file"
	case len(head) >= 12 && string(head[8:12]) == "OSF$":
		return "an Ouster OSF file"
	case len(head) >= 12 && bytes.HasPrefix(head, []byte("RIFF")):
		return "a RIFF file"
	case isTFRecord(head):
		return "a TFRecord file"
	}
	for i := range magics {
		if bytes.HasPrefix(head, []byte(magics[i].magic)) {
			return magics[i].name
		}
	}
	return ""
}

// isTFRecord reports whether head begins with a length and its masked checksum.
func isTFRecord(head []byte) bool {
	if len(head) < 12 {
		return false
	}
	sum := crc32.Checksum(head[:8], castagnoli)
	return binary.LittleEndian.Uint32(head[8:]) == (sum>>15|sum<<17)+0xa282ead8
}

// NotMagic returns the Error for bytes without the magic of format: it names the format of
// the bytes if Name knows it. A value without bytes is Empty.
func NotMagic(format string, value []byte) *Error {
	if len(value) == 0 {
		return Errorf(Empty, 0, "there is no byte: this is no %s file", format)
	}
	if name := Name(value); name != "" {
		return Errorf(WrongMagic, 0, "this is %s, not a %s file", name, format)
	}
	return Errorf(WrongMagic, 0, "this is no %s file: it begins with %.16q", format, value[:min(len(value), 16)])
}
