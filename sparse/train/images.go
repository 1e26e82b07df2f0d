package train

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Images holds square grey images of one size, each with a class. Every sixth
// image is held out.
type Images struct {
	Side   int
	Pixels []uint8 // [images][Side][Side]
	Labels []int32 // [images] class of each image, an index of Names
	Names  []string
	// Masks [images][Side][Side] marks the pixels of the object; nil if they are
	// unknown.
	Masks  []bool
	Name   string // name of the data, for the card
	SHA256 string // hash of pixels and labels, in hexadecimal
}

// Len returns the number of images.
func (m *Images) Len() int { return len(m.Labels) }

// Image returns the pixels of image i, a view [Side][Side] of Pixels.
func (m *Images) Image(i int) []uint8 {
	size := m.Side * m.Side
	return m.Pixels[i*size : (i+1)*size]
}

// heldEvery is the reciprocal of the share of images that is held out.
const heldEvery = 6

// Held reports whether image i is held out.
func Held(i int) bool { return i%heldEvery == heldEvery-1 }

func learned(i int) bool { return !Held(i) }

// Limits of ReadImages, which bound its memory when a file lies about its size.
const (
	maxImages = 1 << 20
	maxSide   = 1 << 10
	maxPixels = 1 << 30
)

// ReadImages reads images from a folder, in the order of their names. The folder
// has one of two forms:
//
//   - A folder of PNG files for every class, all of one square size. Folders
//     without a PNG file, and folders whose name begins with a dot, are ignored.
//   - Sheets: PNG files in which each row of pixels is one image, and a file
//     *labels.js or *labels.json with a list of the class numbers of all images.
//     Sheets named *_0, *_1, … are read in that order. Labels after the last image
//     are ignored.
//
// Colours become grey. name is the name of the data for the card and for errors.
// Errors name the file. Fewer than 12 images, or one class only, are an error.
func ReadImages(dir fs.FS, name string) (*Images, error) {
	m := &Images{Name: name}
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	var folders, sheets []string
	labels := ""
	for _, e := range entries {
		switch file := e.Name(); {
		case e.IsDir():
			if file[0] != '.' { // other programs keep hidden folders beside the data
				folders = append(folders, file)
			}
		case isPNG(file):
			sheets = append(sheets, file)
		case strings.HasSuffix(file, "labels.js") || strings.HasSuffix(file, "labels.json"):
			labels = file
		}
	}
	switch {
	case len(sheets) > 0 && labels != "":
		err = m.readSheets(dir, sheets, labels)
	case len(folders) > 0:
		err = m.readFolders(dir, folders)
	default:
		err = errors.New("the folder holds neither folders of PNG files nor sheets with a file of labels")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, m.seal()
}

// seal checks the number of images and classes and sets SHA256.
func (m *Images) seal() error {
	const least = 2 * heldEvery
	switch {
	case m.Len() < least:
		return fmt.Errorf("%s: %d images are too few to learn from", m.Name, m.Len())
	case len(m.Names) < 2:
		return fmt.Errorf("%s: all images are of one class", m.Name)
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%d %d\n", m.Len(), m.Side)
	hash.Write(m.Pixels)
	for _, l := range m.Labels {
		hash.Write([]byte{byte(l), byte(l >> 8)})
	}
	m.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return nil
}

func isPNG(file string) bool { return strings.EqualFold(path.Ext(file), ".png") }

var trailing = regexp.MustCompile(`(?i)(\d+)\.png$`)

// number returns the number at the end of a file's name, or -1.
func number(file string) int {
	if m := trailing.FindStringSubmatch(file); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return n
		}
	}
	return -1
}

func (m *Images) readSheets(dir fs.FS, sheets []string, labels string) error {
	slices.SortStableFunc(sheets, func(a, b string) int { return number(a) - number(b) })
	for _, file := range sheets {
		img, err := readPNG(dir, file)
		if err != nil {
			return err
		}
		b := img.Bounds()
		side := int(math.Round(math.Sqrt(float64(b.Dx()))))
		if side*side != b.Dx() {
			return fmt.Errorf("%s: a row has %d pixels, which do not form a square image", file, b.Dx())
		}
		if err := m.grow(file, side, b.Dy()); err != nil {
			return err
		}
		for y := range b.Dy() {
			for x := range b.Dx() {
				m.Pixels = append(m.Pixels, grey(img, b.Min.X+x, b.Min.Y+y))
			}
		}
	}
	return m.readLabels(dir, labels, len(m.Pixels)/(m.Side*m.Side))
}

