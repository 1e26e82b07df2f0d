//go:build !race

package sinks

const sparse = 1
