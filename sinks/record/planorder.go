package record

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// PlanOrderFolder has the order of an output's plans: a PlanPlace for each.
const PlanOrderFolder = PlansFolder + "/order"

// PlanPlace is _commits/plans/order/<number>.json: the plan has this place in the order.
type PlanPlace struct {
	Format int    `json:"format"`
	Number int    `json:"number"` // from 1 on
	Plan   string `json:"plan"`
}

// PlaceName returns the path of place n, which has at least eight digits there.
func PlaceName(n int) string { return fmt.Sprintf("%s/%08d.json", PlanOrderFolder, n) }

// PlaceNumber returns the number of a place if name is its path.
func PlaceNumber(name string) (n int, ok bool) {
	digits, _ := strings.CutSuffix(path.Base(name), ".json")
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 1 && name == PlaceName(n)
}

// ParsePlace decodes and checks a place. The error is a *DamagedError or a *FormatError.
func ParsePlace(name string, data []byte) (*PlanPlace, error) {
	p := new(PlanPlace)
	if err := Parse(name, data, p); err != nil {
		return nil, err
	}
	if p.Plan == "" || name != PlaceName(p.Number) {
		return nil, &DamagedError{name, fmt.Errorf("number %d, plan %q", p.Number, p.Plan)}
	}
	return p, nil
}
