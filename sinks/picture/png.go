package picture

import (
	"bufio"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// WritePNG writes a picture pixel by pixel. gonum/plot would link nine modules, and
// has neither equal axes nor a scale bar.
func WritePNG(w *bufio.Writer, s *picture) error {
	c := canvas{img: image.NewRGBA(image.Rect(0, 0, int(math.Ceil(s.width)), int(math.Ceil(s.height))))}
	draw.Draw(c.img, c.img.Bounds(), image.White, image.Point{}, draw.Src)
	c.raster = vector.NewRasterizer(c.img.Rect.Dx(), c.img.Rect.Dy())
	for i := range s.layers {
		c.layer(&s.layers[i])
	}
	for i := range s.texts {
		if err := c.text(&s.texts[i]); err != nil {
			return err
		}
	}
	enc := png.Encoder{CompressionLevel: png.DefaultCompression}
	return enc.Encode(w, c.img)
}

// canvas is a picture being drawn.
type canvas struct {
	img    *image.RGBA
	raster *vector.Rasterizer
	drawn  bool // the rasterizer has a path
}

func (c *canvas) layer(l *pictureLayer) {
	if l.closed && l.fill.A > 0 {
		for _, path := range l.paths {
			c.polygon(path...)
		}
		c.paint(l.fill)
	}
	for _, path := range l.paths {
		for i := 1; i < len(path); i++ {
			c.line(path[i-1], path[i], l.width)
		}
		if n := len(path); l.closed && n > 2 {
			c.line(path[n-1], path[0], l.width)
		}
	}
	c.paint(l.stroke)
	for _, s := range l.marks {
		c.mark(s, l.form, l.size/2)
	}
	c.paint(l.stroke)
}

// paint colours what has been put together since the last time. Paths that
// overlap must run the same way around: where they do not, they cancel out.
func (c *canvas) paint(with color.NRGBA) {
	if c.drawn {
		c.raster.Draw(c.img, c.img.Rect, image.NewUniform(with), image.Point{})
		c.raster.Reset(c.img.Rect.Dx(), c.img.Rect.Dy())
	}
	c.drawn = false
}

func (c *canvas) polygon(path ...spot) {
	for i, s := range path {
		if i == 0 {
			c.raster.MoveTo(float32(s.x), float32(s.y))
		} else {
			c.raster.LineTo(float32(s.x), float32(s.y))
		}
	}
	c.raster.ClosePath()
	c.drawn = true
}

// line is a rectangle, always the same way around.
func (c *canvas) line(a, b spot, width float64) {
	dx, dy := b.x-a.x, b.y-a.y
	length := math.Hypot(dx, dy)
	if length == 0 {
		return
	}
	nx, ny := -dy/length*width/2, dx/length*width/2
	c.polygon(spot{a.x + nx, a.y + ny}, spot{b.x + nx, b.y + ny}, spot{b.x - nx, b.y - ny}, spot{a.x - nx, a.y - ny})
}

func (c *canvas) mark(at spot, form mark, r float64) {
	corners := 12
	if form == markDiamond {
		corners = 4
	}
	path := make([]spot, corners)
	for i := range path {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(corners))
		path[i] = spot{at.x + r*cos, at.y + r*sin}
	}
	c.polygon(path...)
}

func (c *canvas) text(t *pictureText) error {
	face, err := faceOf(t.size)
	if err != nil {
		return err
	}
	defer face.Close()
	d := font.Drawer{Dst: c.img, Src: image.NewUniform(t.color), Face: face, Dot: fixed.P(int(t.at.x), int(t.at.y))}
	if t.atEnd {
		d.Dot.X -= d.MeasureString(t.text)
	}
	d.DrawString(t.text)
	return nil
}

func faceOf(size float64) (font.Face, error) {
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, err
	}
	return opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
}
