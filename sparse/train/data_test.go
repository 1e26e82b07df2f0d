package train

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
)

// testData returns a path below the folder of real data, or skips the test.
func testData(t testing.TB, parts ...string) string {
	t.Helper()
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	path := filepath.Join(append([]string{root}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not there: set ENTROPIPE_TESTDATA to the folder of real data", path)
	}
	return path
}

func crc(data []byte) []byte { return binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(data)) }
