//go:build browser

// Package browser_test opens the live page in a real Chromium, of ENTROPIPE_CHROMIUM or of PATH.
// The server is the one that run has; its numbers are made up, its frames are offered to a tap
// by the pipeline's own code. One test watches the command demo.
package browser_test
