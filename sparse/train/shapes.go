package train

import (
	"math"
	"math/rand/v2"
)

// shapeNames are the classes of Shapes, in the order of their numbers.
var shapeNames = []string{"disc", "square", "triangle", "ring", "plus", "bar", "diamond", "crescent"}

// Shapes returns n drawn images of side pixels a side. Each shows an object of one
// of eight classes, with a random size, place and rotation, on a texture; Masks
// marks its pixels. Classes are drawn at random. The same arguments give the same
// images. Shapes panics if side is below 8 or n is negative. With fewer than 12
// images SHA256 stays empty.
func Shapes(n, side int, seed uint64) *Images {
	if side < 8 || n < 0 {
		panic("train: images of shapes need 8 pixels a side and a number of at least 0")
	}
	m := &Images{Side: side, Names: shapeNames, Name: "shapes on textures",
		Pixels: make([]uint8, n*side*side), Masks: make([]bool, n*side*side), Labels: make([]int32, n)}
	for i := range n {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		m.Labels[i] = int32(r.IntN(len(shapeNames)))
		drawShape(m.Image(i), m.Masks[i*side*side:(i+1)*side*side], side, int(m.Labels[i]), r)
	}
	if n >= 2*heldEvery {
		if err := m.seal(); err != nil {
			panic("train: " + err.Error()) // cannot happen: there are enough images and eight names
		}
	}
	return m
}

// Textured returns n drawn images of side pixels a side. Each shows an object, a
// shape of Shapes of random size, place and rotation, on a ground. Brightness and
// contrast do not tell the object: object and ground have the same mean and the
// same deviation. The object has one of eight textures that repeat every four
// pixels, the ground is a sum of gratings of random directions and wavelengths. The
// class is the object's texture, so that only the object's pixels tell it. Masks
// marks them. Arguments, panics and SHA256 are those of Shapes.
func Textured(n, side int, seed uint64) *Images {
	if side < 8 || n < 0 {
		panic("train: images of textures need 8 pixels a side and a number of at least 0")
	}
	m := &Images{Side: side, Names: textureNames, Name: "objects told by texture",
		Pixels: make([]uint8, n*side*side), Masks: make([]bool, n*side*side), Labels: make([]int32, n)}
	for i := range n {
		r := rand.New(rand.NewPCG(seed, uint64(i)|1<<62))
		m.Labels[i] = int32(r.IntN(len(textureNames)))
		drawTextured(m.Image(i), m.Masks[i*side*side:(i+1)*side*side], side, int(m.Labels[i]), r)
	}
	if n >= 2*heldEvery {
		if err := m.seal(); err != nil {
			panic("train: " + err.Error()) // cannot happen: there are enough images and eight names
		}
	}
	return m
}

// textureNames are the classes of Textured: waves in four pixels along x and y.
var textureNames = []string{"1 0", "0 1", "1 1", "1 -1", "2 1", "1 2", "2 -1", "-1 2"}

// textureWaves are the waves of the classes, in the order of textureNames.
var textureWaves = [][2]float64{{1, 0}, {0, 1}, {1, 1}, {1, -1}, {2, 1}, {1, 2}, {2, -1}, {-1, 2}}

// groundWaves is the number of gratings of the ground of Textured.
const groundWaves = 4

