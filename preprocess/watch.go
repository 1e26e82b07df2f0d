package preprocess

// Watch decides whether the frames of a stream get hints. Hints are on until the
// stream drifts away from the data of the model's calibration, and on again when
// it returns. Watch reads no clock, and its decisions change times, never results.
// Each stream has its own Watch; a Watch is not safe for concurrent use.
//
// A frame with hints is bad if the operator refused them, if a larger fraction of
// its points survives than in the last frame without hints, or if more than twice
// the calibration's fraction survives and that is more than 2/3 of the last
// fraction without hints. After badMost bad frames in a row hints go off. While
// hints are off, every controlEvery-th frame tries them, by offset; after goodLeast
// good trials in a row hints go on. A good trial leaves at most 1.5 times the
// calibration's fraction, or at most 2/3 of the last fraction without hints.
// While hints are on, every controlEvery-th frame goes without, for comparison.
type Watch struct {
	calibrated float64
	without    float64 // fraction that survived the last control, or 1
	off        bool
	row        int // bad frames in a row while hints are on, good ones while they are off
}

const (
	badMost      = 100
	goodLeast    = 4
	controlEvery = 64
)

// NewWatch returns a Watch with hints on. calibrated is the fraction of points that
// survived at calibration, the value of the operator in models.Meta.Survivors.
func NewWatch(calibrated float64) Watch { return Watch{calibrated: calibrated, without: 1} }

// On reports whether hints are on.
func (w *Watch) On() bool { return !w.off }

// Hinted reports whether the frame of the message at this offset gets hints.
func (w *Watch) Hinted(offset int64) bool { return (offset%controlEvery == 0) == w.off }

// Note records the outcome of a frame: whether it had hints, whether the operator
// used them, and the fraction of its points that survived (hull.Hull3D.Survivors).
// Note returns true if hints went on or off.
func (w *Watch) Note(hinted, used bool, survived float64) (turned bool) {
	if !hinted {
		if !w.off {
			w.without = survived
		}
		return false
	}
	limit, needed := 2*w.calibrated, badMost
	if w.off {
		limit, needed = 1.5*w.calibrated, goodLeast
	}
	bad := !used || survived > w.without || survived > limit && 1.5*survived > w.without
	if bad == w.off {
		w.row = 0
		return false
	}
	if w.row++; w.row < needed {
		return false
	}
	w.off, w.row = !w.off, 0
	return true
}
