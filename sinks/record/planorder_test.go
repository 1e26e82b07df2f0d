package record

import "testing"

func TestPlaces(t *testing.T) {
	for _, n := range []int{1, 12, 99_999_999, 100_000_000} {
		name := PlaceName(n)
		if got, ok := PlaceNumber(name); !ok || got != n {
			t.Errorf("%s: %d, %t", name, got, ok)
		}
		data := Encode(&PlanPlace{Format: FormatVersion, Number: n, Plan: "p"})
		if p, err := ParsePlace(name, data); err != nil || p.Plan != "p" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if _, err := ParsePlace(PlaceName(n+1), data); err == nil {
			t.Errorf("%d is place %d", n, n+1)
		}
	}
	if _, err := ParsePlace(PlaceName(1), Encode(&PlanPlace{Format: FormatVersion, Number: 1})); err == nil {
		t.Error("a place without a plan passes")
	}
	for _, name := range []string{"", "00000001.json", PlaceName(0), PlaceName(-1), PlanOrderFolder + "/1.json",
		PlanOrderFolder + "/00000001", PlansFolder + "/00000001.json", PlanOrderFolder + "/x.json"} {
		if _, ok := PlaceNumber(name); ok {
			t.Errorf("%q is a place", name)
		}
	}
}
