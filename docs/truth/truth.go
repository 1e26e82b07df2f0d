// Package truth holds the truth page, one HTML file, for the program to serve. The page is
// made by `go run ./benchmarks/truth --render` from the records of benchmarks/results/truth.
package truth

import _ "embed"

// Page is the page.
//
//go:embed index.html
var Page []byte
