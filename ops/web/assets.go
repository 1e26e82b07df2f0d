package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

// Assets are the files of the page, below folder assets.
//
//go:embed assets
var Assets embed.FS

// asset is one file of the page.
type asset struct {
	kind, etag string
	plain      []byte
	packed     func() []byte // gzip
}

// assets serves the files of the page from memory: index.html as /, the others below /assets/.
type assets map[string]*asset

func newAssets() assets {
	all := assets{}
	fs.WalkDir(Assets, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		plain, err := Assets.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(plain)
		all["/"+name] = &asset{kind: typeOf(name), etag: `"` + hex.EncodeToString(sum[:12]) + `"`, plain: plain,
			packed: sync.OnceValue(func() []byte { return pack(plain) })}
		return nil
	})
	all["/"] = all["/assets/index.html"]
	return all
}

// typeOf returns the content type of a file of the page, whatever the machine's own table says.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".LICENSE", ".txt":
		return "text/plain; charset=utf-8"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func pack(plain []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	w.Write(plain)
	w.Close()
	return b.Bytes()
}

func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := a[r.URL.Path]
	if f == nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.etag)
	h.Set("Cache-Control", "no-cache") // ask each time: the next process may have another page
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == f.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && len(f.packed()) < len(body) {
		h.Set("Content-Encoding", "gzip")
		body = f.packed()
	}
	w.Write(body)
}
