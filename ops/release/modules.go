package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// component is third-party software within the program.
type component struct {
	Name     string // path of the module, or name of the vendored file
	Version  string // "" if it is unknown
	Module   bool
	Licences []string // identifiers of SPDX, sorted
	Notice   string   // text of its NOTICE files
	Texts    []text
}

// text is a licence file of a component.
type text struct{ name, content string }

// listed is what go list says about a package.
type listed struct {
	ImportPath string
	Dir        string
	Standard   bool
	Imports    []string
	Module     *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path string }
	}
}

// moduleRoot returns the folder of the main module.
func moduleRoot() (string, error) {
	out, err := output("", nil, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}")
	if err != nil {
		return "", err
	}
	name, dir, _ := strings.Cut(strings.TrimSpace(out), " ")
	if name != "entropipe" {
		return "", fmt.Errorf("the module here is %s, not entropipe", name)
	}
	return dir, nil
}

// packages returns the packages that are linked into the program on a platform.
func packages(root, target string) ([]listed, error) {
	out, err := output(root, environment(target), "go", "list", "-deps",
		"-json=ImportPath,Dir,Standard,Imports,Module", ".")
	if err != nil {
		return nil, err
	}
	var found []listed
	for decoder := json.NewDecoder(strings.NewReader(out)); ; {
		var p listed
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		}
		if p.Module != nil && p.Module.Replace != nil {
			return nil, fmt.Errorf("module %s is replaced: a release cannot name its version", p.Module.Path)
		}
		found = append(found, p)
	}
}

// environment returns the variables that build for a platform: the lowest level of its
// processors, since the program finds out at run time what a processor can do.
func environment(target string) []string {
	system, processor, _ := strings.Cut(target, "/")
	return []string{"GOOS=" + system, "GOARCH=" + processor, "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT=", "GOFLAGS=-trimpath"}
}

// output runs a command in a folder with further variables and returns its stdout. The
// error has what it wrote to stderr.
func output(dir string, env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// components returns what the programs of all targets contain, by name. The error names
// every component without a licence that may be distributed.
func components(root string, targets []string) ([]component, error) {
	folders := map[string]map[string]bool{} // of linked packages, by module
	modules := map[string]listed{}
	for _, target := range targets {
		found, err := packages(root, target)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			if p.Standard || p.Module == nil || p.Module.Main {
				continue
			}
			if folders[p.Module.Path] == nil {
				folders[p.Module.Path] = map[string]bool{}
			}
			folders[p.Module.Path][p.Dir], modules[p.Module.Path] = true, p
		}
	}
	all, err := vendored(root)
	if err != nil {
		return nil, err
	}
	for path, p := range modules {
		c := component{Name: path, Version: p.Module.Version, Module: true}
		if c.Texts, err = licenceTexts(p.Module.Dir, slices.Sorted(maps.Keys(folders[path]))); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b component) int { return cmp.Compare(a.Name, b.Name) })
	var faults []error
	for i := range all {
		faults = append(faults, all[i].classify())
	}
	return all, errors.Join(faults...)
}

// licenceName matches names of files that hold licences or notices.
var licenceName = regexp.MustCompile(`(?i)^(licen[sc]e|copying|unlicense|notice|patents)([-.].*)?$`)

// licenceTexts reads the licences in the folder of a module, and in those between it and
// the linked packages.
func licenceTexts(module string, packages []string) ([]text, error) {
	var texts []text
	seen := map[string]bool{}
	for _, folder := range append([]string{module}, packages...) {
		var chain []string
		for at := folder; ; at = filepath.Dir(at) {
			chain = append(chain, at)
			if at == module || at == filepath.Dir(at) {
				break
			}
		}
		slices.Reverse(chain)
		for _, at := range chain {
			if seen[at] {
				continue
			}
			seen[at] = true
			entries, err := os.ReadDir(at)
			if err != nil {
				return nil, err
			}
			for _, entry := range entries {
				if !entry.Type().IsRegular() || !licenceName.MatchString(entry.Name()) ||
					filepath.Ext(entry.Name()) == ".go" {
					continue
				}
				path := filepath.Join(at, entry.Name())
				content, err := os.ReadFile(path)
				if err != nil {
					return nil, err
				}
				name, err := filepath.Rel(module, path)
				if err != nil {
					return nil, err
				}
				texts = append(texts, text{filepath.ToSlash(name), clean(string(content))})
			}
		}
	}
	return texts, nil
}

// clean returns a text with plain line ends and without blanks at the ends of lines.
func clean(content string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimPrefix(content, "\ufeff")) {
		b.WriteString(strings.TrimRight(line, " \t\r\n") + "\n")
	}
	return strings.Trim(b.String(), "\n") + "\n"
}

var (
	vendoredName    = regexp.MustCompile(`(?i)^([^.]+)\.(licen[sc]e)$`)
	vendoredVersion = regexp.MustCompile(`\bv(\d+\.\d+\.\d+)\b`)
)

// vendored returns the software of others that stands in the sources: NAME.LICENSE is the
// licence of the files NAME.* beside it, which tell the version at their beginning.
func vendored(root string) (found []component, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (entry.Name()[0] == '.' || entry.Name() == "testdata"):
			return fs.SkipDir
		}
		match := vendoredName.FindStringSubmatch(entry.Name())
		if match == nil || !entry.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		c := component{Name: match[1], Texts: []text{{"LICENSE", clean(string(content))}}}
		beside, err := filepath.Glob(filepath.Join(filepath.Dir(path), match[1]+".*"))
		for _, file := range beside {
			code, readErr := os.ReadFile(file)
			if v := vendoredVersion.FindSubmatch(code[:min(len(code), 300)]); readErr == nil && v != nil {
				c.Version = "v" + string(v[1])
			}
		}
		found = append(found, c)
		return err
	})
	return found, err
}
