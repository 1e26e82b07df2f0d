package s3test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"entropipe/ingest/bucket"
)

// Reach says how the server is reached, by a client whose retries wait less than usual.
func (s *Server) Reach() bucket.Config {
	return bucket.Config{Endpoint: s.URL, Wait: time.Millisecond, Provider: &credentials.Static{
		Value: credentials.Value{AccessKeyID: AccessKey, SecretAccessKey: SecretKey, SessionToken: Token,
			SignerType: credentials.SignatureV4}}}
}

// Upload stores the files of a folder, or one file, below a key with their absolute paths, and
// returns the address of the folder or file.
func (s *Server) Upload(t testing.TB, path string) (address string) {
	t.Helper()
	err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err == nil {
			s.Put(t, "copy"+filepath.ToSlash(name), string(data), nil)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bucket.Scheme + Bucket + "/copy" + filepath.ToSlash(path)
}
