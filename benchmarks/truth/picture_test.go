package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A picture is well-formed, has every point of both frames, is a file beside the
// page, and is linked there.
func TestPictureIsLinked(t *testing.T) {
	dir := t.TempDir()
	if err := picture.repeat(t.Context(), dir, &cli{Quick: true, Shown: t.Output()},
		time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "picture-1.svg"))
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(string(svg), "h0"); n < 2*60 {
		t.Errorf("%d points drawn, want at least two frames of 60", n)
	}
	page, err := os.ReadFile(filepath.Join(dir, "picture.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "](picture-1.svg)") {
		t.Errorf("no link on the page:\n%s", page)
	}
}