// grow checks that count images of this side may follow the images read so far.
func (m *Images) grow(file string, side, count int) error {
	if m.Side == 0 {
		m.Side = side
	}
	switch {
	case side != m.Side:
		return fmt.Errorf("%s: images have %d pixels a side, but earlier images have %d", file, side, m.Side)
	case side < 1 || side > maxSide:
		return fmt.Errorf("%s: images have %d pixels a side but must have 1 to %d", file, side, maxSide)
	case len(m.Pixels)+count*side*side > maxPixels:
		return fmt.Errorf("%s: all images together have more than %d pixels", file, maxPixels)
	}
	return nil
}

func (m *Images) readLabels(dir fs.FS, file string, count int) error {
	data, err := fs.ReadFile(dir, file)
	if err != nil {
		return err
	}
	open, end := bytes.IndexByte(data, '['), bytes.LastIndexByte(data, ']')
	if open < 0 || end < open {
		return fmt.Errorf("%s: the file holds no list", file)
	}
	list := bytes.TrimRight(data[open+1:end], " \t\r\n,") // a list in a script may end in a comma
	var numbers []int32
	if err := json.Unmarshal([]byte("["+string(list)+"]"), &numbers); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(numbers) < count {
		return fmt.Errorf("%s: the list has %d labels for %d images", file, len(numbers), count)
	}
	classes := int32(0)
	for i, l := range numbers[:count] {
		if l < 0 || l >= 1000 {
			return fmt.Errorf("%s: label %d is %d but must be 0 to 999", file, i, l)
		}
		classes = max(classes, l+1)
	}
	m.Labels = numbers[:count]
	for c := range classes {
		m.Names = append(m.Names, strconv.Itoa(int(c)))
	}
	return nil
}

func (m *Images) readFolders(dir fs.FS, folders []string) error {
	slices.Sort(folders)
	var files [][]string
	most := 0
	for _, folder := range folders {
		entries, err := fs.ReadDir(dir, folder)
		if err != nil {
			return err
		}
		var own []string
		for _, e := range entries {
			if isPNG(e.Name()) {
				own = append(own, path.Join(folder, e.Name()))
			}
		}
		if len(own) == 0 {
			continue
		}
		m.Names, files, most = append(m.Names, folder), append(files, own), max(most, len(own))
	}
	if len(m.Names) > 1000 {
		return fmt.Errorf("there are %d folders, and at most 1000 classes", len(m.Names))
	}
	// Classes alternate in runs of heldEvery images, so that each class has its share
	// of the held-out images. If classes alternated after each image, and their number
	// were even, half of the classes would have no held-out image.
	for i := 0; i < most; i += heldEvery {
		for class, own := range files {
			for _, file := range own[min(i, len(own)):min(i+heldEvery, len(own))] {
				if err := m.readImage(dir, file, int32(class)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (m *Images) readImage(dir fs.FS, file string, class int32) error {
	if len(m.Labels) == maxImages {
		return fmt.Errorf("the folders hold more than %d images", maxImages)
	}
	img, err := readPNG(dir, file)
	if err != nil {
		return err
	}
	b := img.Bounds()
	if b.Dx() != b.Dy() {
		return fmt.Errorf("%s: the image has %d by %d pixels but must be square", file, b.Dx(), b.Dy())
	}
	if err := m.grow(file, b.Dx(), 1); err != nil {
		return err
	}
	for y := range b.Dy() {
		for x := range b.Dx() {
			m.Pixels = append(m.Pixels, grey(img, b.Min.X+x, b.Min.Y+y))
		}
	}
	m.Labels = append(m.Labels, class)
	return nil
}

// readPNG decodes a file. It refuses a file whose header announces more than 2^26
// pixels before it decodes them.
func readPNG(dir fs.FS, file string) (image.Image, error) {
	data, err := fs.ReadFile(dir, file)
	if err != nil {
		return nil, err
	}
	c, err := png.DecodeConfig(bytes.NewReader(data))
	if err == nil && (c.Width < 1 || c.Height < 1 || int64(c.Width)*int64(c.Height) > 1<<26) {
		err = fmt.Errorf("the image has %d by %d pixels, more than %d in all or none", c.Width, c.Height, 1<<26)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return img, nil
}

func grey(img image.Image, x, y int) uint8 {
	if g, ok := img.(*image.Gray); ok {
		return g.GrayAt(x, y).Y
	}
	return color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y
}
