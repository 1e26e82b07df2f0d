package command

import (
	"testing"
	"testing/synctest"
	"time"
)

// Law: the time that is left is what remains at the speed since the start of this
// run, and nothing is said where it is not known.
func TestTimeLeft(t *testing.T) {
	for _, c := range []struct {
		begin, done, total int64
		after              time.Duration
		want               string
	}{
		{0, 10, 100, 10 * time.Second, ", 1m30s left"},
		{50, 60, 100, 10 * time.Second, ", 40s left"}, // total of a resumed training
		{0, 50, 100, 59 * time.Second, ", 59s left"},
		{0, 50, 100, 184 * time.Second, ", 3m left"},
		{0, 1, 121, time.Minute, ", 2h0m left"},
		{0, 1, 61, 65 * time.Second, ", 1h5m left"},
		{0, 0, 100, time.Minute, ""},
		{7, 7, 100, time.Minute, ""},
		{0, 100, 100, time.Minute, ""},
		{0, 101, 100, time.Minute, ""},
		{0, 10, 0, time.Minute, ""},
		{0, 1, 1 << 62, time.Hour, ""},
		{0, 10, 100, time.Millisecond, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			done := c.begin
			left := newTimeLeft(func() (int64, string) { return done, "" }, c.total)
			time.Sleep(c.after)
			if got := left.Text(c.done); got != c.want {
				t.Errorf("%+v: %q", c, got)
			}
		})
	}
}

// Law: an address to serve on has a port that there can be.
func TestAddressesToServeOn(t *testing.T) {
	for address, want := range map[string]bool{"off": true, "127.0.0.1:0": true, ":8421": true, "[::1]:65535": true,
		"localhost:http":  true,
		"127.0.0.1:65536": false, "127.0.0.1:99999999999999999999": false, "8421": false, "": false,
		"127.0.0.1": false} {
		if err := CheckListen(address); (err == nil) != want {
			t.Errorf("--listen %s: %v", address, err)
		}
	}
}
