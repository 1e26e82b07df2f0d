//go:build chaos

package compact

// crashStep is the distance of the changes at which tests crash: they crash at each.
const crashStep = 1
