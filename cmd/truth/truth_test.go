package truth

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"entropipe/cmd/command"
	"entropipe/docs/truth"
)

// The page is served until the context ends; other paths are not there.
func TestPageIsServed(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- (&Command{Listen: "127.0.0.1:0"}).Run(&command.Env{Ctx: ctx, Stdout: write,
			Log: slog.New(slog.DiscardHandler)})
	}()
	line := make([]byte, 200)
	n, err := read.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(string(line[:n]))
	for path, want := range map[string]int{"": http.StatusOK, "other": http.StatusNotFound} {
		answer, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != want || want == http.StatusOK && !bytes.Equal(body, truth.Page) {
			t.Errorf("%s%s: %s, %d bytes, %v", address, path, answer.Status, len(body), err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("after the end: %v", err)
	}
}

// --print writes the page; an address that is none is a mistake of the user.
func TestPageIsPrinted(t *testing.T) {
	var out bytes.Buffer
	if err := (&Command{Print: true}).Run(&command.Env{Ctx: t.Context(), Stdout: &out}); err != nil ||
		!bytes.Equal(out.Bytes(), truth.Page) {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
	if err := (&Command{Listen: "nowhere"}).Run(&command.Env{Ctx: t.Context(), Stdout: &out}); err == nil {
		t.Error("an address without a port is served")
	}
}
