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

// Images are grey images of one size, of classes. Every sixth one is held out.
type Images struct {
	Side   int
	Pixels []uint8 // [images][Side][Side]
	Labels []int32
	Names  []string // of the classes
	// Masks tell the object's pixels from the background's, as Pixels; nil
	// where they are not known.
	Masks  []bool
	Name   string // for the card
	SHA256 string // of pixels and labels
}

// Len returns the number of images.
func (m *Images) Len() int { return len(m.Labels) }

// Image returns the pixels of image i, a view.
func (m *Images) Image(i int) []uint8 {
	size := m.Side * m.Side
	return m.Pixels[i*size : (i+1)*size]
}

// heldEvery is the reciprocal of the share of images that is held out.
const heldEvery = 6

// Held says whether image i is held out.
func Held(i int) bool { return i%heldEvery == heldEvery-1 }

// limits of what ReadImages reads, against files that are not what they seem.
const (
	maxImages = 1 << 20
	maxSide   = 1 << 10
	maxPixels = 1 << 30
)

// ReadImages reads images from a folder, in the order of their names. It holds
// either a folder of PNG files for every class, all of one square size (folders
// without one, or whose name begins with a dot, are no classes), or sheets: PNG files each of whose rows is one image, row by row, and a file
// *labels.js or *labels.json with the list of all classes' numbers; sheets
// named *_0, *_1, … come in that order, and labels without an image are left
// over. Colours become grey.
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
			if file[0] != '.' { // of another program
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
		err = errors.New("neither folders of PNG files nor sheets with a file of labels are there")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, m.seal()
}

// seal checks what was read and takes its hash.
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

// number is the one that a file's name ends in.
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
			return fmt.Errorf("%s: its rows of %d pixels are no square images", file, b.Dx())
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

// grow checks that count images of this side fit with those there.
func (m *Images) grow(file string, side, count int) error {
	if m.Side == 0 {
		m.Side = side
	}
	switch {
	case side != m.Side:
		return fmt.Errorf("%s: images of %d pixels a side, and others have %d", file, side, m.Side)
	case side < 1 || side > maxSide:
		return fmt.Errorf("%s: images of %d pixels a side: want 1 to %d", file, side, maxSide)
	case len(m.Pixels)+count*side*side > maxPixels:
		return fmt.Errorf("%s: more than %d pixels in all", file, maxPixels)
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
		return fmt.Errorf("%s: holds no list", file)
	}
	list := bytes.TrimRight(data[open+1:end], " \t\r\n,") // lists of scripts may end in a comma
	var numbers []int32
	if err := json.Unmarshal([]byte("["+string(list)+"]"), &numbers); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(numbers) < count {
		return fmt.Errorf("%s: %d labels for %d images", file, len(numbers), count)
	}
	classes := int32(0)
	for i, l := range numbers[:count] {
		if l < 0 || l >= 1000 {
			return fmt.Errorf("%s: label %d is %d: want 0 to 999", file, i, l)
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
		return fmt.Errorf("%d folders: want at most 1000 classes", len(m.Names))
	}
	// Classes take turns of heldEvery images, so that each has its share of those
	// that are held out: with single images, and classes whose number is even,
	// half of them would have none.
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
		return fmt.Errorf("more than %d images", maxImages)
	}
	img, err := readPNG(dir, file)
	if err != nil {
		return err
	}
	b := img.Bounds()
	if b.Dx() != b.Dy() {
		return fmt.Errorf("%s: %d by %d pixels: want a square", file, b.Dx(), b.Dy())
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

// readPNG decodes a file whose header promises a size that is in bounds.
func readPNG(dir fs.FS, file string) (image.Image, error) {
	data, err := fs.ReadFile(dir, file)
	if err != nil {
		return nil, err
	}
	c, err := png.DecodeConfig(bytes.NewReader(data))
	if err == nil && (c.Width < 1 || c.Height < 1 || int64(c.Width)*int64(c.Height) > 1<<26) {
		err = fmt.Errorf("%d by %d pixels", c.Width, c.Height)
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
