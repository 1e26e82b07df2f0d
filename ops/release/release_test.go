package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Law: the embedded notices and licences are those of the modules that go.mod selects.
func TestEmbeddedLicencesAreCurrent(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command here")
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	all, err := components(root, targets)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "cmd", "version")
	notice, err := os.ReadFile(filepath.Join(dir, "NOTICE"))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := os.Open(filepath.Join(dir, "licenses.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	licences, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for name, both := range map[string][2]string{"NOTICE": {noticeText(all), string(notice)},
		"licenses.gz": {licencesText(all), string(licences)}} {
		if diff := cmp.Diff(strings.Split(both[0], "\n"), strings.Split(both[1], "\n")); diff != "" {
			t.Errorf("cmd/version/%s is not current, run go generate ./cmd/version (-want +got):\n%.2000s", name, diff)
		}
	}
	for _, name := range []string{"github.com/segmentio/kafka-go", "golang.org/x/sys"} {
		if !slices.ContainsFunc(all, func(c component) bool { return c.Name == name }) {
			t.Errorf("%s is not among %d components", name, len(all))
		}
	}
}

const (
	mit = "Permission is hereby granted, free of charge, to any person obtaining a copy\n" +
		"of this software and associated documentation"
	bsd    = "Redistribution and use in source and binary forms, with or without modification"
	clause = "\n * Neither the name of Acme"
	apache = "                                 Apache License\n                           Version 2.0, January 2004\n"
	gpl    = "                    GNU GENERAL PUBLIC LICENSE\n                       Version 3, 29 June 2007\n"
)

func TestLicencesAreTold(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []text
		want  string // "" for an error
	}{
		{"MIT", []text{{"LICENSE", mit}}, "MIT"},
		{"a comment", []text{{"LICENSE.txt", "// " + strings.ReplaceAll(mit, "\n", "\n// ")}}, "MIT"},
		{"two clauses", []text{{"COPYING", bsd}}, "BSD-2-Clause"},
		{"three clauses", []text{{"LICENSE", bsd + clause}}, "BSD-3-Clause"},
		{"several texts", []text{{"LICENSE.md", apache + mit}}, "Apache-2.0 AND MIT"},
		{"several files", []text{{"LICENSE", apache}, {"zstd/LICENSE", bsd + clause}}, "Apache-2.0 AND BSD-3-Clause"},
		{"a list of parts", []text{{"LICENSE", mit}, {"LICENSE-3RD-PARTY.md", gpl}}, "MIT"},
		{"no file", nil, ""},
		{"a notice alone", []text{{"NOTICE", mit}}, ""},
		{"an unknown text", []text{{"LICENSE", "Do what I say."}}, ""},
		{"GPL", []text{{"LICENSE", gpl}}, ""},
		{"GPL among others", []text{{"LICENSE", mit}, {"sub/COPYING", gpl}}, ""},
		{"MPL", []text{{"LICENSE", "Mozilla Public License Version 2.0\n" + mit}}, ""},
	} {
		component := component{Name: "m", Version: "v1.0.0", Texts: c.files}
		err := component.classify()
		if got := component.expression(); (err == nil) != (c.want != "") || err == nil && got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

// The licences that count for a module are its own and those above its linked packages;
// software within the sources has its own.
func TestLicenceFilesAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"LICENSE": "a \r\nb\r\n", "NOTICE": "n", "license.go": "", "linked/LICENSE.txt": "c", "linked/deep/x.go": "",
		"other/LICENSE": "d", "web/plot.LICENSE": mit, "web/plot.js": "/*! plot (v1.2.3) */", "web/plot.css": "",
		"testdata/x.LICENSE": gpl,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(content), 0o666))
		if err != nil {
			t.Fatal(err)
		}
	}
	texts, err := licenceTexts(dir, []string{dir, filepath.Join(dir, "linked", "deep"), filepath.Join(dir, "linked")})
	if err != nil {
		t.Fatal(err)
	}
	want := []text{{"LICENSE", "a\nb\n"}, {"NOTICE", "n\n"}, {"linked/LICENSE.txt", "c\n"}}
	if !slices.Equal(texts, want) {
		t.Errorf("got %q, want %q", texts, want)
	}
	found, err := vendored(dir)
	if err != nil || len(found) != 1 || found[0].Name != "plot" || found[0].Version != "v1.2.3" ||
		found[0].classify() != nil {
		t.Errorf("got %+v, %v", found, err)
	}
}

// Law: an archive depends on its files and its time alone, and holds them with their modes.
func TestArchivesAreTheSame(t *testing.T) {
	files := map[string]packed{"p/bin/x": {[]byte("code"), true}, "p/a": {[]byte("text"), false}, "p/z": {nil, false}}
	at := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	for name, write := range map[string]func(string, map[string]packed, time.Time) error{
		"tar": writeTar, "zip": writeZip} {
		dir := t.TempDir()
		one, two := filepath.Join(dir, "one"), filepath.Join(dir, "another name")
		if err := errors.Join(write(one, files, at), write(two, files, at.Local())); err != nil {
			t.Fatal(err)
		}
		first, err := os.ReadFile(one)
		second, err2 := os.ReadFile(two)
		if err := errors.Join(err, err2); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s: two archives differ; %v", name, err)
		}
		if err := write(one, files, at); err == nil {
			t.Errorf("%s: an archive is overwritten", name)
		}
		got := map[string]string{}
		if name == "zip" {
			z, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range z.File {
				got[file.Name] = file.Mode().String() + file.Modified.UTC().String()
			}
		} else {
			z, err := gzip.NewReader(bytes.NewReader(first))
			if err != nil {
				t.Fatal(err)
			}
			for r := tar.NewReader(z); ; {
				header, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				got[header.Name] = header.FileInfo().Mode().String() + header.ModTime.UTC().String()
			}
		}
		want := map[string]string{"p/bin/x": "-rwxr-xr-x" + at.String(), "p/a": "-rw-r--r--" + at.String(),
			"p/z": "-rw-r--r--" + at.String()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A bill has a serial number that is made from its content.
func TestSerialNumbersOfBills(t *testing.T) {
	serial := func(version string) string {
		b := bill{Format: "CycloneDX", Metadata: metadata{Component: billed{Version: version}}}
		text, err := b.encode()
		if err != nil {
			t.Fatal(err)
		}
		var read bill
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		return read.Serial
	}
	if a, again, other := serial("1"), serial("1"), serial("2"); a != again || a == other ||
		len(a) != len("urn:uuid:01234567-0123-8123-8123-0123456789ab") {
		t.Errorf("serial numbers %s, %s, %s", a, again, other)
	}
}

// What a release cannot be made of is named, before anything is written.
func TestReleaseRefuses(t *testing.T) {
	root := t.TempDir()
	out := filepath.Join(root, "out")
	err := build(root, out, []string{"plan9/386"}, false)
	if err == nil || !strings.Contains(err.Error(), "plan9/386") {
		t.Errorf("an unknown target: %v", err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := build(root, full, targets[:1], false); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder with files: %v", err)
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a",
		"--allow-empty"}} {
		if _, err := output(root, nil, "git", args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "changed"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := stampOf(root, false); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("a changed tree: %v", err)
	}
	from, err := stampOf(root, true)
	if err != nil || !from.known || len(from.commit) != 40 || from.time.Year() < 2026 {
		t.Errorf("a changed tree with -modified: %+v, %v", from, err)
	}
}
