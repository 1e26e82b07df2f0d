// Command release makes the files of a release: for each platform an archive with the
// program, its manual page, completions, systemd unit, licences and a bill of materials,
// and SHA256SUMS of all. It runs in the sources of entropipe:
//
//	go run ./ops/release -out DIR                        # every platform
//	go run ./ops/release -out DIR -targets linux/amd64   # some
//	go run ./ops/release -notices cmd/version            # the embedded licences
//
// Files depend on the commit and the Go toolchain alone: folder, time, user and machine do
// not matter. A tree that differs from its commit is refused without -modified.
//
// A target is a platform, OS/ARCH. A stamp is what a release takes from version control:
// commit and time. A component is a module that is linked into the program, or a file of
// others that stands in the sources. The bill of materials (SBOM) lists components with
// versions, licences and hashes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

// targets are the platforms of a release. On windows the command run, which needs the hard
// links and renames of POSIX, is refused by the program itself.
var targets = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

func main() {
	if err := release(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release runs the command line.
func release(args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	out := flags.String("out", "", "folder of the release, which must be empty or absent")
	notices := flags.String("notices", "", "folder for NOTICE and licenses.gz; no release is made")
	wanted := flags.String("targets", strings.Join(targets, ","), "platforms")
	modified := flags.Bool("modified", false, "build also a tree that differs from its commit")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0 || (*out == "") == (*notices == ""):
		return errors.New("want -out DIR or -notices DIR")
	case *notices != "":
		return writeNotices(root, *notices)
	}
	return build(root, *out, strings.Split(*wanted, ","), *modified)
}
