//go:build !(cuda && linux && (amd64 || arm64))

package main

import "errors"

// openDevice has attention computed by what --device names.
func (c *lmFlags) openDevice(*language) error {
	if c.Device == "cuda" {
		return errors.New("cuda: this program was built without the tag cuda: go build -tags cuda . on Linux")
	}
	return nil
}
