package geomtest

import (
	"fmt"
	"testing"

	"entropipe/algos/geom"
)

// Recorded results were computed on these clouds: each stays the same bit by bit.
func TestCloudsAreThoseRecorded(t *testing.T) {
	SkipWhereFused(t)
	got := map[string]string{}
	addClouds[float32](got)
	addClouds[float64](got)
	for _, f := range MaximaFamilies() {
		got["maxima "+f.Name] = CloudHash(f.Make(500, 7))
	}
	for _, f := range HullFamilies() {
		got["hull "+f.Name] = CloudHash(f.Make(500, 7))
	}
	for name, hash := range got {
		if want := recordedClouds[name]; hash != want {
			t.Errorf("%q: %q, // recorded: %q", name, hash, want)
		}
	}
	if len(got) != len(recordedClouds) {
		t.Errorf("%d clouds, %d recorded", len(got), len(recordedClouds))
	}
}

func addClouds[T geom.Float](got map[string]string) {
	more := []Generator[T]{
		{"ball", Ball[T]}, {"sphere", Sphere[T]}, {"cubefaces", CubeFaces[T]}, {"moment", Moment[T]},
		{"spiral", Spiral[T]}, {"discs", Discs[T]}, {"needle", Needle[T]}, {"shells", Shells[T]},
	}
	for _, list := range [][]Generator[T]{Generators2D[T](), Generators3D[T](), more} {
		for _, g := range list {
			got[fmt.Sprintf("%T %s", T(0), g.Name)] = CloudHash(g.Make(500, 7))
		}
	}
}