// drawTextured draws one image of Textured.
func drawTextured(pixels []uint8, mask []bool, side, class int, r *rand.Rand) {
	const quarter = math.Pi / 2 // a wave in four pixels, in radians a pixel
	level, noise, deviation := 0.4+0.2*r.Float64(), 0.02+0.03*r.Float64(), 0.1+0.06*r.Float64()
	amplitude := deviation * math.Sqrt2 // a grating of amplitude a has the deviation a/√2
	var ground [groundWaves]texture
	for k := range ground {
		sin, cos := math.Sincos(2 * math.Pi * r.Float64())
		f := quarter * (1 + 1.2*r.Float64())
		ground[k] = texture{f * cos, f * sin, 2 * math.Pi * r.Float64(), amplitude / math.Sqrt(groundWaves)}
	}
	wave := textureWaves[class]
	figure := texture{quarter * wave[0], quarter * wave[1], quarter / 2, amplitude}
	shape, size := r.IntN(len(shapeNames)), float64(side)*(0.2+0.12*r.Float64())
	cx := size + (float64(side)-2*size)*r.Float64()
	cy := size + (float64(side)-2*size)*r.Float64()
	sin, cos := math.Sincos(2 * math.Pi * r.Float64())
	for y := range side {
		for x := range side {
			dx, dy := (float64(x)+0.5-cx)/size, (float64(y)+0.5-cy)/size
			at, value := y*side+x, level+noise*r.NormFloat64()
			if mask[at] = inShape(shape, cos*dx+sin*dy, cos*dy-sin*dx); mask[at] {
				value += figure.at(x, y)
			} else {
				for _, wave := range ground {
					value += wave.at(x, y)
				}
			}
			pixels[at] = uint8(255*max(0, min(1, value)) + 0.5)
		}
	}
}

// drawShape draws one image. The object is brighter or darker than the ground by a
// random contrast, and has a texture of its own.
func drawShape(pixels []uint8, mask []bool, side, class int, r *rand.Rand) {
	ground, figure := newTexture(r), newTexture(r)
	level := 0.25 + 0.5*r.Float64()
	contrast := 0.25 + 0.2*r.Float64()
	if level+contrast > 0.95 || level-contrast > 0.05 && r.IntN(2) == 0 {
		contrast = -contrast
	}
	size := float64(side) * (0.2 + 0.12*r.Float64())
	cx := size + (float64(side)-2*size)*r.Float64()
	cy := size + (float64(side)-2*size)*r.Float64()
	sin, cos := math.Sincos(2 * math.Pi * r.Float64())
	for y := range side {
		for x := range side {
			dx, dy := (float64(x)+0.5-cx)/size, (float64(y)+0.5-cy)/size
			u, v := cos*dx+sin*dy, cos*dy-sin*dx
			at := y*side + x
			value := level + ground.at(x, y)
			if mask[at] = inShape(class, u, v); mask[at] {
				value = level + contrast + figure.at(x, y)
			}
			value += 0.03 * r.NormFloat64()
			pixels[at] = uint8(255*max(0, min(1, value)) + 0.5)
		}
	}
}

// texture is a grating of small amplitude.
type texture struct{ fx, fy, phase, amplitude float64 }

func newTexture(r *rand.Rand) texture {
	sin, cos := math.Sincos(2 * math.Pi * r.Float64())
	f := 0.4 + 1.6*r.Float64()
	return texture{f * cos, f * sin, 2 * math.Pi * r.Float64(), 0.02 + 0.08*r.Float64()}
}

func (t texture) at(x, y int) float64 {
	return t.amplitude * math.Sin(t.fx*float64(x)+t.fy*float64(y)+t.phase)
}

// inShape reports whether the shape of a class, which lies around the origin and
// within the unit circle, covers a point.
func inShape(class int, u, v float64) bool {
	d := math.Hypot(u, v)
	a, b := math.Abs(u), math.Abs(v)
	switch shapeNames[class] {
	case "disc":
		return d < 0.85
	case "square":
		return max(a, b) < 0.7
	case "triangle":
		return v > -0.5 && v < 1-math.Sqrt(3)*a
	case "ring":
		return d < 1 && d > 0.6
	case "plus":
		return max(a, b) < 0.95 && min(a, b) < 0.25
	case "bar":
		return a < 1 && b < 0.3
	case "diamond":
		return a/0.55+b < 1
	}
	return d < 0.95 && math.Hypot(u-0.45, v) > 0.75 // crescent
}
