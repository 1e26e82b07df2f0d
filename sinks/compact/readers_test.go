//go:build readers || spark

package compact

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/read"
	"entropipe/sinks/s3/s3test"
)

// mustBeRead runs the text of a list in a reader, which must count the rows that verify counts.
func mustBeRead(t *testing.T, format string, out, with sinks.Reader, roots read.Roots) {
	t.Helper()
	list, err := read.ListFiles(t.Context(), out, with)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte(list.Text(format, roots)), 0o600); err != nil {
		t.Fatal(err)
	}
	mustCount(t, out, format, file)
}

// mustCount has readers count the rows of each table, which must be those that verify counts.
// ENTROPIPE_PYTHON names an interpreter that has what .ci/readers/requirements.txt lists.
func mustCount(t *testing.T, out sinks.Reader, kind, file string) {
	t.Helper()
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	args := []string{"../../.ci/readers/files.py", kind, file}
	for _, table := range mustVerify(t, out).Tables {
		args = append(args, fmt.Sprintf("%s=%d", table.Table, table.Rows))
	}
	c := exec.Command(interpreter, args...)
	c.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+s3test.AccessKey, "AWS_SECRET_ACCESS_KEY="+s3test.SecretKey,
		"AWS_SESSION_TOKEN="+s3test.Token, "AWS_EC2_METADATA_DISABLED=true")
	said, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", kind, err, said)
		return
	}
	t.Logf("%s", said)
}

// grow commits to an output, with clouds of float32 and of float64.
func grow(t *testing.T, store sinks.Store, commits int) {
	t.Helper()
	w := newWriter(t, store, sinks.Content{"ops": "hull2d"})
	for i := range commits {
		w.commit(batches.Spec{Partition: int32(i % 2), Records: 5, Frames: 2, Points: 6, Points64: i%3 == 1,
			Datasets: []string{"a b", "2011"}, Seed: uint64(i)})
	}
}

// partly compacts an output into another one, and grows it behind the end of the compaction.
func partly(t *testing.T, out, with sinks.Store) {
	t.Helper()
	grow(t, out, 4)
	compacted(t, out, with, Config{})
	grow(t, out, 5)
}

// localPair returns stores in folders, one with a name that globs and quotes know, and their roots.
func localPair(t *testing.T) (out, with sinks.Store, roots read.Roots) {
	t.Helper()
	dir := t.TempDir()
	roots = read.Roots{Out: filepath.Join(dir, "env=test", "it's [all] {of} it*?"), With: filepath.Join(dir, "two")}
	open := func(dir string) sinks.Store {
		store, err := sinks.OpenLocal(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return store
	}
	return open(roots.Out), open(roots.With), roots
}
