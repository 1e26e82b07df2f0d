//go:build readers

package tables_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/read"
	"entropipe/sinks/s3/s3test"
	"entropipe/sinks/tables"
)

// Law: what DuckDB, pyarrow, Polars and GeoPandas read from a bucket is what verify counts
// there, and what they read from a folder; the snippets of the page run. ENTROPIPE_PYTHON
// names an interpreter that has what .ci/readers/requirements.txt lists.
func TestABucketInPython(t *testing.T) {
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	const prefix = "lidar/all of it"
	server, folder := s3test.New(t), t.TempDir()
	local, err := sinks.OpenLocal(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	bucket := server.Open(t, prefix)
	fill(t, local)
	fill(t, bucket)
	report, err := read.Verify(t.Context(), bucket, read.VerifyOptions{})
	if err != nil || !report.OK {
		t.Fatal(err, report)
	}
	var names, rows []string
	for _, table := range report.Tables {
		if table.Rows > 0 {
			names, rows = append(names, table.Table), append(rows, fmt.Sprintf("%s=%d", table.Table, table.Rows))
		}
	}
	views := filepath.Join(t.TempDir(), "views.sql")
	if err := os.WriteFile(views, []byte(read.SQL(bucket.String(), names)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"../../.ci/readers/buckets.py", strings.TrimPrefix(server.URL, "http://"),
		s3test.Bucket + "/" + prefix, folder, views, "../../docs/s3.md"}, rows...)
	c := exec.Command(interpreter, args...)
	c.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+s3test.AccessKey, "AWS_SECRET_ACCESS_KEY="+s3test.SecretKey,
		"AWS_SESSION_TOKEN="+s3test.Token, "AWS_EC2_METADATA_DISABLED=true")
	said, err := c.CombinedOutput()
	t.Logf("%s", bytes.TrimSpace(said))
	if err != nil {
		t.Error(err)
	}
}

// fill commits batches of every table.
func fill(t *testing.T, store sinks.Store) {
	t.Helper()
	encoder, err := tables.New(tables.Config{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := sinks.Open(t.Context(), store, encoder, sinks.Config{})
	if err == nil {
		err = o.Base(t.Context(), "clouds", schemas.TopicID{}, nil)
	}
	for n := 0; n < 3 && err == nil; n++ {
		var pos schemas.Position
		if pos, err = o.Resume(t.Context(), "clouds", 0); err == nil {
			_, err = o.Commit(t.Context(), batches.Synthetic(batches.Spec{Topic: "clouds", Start: pos.Next, Records: 20,
				Frames: 2, Points: 30, Datasets: []string{"street", "yard"}, Seed: 1}))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
