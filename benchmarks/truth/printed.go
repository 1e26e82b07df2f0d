package main

import (
	"fmt"
	"image"
	"math/rand/v2"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gobolditalic"
	"golang.org/x/image/font/gofont/goitalic"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/gofont/gomediumitalic"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/gofont/gomonoitalic"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/gofont/gosmallcaps"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// typefaces are the Go fonts (Bigelow and Holmes 2016), a source of digits that nobody
// wrote by hand.
var typefaces = [][]byte{goregular.TTF, gobold.TTF, goitalic.TTF, gobolditalic.TTF, gomedium.TTF, gomediumitalic.TTF,
	gomono.TTF, gomonobold.TTF, gomonoitalic.TTF, gosmallcaps.TTF}

// printedDigits draws images of printed digits, white on black, of side pixels a side as
// those written by hand are: every typeface and digit in turn, with heights from half to
// three quarters of the side, and moved from the middle by up to a fourteenth of it.
func printedDigits(number, side int, seed uint64) (pixels [][]uint8, labels []int32, err error) {
	r := rand.New(rand.NewPCG(seed, 0xd161))
	for i := range number {
		digit := i % 10
		parsed, err := opentype.Parse(typefaces[i/10%len(typefaces)])
		if err != nil {
			return nil, nil, err
		}
		// The figures of these fonts are 0.72 of the size high.
		size := float64(side) * (.5 + .25*r.Float64()) / .72
		face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72})
		if err != nil {
			return nil, nil, err
		}
		canvas, text := image.NewGray(image.Rect(0, 0, side, side)), fmt.Sprint(digit)
		bounds, _ := font.BoundString(face, text)
		middle := func(lo, hi fixed.Int26_6) fixed.Int26_6 {
			move := (2*r.Float64() - 1) * float64(side) / 14
			return fixed.Int26_6(64*(float64(side)/2+move)) - (lo+hi)/2
		}
		d := font.Drawer{Dst: canvas, Src: image.White, Face: face,
			Dot: fixed.Point26_6{X: middle(bounds.Min.X, bounds.Max.X), Y: middle(bounds.Min.Y, bounds.Max.Y)}}
		d.DrawString(text)
		if err := face.Close(); err != nil {
			return nil, nil, err
		}
		pixels, labels = append(pixels, canvas.Pix), append(labels, int32(digit))
	}
	return pixels, labels, nil
}
