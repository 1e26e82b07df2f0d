//go:build !chaos

package compact

// crashStep is the distance of the changes at which tests crash.
const crashStep = 13
