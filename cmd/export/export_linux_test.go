package export

import (
	"bytes"
	"os"
	"testing"

	"entropipe/cmd/terminaltest"
)

// What is binary does not go to a terminal; text does, and a file may. A device that
// is no terminal takes anything.
func TestExportToATerminal(t *testing.T) {
	_, there := terminaltest.Open(t, 80)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, c := range []struct {
		cmd     Command
		refused bool
	}{
		{Command{As: "png"}, true}, {Command{As: "ply", File: "-"}, true}, {Command{As: "ply", ASCII: true}, false},
		{Command{As: "svg"}, false}, {Command{As: "geojson"}, false}, {Command{File: "a.PNG"}, false},
	} {
		c.cmd.Width = 300
		if err := c.cmd.check(there); (err != nil) != c.refused {
			t.Errorf("%+v: %v", c.cmd, err)
		}
		if err := c.cmd.check(&bytes.Buffer{}); err != nil {
			t.Errorf("%+v to a pipe: %v", c.cmd, err)
		}
		if err := c.cmd.check(null); err != nil {
			t.Errorf("%+v to %s: %v", c.cmd, os.DevNull, err)
		}
	}
}
