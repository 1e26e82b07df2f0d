package preprocess

// Watch decides whether the frames of a stream get hints: they do until the
// stream has drifted away from what its model was calibrated on, and again when
// it comes back. It reads no clock, and its decisions change only how long
// frames take. One a stream; not for concurrent use.
//
// Hints are bad for a frame when more than twice the calibration's fraction of
// points survives, unless lately half as much again did without hints; when more
// survives than without; or when the operator refused them. After badMost bad frames in a row hints go off. Of the
// frames then, one in controlEvery gets hints on trial, and after goodLeast good
// ones in a row hints go on: those must be clearly good, with no more than one
// and a half times the calibration's fraction. While hints are on, one frame in
// controlEvery goes without, for comparison. Which one is a matter of offsets.
type Watch struct {
	calibrated float64
	without    float64 // fraction that survived the last control, or 1
	off        bool
	row        int // bad frames while hints are on, good ones while they are off
}

const (
	badMost      = 100
	goodLeast    = 4
	controlEvery = 64
)

// NewWatch returns a Watch with hints on. calibrated is the fraction of points
// that survived at calibration: models.Meta's Survivors.
func NewWatch(calibrated float64) Watch { return Watch{calibrated: calibrated, without: 1} }

// On says whether hints are on.
func (w *Watch) On() bool { return !w.off }

// Hinted says whether the frame of a message is to get hints.
func (w *Watch) Hinted(offset int64) bool { return (offset%controlEvery == 0) == w.off }

// Note takes notice of a frame: whether it had hints, whether the operator used
// them, and the fraction of its points that survived (hull.Hull3D's Survivors).
// It returns true when that has turned hints on or off.
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
