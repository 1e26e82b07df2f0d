//go:build browser

package browser_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"entropipe/schemas"
)

// chromedpKey presses a key that is no letter.
func chromedpKey(name string) chromedp.Action[chromedp.Void] {
	return chromedp.KeyEvent(map[string]string{"ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight}[name])
}

// The canvas holds the picture that is computed here: points from above as discs in the
// colours of viridis by height, the hull as a line, the lines of the ground.
func TestBrowserDrawsAFixedFrame(t *testing.T) {
	th := newTheatre(t, nil)
	var x, y, z []float32
	for i := range 25 {
		for k := range 17 {
			x, y = append(x, float32(i-12)*4), append(y, float32(k-8)*4)
			z = append(z, float32(i)/6)
		}
	}
	th.tap.Always()
	th.offer(key("points", "grid", 0), cloud32(x, y, z), schemas.Hull2D)
	th.tap.Committed("points", 0, 1)
	const distance = 120.0
	link := fmt.Sprintf("mode=top&follow=0&layers=points,hull&beside=none&cam=0,0.5,%v,0,0,0", distance)
	p := th.openTab(link, window{1000, 700, false})
	p.shows(0)
	p.until("!document.getElementById('uncommitted').offsetParent")
	var seen image.Image
	var want *image.RGBA
	const limit = .002
	share := 1.0
	for try := 0; try < 20 && share > limit; try++ {
		seen = decode(t, p.picture("#picture"))
		want = image.NewRGBA(seen.Bounds())
		paint(want, distance, x, y, z)
		share = apart(blocks(seen), blocks(want), 40)
	}
	empty := image.NewRGBA(want.Bounds())
	draw.Draw(empty, empty.Rect, image.NewUniform(rgb("0b0e12")), image.Point{}, draw.Src)
	if nothing := apart(blocks(empty), blocks(want), 40); nothing < 10*limit {
		t.Errorf("an empty picture would differ by %.2f %% alone", 100*nothing)
	}
	if share > limit {
		t.Errorf("%.2f %% of blocks of 4 by 4 pixels differ by more than 40 of 255 from the computed picture:\n%s\n%s",
			100*share, keep(t, "seen", seen),
			keep(t, "computed", want))
	}
}

var viridis = strings.Fields("440154 481769 472c7a 423f85 3b518b 33628d 2c718e 26818e 21908d 1f9f88 27ad81 3dbc74 " +
	"5cc863 81d34d aadc32 d5e21a fde725")

// paint draws what the page shall show on its dark ground.
func paint(to *image.RGBA, distance float64, x, y, z []float32) {
	ground, grid, hull := rgb("0b0e12"), rgb("171d25"), rgb("ff9a70")
	width, height := float64(to.Rect.Dx()), float64(to.Rect.Dy())
	scale := height / (2 * distance * math.Tan(math.Pi/8)) // pixels for one length of the data
	at := func(x, y float64) (float64, float64) { return width/2 + x*scale, height/2 - y*scale }
	step := 10.0 // the largest of 1, 2, 5, 10, ... that is at most a sixth of the picture's height
	for i := range to.Rect.Dx() {
		for k := range to.Rect.Dy() {
			c := ground
			for _, v := range []float64{(float64(i) + .5 - width/2) / scale, (height/2 - float64(k) - .5) / scale} {
				if math.Abs(v-step*math.Round(v/step))*scale < .5 {
					c = grid
				}
			}
			to.SetRGBA(i, k, c)
		}
	}
	low, high := 0., 4. // quantiles .02 and .98 of z: the outermost columns of points
	disc := func(cx, cy, radius float64, c color.RGBA) {
		for i := int(cx - radius - 1); i <= int(cx+radius+1); i++ {
			for k := int(cy - radius - 1); k <= int(cy+radius+1); k++ {
				if math.Hypot(float64(i)+.5-cx, float64(k)+.5-cy) <= radius {
					to.SetRGBA(i, k, c)
				}
			}
		}
	}
	for i := range x {
		cx, cy := at(float64(x[i]), float64(y[i]))
		t := .1 + .9*min(1, max(0, (float64(z[i])-low)/(high-low)))
		disc(cx, cy, 2, mix(t))
	}
	x0, y0 := at(-48, 32)
	x1, y1 := at(48, -32)
	for i := range to.Rect.Dx() {
		for k := range to.Rect.Dy() {
			inside := 0. // sixteenths of the pixel that the line covers
			for at := range 16 {
				px, py := float64(i)+(float64(at%4)+.5)/4, float64(k)+(float64(at/4)+.5)/4
				if math.Abs(max(x0-px, px-x1, y0-py, py-y1)) <= 1.125 {
					inside++
				}
			}
			to.SetRGBA(i, k, between(to.RGBAAt(i, k), hull, inside/16))
		}
	}
}

func rgb(hex string) (c color.RGBA) {
	fmt.Sscanf(hex, "%02x%02x%02x", &c.R, &c.G, &c.B)
	c.A = 255
	return c
}

// mix is the colour of viridis at t.
func mix(t float64) color.RGBA {
	k := min(int(t*16), 15)
	return between(rgb(viridis[k]), rgb(viridis[k+1]), t*16-float64(k))
}

// between is the colour at share f of the way from a to b.
func between(a, b color.RGBA, f float64) color.RGBA {
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*(1-f) + float64(b)*f)) }
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// blocks is the mean of each 4 by 4 pixels: how edges are smoothed does not count.
func blocks(m image.Image) image.Image {
	to := image.NewRGBA(image.Rect(0, 0, m.Bounds().Dx()/4, m.Bounds().Dy()/4))
	for i := range to.Rect.Dx() {
		for k := range to.Rect.Dy() {
			var sum [3]uint32
			for at := range 16 {
				r, g, b, _ := m.At(4*i+at%4, 4*k+at/4).RGBA()
				sum[0], sum[1], sum[2] = sum[0]+r>>8, sum[1]+g>>8, sum[2]+b>>8
			}
			to.SetRGBA(i, k, color.RGBA{uint8(sum[0] / 16), uint8(sum[1] / 16), uint8(sum[2] / 16), 255})
		}
	}
	return to
}

func decode(t testing.TB, data []byte) image.Image {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// apart returns the share of pixels that differ by more than limit in a channel. The corners
// where the page writes marks and scale are left out.
func apart(a, b image.Image, limit int) float64 {
	r, different := a.Bounds(), 0
	for i := r.Min.X; i < r.Max.X; i++ {
		for k := r.Min.Y; k < r.Max.Y; k++ {
			if i*5 < r.Max.X*2 && (k*12 < r.Max.Y || k*12 > 11*r.Max.Y) {
				continue
			}
			r0, g0, b0, _ := a.At(i, k).RGBA()
			r1, g1, b1, _ := b.At(i, k).RGBA()
			for _, d := range []int{int(r0) - int(r1), int(g0) - int(g1), int(b0) - int(b1)} {
				if max(d, -d) > limit<<8 {
					different++
					break
				}
			}
		}
	}
	return float64(different) / float64(r.Dx()*r.Dy())
}

// differing is apart of two PNGs.
func differing(t testing.TB, a, b []byte, limit int) float64 {
	return apart(decode(t, a), decode(t, b), limit)
}
