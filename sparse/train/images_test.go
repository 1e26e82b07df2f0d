package train

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"entropipe/sparse/token"
)

// pngOf encodes a grey image of random-looking pixels.
func pngOf(t testing.TB, width, height int, colour bool) []byte {
	t.Helper()
	var img image.Image
	grey := image.NewGray(image.Rect(0, 0, width, height))
	rgb := image.NewRGBA(grey.Rect)
	for y := range height {
		for x := range width {
			v := uint8(x*7 + y*13)
			grey.SetGray(x, y, color.Gray{Y: v})
			rgb.SetRGBA(x, y, color.RGBA{v, v, v, 255})
		}
	}
	if img = grey; colour {
		img = rgb
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(data []byte) *fstest.MapFile { return &fstest.MapFile{Data: data} }

func TestReadSheets(t *testing.T) {
	m, err := ReadImages(fstest.MapFS{
		"x_10.png":    file(pngOf(t, 16, 3, false)),
		"x_9.png":     file(pngOf(t, 16, 10, true)), // before 10
		"x_labels.js": file([]byte("var labels=[0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 1, ];\n")),
		"notes.txt":   file([]byte("not read")),
	}, "sheets")
	if err != nil {
		t.Fatal(err)
	}
	if m.Side != 4 || m.Len() != 13 || len(m.Names) != 3 || m.Labels[12] != 0 {
		t.Fatalf("%d images of %d a side, %d classes", m.Len(), m.Side, len(m.Names))
	}
	for i := range 10 {
		for p, v := range m.Image(i) {
			if want := uint8(p*7 + i*13); v != want {
				t.Fatalf("image %d, pixel %d: %d, want %d", i, p, v, want)
			}
		}
	}
	if v := m.Image(11)[2]; v != 2*7+13 {
		t.Errorf("second image of the second sheet: pixel 2 is %d", v)
	}
}

func TestReadFolders(t *testing.T) {
	dir := fstest.MapFS{}
	dir["none/a.jpg"], dir[".cache/a.png"] = file(nil), file(pngOf(t, 3, 3, false)) // no classes
	for i := range 8 {
		dir["b/"+string(rune('a'+i))+".PNG"] = file(pngOf(t, 5, 5, i%2 == 0))
		if i < 6 {
			dir["a/"+string(rune('a'+i))+".png"] = file(pngOf(t, 5, 5, false))
		}
	}
	m, err := ReadImages(dir, "folders")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.Names, []string{"a", "b"}) {
		t.Errorf("classes %q", m.Names)
	}
	want := []int32{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}
	for i, l := range m.Labels {
		if l != want[i] {
			t.Fatalf("labels %v, want %v: classes take turns", m.Labels, want)
		}
	}
	if held := m.HeldOut(); len(held) != 2 || held[0] != 5 || held[1] != 11 {
		t.Errorf("held out: %v", held)
	}
}

// A sixth of every class is held out, for any number of classes.
func TestEveryClassIsHeldOut(t *testing.T) {
	for classes := 2; classes <= 12; classes++ {
		dir := fstest.MapFS{}
		for i := range 12 * classes {
			dir[fmt.Sprintf("c%02d/%02d.png", i%classes, i/classes)] = file(pngOf(t, 1, 1, false))
		}
		m, err := ReadImages(dir, "classes")
		if err != nil {
			t.Fatal(err)
		}
		held := make([]int, classes)
		for _, i := range m.HeldOut() {
			held[m.Labels[i]]++
		}
		if slices.ContainsFunc(held, func(n int) bool { return n != 2 }) {
			t.Errorf("%d classes of 12 images: %v of each are held out", classes, held)
		}
	}
}

// A judgement on some of the held-out images sees every class about as often, however classes
// alternate in the data.
func TestJudgementsSeeEveryClass(t *testing.T) {
	const classes, n = 10, 5000
	for _, most := range []int{250, 1000, 2500} {
		var seen [classes]int
		last := -1
		for i := range most {
			number := spread(i, most, n)
			if number <= last || number >= n {
				t.Fatalf("image %d of %d is number %d, after %d", i, most, number, last)
			}
			last = number
			seen[number%classes]++
		}
		for class, count := range seen {
			if count < most/classes/2 || count > most/classes*2 {
				t.Errorf("%d of %d judged images are of class %d", count, most, class)
			}
		}
	}
	for i := range n {
		if number := spread(i, n, n); number != i {
			t.Fatalf("of all images, %d is number %d", i, number)
		}
	}
}

func TestReadImagesErrors(t *testing.T) {
	sheet, labels := file(pngOf(t, 16, 13, false)), file([]byte("[0,1,0,1,0,1,0,1,0,1,0,1,0]"))
	for _, c := range []struct {
		name string
		dir  fstest.MapFS
		want string
	}{
		{"empty", fstest.MapFS{}, "neither folders"},
		{"no labels", fstest.MapFS{"a.png": sheet}, "neither folders"},
		{"no square", fstest.MapFS{"a.png": file(pngOf(t, 15, 13, false)), "labels.js": labels},
			"15 pixels, which do not form a square"},
		{"two sizes", fstest.MapFS{"a.png": sheet, "b.png": file(pngOf(t, 25, 13, false)), "labels.js": labels},
			"5 pixels a side, but earlier images have 4"},
		{"too few labels", fstest.MapFS{"a.png": sheet, "labels.js": file([]byte("[0,1]"))}, "2 labels for 13"},
		{"no list", fstest.MapFS{"a.png": sheet, "labels.js": file([]byte("labels"))}, "holds no list"},
		{"not numbers", fstest.MapFS{"a.png": sheet, "labels.js": file([]byte(`["a"]`))}, "labels.js"},
		{"negative", fstest.MapFS{"a.png": sheet, "labels.js": file([]byte("[0,1,0,1,0,1,0,1,0,1,0,1,-1]"))},
			"label 12 is -1"},
		{"one class", fstest.MapFS{"a.png": sheet, "labels.js": file([]byte("[0,0,0,0,0,0,0,0,0,0,0,0,0]"))},
			"one class"},
		{"few", fstest.MapFS{"a.png": file(pngOf(t, 16, 3, false)), "labels.js": labels}, "too few"},
		{"no png", fstest.MapFS{"a/a.png": file([]byte("text"))}, "a/a.png"},
		{"not square", fstest.MapFS{"a/a.png": file(pngOf(t, 4, 5, false))}, "must be square"},
		{"huge", fstest.MapFS{"a/a.png": file(huge(t))}, "a/a.png: the image has 65535 by 65535 pixels"},
	} {
		if _, err := ReadImages(c.dir, c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// huge is a header that promises 4 giga pixels.
func huge(t testing.TB) []byte {
	data := pngOf(t, 1, 1, false)
	copy(data[16:], []byte{0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff})
	// The header's checksum, of the four letters and its 13 bytes.
	copy(data[29:], crc(data[12:29]))
	return data
}

func FuzzReadImages(f *testing.F) {
	f.Add(pngOf(f, 16, 13, false), []byte("[0,1,0,1,0,1,0,1,0,1,0,1,0]"))
	f.Add(pngOf(f, 16, 13, true), []byte("var labels=[0,1,1,];"))
	f.Add(huge(f), []byte("]["))
	f.Fuzz(func(t *testing.T, sheet, labels []byte) {
		m, err := ReadImages(fstest.MapFS{"a.png": file(sheet), "labels.js": file(labels)}, "fuzz")
		if err == nil && (m.Len()*m.Side*m.Side != len(m.Pixels) || len(m.Names) < 2) {
			t.Errorf("%d images of %d pixels a side have %d pixels", m.Len(), m.Side, len(m.Pixels))
		}
		ReadImages(fstest.MapFS{"a/a.png": file(sheet)}, "fuzz")
	})
}

// The digits of MNIST, where they are: as many as four sheets hold, every class.
func TestDigits(t *testing.T) {
	m, err := ReadImages(os.DirFS(testData(t, "images", "mnist")), "mnist")
	if err != nil {
		t.Fatal(err)
	}
	count := make([]int, len(m.Names))
	for _, l := range m.Labels {
		count[l]++
	}
	if m.Side != 28 || m.Len()%3000 != 0 || len(count) != 10 {
		t.Errorf("%d images of %d pixels a side, of %d classes", m.Len(), m.Side, len(count))
	}
	for c, n := range count {
		if n < m.Len()/15 {
			t.Errorf("class %d: %d of %d images", c, n, m.Len())
		}
	}
}

// Drawn images are the same each time, of every class, with objects neither
// small nor large that differ from what is around them.
func TestShapes(t *testing.T) {
	m, again := Shapes(400, 28, 9), Shapes(400, 28, 9)
	if m.SHA256 != again.SHA256 || m.SHA256 == Shapes(400, 28, 10).SHA256 {
		t.Errorf("hashes %s, %s: want the same for one seed only", m.SHA256, again.SHA256)
	}
	count := make([]int, len(m.Names))
	for i, l := range m.Labels {
		count[l]++
		var sum [2]float64
		var n [2]float64
		for p, v := range m.Image(i) {
			k := 0
			if m.Masks[i*28*28+p] {
				k = 1
			}
			sum[k] += float64(v)
			n[k]++
		}
		if n[1] < 25 || n[1] > 400 {
			t.Errorf("image %d, a %s: %v pixels of the object", i, m.Names[l], n[1])
		}
		if d := sum[0]/n[0] - sum[1]/n[1]; d < 20 && d > -20 {
			t.Errorf("image %d, a %s: object and ground differ by %v", i, m.Names[l], d)
		}
	}
	for c, n := range count {
		if n < 25 {
			t.Errorf("%s: %d of 400", m.Names[c], n)
		}
	}
}

// Law: in images of Textured neither brightness nor contrast tells the object. Over
// many images its mean and its deviation are those of the ground, and the object's
// texture repeats every four pixels while the ground does not.
func TestTexturedObjectsAreNotTold(t *testing.T) {
	const side, images = 44, 300
	m := Textured(images, side, 7)
	if !slices.Equal(m.Pixels, Textured(images, side, 7).Pixels) || slices.Equal(m.Pixels, Textured(images, side,
		8).Pixels) {
		t.Error("the seed does not decide the images")
	}
	var level, deviation, apart [2]float64 // ground, object
	for i := range images {
		var sum, squares, n, step, steps [2]float64
		image, mask := m.Image(i), m.Masks[i*side*side:(i+1)*side*side]
		for p, v := range image {
			k := 0
			if mask[p] {
				k = 1
			}
			x := float64(v)
			sum[k], squares[k], n[k] = sum[k]+x, squares[k]+x*x, n[k]+1
			if p%side >= 4 && mask[p-4] == mask[p] {
				step[k] += (x - float64(image[p-4])) * (x - float64(image[p-4]))
				steps[k]++
			}
		}
		if share := n[1] / side / side; share < 0.01 || share > 0.4 {
			t.Errorf("image %d: the object has the share %.3f of the pixels", i, share)
		}
		for k := range n {
			mean := sum[k] / n[k]
			level[k] += mean / images
			deviation[k] += math.Sqrt(squares[k]/n[k]-mean*mean) / images
			apart[k] += math.Sqrt(step[k]/max(steps[k], 1)) / images
		}
	}
	if d := level[1] - level[0]; d < -2 || d > 2 {
		t.Errorf("the object is brighter by %.2f of 255", d)
	}
	if r := deviation[1] / deviation[0]; r < 0.9 || r > 1.1 {
		t.Errorf("the object's contrast is %.3f times the ground's", r)
	}
	if apart[1] > apart[0]/2 {
		t.Errorf("pixels four apart differ by %.1f in the object and by %.1f in the ground", apart[1], apart[0])
	}
}

// Patches are cut so that transformers' convolution reads them in this order,
// and a moved image repeats its border.
func TestPatches(t *testing.T) {
	image := make([]uint8, 16)
	for i := range image {
		image[i] = uint8(i)
	}
	dst := make([]float32, 16)
	for _, c := range []struct {
		dx, dy int
		want   []uint8
	}{
		{0, 0, []uint8{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}},
		{1, 0, []uint8{0, 0, 4, 4, 1, 2, 5, 6, 8, 8, 12, 12, 9, 10, 13, 14}},
		{0, -2, []uint8{8, 9, 12, 13, 10, 11, 14, 15, 12, 13, 12, 13, 14, 15, 14, 15}},
	} {
		patched(dst, image, 4, 2, c.dx, c.dy)
		for i, v := range c.want {
			if dst[i] != float32(v)/127.5-1 {
				t.Errorf("moved by %d, %d: number %d is %v, want that of %d", c.dx, c.dy, i, dst[i], v)
			}
		}
	}
}

// The tokenizer of bytes opens, gives every byte its value, and goes back.
func TestByteTokenizer(t *testing.T) {
	k, err := token.Parse(ByteTokenizer())
	if err != nil {
		t.Fatal(err)
	}
	if k.Vocab() != Bytes {
		t.Errorf("vocabulary of %d", k.Vocab())
	}
	text := "To be, or not to be:\n\t“that is” the question… \u00a0 \x00 \x7f é 東 🙂 's 12  "
	ids := k.Encode(nil, text)
	for i, id := range ids {
		if i >= len(text) || id != int32(text[i]) {
			t.Fatalf("token %d is %d, of %d bytes %q", i, id, len(text), text)
		}
	}
	if len(ids) != len(text) || k.Decode(ids) != text {
		t.Errorf("%d tokens of %d bytes; back: %q", len(ids), len(text), k.Decode(ids))
	}
	if end := k.Encode(nil, "<|endoftext|>"); len(end) != 1 || end[0] != EndOfText {
		t.Errorf("end of text: %v", end)
	}
}

func TestByteText(t *testing.T) {
	one, err := ByteText("one", bytes.Repeat([]byte("ab"), 50))
	if err != nil {
		t.Fatal(err)
	}
	two, err := ByteText("two", bytes.Repeat([]byte("ab"), 25), bytes.Repeat([]byte("ab"), 25))
	if err != nil {
		t.Fatal(err)
	}
	if len(one.Learn) != 90 || len(one.Held) != 10 || len(two.Learn)+len(two.Held) != 102 ||
		two.Learn[50] != EndOfText || one.SHA256 == two.SHA256 {
		t.Errorf("lengths %d+%d, %d+%d, token 50 is %d", len(one.Learn), len(one.Held), len(two.Learn),
			len(two.Held), two.Learn[50])
	}
	ids, next := one.Windows(3)
	if len(ids) != 3 || ids[1][0] != one.Held[3] || next[2][2] != one.Held[9] {
		t.Errorf("windows %v, %v of %v", ids, next, one.Held)
	}
	if _, err := ByteText("few", []byte("abc")); err == nil {
		t.Error("three bytes are enough to learn from")
	}
	if _, err := TokenText("beyond", []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 20,
		nil); err == nil || !strings.Contains(err.Error(), "token 19 is 20") {
		t.Errorf("a token beyond the vocabulary: %v", err)
	}
}
