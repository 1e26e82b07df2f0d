// Package version is the command version: it prints the release and its build, or the
// licences of the third-party software that the program contains.
//
// The two embedded files are made from the module graph, by go generate ./cmd/version. A
// test of ops/release compares them with the modules of this tree.
package version

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"

	"entropipe/cmd/command"
)

//go:generate go run entropipe/ops/release -notices .

// notice is what the authors of the modules want to be said with each copy.
//
//go:embed NOTICE
var notice string

// licences are the modules of the program and the texts of their licences, in gzip.
//
//go:embed licenses.gz
var licences []byte

// Command is the command version.
type Command struct {
	JSON     bool `name:"json" xor:"form"`
	Licenses bool `name:"licenses" xor:"form"`
}

// Run prints what is asked for.
func (c *Command) Run(e *command.Env) error {
	if !c.Licenses {
		return command.PrintResult(e.Stdout, c.JSON, command.Built())
	}
	text, err := gzip.NewReader(bytes.NewReader(licences))
	if err != nil {
		return err
	}
	if _, err := io.WriteString(e.Stdout, notice+"\n"); err != nil {
		return err
	}
	_, err = io.Copy(e.Stdout, text)
	return err
}
