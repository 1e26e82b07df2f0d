//go:build !amd64

package mat

func detect() Level { return Portable }