var recordedClouds = map[string]string{
	"float32 antichain":   "a303017f0acdb740",
	"float32 ball":        "df427f2f465293df",
	"float32 circle":      "69b6d2237fea1d7e",
	"float32 collinear":   "3ed1f33686b8202e",
	"float32 cube":        "b5f582058f35d1f3",
	"float32 cubefaces":   "1d74911bc3c867e7",
	"float32 denormal":    "32a9f90d9c49c52f",
	"float32 denormal3":   "274cbdc9a02d2129",
	"float32 discs":       "d1e6f57fa3ffbd88",
	"float32 disk":        "ee40acf0b779a314",
	"float32 duplicates":  "789f5740e6580d5f",
	"float32 duplicates3": "7dfce43963057a10",
	"float32 equal":       "2863b4d99fcf5423",
	"float32 equal3":      "970f5a7cc24c48f6",
	"float32 flat":        "c00338b345f370ab",
	"float32 gauss":       "0ac5a52b72b2c5f7",
	"float32 gauss3":      "7c3cee8959a706a3",
	"float32 grid":        "4b86a6a5f73d24af",
	"float32 grid3":       "ccda41affe978e05",
	"float32 horizontal":  "3c65d59bae486868",
	"float32 huge":        "1d2b95be556f35c6",
	"float32 huge3":       "7760ae865b9c6c94",
	"float32 integers":    "34a0041890eb563b",
	"float32 integers3":   "db7a5b1e6a5ad7fd",
	"float32 lidar":       "654d332796811e1c",
	"float32 moment":      "fb3efdf0c02c443d",
	"float32 needle":      "c75db8112a52afa3",
	"float32 octant":      "84e0319a7d3d7a5b",
	"float32 outlier":     "0a781d3dba317a0d",
	"float32 parabola":    "a06ac2089439d3f9",
	"float32 plane":       "b42c63c3e0434fe0",
	"float32 reversed":    "6fd40ba7c154db2f",
	"float32 reversed3":   "dd4ab2be0e4a9dc1",
	"float32 ridge":       "b2b9b8519401f2e8",
	"float32 rings":       "2a96e5e35e52f9a2",
	"float32 shells":      "69c0ca7d48fd84dc",
	"float32 slivers":     "84e163000de9875b",
	"float32 sorted":      "74ead04b23a69ae7",
	"float32 sorted3":     "457d1600cb868d09",
	"float32 sphere":      "e66c8799fc2ad0f3",
	"float32 spiral":      "dc2586fab3964cff",
	"float32 spread":      "be5f2361d0ad290a",
	"float32 spread3":     "13359d1623b2572f",
	"float32 square":      "6e7255784f546f29",
	"float32 strokes":     "e8d6cc0df956184b",
	"float32 utm":         "d42dbb7cb250a7e1",
	"float32 vertical":    "44e57ead2f803924",
	"float32 zeros":       "844b8f6f1b51fcef",
	"float32 zeros3":      "404eaa62042b7c02",
	"float64 antichain":   "a303017f0acdb740",
	"float64 ball":        "368bc6c4f24f164d",
	"float64 circle":      "ccc6813af1ef793c",
	"float64 collinear":   "3ed1f33686b8202e",
	"float64 cube":        "ad1ee0ceb764ba0d",
	"float64 cubefaces":   "1d74911bc3c867e7",
	"float64 denormal":    "50b069736ea8b6bc",
	"float64 denormal3":   "d17b3bfd5b1b87d8",
	"float64 discs":       "ac9438fe1bb68ca7",
	"float64 disk":        "33a9bf62168b7bbd",
	"float64 duplicates":  "930e5fc833aacde2",
	"float64 duplicates3": "952b84dfa099486d",
	"float64 equal":       "2863b4d99fcf5423",
	"float64 equal3":      "970f5a7cc24c48f6",
	"float64 flat":        "80af788efc5ddbd3",
	"float64 gauss":       "272d38f87c18e08b",
	"float64 gauss3":      "5c63f32ee0a745c7",
	"float64 grid":        "4b86a6a5f73d24af",
	"float64 grid3":       "ccda41affe978e05",
	"float64 horizontal":  "6193bfa06ffc1bd7",
	"float64 huge":        "afaad764550d1d5a",
	"float64 huge3":       "ba926831cb9ff80b",
	"float64 integers":    "34a0041890eb563b",
	"float64 integers3":   "db7a5b1e6a5ad7fd",
	"float64 lidar":       "4380c181ea8cbe81",
	"float64 moment":      "c61903231a1e3d3e",
	"float64 needle":      "d0702a81e091f030",
	"float64 octant":      "aff6b0fb09b5e472",
	"float64 outlier":     "12fbd4bf665cf0fc",
	"float64 parabola":    "28ad6669ca31f1d5",
	"float64 plane":       "b42c63c3e0434fe0",
	"float64 reversed":    "d82fb2cfa817c355",
	"float64 reversed3":   "dd4ab2be0e4a9dc1",
	"float64 ridge":       "b82476c648a93948",
	"float64 rings":       "9ecb81d6e13e54f5",
	"float64 shells":      "952d416a12604df9",
	"float64 slivers":     "485af8da50cd22e5",
	"float64 sorted":      "7cda1c036dac06a9",
	"float64 sorted3":     "457d1600cb868d09",
	"float64 sphere":      "86daa86731cf5136",
	"float64 spiral":      "8d9012a11df1da09",
	"float64 spread":      "4f28fc07099fb2bf",
	"float64 spread3":     "7e35c6daf48e365f",
	"float64 square":      "92fc85a7835edd3f",
	"float64 strokes":     "e8d6cc0df956184b",
	"float64 utm":         "2a3b0867a56e9ff9",
	"float64 vertical":    "1829e677c962e86a",
	"float64 zeros":       "844b8f6f1b51fcef",
	"float64 zeros3":      "404eaa62042b7c02",
	"hull clusters":       "7a240e454b217624",
	"hull depth":          "04b69513dc46cfa3",
	"hull disk":           "6e62f541147e1863",
	"hull edge":           "3449f8cfbfd3a26b",
	"hull normal":         "8ae6720225e54178",
	"hull parabola":       "96ecfeee70c2af3b",
	"hull polygon":        "4f9b51f81b381b3d",
	"hull ring":           "9755393a4b308dc4",
	"hull share":          "4bd67b35f5af48cf",
	"hull stroke":         "999389cabe3f167e",
	"hull tails":          "abe8cef20d8b2de6",
	"hull uniform":        "67d8803d88f80d40",
	"maxima arc":          "fa9345efad6ea6c9",
	"maxima band":         "79a0391dfd931f08",
	"maxima clusters":     "07aaeed4430d39df",
	"maxima corner":       "80fb4db46ab2b983",
	"maxima depth":        "8d0287dabedef6c8",
	"maxima normal":       "dd869b9d8c3a32b8",
	"maxima share":        "19933a6095b26418",
	"maxima steps":        "148559c7fab83055",
	"maxima tails":        "07e64f9f2e7eb780",
	"maxima uniform":      "67d8803d88f80d40",
}
