package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the one of deploy's manifests.
const user = "65532:65532"

// image makes the image of an archive: a layer of what seldom changes, and one of the release.
func (a *archive) image() (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, layer := range []struct {
		what  string
		files map[string]file
		made  time.Time
	}{
		{"user, certificates, /tmp", system(), time.Unix(0, 0).UTC()},
		{"entropipe " + a.version, a.files, a.made},
	} {
		var b bytes.Buffer
		if err := pack(&b, layer.files, layer.made); err != nil {
			return nil, err
		}
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(b.Bytes())), nil
		}, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{Layer: l, History: v1.History{CreatedBy: layer.what,
			Created: v1.Time{Time: layer.made}}})
		if err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", a.architecture, v1.Time{Time: a.made}
	config.Config = v1.Config{User: user, Entrypoint: []string{"/usr/bin/entropipe"}, WorkingDir: "/",
		Env:          []string{"PATH=/usr/bin", "SSL_CERT_FILE=/" + certificates},
		ExposedPorts: map[string]struct{}{"8421/tcp": {}},
		Labels: map[string]string{"org.opencontainers.image.title": "entropipe",
			"org.opencontainers.image.version": a.version, "org.opencontainers.image.licenses": "Apache-2.0"}}
	return mutate.ConfigFile(image, config)
}

const certificates = "etc/ssl/certs/ca-certificates.crt"

// system returns the files that programs expect of a system.
func system() map[string]file {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a constraint cannot be said in a file
			pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a Buffer has no errors
		}
	}
	return map[string]file{
		"etc/passwd": {[]byte("root:x:0:0::/:/nologin\nentropipe:x:65532:65532::/:/nologin\n"), 0o644},
		"etc/group":  {[]byte("root:x:0:\nentropipe:x:65532:\n"), 0o644},
		certificates: {roots.Bytes(), 0o644},
		"tmp/":       {mode: 0o1777},
	}
}

// pack writes a tar whose bytes depend on files and time alone: names are sorted, folders come
// before their files, all belongs to root. A name that ends with / is a folder.
func pack(w io.Writer, files map[string]file, at time.Time) error {
	all := maps.Clone(files)
	for name := range files {
		for dir := path.Dir(strings.TrimSuffix(name, "/")); dir != "."; dir = path.Dir(dir) {
			all[dir+"/"] = file{mode: 0o755}
		}
	}
	t := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: all[name].mode, Size: int64(len(all[name].content)),
			ModTime: at, Format: tar.FormatUSTAR}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(all[name].content); err != nil {
			return err
		}
	}
	return t.Close()
}
