package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var made = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// release writes the archives of a release, as ops/release does, and returns their folder.
func release(t *testing.T, change func(files map[string]string)) string {
	t.Helper()
	dir := t.TempDir()
	for _, target := range []string{"linux_amd64", "linux_arm64", "darwin_arm64"} {
		files := map[string]string{"bin/entropipe": "program of " + target,
			"lib/systemd/system/entropipe.service":   "unit",
			"share/man/man1/entropipe.1":             "page",
			"share/doc/entropipe/entropipe.cdx.json": `{"bomFormat":"CycloneDX"}`,
			"share/doc/entropipe/LICENSE":            "Apache", "share/doc/entropipe/THIRD-PARTY-LICENSES": "MIT",
			"share/doc/entropipe/examples/entropipe.yaml": "topic: points"}
		if change != nil {
			change(files)
		}
		name := "entropipe_1.2.3_" + target
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		for place, content := range files {
			h := &tar.Header{Typeflag: tar.TypeReg, Name: name + "/" + place, Size: int64(len(content)), Mode: 0o644,
				ModTime: made, Uname: "root"}
			if place == "bin/entropipe" {
				h.Mode = 0o755
			}
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
			io.WriteString(w, content) // Close has the error
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		z.Close() // of a Buffer
		if err := os.WriteFile(filepath.Join(dir, name+".tar.gz"), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func built(t *testing.T, release string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.tar")
	if err := run([]string{"-release", release, "-out", out}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// readBack unpacks an OCI archive and checks every digest and size in it.
func readBack(t *testing.T, archive []byte) v1.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatalf("%v, %v", h, err)
		}
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(filepath.Join(dir, h.Name), 0o777)
		} else {
			var content []byte
			if content, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(filepath.Join(dir, h.Name), content, 0o666)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	return index
}

// contents returns the headers and bytes of an image's file system.
func contents(t *testing.T, image v1.Image) (map[string]*tar.Header, map[string]string) {
	t.Helper()
	headers, bytes := map[string]*tar.Header{}, map[string]string{}
	fs := mutate.Extract(image)
	defer fs.Close()
	for r := tar.NewReader(fs); ; {
		h, err := r.Next()
		if err == io.EOF {
			return headers, bytes
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		headers[h.Name], bytes[h.Name] = h, string(content)
	}
}

func TestImageOfEachPlatform(t *testing.T) {
	index := readBack(t, built(t, release(t, nil)))
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c := config.Config
		if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/bin/entropipe"}) ||
			!config.Created.Equal(made) || config.Architecture != m.Platform.Architecture ||
			c.Labels["org.opencontainers.image.version"] != "1.2.3" {
			t.Errorf("%s: config %+v", m.Platform, config)
		}
		headers, content := contents(t, image)
		if want := "program of linux_" + m.Platform.Architecture; content["usr/bin/entropipe"] != want ||
			headers["usr/bin/entropipe"].Mode != 0o755 {
			t.Errorf("%s: the program is %q", m.Platform, content["usr/bin/entropipe"])
		}
		if !strings.Contains(content["usr/share/doc/entropipe/entropipe.cdx.json"], "CycloneDX") {
			t.Errorf("%s: no bill of materials", m.Platform)
		}
		if h := headers["tmp"]; h == nil || h.Mode != 0o1777 {
			t.Errorf("%s: /tmp is %+v", m.Platform, h)
		}
		if roots := x509.NewCertPool(); !roots.AppendCertsFromPEM([]byte(content[certificates])) {
			t.Errorf("%s: no root certificates", m.Platform)
		}
		for name, h := range headers {
			if h.Uid != 0 || h.Gid != 0 || h.Mode&0o6022 != 0 && name != "tmp" || strings.HasPrefix(name, "lib/") ||
				strings.Contains(name, "man1") {
				t.Errorf("%s: %s of %d:%d, mode %o", m.Platform, name, h.Uid, h.Gid, h.Mode)
			}
		}
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("platforms %v", platforms)
	}
}

// Folder, time and the order of files in an archive do not matter; the program does.
func TestImageIsReproducible(t *testing.T) {
	first := built(t, release(t, nil))
	if !bytes.Equal(first, built(t, release(t, nil))) {
		t.Error("two images of one release differ")
	}
	other := release(t, func(files map[string]string) { files["bin/entropipe"] = "another" })
	if bytes.Equal(first, built(t, other)) {
		t.Error("images of two programs are equal")
	}
}

func TestFoldersThatAreNoRelease(t *testing.T) {
	for _, missing := range []string{"bin/entropipe", "share/doc/entropipe/entropipe.cdx.json"} {
		dir := release(t, func(files map[string]string) { delete(files, missing) })
		err := run([]string{"-release", dir, "-out", filepath.Join(dir, "image.tar")})
		if err == nil || !strings.Contains(err.Error(), filepath.Base(missing)) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
	if err := run([]string{"-release", t.TempDir(), "-out", "image.tar"}); err == nil {
		t.Error("an empty folder is taken for a release")
	}
}
