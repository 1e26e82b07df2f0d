// Package truth is the command truth: it serves the truth page, which the program holds.
package truth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"entropipe/cmd/command"
	"entropipe/docs/truth"
)

// Command is the command truth.
type Command struct {
	Listen string `default:"127.0.0.1:8422" placeholder:"HOST:PORT"`
	Print  bool
}

// patience bounds how long a request may take to arrive, and how long open ones may take
// to end after a signal.
const patience = 5 * time.Second

// Run serves the page until a signal, or prints it.
func (c *Command) Run(e *command.Env) error {
	if c.Print {
		_, err := e.Stdout.Write(truth.Page)
		return err
	}
	if err := command.CheckListenOn(c.Listen); err != nil {
		return err
	}
	at, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler(), ReadHeaderTimeout: patience}
	context.AfterFunc(e.Ctx, func() {
		rest, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = server.Shutdown(rest)
	})
	if _, err := fmt.Fprintf(e.Stdout, "http://%s/\n", at.Addr()); err != nil {
		return errors.Join(err, at.Close())
	}
	if err := server.Serve(at); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler answers with the page, and with nothing else. The page has no script and asks
// for nothing, and says so to the browser.
func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(truth.Page))
	})
	return mux
}
