package estimate

// Sense tells on which side of its limit a claim puts a figure.
type Sense int

// The senses.
const (
	AtLeast Sense = iota
	AtMost
)

// String returns the sense as pages print it, before the limit.
func (s Sense) String() string { return [...]string{"≥", "≤"}[s] }

// Word is the verdict about a claim.
type Word string

// The verdicts. These are their only places: a test looks for them elsewhere.
const (
	Confirmed  Word = "confirmed"  // the figure is on the side of the claim
	Refuted    Word = "refuted"    // it is on the other side
	Undecided  Word = "undecided"  // its corrected interval holds the limit
	Untested   Word = "untested"   // there is one unit, so no interval
	Unmeasured Word = "unmeasured" // there are no records
)

// Words are all verdicts.
var Words = []Word{Confirmed, Refuted, Undecided, Untested, Unmeasured}

// Claim is a figure's limit.
type Claim struct {
	Sense Sense
	Limit float64
}

// Verdicts judges estimates by their claims, with Holm's correction for all that have an
// interval. It returns the corrected p as well, 1 for the others, and the number of those that have one.
func Verdicts(estimates []Estimate, claims []Claim) (words []Word, corrected []float64, count int) {
	var p []float64
	var tested []int
	words, corrected = make([]Word, len(estimates)), make([]float64, len(estimates))
	for i, e := range estimates {
		corrected[i] = 1
		if e.Kind == Exact { // no chance plays a part, so no correction
			words[i] = side(e.Mid, claims[i])
			corrected[i] = 0
			continue
		}
		if one, ok := e.P(claims[i].Limit); ok {
			p, tested = append(p, one), append(tested, i)
			continue
		}
		words[i] = Unmeasured
		if e.Kind == Single {
			words[i] = Untested
		}
	}
	for k, one := range Holm(p) {
		i := tested[k]
		corrected[i] = one
		words[i] = Undecided
		if one <= Level {
			words[i] = side(estimates[i].Mid, claims[i])
		}
	}
	return words, corrected, len(p)
}

// side is the verdict of a figure without an error.
func side(figure float64, c Claim) Word {
	if c.Sense == AtLeast && figure >= c.Limit || c.Sense == AtMost && figure <= c.Limit {
		return Confirmed
	}
	return Refuted
}
