package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stamp is what a release takes from version control.
type stamp struct {
	known  bool      // the sources have a commit
	commit string    // its hash
	time   time.Time // of the commit; 1980, where the times of zip begin, without one
}

// program is a built program.
type program struct {
	target string
	file   string
	info   *buildinfo.BuildInfo
}

// build makes the archives of all targets, and SHA256SUMS, in the folder out.
func build(root, out string, wanted []string, modified bool) error {
	for _, target := range wanted {
		if !slices.Contains(targets, target) {
			return fmt.Errorf("target %s: want some of %s", target, strings.Join(targets, ", "))
		}
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	switch entries, err := os.ReadDir(out); {
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty", out)
	}
	work, err := os.MkdirTemp("", "entropipe-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	from, err := stampOf(root, modified)
	if err != nil {
		return err
	}
	if from.known && !modified {
		// The commit alone, without files that version control ignores. The toolchain finds no
		// commit in a worktree, but in a clone it does.
		clone := filepath.Join(work, "src")
		if _, err := output(root, nil, "git", "clone", "-q", "--shared", "--no-checkout", root, clone); err != nil {
			return err
		}
		if _, err := output(clone, nil, "git", "checkout", "-q", "--detach", from.commit); err != nil {
			return err
		}
		root = clone
	}
	shared, version, err := commonFiles(root, work, from)
	if err != nil {
		return err
	}
	all, err := components(root, targets)
	if err != nil {
		return err
	}
	for _, target := range wanted {
		if err := pack(root, out, work, version, target, shared, all, from); err != nil {
			return err
		}
	}
	return writeSums(out)
}

// stampOf reads the commit of the sources. The error says that they differ from it.
func stampOf(root string, modified bool) (stamp, error) {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil { // sources from an archive
		return stamp{time: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}, nil
	}
	status, err := output(root, nil, "git", "status", "--porcelain")
	if err != nil {
		return stamp{}, err
	}
	if status != "" && !modified {
		return stamp{}, fmt.Errorf("the sources differ from their commit (-modified builds them):\n%s", status)
	}
	text, err := output(root, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return stamp{}, err
	}
	commit, at, _ := strings.Cut(strings.TrimSpace(text), " ")
	seconds, err := strconv.ParseInt(at, 10, 64)
	return stamp{true, commit, time.Unix(seconds, 0).UTC()}, err
}

// compile builds the program for a target.
func compile(root, work, target string, from stamp) (program, error) {
	p := program{target: target, file: filepath.Join(work, strings.ReplaceAll(target, "/", "_"))}
	if _, err := os.Stat(p.file); err != nil {
		fmt.Println("building", target)
		if _, err := output(root, environment(target), "go", "build", "-trimpath",
			"-buildvcs="+strconv.FormatBool(from.known), "-ldflags=-s -w -buildid=", "-o", p.file, "."); err != nil {
			return p, err
		}
	}
	var err error
	p.info, err = buildinfo.ReadFile(p.file)
	return p, err
}

// commonFiles returns the files that all archives have, by their place in one, and the
// version of the release. The program, built for this machine, prints them.
func commonFiles(root, work string, from stamp) (map[string]packed, string, error) {
	here, err := compile(root, work, runtime.GOOS+"/"+runtime.GOARCH, from)
	if err != nil {
		return nil, "", err
	}
	text, err := ask(work, here.file, "version", "--json")
	if err != nil {
		return nil, "", err
	}
	var built struct{ Version string }
	if err := json.Unmarshal([]byte(text), &built); err != nil {
		return nil, "", err
	}
	files := map[string]packed{}
	for place, words := range map[string][]string{
		"share/man/man1/entropipe.1":                         {"man"},
		"share/bash-completion/completions/entropipe":        {"completion", "bash"},
		"share/zsh/site-functions/_entropipe":                {"completion", "zsh"},
		"share/fish/vendor_completions.d/entropipe.fish":     {"completion", "fish"},
		"share/doc/entropipe/THIRD-PARTY-LICENSES":           {"version", "--licenses"},
		"share/doc/entropipe/examples/entropipe.yaml":        {"init", "-"},
		"share/doc/entropipe/examples/tokens.yaml":           {"init", "-", "--tokens"},
		"share/doc/entropipe/examples/all-keys.yaml":         {"run", "--print-config", "--commented"},
		"share/doc/entropipe/examples/entropipe.schema.json": {"validate", "--schema"},
	} {
		if text, err = ask(work, here.file, words...); err != nil {
			return nil, "", err
		}
		files[place] = packed{content: []byte(text)}
	}
	for place, name := range map[string]string{
		"share/doc/entropipe/LICENSE":          "LICENSE",
		"share/doc/entropipe/NOTICE":           "cmd/version/NOTICE",
		"lib/systemd/system/entropipe.service": "ops/release/entropipe.service",
		"lib/sysusers.d/entropipe.conf":        "ops/release/entropipe.conf",
	} {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, "", err
		}
		files[place] = packed{content: content}
	}
	return files, built.Version, nil
}

// ask runs the program without the variables of this environment, some of which would be
// its settings.
func ask(work, program string, args ...string) (string, error) {
	c := exec.Command(program, args...)
	c.Dir, c.Env = work, []string{"HOME=" + work}
	var stderr strings.Builder
	c.Stderr = &stderr
	text, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("entropipe %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(text), nil
}

// pack builds a target and writes its archive and its bill of materials.
func pack(root, out, work, version, target string, shared map[string]packed, all []component, from stamp) error {
	p, err := compile(root, work, target, from)
	if err != nil {
		return err
	}
	code, err := os.ReadFile(p.file)
	if err != nil {
		return err
	}
	linked, err := packages(root, target)
	if err != nil {
		return err
	}
	bill, err := billOf(p, sha256.Sum256(code), version, all, linked, from)
	if err != nil {
		return err
	}
	name := "entropipe_" + version + "_" + strings.ReplaceAll(target, "/", "_")
	files := map[string]packed{name + "/share/doc/entropipe/entropipe.cdx.json": {content: bill}}
	for place, file := range shared {
		if strings.HasPrefix(place, "lib/") && !strings.HasPrefix(target, "linux/") {
			continue // of systemd
		}
		files[name+"/"+place] = file
	}
	archive, suffix, write := name+"/bin/entropipe", ".tar.gz", writeTar
	if strings.HasPrefix(target, "windows/") {
		archive, suffix, write = archive+".exe", ".zip", writeZip
	}
	files[archive] = packed{content: code, program: true}
	return errors.Join(write(filepath.Join(out, name+suffix), files, from.time),
		os.WriteFile(filepath.Join(out, name+".cdx.json"), bill, 0o666))
}
