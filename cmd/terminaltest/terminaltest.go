// Package terminaltest gives tests a pseudo-terminal, and reads what a program drew on it.
package terminaltest

import (
	"fmt"
	"strings"
)

// Screen returns the rows that a terminal shows after text was written to it, without
// trailing blanks. Rows have no greatest length. The error names a control character
// other than line feed and carriage return.
func Screen(text string) (rows []string, err error) {
	var row []rune
	at := 0
	for _, r := range text {
		switch {
		case r == '\r':
			at = 0
		case r == '\n':
			rows, row, at = append(rows, strings.TrimRight(string(row), " ")), row[:0], 0
		case r < ' ' || r == 0x7f:
			return nil, fmt.Errorf("the control character %q", r)
		default:
			if at == len(row) {
				row = append(row, r)
			} else {
				row[at] = r
			}
			at++
		}
	}
	return append(rows, strings.TrimRight(string(row), " ")), nil
}
