//go:build !linux

package main

import "errors"

// treeCmd needs Linux.
type treeCmd struct{}

// Run is the subcommand.
func (c *treeCmd) Run() error { return errors.New("measuring a tree of processes needs Linux") }

// busy returns 0: what other programs do is not known here.
func busy() float64 { return 0 }
