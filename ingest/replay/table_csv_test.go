package replay

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// The short way to decimals gives the bits, and the errors, of strconv.
func TestParseFloatIsStrconv(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	texts := []string{"", "-", ".", "-.", "0", "-0", "-0.0", "1.", ".5", "-.5", "+1", "1e5", "1.5e-3",
		"nan", "NaN", "inf",
		"-Infinity", "1..2", "1.2.3", "--1", "1-", "0x1p3", "1_000", "12a", " 1", "999999999999999", "9999999999999999",
		"0.000000000000001", "0.0000000000000001", "123456789012345.", "12345678901234.5", "1e999", "-1e999",
		"000000000000001.5", "0000000000000000001.5"}
	for range 20_000 {
		v := random.NormFloat64() * math.Pow10(random.IntN(12)-4)
		texts = append(texts, strconv.FormatFloat(v, 'f', random.IntN(18), 64))
	}
	for _, text := range texts {
		want, wantErr := strconv.ParseFloat(text, 64)
		got, err := parseFloat([]byte(text))
		if math.Float64bits(got) != math.Float64bits(want) || (err == nil) != (wantErr == nil) {
			t.Errorf("%q is %v (%v), want %v (%v)", text, got, err, want, wantErr)
		}
	}
}
