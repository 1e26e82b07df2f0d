// Command image makes a container image of a release: an OCI archive, one file, with an image
// for each Linux platform of the release.
//
//	go run ./ops/release -out dist
//	go run -C deploy/image . -release ../../dist -out ../../dist/entropipe.oci.tar
//	podman load -i dist/entropipe.oci.tar        # also: docker load; skopeo copy oci-archive:…
//
// An image has no base. It holds the program, its bill of materials (SBOM) and licences, the
// root certificates of Mozilla for buckets and brokers with TLS, a user without privileges, and
// an empty /tmp. Its bytes depend on the release and on this module alone: two archives of
// one release are equal. It is a module of its own, so that the library of images is no
// dependency of the program.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	release := flags.String("release", "", "folder with the archives of a release")
	out := flags.String("out", "", "OCI archive to write")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if *release == "" || *out == "" || flags.NArg() > 0 {
		return errors.New("want -release DIR -out FILE")
	}
	found, err := archives(*release)
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, a := range found {
		image, err := a.image()
		if err != nil {
			return fmt.Errorf("%s: %w", a.file, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform:    &v1.Platform{OS: "linux", Architecture: a.architecture},
			Annotations: map[string]string{"org.opencontainers.image.ref.name": a.version}}})
	}
	return write(*out, index)
}

// archive is an archive of a release for Linux.
type archive struct {
	file                  string
	version, architecture string
	made                  time.Time // time of the commit
	files                 map[string]file
}

// file is a file of an image.
type file struct {
	content []byte
	mode    int64
}

// archives reads the archives for Linux of a release, by name.
func archives(release string) ([]*archive, error) {
	names, err := filepath.Glob(filepath.Join(release, "entropipe_*_linux_*.tar.gz"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no entropipe_VERSION_linux_ARCH.tar.gz", release)
	}
	var found []*archive
	for _, name := range names {
		a := &archive{file: name, files: map[string]file{}}
		words := strings.Split(strings.TrimSuffix(filepath.Base(name), ".tar.gz"), "_")
		if len(words) != 4 {
			return nil, fmt.Errorf("%s: want entropipe_VERSION_linux_ARCH.tar.gz", name)
		}
		a.version, a.architecture = words[1], words[3]
		if err := a.read(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found = append(found, a)
	}
	return found, nil
}

// places are the folders of an archive that an image has, and where.
var places = map[string]string{"bin/": "usr/bin/", "share/doc/entropipe/": "usr/share/doc/entropipe/"}

// needed are files without which an archive is no release.
var needed = []string{"usr/bin/entropipe", "usr/share/doc/entropipe/entropipe.cdx.json",
	"usr/share/doc/entropipe/LICENSE", "usr/share/doc/entropipe/THIRD-PARTY-LICENSES"}

// read takes the files for the image from the archive.
func (a *archive) read() error {
	f, err := os.Open(a.file)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		_, inside, _ := strings.Cut(path.Clean(h.Name), "/")
		for from, to := range places {
			rest, ok := strings.CutPrefix(inside, from)
			if !ok || h.Typeflag != tar.TypeReg {
				continue
			}
			content, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			a.files[to+rest] = file{content, h.Mode & 0o755}
			a.made = h.ModTime.UTC()
		}
	}
	for _, name := range needed {
		if len(a.files[name].content) == 0 {
			return fmt.Errorf("it has no %s", name)
		}
	}
	return nil
}

// write writes an index as an OCI archive: a tar of an OCI layout, names sorted, all of one
// time.
func write(out string, index v1.ImageIndex) error {
	dir, err := os.MkdirTemp("", "entropipe-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	files := map[string]file{}
	err = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		inside, err2 := filepath.Rel(dir, name)
		files[filepath.ToSlash(inside)] = file{content, 0o644}
		return errors.Join(err, err2)
	})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := pack(&b, files, time.Unix(0, 0).UTC()); err != nil {
		return err
	}
	return os.WriteFile(out, b.Bytes(), 0o666)
}
