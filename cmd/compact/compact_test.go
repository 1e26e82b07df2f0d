package compact

import (
	"strings"
	"testing"

	"entropipe/cmd/config/value"
)

// A compaction lies neither in its output nor around it, and is not the output itself.
func TestPlacesOfCompactions(t *testing.T) {
	for _, c := range []struct{ out, into, want string }{
		{"out", "out2", ""},
		{"out", "out-compacted", ""},
		{"a/out", "a/b/out2", ""},
		{"out", "out", "the output itself"},
		{"./out/", "out/../out", "the output itself"},
		{"out", "out/two", "within out"},
		{"a/b/out", "a", "a/b/out is within it"},
		{"out", "", "--into is missing"},
		{"s3://lake/out", "s3://lake/out2", ""},
		{"s3://lake/out", "out", ""},
		{"s3://lake/out", "s3://lake/out/", "the output itself"},
		{"s3://lake/out", "s3://lake/out/two", "within s3://lake/out"},
		{"s3://lake/a/out", "s3://lake/a", "s3://lake/a/out is within it"},
		{"out", "s3://", "--into"},
	} {
		cmd := Command{Out: c.out, Into: c.into, TargetBytes: value.Size(1 << 20), Poll: 1e9}
		err := cmd.Check()
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("compact %q --into %q: %v, want %q", c.out, c.into, err, c.want)
		}
	}
}
