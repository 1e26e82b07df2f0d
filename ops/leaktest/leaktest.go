// Package leaktest ends the tests of a package that start goroutines.
package leaktest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, and fails it if goroutines are left. It does
// not return.
func Main(m *testing.M) { goleak.VerifyTestMain(patient{m}) }

// patient gives goroutines half a minute to end: goleak itself waits for less
// than half a second.
type patient struct{ *testing.M }

func (p patient) Run() int {
	code := p.M.Run()
	for end := time.Now().Add(30 * time.Second); code == 0 && goleak.Find() != nil && time.Now().Before(end); {
	}
	return code
}
