package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// licence tells a licence by words that only its text has.
type licence struct {
	id    string // of SPDX
	words *regexp.Regexp
	not   *regexp.Regexp // words that only a similar licence has; nil: none
}

// known are the licences under which a component may be distributed with the program. They
// ask for their text and notices, and for nothing else.
var known = []licence{
	{"Apache-2.0", regexp.MustCompile(`apache license,? version 2\.0`), nil},
	{"BSD-2-Clause", regexp.MustCompile(`redistribution and use in source and binary forms`),
		regexp.MustCompile(`neither the name|may not be used to endorse`)},
	{"BSD-3-Clause", regexp.MustCompile(`redistribution and use in source and binary forms.*` +
		`(neither the name|may not be used to endorse)`), nil},
	{"BSL-1.0", regexp.MustCompile(`boost software license - version 1\.0`), nil},
	{"ISC", regexp.MustCompile(`permission to use, copy, modify, and(/or)? distribute this software for any purpose`), nil},
	{"MIT", regexp.MustCompile(`permission is hereby granted, free of charge, to any person obtaining a copy of this ` +
		`software and associated`), nil},
	{"Unlicense", regexp.MustCompile(`this is free and unencumbered software released into the public domain`), nil},
}

// refused matches licences that ask for more than a release does, such as its sources.
var refused = regexp.MustCompile(`gnu (lesser |affero |library )?general public license version|` +
	`server side public license|mozilla public license,? version|business source license`)

// mainName matches the files that license a folder; LICENSE-THIRD-PARTY and others are about
// parts, and are only printed.
var mainName = regexp.MustCompile(`(?i)^(licen[sc]e|copying|unlicense)(\.(txt|md))?$`)

var blanks = regexp.MustCompile(`[\s*#/]+`)

// classify sets Licences and Notice. The error says that no text is a known licence, or
// that one is a refused one.
func (c *component) classify() error {
	for _, t := range c.Texts {
		base := path.Base(t.name)
		if strings.HasPrefix(strings.ToUpper(base), "NOTICE") {
			c.Notice += t.content
		}
		if !mainName.MatchString(base) {
			continue
		}
		words := blanks.ReplaceAllString(strings.ToLower(t.content), " ")
		if found := refused.FindString(words); found != "" {
			return fmt.Errorf("%s %s: %s names a licence that a release does not follow: %q", c.Name, c.Version,
				t.name, found)
		}
		for _, l := range known {
			if l.words.MatchString(words) && (l.not == nil || !l.not.MatchString(words)) &&
				!slices.Contains(c.Licences, l.id) {
				c.Licences = append(c.Licences, l.id)
			}
		}
	}
	slices.Sort(c.Licences)
	if len(c.Licences) == 0 {
		return fmt.Errorf("%s %s: no licence that is known among its files", c.Name, c.Version)
	}
	return nil
}

// expression returns the licences of a component in the language of SPDX.
func (c *component) expression() string { return strings.Join(c.Licences, " AND ") }
