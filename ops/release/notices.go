package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const rule = "================================================================================\n"

// writeNotices writes NOTICE and licenses.gz, which cmd/version embeds.
func writeNotices(root, dir string) error {
	all, err := components(root, targets)
	if err != nil {
		return err
	}
	packed := new(bytes.Buffer)
	w, err := gzip.NewWriterLevel(packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = w.Write([]byte(licencesText(all)))
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "NOTICE"), []byte(noticeText(all)), 0o666),
		os.WriteFile(filepath.Join(dir, "licenses.gz"), packed.Bytes(), 0o666))
}

// noticeText returns the NOTICE of the program: its own line and the notices of components.
func noticeText(all []component) string {
	var b strings.Builder
	b.WriteString("entropipe\nLicensed under the Apache License, Version 2.0.\n\n" +
		"It contains software of others. Their notices follow; their licences are printed by\n" +
		"entropipe version --licenses.\n")
	for _, c := range all {
		if c.Notice != "" {
			fmt.Fprintf(&b, "\n%s%s\n%s\n%s", rule, c.title(), rule, c.Notice)
		}
	}
	return b.String()
}

// title returns name and version.
func (c *component) title() string { return strings.TrimSpace(c.Name + " " + c.Version) }

// licencesText returns a table of the components, and every text once, below the names of
// the components that it is of. The Go project's own text is that of its modules.
func licencesText(all []component) string {
	var b strings.Builder
	b.WriteString("Third-party software in entropipe\n\n")
	fmt.Fprintf(&b, "%-52s %-40s %s\n", "component", "version", "licence")
	fmt.Fprintf(&b, "%-52s %-40s %s\n", "Go standard library", "of the toolchain", "BSD-3-Clause")
	owners := map[string][]string{} // of a text
	var texts []string
	for _, c := range all {
		fmt.Fprintf(&b, "%-52s %-40s %s\n", c.Name, c.Version, c.expression())
		for _, t := range c.Texts {
			if owners[t.content] == nil {
				texts = append(texts, t.content)
			}
			owners[t.content] = append(owners[t.content], c.title()+", "+t.name)
			if c.Name == "golang.org/x/sys" {
				owners[t.content] = append(owners[t.content], "Go standard library, "+t.name)
			}
		}
	}
	for _, content := range texts {
		slices.Sort(owners[content])
		fmt.Fprintf(&b, "\n%s%s\n%s\n%s", rule, strings.Join(owners[content], "\n"), rule, content)
	}
	return b.String()
}
