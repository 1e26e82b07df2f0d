package top

import (
	"fmt"
	"math"
	"testing"
)

func TestTexts(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{safe("plain ü 日本"), "plain ü 日本"},
		{safe("\x1b[2J\a\n\u202e\u009b\xff\u200b"), `\x1b[2J\a\n\u202e\u009b\xff\u200b`},
		{safe("\ufffd"), "\ufffd"},
		{cut("日本語", 5), "日本…"}, {cut("日本語", 4), "日…"}, {cut("日本語", 6), "日本語"}, {cut("abc", 0), ""},
		{cut("e\u0301e\u0301e\u0301", 2), "e\u0301…"},
		{left("日本", 5), "日本 "}, {left("日本語", 4), "日… "}, {right("日", 4), "  日"},
		{number(0), "0"}, {number(.25), "0.25"}, {number(12), "12"}, {number(9.999), "10.0"}, {number(999.4), "999"},
		{number(999.6), "1.00 k"}, {number(123456), "123 k"}, {number(1e6), "1.00 M"}, {number(math.NaN()), "?"},
		{number(-1500), "-1.50 k"}, {number(1e30), "1000000000000 E"},
		{bytesText(12), "12 B"}, {bytesText(1.5e9), "1.50 GB"},
		{age(-5), "0.0 s"}, {age(9.96), "9 s"}, {age(119), "119 s"}, {age(7000), "116 min"}, {age(7260), "2 h 01 min"},
		{age(200000), "2 d 7 h"},
		{milliseconds(nil), "-"}, {milliseconds(pointer(999)), "999 ms"}, {milliseconds(pointer(1500)), "1.50 s"},
		{spark(nil, 3), "   "}, {spark([]float64{0, 0}, 3), " ▁▁"}, {spark([]float64{1, 2, 4}, 3), "▂▄█"},
		{spark([]float64{9, 1, 2, 4}, 2), "█▄"}, {spark([]float64{math.NaN(), -1, 8}, 3), "▁▁█"},
		{spark([]float64{1}, 0), ""},
		{spark([]float64{math.Inf(1), 1}, 2), "█▁"},
		{gauge(.5, 4), "██░░"}, {gauge(7, 2), "██"}, {gauge(-1, 2), "░░"}, {gauge(math.NaN(), 2), "░░"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct{ given, base, token string }{
		{"127.0.0.1:8421", "http://127.0.0.1:8421", ""},
		{":8421", "http://127.0.0.1:8421", ""},
		{"[::1]:8421", "http://[::1]:8421", ""},
		{"http://lidar1:8421/?token=abc", "http://lidar1:8421", "abc"},
		{"https://lidar1.example.com", "https://lidar1.example.com", ""},
		{"lidar1", "", ""}, {"./out", "", ""}, {"ftp://lidar1:1", "", ""}, {"http://", "", ""}, {"", "", ""},
		{"http://a:b@lidar1:8421", "", ""}, {"http://lidar1:8421/metrics", "", ""}, {"lidar1:99999", "", ""},
		{"lidar1:0", "", ""}, {"lidar1:8421/x", "", ""}, {"lidar1:http", "", ""}, {"a b:1", "", ""},
	} {
		base, token, err := address(c.given)
		if fmt.Sprint(base, token) != fmt.Sprint(c.base, c.token) || (err == nil) != (c.base != "") {
			t.Errorf("%q: %q, %q, %v", c.given, base, token, err)
		}
	}
}
