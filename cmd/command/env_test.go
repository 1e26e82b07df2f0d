package command

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"entropipe/cmd/config/value"
)

// Logs hide what URLs hold, whatever their form.
func TestLogsHideUsersOfURLs(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var b bytes.Buffer
		log := NewLogger(&b, "info", format)
		log.Info("a", "url", "kafka://ann:hunter2@kafka1", "error",
			fmt.Errorf("open s3://ann:hunter2@b: %w", os.ErrNotExist), "password", value.Secret("hunter2"), "took",
			time.Second, "n", 3)
		if got := b.String(); strings.Contains(got, "hunter2") || !strings.Contains(got, "kafka://(hidden)@kafka1") ||
			!strings.Contains(got, "file does not exist") {
			t.Errorf("%s: %s", format, got)
		}
	}
	if got := fmt.Sprintf("%v %s %q %#v %+v", value.Secret("hunter2"), value.Secret("hunter2"), value.Secret("hunter2"),
		value.Secret("hunter2"), struct{ S value.Secret }{"hunter2"}); strings.Contains(got, "hunter2") {
		t.Error(got)
	}
}
