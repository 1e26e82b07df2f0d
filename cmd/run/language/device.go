//go:build !(cuda && linux && (amd64 || arm64))

package language

import "errors"

// openDevice has attention computed by what --device names.
func (c *Flags) openDevice(*Language) error {
	if c.Device == "cuda" {
		return errors.New("cuda: this program was built without the tag cuda: go build -tags cuda . on Linux")
	}
	return nil
}
